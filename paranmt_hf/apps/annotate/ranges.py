"""Ranges of the paraphrase score from which pairs are sampled: given, or with equally many pairs each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paranmt_hf.errors import InputError

# Table 3 of ParaNMT-50M (Wieting & Gimpel 2018).
TABLE_3_RANGES = (-0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
MAX_QUANTILES = 20


@dataclass(frozen=True)
class ScoreRange:
    """Scores above `low` and up to `high` (None: unbounded); both are float32, the type of the column."""

    low: float | None
    high: float | None

    @property
    def label(self) -> str:
        """Label of the range in tables: `(0.2, 0.4]`."""
        if self.low is None:
            return "all" if self.high is None else f"up to {_shown(self.high)}"
        return f"above {_shown(self.low)}" if self.high is None else f"({_shown(self.low)}, {_shown(self.high)}]"


def _shortest(bound: float) -> float:
    """Format a float32 number with the fewest digits that identify it: 0.2."""
    return float(str(np.float32(bound)))


def _shown(bound: float) -> str:
    text = f"{bound:.4g}"
    return text if "." in text else f"{text}.0"


def given_ranges(edges: Sequence[float]) -> list[ScoreRange]:
    """Create a range for each two neighbouring scores."""
    rounded = [_shortest(edge) for edge in edges]
    neighbours = list(zip(rounded, rounded[1:], strict=False))
    if not neighbours or any(low >= high for low, high in neighbours) or not -1 <= rounded[0] <= rounded[-1] <= 1:
        raise InputError(
            f"ranges must be ascending scores from -1 to 1, the bounds of the ranges, or one number from 1 to "
            f"{MAX_QUANTILES}, was {' '.join(f'{edge:g}' for edge in edges)}",
            option="ranges",
        )
    return [ScoreRange(low, high) for low, high in neighbours]


def range_of(scores: np.ndarray, ranges: Sequence[ScoreRange]) -> np.ndarray:
    """Index of the range of each score, both [row]; -1 for NaN and for scores outside the ascending ranges."""
    low = -np.inf if ranges[0].low is None else ranges[0].low
    edges = np.array([low, *(np.inf if part.high is None else part.high for part in ranges)], np.float32)
    # A score equal to an edge belongs to the lower range.
    found = np.searchsorted(edges, scores, side="left") - 1
    found[(found >= len(ranges)) | np.isnan(scores)] = -1
    if ranges[0].low is None:
        found[scores == -np.inf] = 0
    return found


def equal_ranges(scores: np.ndarray, count: int) -> list[ScoreRange]:
    """Split scores [row], float32 without NaN, into `count` ranges; edge k has the rank ceil(k rows / count)."""
    if not len(scores):
        raise InputError("no pair has a paraphrase score, so ranges of equal size cannot be formed")
    ranks = np.array([-(-index * len(scores) // count) - 1 for index in range(1, count)], np.int64)
    found = [_shortest(edge) for edge in np.partition(scores, ranks)[ranks]]
    if len(set(found)) < len(found):
        double = next(edge for edge, after in zip(found, found[1:], strict=False) if edge == after)
        raise InputError(
            f"`ranges` {count}: too many pairs have the score {double:.4g} for {count} ranges with equally many "
            "pairs; give a smaller number, or bounds",
            option="ranges",
        )
    return [ScoreRange(low, high) for low, high in zip([None, *found], [*found, None], strict=True)]
