import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf.text.identity import RunHashes, first_equal, hash_texts, keys_of


@given(st.lists(st.text(max_size=6), unique=True, max_size=20), st.integers(0, 4))
def test_hashes_are_those_of_each_text(texts, skipped):
    whole = hash_texts(texts).tolist()
    assert len(set(whole)) == len(texts)
    assert hash_texts(pa.array(texts, pa.large_string()).slice(skipped)).tolist() == whole[skipped:]
    assert hash_texts(pa.chunked_array([texts], pa.string())).tolist() == whole


def test_a_hash_is_the_same_on_every_machine():
    assert hash_texts(["a dog"]).tolist() == [14364831733120369406]


@given(st.lists(st.sampled_from("abcd"), max_size=30), st.integers(1, 5))
def test_first_equal_text_equals_brute_force(texts, step):
    expected = [texts.index(text) if texts.index(text) < row else -1 for row, text in enumerate(texts)]
    assert first_equal(hash_texts(texts)).tolist() == expected
    column = pa.array(texts, pa.string())
    assert first_equal(hash_texts(texts), lambda rows: column.take(pa.array(rows)), step=step).tolist() == expected


def test_equal_hashes_are_no_proof_of_equal_texts():
    column = pa.array(["a", "b", "a"])
    found = first_equal(np.zeros(3, np.uint64), lambda rows: column.take(pa.array(rows)))
    assert found.tolist() == [-1, -1, 0]


@given(st.lists(st.integers(0, 2), max_size=12))
def test_runs_are_equal_if_their_tokens_are(tokens):
    runs = [(start, end) for end in range(len(tokens) + 1) for start in range(end + 1)]
    starts, ends = np.array(runs).T
    hashes = RunHashes(hash_texts([str(token) for token in tokens])).of(starts, ends).tolist()
    for (start, end), number in zip(runs, hashes, strict=True):
        for (other, behind), same in zip(runs, hashes, strict=True):
            assert (number == same) == (tokens[start:end] == tokens[other:behind])


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [("A dog runs.", "a  dog runs .", True), ("a dog", "dog a", False), ("", " ", True), ("a", "a a", False)],
)
def test_sentences_are_equal_if_their_tokens_are(left, right, equal):
    keys = keys_of([left, "x"], [right, "y"])
    assert keys.shape == (2, 2)
    assert (keys[0, 0] == keys[1, 0]) == equal
    assert (keys[0, 0] == 0) == (not left.strip())
