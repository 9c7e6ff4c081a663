"""The third step of a lexicon: the runs of counts become one, a range of words at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from paranmt_hf.lexicon.counting import BITS, MASK, Run

# Entries of all runs that are added up at once, at about 100 bytes each; a word's entries stay together.
RANGE_ENTRIES = 500_000


@dataclass(frozen=True)
class PairCounts:
    """Counts of pairs of different words, sorted by word and then by the other word.

    Attributes:
        words: Row of the one word [entry].
        others: Row of the other word [entry].
        across: Pairs of sentences with the one word on a side and the other on the other [entry], int64: a pair counts
            twice where both words are on both sides.
        references: References with both [entry], int64.
        translations: Translations with both [entry], int64.
    """

    words: np.ndarray
    others: np.ndarray
    across: np.ndarray
    references: np.ndarray
    translations: np.ndarray

    def __len__(self) -> int:
        return len(self.words)

    def take(self, chosen: np.ndarray) -> PairCounts:
        """Choose entries."""
        return PairCounts(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


def merged(runs: Sequence[Run], words: int) -> Iterator[PairCounts]:
    """Add up runs.

    Args:
        runs: The runs.
        words: Number of words of the lexicon.

    Yields:
        The counts of all pairs of a range of words, range after range.
    """
    bounds = [run.bounds(words) for run in runs]
    ends = np.sum(bounds, axis=0)
    first = 0
    while first < words:
        last = int(np.searchsorted(ends, ends[first] + RANGE_ENTRIES, side="right")) - 1
        last = min(max(last, first + 1), words)
        yield _range(runs, bounds, words, first, last)
        first = last


def _range(runs: Sequence[Run], bounds: Sequence[np.ndarray], words: int, first: int, last: int) -> PairCounts:
    """Add up the entries of some words."""
    keys, packed = [], []
    for run, ends in zip(runs, bounds, strict=True):
        others, counts = run.read(words, int(ends[-1]), int(ends[first]), int(ends[last]))
        rows = np.repeat(np.arange(first, last), np.diff(ends[first : last + 1]))
        keys.append(rows * words + others)
        packed.append(counts)
    key, counts = np.concatenate(keys), np.concatenate(packed)
    if len(runs) > 1:
        # Each run is in order already, which a stable sort makes use of.
        order = np.argsort(key, kind="stable")
        key, counts = key[order], counts[order]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    rows, others = np.divmod(key[starts], words)
    found = PairCounts(
        rows,
        others,
        *(_sums(part, starts) for part in ((counts >> BITS) & MASK, counts & MASK, counts >> (2 * BITS))),
    )
    return found.take(rows != others)


def _sums(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    return np.add.reduceat(values, starts) if len(starts) else values
