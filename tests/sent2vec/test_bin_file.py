"""Reading the files of the Sent2Vec program: every way to be damaged is one error, and memory follows what came."""

from __future__ import annotations

import gzip
import io
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paranmt_hf.errors import InputError
from paranmt_hf.sent2vec.bin_file import BinReader, Sent2VecRows, Sent2VecWords, read_vocabulary
from tests.refused import refused
from tests.sent2vec.sent2vec_files import WORDS, BinFile


def read(content: bytes) -> tuple[Sent2VecWords, np.ndarray]:
    """Read a whole model."""
    reader = BinReader(io.BytesIO(content), "model.bin")
    found = read_vocabulary(reader)
    rows = Sent2VecRows(reader, found)
    blocks = []
    for start, block in rows.blocks():
        rows.refuse_not_finite(start, block)
        blocks.append(block)
    for _ in rows.rest():
        pass
    return found, np.concatenate(blocks)


@pytest.mark.parametrize("further", [0, 1])
def test_round_trip(further: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words, settings and rows are those of the file, in blocks of any size, packed or not."""
    monkeypatch.setattr("paranmt_hf.sent2vec.bin_file.BLOCK", 48)
    file = BinFile(WORDS, order=3, further=further, labels=[b"__label__x"])
    for content in (file.write(), gzip.compress(file.write())):
        found, rows = read(content)
        assert found.units == ["[UNK]", *(word.decode() for word in WORDS[1:-1]), "bytes ff fe"]
        assert found.labels == 1
        assert (found.settings.dim, found.settings.wordNgrams, found.settings.bucket) == (4, 3, 50)
        assert (found.settings.epoch, found.settings.tokens, found.settings.t) == (3, 1000, 1e-4)
        assert found.settings.loss == "negative sampling"
        np.testing.assert_array_equal(rows, file.rows())


DAMAGE = {
    "version": (dict(version=13), "the version of the file before byte 8 must be 11, was 13"),
    "kind": (dict(settings={"model": 9}), "the settings before byte 64 must be those of sent2vec"),
    "dim": (dict(settings={"dim": -1}), "the settings .*, was dim -1,"),
    "order": (dict(settings={"wordNgrams": 2**31 - 1}), "the settings .* wordNgrams 2147483647"),
    "buckets": (dict(settings={"bucket": 0}), "the settings .* bucket 0"),
    "threshold": (dict(threshold=float("nan")), "the settings .* t nan"),
    "vocabulary": (dict(sizes=(2**31 - 1, 2**31 - 1, 0)), "the size of the vocabulary before byte 92 must be words"),
    "labels": (dict(sizes=(11, 12, -1)), "was 11 of 12 and -1"),
    "no words": (dict(sizes=(1, 1, 0)), "was 1 of 1 and 0"),
    "tokens": (dict(tokens=-5), "the size of the vocabulary"),
    "pruned": (dict(pruned=4), "was pruned, or is damaged; take the model from before"),
    "first": (dict(words=[b"the", b"cat"]), "the first word before byte .* must be <PLACEHOLDER>, was the"),
    "twice": (dict(words=[*WORDS, b"cat"]), "has the word 'cat' twice"),
    "endless": (dict(words=[WORDS[0], b"x" * 70_000]), "a word before byte 115 must be of at most 65,536"),
    "kind of word": (dict(words=[WORDS[0], b"a"], labels=[b"l"], sizes=(3, 3, 0)), "kind 0, was of kind 1"),
    "quantised": (dict(quantised=1), r"is quantised \(the vectors of words and n-grams\), which is not read"),
    "flag": (dict(quantised=2), "the size of the vectors of words and n-grams"),
    "rows": (dict(matrix=(2**62, 4)), "must be 61 or 62 rows of 4, was 4,611,686,018,427,387,904 rows of 4"),
    "columns": (dict(matrix=(62, -4)), "must be 61 or 62 rows of 4, was 62 rows of -4"),
    "end": (dict(tail=b"x"), r"the vectors of targets before byte [\d,]+ must be the end, was followed by more"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_named_with_its_place(name: str) -> None:
    changes, message = DAMAGE[name]
    with refused():
        read(BinFile(**{"words": WORDS, **changes}).write())  # type: ignore[arg-type]


@pytest.mark.parametrize("content", [BinFile(WORDS, magic=7).write(), b"A man is riding a horse .\n"])
def test_other_files_are_about_the_model(content: bytes) -> None:
    """A file that is no model at all is not said to be damaged."""
    with pytest.raises(InputError) as caught:
        read(content)
    assert caught.value.option == "model"


@pytest.mark.parametrize("model", ["cbow", "skipgram", "supervised", "cbow-c+w-ngrams"])
@pytest.mark.parametrize("version", [11, 12])
def test_other_models_are_named(model: str, version: int) -> None:
    with refused():
        read(BinFile(WORDS, model=model, version=version).write())


def test_not_finite() -> None:
    for row in (2, 11 + 3):
        file = BinFile(WORDS)
        rows = file.rows()
        rows[row, 1] = np.inf
        with refused():
            read(file.write(rows))


def test_packed_and_cut_off() -> None:
    packed = gzip.compress(BinFile(WORDS).write())
    for content in (packed[:-9], packed[: len(packed) // 2], packed[:40] + b"damage" + packed[46:]):
        with refused():
            read(content)


SMALL = BinFile(WORDS[:4], dim=2, bucket=3).write()


def test_cut_off_anywhere() -> None:
    for length in range(len(SMALL)):
        with refused():
            read(SMALL[:length])


@settings(max_examples=100)
@given(st.integers(0, len(SMALL) - 1), st.integers(1, 255), st.integers(1, 4))
def test_any_flipped_bytes_give_an_error_or_a_model(place: int, change: int, count: int) -> None:
    """Nothing else, and never much memory for a file of a few hundred bytes."""
    content = bytearray(SMALL)
    for index in range(place, min(place + count, len(content))):
        content[index] ^= change
    tracemalloc.start()
    try:
        found, rows = read(bytes(content))
    except InputError as error:
        assert "model.bin" in str(error)
    else:
        assert len(rows) - len(found.units) - found.settings.bucket in (0, 1)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 20e6
