"""Which of several like documents stays: the first, and every later one that is like none that stays."""

from __future__ import annotations

import numpy as np


def resolve(earlier: np.ndarray, later: np.ndarray, repeats: np.ndarray) -> None:
    """Decide about the later documents of some pairs of like documents, in the order of the documents.

    A document is dropped if and only if it is like an earlier one that stays. So each dropped one has one like it that
    stays, and no two that stay are a pair.

    Args:
        earlier: Earlier document of each pair [pair]: decided by a call before, or a later one of this call's pairs.
        later: Later document of each pair [pair]; none was decided before.
        repeats: For each document the first one that stays and that it is like, or -1 where it stays [document];
            filled in for the later documents.
    """
    undecided = np.zeros(len(repeats), bool)
    undecided[later] = True
    first, second = earlier, later
    while len(second):
        waits = undecided[first]
        hit = second[~waits & (repeats[first] < 0)]
        repeats[hit] = 0
        undecided[hit] = False
        still = waits & undecided[second]
        undecided[second] = False
        first, second = first[still], second[still]
        undecided[second] = True
    stays = repeats[earlier] < 0
    order = np.lexsort((earlier[stays], later[stays]))
    dropped, at = np.unique(later[stays][order], return_index=True)
    repeats[dropped] = earlier[stays][order][at]
