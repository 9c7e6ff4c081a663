"""Hashed word n-grams: the definition against one n-gram at a time in Python's whole numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paranmt_hf.encoders.modules.paranmt_tables import NgramTable, ngram_buckets


def buckets_of(words: list[int], order: int, buckets: int) -> list[int]:
    """The buckets of one sentence's n-grams, one after the other."""
    found = []
    for start, word in enumerate(words):
        hashed = word
        for other in words[start + 1 : start + order]:
            hashed = (hashed * 116049371 + other) % 2**64
            found.append(hashed % buckets)
    return found


def offsets_of(sentences: list[list[int]]) -> np.ndarray:
    return np.cumsum([0, *map(len, sentences)])


def test_worked_by_hand() -> None:
    """3 and 5 become 3 * 116049371 + 5 = 348148118, whose remainder by 100 is 18; then 348148118 * 116049371 + 7."""
    buckets, bounds = ngram_buckets(np.array([3, 5, 7], np.int32), np.array([0, 3]), 3, 100)
    three = (348148118 * 116049371 + 7) % 100
    assert buckets.tolist() == [18, three, (5 * 116049371 + 7) % 100]
    assert bounds.tolist() == [0, 3]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(1, 30_000_000), max_size=7), max_size=5),
    st.integers(1, 5),
    st.integers(1, 2**31 - 1),
)
def test_columns_are_sentences_one_by_one(sentences: list[list[int]], order: int, buckets: int) -> None:
    """Large ids overflow 64 bits from the third word on, which must wrap round."""
    rows = np.array([row for sentence in sentences for row in sentence], np.int32)
    found, bounds = ngram_buckets(rows, offsets_of(sentences), order, buckets)
    expected = [buckets_of(sentence, order, buckets) for sentence in sentences]
    assert found.dtype == np.int64
    assert [found[bounds[i] : bounds[i + 1]].tolist() for i in range(len(sentences))] == expected


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 9), max_size=7), max_size=5),
    st.integers(2, 4),
    st.sets(st.integers(0, 49)),
    st.booleans(),
)
def test_bags_are_known_words_and_then_known_ngrams(
    sentences: list[list[int]], order: int, hashes: set[int], searched: bool
) -> None:
    table = NgramTable(order, 50, np.array(sorted(hashes), np.int64), 10)
    with pytest.MonkeyPatch.context() as patch:
        if searched:
            patch.setattr("paranmt_hf.encoders.modules.paranmt_tables.DIRECT", 0)
        rows = np.array([row for sentence in sentences for row in sentence], np.int32)
        found, bounds = table.bags(rows, offsets_of(sentences))
    row_of = {bucket: 10 + place for place, bucket in enumerate(sorted(hashes))}
    for index, sentence in enumerate(sentences):
        known = [row for row in sentence if row]
        ngrams = [row_of[bucket] for bucket in buckets_of(known, order, 50) if bucket in row_of]
        assert found[bounds[index] : bounds[index + 1]].tolist() == known + ngrams


@pytest.mark.parametrize(
    ("order", "buckets", "hashes", "message"),
    [
        (0, 5, [], "order must be a whole number from 1 to 20, was 0"),
        (21, 5, [], "order must be a whole number from 1 to 20, was 21"),
        (2, 0, [], "buckets must be a whole number from 1 to 2147483647, was 0"),
        (2, 2**31, [], "buckets must be"),
        (2, 5, [1, 1], "hashes must ascend"),
        (2, 5, [-1, 1], "hashes must ascend"),
        (2, 5, [1, 5], "stay below 5 buckets"),
        (1, 5, [1], "1 buckets of n-grams need an order above 1"),
    ],
)
def test_numbers_that_do_not_fit(order: int, buckets: int, hashes: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NgramTable(order, buckets, np.array(hashes, np.int64), 3)
