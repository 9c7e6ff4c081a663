"""Word-vector files: what is read, and what is told when one is broken."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf import InputError
from paranmt_hf.text.word_vectors import (
    UNKNOWN_WORDS,
    WordVectors,
    check_vectors,
    knows_any,
    read_known,
    read_vectors,
    read_words,
    write_vectors,
)
from tests.refused import refused
from tests.toys import full_disk

PLAIN = "the 1 2 3\ncat 0.5 -1 2e-1\n"


def test_a_file_that_is_cut_off_is_found_by_its_ends(tmp_path):
    path = tmp_path / "a.txt"
    for whole in (PLAIN, "2 3\n" + PLAIN, PLAIN.replace(" ", "\t"), PLAIN.replace("\n", "\r\n"), "the 1 2 3"):
        path.write_bytes(whole.encode())
        check_vectors(path)
    for cut in (PLAIN[:-6], "2 3\n" + PLAIN[:-6], "the 1 2 3\ncat"):
        path.write_text(cut)
        with refused(path=path):
            check_vectors(path)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(PLAIN.encode()))
    check_vectors(tmp_path / "a.txt.gz")


def test_plain_gz_and_header_give_the_same(tmp_path):
    (tmp_path / "plain.txt").write_text(PLAIN)
    (tmp_path / "header.txt").write_text("2 3\n" + PLAIN)
    (tmp_path / "packed.txt.gz").write_bytes(gzip.compress(PLAIN.encode()))
    for name in ("plain.txt", "header.txt", "packed.txt.gz"):
        vectors = read_vectors(tmp_path / name)
        assert vectors.words == ["the", "cat"]
        np.testing.assert_array_equal(vectors.matrix, np.array([[1, 2, 3], [0.5, -1, 0.2]], np.float32))


def test_first_of_two_counts_and_words_may_hold_blanks(tmp_path):
    (tmp_path / "v.txt").write_text("a 1 2\na 3 4\n. . 5 6\n")
    vectors = read_vectors(tmp_path / "v.txt")
    assert vectors.words == ["a", ". ."]
    assert vectors.matrix.tolist() == [[1, 2], [5, 6]]
    assert read_vectors(tmp_path / "v.txt", limit=1).words == ["a"]


def test_wanted_words_are_read_wherever_they_stand(tmp_path):
    lines = [f"w{number} {number} 0\n" for number in range(50)]
    (tmp_path / "v.txt").write_text("".join(lines) + "w40 9 9\n\xff broken\n", encoding="latin1")
    found = read_vectors(tmp_path / "v.txt", limit=3, wanted=["w40", "w1", "w20"])
    assert found.words == ["w0", "w1", "w2", "w20", "w40"]
    assert found.matrix.tolist() == [[0, 0], [1, 0], [2, 0], [20, 0], [40, 0]]
    (tmp_path / "whole.txt").write_text("".join(lines))
    assert read_vectors(tmp_path / "whole.txt", limit=2, wanted=["absent"]).words == ["w0", "w1"]
    whole = read_vectors(tmp_path / "v.txt", limit=50, wanted=["w3"])
    assert len(whole.words) == 50


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"a 1 2\nb 1\n",
        b"a 1 2\nb x 2\n",
        b"a\n",
        b"a 1 2\n\xff 1 2\n",
        "a 1 2\nb 1 3\n".encode("utf16"),
        b"a 1 inf\n",
        b"a 1_0 1\n",
        b"a 1 nan\n",
        b"a 1 1e39\n",
        b"a 1 2\nb 1 2 3\n",
        b"a 1 2\nb -.5 2e-1 3\n",
        b"the 0.5\ncat" + b" 0.1" * 20,
        b"3 20\ncat 1 2 3\n",
        b"3 2\ncat 1 2 3\n",
        b"3 0\ncat 1 2 3\n",
        b"3 2\na 1 2\nb 1 2\n",
        b"1 2\n",
    ],
)
def test_malformed_line_is_named(tmp_path, content):
    (tmp_path / "v.txt").write_bytes(content)
    with refused(path=tmp_path / "v.txt"):
        read_vectors(tmp_path / "v.txt")


@pytest.mark.parametrize(
    "lines",
    [
        "a 1 2\nb 1\nc 1 2\n",
        "a 1 2\nb 1 2c 3 4\nd 1 2\n",
        "a 1 2\nb 1 2\nc 12\n",
        "a 1 2 \nb 1 2 3 4\nc 1 2 \n",
    ],
)
def test_damaged_lines_that_are_not_needed(tmp_path, lines):
    (tmp_path / "v.txt").write_text(lines)
    for read in (lambda path: read_known(path, ["a", "absent"]), read_words):
        with refused(path=tmp_path / "v.txt"):
            read(tmp_path / "v.txt")


def test_lines_that_are_not_needed_may_be_unusual(tmp_path):
    (tmp_path / "v.txt").write_text("2 2\na 1 2 \n. . . 1 2\nb\t1\t2\n\u00fc 12345 -1e-9\nc 1 2", encoding="utf8")
    assert read_known(tmp_path / "v.txt", ["a", "absent"]).words == ["a"]
    with refused():
        read_known(tmp_path / "v.txt", {"dog"})
    assert read_words(tmp_path / "v.txt") == ["a", ". . .", "b", "\u00fc", "c"]


def test_fields_may_be_parted_by_tabs(tmp_path):
    (tmp_path / "v.txt").write_text("a\t1 2\nb\t3\t4\n")
    vectors = read_vectors(tmp_path / "v.txt")
    assert vectors.words == ["a", "b"] and vectors.matrix.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("name", UNKNOWN_WORDS)
def test_row_of_unknown_words_is_no_word(tmp_path, name):
    (tmp_path / "v.txt").write_text(f"a 1 2\nunk 3 4\nb 5 6\n{name} 7 8\n{name} 9 9\n")
    vectors = read_vectors(tmp_path / "v.txt")
    assert vectors.words == ["a", "unk", "b"] and vectors.unknown.tolist() == [7, 8]
    assert read_vectors(tmp_path / "v.txt", limit=1).unknown is None
    some = read_vectors(tmp_path / "v.txt", limit=1, wanted=UNKNOWN_WORDS)
    assert some.words == ["a"] and some.unknown.tolist() == [7, 8]


def test_whether_a_word_is_known(tmp_path):
    (tmp_path / "v.txt").write_text("2 2\na 1 2\nb\t5 6\n")
    assert knows_any(tmp_path / "v.txt", ["x", "b"]) and not knows_any(tmp_path / "v.txt", ["x", "1"])
    with refused(path=tmp_path / "none.txt"):
        knows_any(tmp_path / "none.txt", ["a"])


def test_missing_and_truncated_files(tmp_path):
    with refused(path=tmp_path / "none.txt"):
        read_vectors(tmp_path / "none.txt")
    packed = gzip.compress(("word 1 2\n" * 1000).encode())
    damaged = packed[:20] + b"\xff" * 10 + packed[30:]
    (tmp_path / "v.gz").write_bytes(damaged)
    with refused(path=tmp_path / "v.gz"):
        read_vectors(tmp_path / "v.gz")
    (tmp_path / "v.gz").write_bytes(packed[:-10])
    with refused(path=tmp_path / "v.gz"):
        read_vectors(tmp_path / "v.gz")


words = st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1), min_size=1, unique=True)


@given(words, st.integers(1, 5), st.randoms())
def test_round_trip(tmp_path_factory, words, width, random):
    path = tmp_path_factory.mktemp("vectors") / "v.txt"
    rows = [[round(random.uniform(-9, 9), 4) for _ in range(width)] for _ in words]
    lines = [f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, rows, strict=True)]
    # A first line of two whole numbers would be a header; the numbers here have decimals.
    path.write_text("".join(lines), encoding="utf8", newline="")
    vectors = read_vectors(path)
    assert vectors.words == words
    np.testing.assert_allclose(vectors.matrix, np.array(rows, np.float32))


@pytest.mark.parametrize("name", ["v.txt", "v.txt.gz"])
def test_written_file_is_read_again(tmp_path, name):
    generator = np.random.default_rng(1)
    written = WordVectors(["the", "ü", "'s", "0"], generator.standard_normal((4, 5)).astype(np.float32) * 100)
    write_vectors(tmp_path / name, written)
    found = read_vectors(tmp_path / name)
    assert found.words == written.words
    np.testing.assert_allclose(found.matrix, written.matrix, rtol=5e-5)
    first = (tmp_path / name).read_bytes()
    write_vectors(tmp_path / name, written)
    assert (tmp_path / name).read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_file_that_cannot_be_written_leaves_the_one_before(tmp_path):
    (tmp_path / "v.txt").write_text("a 1\n")
    vectors = WordVectors(["a"] * 1000, np.ones((1000, 50), np.float32))
    with full_disk(1000), pytest.raises(InputError) as caught:
        write_vectors(tmp_path / "v.txt", vectors)
    assert str(tmp_path / "v.txt") in str(caught.value)
    assert (tmp_path / "v.txt").read_text() == "a 1\n"
    assert len(list(tmp_path.iterdir())) == 1
    for place in (tmp_path / "none" / "v.txt", tmp_path / "v.txt" / "v.txt"):
        with pytest.raises(InputError) as caught:
            write_vectors(place, vectors)
        assert str(place) in str(caught.value)
