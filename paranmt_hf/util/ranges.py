"""Ranges of integers and of arrays, one after another, without a loop over them."""

from __future__ import annotations

import numpy as np


def ranges(starts: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Concatenate ranges of integers.

    Args:
        starts: First integer of each range [range].
        counts: Length of each range [range].

    Returns:
        The integers [sum of counts], and the bounds of the ranges in them [range + 1].
    """
    bounds = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=bounds[1:])
    if not len(counts):
        return np.empty(0, np.int64), bounds
    return np.repeat(starts - bounds[:-1], counts) + np.arange(bounds[-1]), bounds


def expand(flat: np.ndarray, starts: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Concatenate ranges of an array.

    Args:
        flat: The array.
        starts: First position of each range [range].
        counts: Length of each range [range].

    Returns:
        The values [sum of counts], and the bounds of the ranges in them [range + 1].
    """
    positions, bounds = ranges(starts, counts)
    return flat[positions], bounds
