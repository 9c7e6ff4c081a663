"""Files of word vectors as other programs write them: word2vec's binary, fastText's text, packed files, archives."""

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zipfile

import numpy as np
import pyarrow as pa
import pytest

from paranmt_hf.text.word_vectors import knows_any, read_known, read_vectors, read_words
from tests.refused import refused

WORDS = ["the", "können", "東京", "a"]
MATRIX = np.array([[1, -2.5, 3e-3], [0, 7, 1e6], [-1, 0.1, 9], [4, 5, 6]], np.float32)


def binary(words=WORDS, matrix=MATRIX, end=b"", promised=None):
    """The bytes that gensim 4.4's `save_word2vec_format(binary=True)` writes, or with `end` word2vec's own program."""
    count = len(words) if promised is None else promised
    content = f"{count} {matrix.shape[1]}\n".encode()
    for word, row in zip(words, matrix, strict=True):
        name = word if isinstance(word, bytes) else word.encode()
        content += name + b" " + row.astype("<f4").tobytes() + end
    return content


@pytest.mark.parametrize("end", [b"", b"\n"])
@pytest.mark.parametrize(("name", "pack"), [("v.bin", bytes), ("v.bin.gz", gzip.compress), ("v", bytes)])
def test_binary_of_word2vec(tmp_path, name, pack, end):
    path = tmp_path / name
    path.write_bytes(pack(binary(end=end)))
    vectors = read_vectors(path)
    assert vectors.words == WORDS
    np.testing.assert_array_equal(vectors.matrix, MATRIX)
    assert read_words(path) == WORDS
    some = read_known(path, ["東京", "absent"])
    assert some.words == ["東京"]
    np.testing.assert_array_equal(some.matrix, MATRIX[2:3])
    first = read_vectors(path, limit=1, wanted=["a"])
    assert first.words == ["the", "a"]
    assert knows_any(path, ["x", "können"]) and not knows_any(path, ["x"])


def test_many_words_in_binary(tmp_path):
    """More bytes than are read at once, so that words and vectors are cut between two blocks."""
    words = [f"w{number}" for number in range(2_500)]
    matrix = np.random.default_rng(1).standard_normal((len(words), 300)).astype(np.float32)
    (tmp_path / "v.bin").write_bytes(binary(words, matrix))
    vectors = read_vectors(tmp_path / "v.bin")
    assert vectors.words == words
    np.testing.assert_array_equal(vectors.matrix, matrix)


@pytest.mark.parametrize("kind", ["binary", "text"])
def test_a_word_cut_inside_a_character_is_skipped_and_counted(tmp_path, caplog, kind):
    """As word2vec.c cuts words at 60 bytes; gensim 4.4 reads such files with `unicode_errors="ignore"`."""
    words = ["the", "können".encode()[:2], "東京".encode()[:4], "a"]
    lines = [f" {' '.join(map(str, row))}\n".encode() for row in MATRIX.tolist()]
    named = [word if isinstance(word, bytes) else word.encode() for word in words]
    text = b"4 3\n" + b"".join(word + line for word, line in zip(named, lines, strict=True))
    (tmp_path / "v.bin").write_bytes(binary(words) if kind == "binary" else text)
    vectors = read_vectors(tmp_path / "v.bin")
    assert vectors.words == ["the", "a"]
    np.testing.assert_array_equal(vectors.matrix, MATRIX[[0, 3]])
    assert "2 words skipped" in caplog.text
    assert read_words(tmp_path / "v.bin") == ["the", "a"]


def test_few_invalid_words_are_skipped_and_many_are_another_encoding(tmp_path):
    lines = [f"w{number} {number} 1\n".encode() for number in range(200)]
    (tmp_path / "v.txt").write_bytes(b"".join(lines) + b"f\xfcr 1 2\n")
    assert len(read_vectors(tmp_path / "v.txt").words) == 200
    (tmp_path / "v.txt").write_bytes(b"".join(lines) + b"f\xfcr 1 2\n" * 3)
    with refused(path=tmp_path / "v.txt"):
        read_vectors(tmp_path / "v.txt")


@pytest.mark.parametrize(
    "content",
    [
        binary(promised=5),
        binary()[:-1],
        binary() + b"more",
        binary(matrix=np.full((4, 3), np.nan, np.float32)),
        b"2 3\n" + b"x" * (1 << 17) + b" " + bytes(12),
        b"2 200000\nthe " + bytes(9),
        b"0 3\n" + bytes(9),
    ],
    ids=["more promised", "cut off", "followed", "not finite", "long word", "too wide", "no word"],
)
def test_damaged_binary(tmp_path, content):
    (tmp_path / "v.bin").write_bytes(content)
    with refused(path=tmp_path / "v.bin"):
        read_vectors(tmp_path / "v.bin")


def test_vec_of_fasttext(tmp_path):
    """fastText 0.9.3 ends each line of a .vec file with a blank, and its first word is the end of a sentence."""
    (tmp_path / "v.vec").write_text("3 2\n</s> 0.1 -0.2 \nthe 1 2 \n, 3 4 \n", encoding="utf8")
    vectors = read_vectors(tmp_path / "v.vec")
    assert vectors.words == ["</s>", "the", ","]
    np.testing.assert_array_equal(vectors.matrix, np.array([[0.1, -0.2], [1, 2], [3, 4]], np.float32))


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".xz", lzma.compress),
        (".zst", lambda content: pa.compress(content, "zstd", asbytes=True)),
    ],
)
def test_packed_text_of_glove(tmp_path, suffix, pack):
    path = tmp_path / f"glove.txt{suffix}"
    path.write_bytes(pack(b"the 1 2\ncat 3 4\n"))
    assert read_vectors(path).words == read_words(path) == ["the", "cat"]
    unnamed = tmp_path / "glove.txt"
    unnamed.write_bytes(path.read_bytes())
    assert read_vectors(unnamed).words == ["the", "cat"]


def fasttext_bin(version, model):
    """The first bytes of a `.bin` file: a number, the version and the twelve settings of fastText 0.9 and Sent2Vec."""
    settings = [100, 5, 5, 5, 5, 1, 2, model, 2_000_000, 3, 6, 100]
    return struct.pack("<14id", 793712314, version, *settings, 1e-4) + bytes(100)


def archive(kind):
    """An archive of two members, as GloVe's zip has them."""
    buffer = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(buffer, "w") as file:
            for name in ("glove.50d.txt", "glove.100d.txt"):
                file.writestr(name, "the 1 2\n")
    else:
        with tarfile.open(fileobj=buffer, mode="w") as file:
            file.addfile(tarfile.TarInfo("glove.50d.txt"))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (fasttext_bin(12, 2), "fastText"),
        (fasttext_bin(11, 3), "fastText"),
        (fasttext_bin(11, 4), "encoder convert"),
        (archive("zip"), "glove.50d.txt, glove.100d.txt"),
        (archive("tar"), "tar"),
        (b"\x80\x04\x95\x20", "save_word2vec_format"),
        (b"PAR1 more", "Parquet"),
        (b"\x93NUMPY\x01\x00", "numpy"),
        (b"the \0\0\0 1 2", "not text"),
    ],
)
def test_other_files_are_refused_by_name_with_the_way_out(tmp_path, content, advice):
    path = tmp_path / "vectors.bin"
    path.write_bytes(content)
    for read in (read_vectors, read_words, lambda file: knows_any(file, ["the"])):
        with refused(path=path) as caught:
            read(path)
        assert advice in str(caught.value)
