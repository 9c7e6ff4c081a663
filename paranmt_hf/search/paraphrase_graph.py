"""Which sentences of a corpus may not be negatives of each other, as `training/mega_batch.py` lists for a mega-batch.

The lists of a corpus would be too long: here the pairs are kept, and candidates are looked up.
"""

from __future__ import annotations

import numpy as np

from paranmt_hf.text.tokens import expand

AT_ONCE = 1 << 23  # Ends of pairs that are looked up at once


class ParaphraseGraph:
    """The distinct sentences of pairs [pair, side], numbered from 0 to `count`; each is in a pair."""

    def __init__(self, pairs: np.ndarray, count: int) -> None:
        both = np.concatenate([pairs, pairs[:, ::-1]]).astype(np.int64)
        self._count = count
        # The pairs in both directions, each once, sorted by the first sentence.
        self._codes = np.unique(both[:, 0] * count + both[:, 1])
        left, self._ends = np.divmod(self._codes, count)
        self._degrees = np.bincount(left, minlength=count)
        self._starts = np.cumsum(self._degrees) - self._degrees
        # The most sentences that are related to each: its partners, and theirs.
        theirs = np.bincount(left, weights=self._degrees[self._ends], minlength=count).astype(np.int64)
        self.most_related = self._degrees + theirs

    def related(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Whether two sentences are paired, paired with the same sentence, or equal [question], bool."""
        found = self._paired(first, second)
        # The partners of the one with fewer are looked up among those of the other.
        swap = self._degrees[first] > self._degrees[second]
        fewer, other = np.where(swap, second, first), np.where(swap, first, second)
        numbers = np.cumsum(self._degrees[fewer]) // AT_ONCE
        for part in np.split(np.arange(len(first)), np.flatnonzero(np.diff(numbers)) + 1):
            counts = self._degrees[fewer[part]]
            partners, _ = expand(self._ends, self._starts[fewer[part]], counts)
            owners = np.repeat(part, counts)
            found[owners[self._paired(other[owners], partners)]] = True
        return found

    def _paired(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        codes = first.astype(np.int64) * self._count + second
        places = np.searchsorted(self._codes, codes).clip(max=len(self._codes) - 1)
        return np.asarray(self._codes[places] == codes)
