"""Pairs from neighbours, and their margin scores.

Artetxe & Schwenk 2019 (P19-1309), section 3: a cosine says little by itself, because some sentences are similar to
everything. The margin compares it with the mean cosine of both sentences with their k nearest neighbours (equation 2)
as a ratio, or as a distance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from paranmt_hf.search.neighbours import NOBODY, Neighbours
from paranmt_hf.search.storage import spans

Margin = Literal["ratio", "distance"]
# Candidates that are compared with candidates at once.
AT_ONCE = 1 << 24


@dataclass(frozen=True)
class ItemPairs:
    """Pairs of items [pair], and their cosines, float32; within one set, the second item has the larger index."""

    first: np.ndarray
    second: np.ndarray
    cosine: np.ndarray

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.first)

    def take(self, chosen: np.ndarray) -> ItemPairs:
        """Select some of the pairs."""
        return ItemPairs(self.first[chosen], self.second[chosen], self.cosine[chosen])


def pairs_within(found: Neighbours, *, mutual: bool, at_least: float) -> ItemPairs:
    """Pair items with their neighbours in the same set, each once, with at least a minimum cosine.

    With `mutual` both must be neighbours of each other; else one of the other is enough.
    """
    parts = []
    for owner, item, cosine, listed in _candidates(found, found, at_least):
        kept = listed & (owner < item) if mutual else ~listed | (owner < item)
        owner, item, cosine = owner[kept], item[kept], cosine[kept]
        parts.append(ItemPairs(np.minimum(owner, item), np.maximum(owner, item), cosine))
    return _joined(parts)


def pairs_between(forward: Neighbours, backward: Neighbours, *, mutual: bool, at_least: float) -> ItemPairs:
    """Pair items with their neighbours in another set; arguments as in `pairs_within`."""
    parts = []
    for owner, item, cosine, listed in _candidates(forward, backward, at_least):
        kept = listed if mutual else np.ones(len(owner), bool)
        parts.append(ItemPairs(owner[kept], item[kept], cosine[kept]))
    if not mutual:
        for owner, item, cosine, listed in _candidates(backward, forward, at_least):
            parts.append(ItemPairs(item[~listed], owner[~listed], cosine[~listed]))
    return _joined(parts)


def _candidates(
    found: Neighbours, back: Neighbours, at_least: float
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield blocks of items, their neighbours, cosines, and whether the relation is mutual."""
    scores, items, others = found.scores.numpy(), found.items.numpy(), back.items.numpy()
    top = items.shape[1]
    for start, stop in spans(len(items), max(1, AT_ONCE // (top * others.shape[1]))):
        row, rank = np.nonzero((items[start:stop] != NOBODY) & (scores[start:stop] >= np.float32(at_least)))
        owner, item = row + start, items[start:stop][row, rank]
        listed = (others[item] == owner[:, None]).any(axis=1)
        yield owner, item.astype(np.int64), scores[start:stop][row, rank], listed


def _joined(parts: list[ItemPairs]) -> ItemPairs:
    arrays = ([part.first for part in parts], [part.second for part in parts], [part.cosine for part in parts])
    return ItemPairs(*(np.concatenate(some) for some in arrays))


def mean_similarity(found: Neighbours, count: int) -> np.ndarray:
    """Mean cosine of each item with its `count` nearest neighbours [item], or with fewer if there are fewer."""
    scores = found.scores.numpy()[:, :count]
    there = np.isfinite(scores)
    sums = np.where(there, scores, 0).sum(axis=1, dtype=np.float64)
    return sums / np.maximum(there.sum(axis=1), 1)


def margin_scores(pairs: ItemPairs, first: np.ndarray, second: np.ndarray, kind: Margin) -> np.ndarray:
    """Compute margin scores [pair], float32 (section 3.1), from mean cosines of items with their neighbours [item].

    `ratio` is the cosine over the mean of both, infinite over a mean that is not above 0, where nothing else is near;
    `distance` is the cosine less that mean.
    """
    means = (first[pairs.first] + second[pairs.second]) / 2
    if kind == "distance":
        return (pairs.cosine - means).astype(np.float32)
    ratio = np.divide(pairs.cosine, means, out=np.full(len(pairs), np.inf), where=means > 0)
    return ratio.astype(np.float32)
