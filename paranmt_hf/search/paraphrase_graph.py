"""Which sentences of a whole corpus mean the same, as far as its pairs show: the exclusions of mega-batches.

`training/mega_batch.py` lists all of a mega-batch, which would be too many for a corpus. Here the pairs are kept, and
candidates are looked up.
"""

from __future__ import annotations

import numpy as np

from paranmt_hf.text.tokens import expand

AT_ONCE = 1 << 23  # Ends of pairs that are looked up at once


class ParaphraseGraph:
    """The distinct sentences of pairs [pair, side], numbered from 0 to `count`; each is in a pair."""

    def __init__(self, pairs: np.ndarray, count: int) -> None:
        both = np.concatenate([pairs, pairs[:, ::-1]]).astype(np.int64)
        self._count = max(count, 1)
        # The pairs in both directions, each once, sorted by the first sentence.
        self._codes = np.unique(both[:, 0] * self._count + both[:, 1])
        left, self._ends = np.divmod(self._codes, self._count)
        self._degrees = np.bincount(left, minlength=count)
        self._starts = np.cumsum(self._degrees) - self._degrees
        # Of each sentence, at most so many mean the same: its partners, and theirs, among which it is itself.
        theirs = np.bincount(left, weights=self._degrees[self._ends], minlength=count).astype(np.int64)
        self.most_related = self._degrees + theirs

    def related(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Whether two sentences [question] are paired, or are both paired with a third one [question], bool.

        A sentence is related to itself.
        """
        # The partners of the one with fewer are looked up among those of the other.
        swap = self._degrees[first] > self._degrees[second]
        fewer, other = np.where(swap, second, first), np.where(swap, first, second)
        found = self._paired(first, second)
        ends = np.cumsum(self._degrees[fewer])
        total = int(ends[-1]) if len(ends) else 0
        cuts = np.searchsorted(ends, np.arange(AT_ONCE, total, AT_ONCE)) + 1
        for part in np.split(np.arange(len(first)), np.unique(cuts)):
            counts = self._degrees[fewer[part]]
            partners, _ = expand(self._ends, self._starts[fewer[part]], counts)
            owners = np.repeat(part, counts)
            found[owners[self._paired(other[owners], partners)]] = True
        return found

    def _paired(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        codes = first.astype(np.int64) * self._count + second
        places = np.searchsorted(self._codes, codes).clip(max=len(self._codes) - 1)
        return np.asarray(self._codes[places] == codes)
