"""Scrambling keeps the words of every sentence and shuffles the chosen share."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from paranmt_hf.training.trainer import scramble


def sentences(rows: np.ndarray, offsets: np.ndarray) -> list[list[int]]:
    return [rows[start:end].tolist() for start, end in zip(offsets[:-1], offsets[1:], strict=True)]


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=20), st.floats(0, 1), st.integers(0, 99))
def test_every_sentence_keeps_its_words(texts, share, seed):
    rows = np.array([word for text in texts for word in text], np.int32)
    offsets = np.cumsum([0, *map(len, texts)])
    found = scramble(rows, offsets, share, np.random.default_rng(seed))
    assert found.dtype == rows.dtype
    assert [sorted(text) for text in sentences(found, offsets)] == [sorted(text) for text in texts]
    np.testing.assert_array_equal(found, scramble(rows, offsets, share, np.random.default_rng(seed)))


def long_sentences(count: int = 2000, length: int = 12) -> tuple[np.ndarray, np.ndarray]:
    return np.tile(np.arange(length, dtype=np.int32), count), np.arange(count + 1) * length


def test_shares():
    rows, offsets = long_sentences()
    np.testing.assert_array_equal(scramble(rows, offsets, 0, np.random.default_rng(1)), rows)
    for share in (0.3, 1.0):
        found = scramble(rows, offsets, share, np.random.default_rng(1)).reshape(2000, 12)
        changed = (found != rows.reshape(2000, 12)).any(axis=1).mean()
        # 2,000 draws: five standard deviations are 0.05. A shuffle of 12 words leaves hardly one as it was.
        assert abs(changed - share) < 0.05


def test_all_orders_are_equally_likely():
    rows, offsets = long_sentences(6000, 3)
    found = scramble(rows, offsets, 1.0, np.random.default_rng(2)).reshape(6000, 3)
    _, counts = np.unique(found, axis=0, return_counts=True)
    assert len(counts) == 6
    assert abs(counts - 1000).max() < 150
