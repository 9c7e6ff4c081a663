"""Bins of a histogram whose edges are numbers that people read easily."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

MAX_BINS = 40


@dataclass(frozen=True)
class Bins:
    """Bins of equal width.

    Attributes:
        low: Lower edge of the first one.
        width: Width of each.
        count: How many there are.
        open: Whether the last one also counts what lies above it.
    """

    low: float
    width: float
    count: int
    open: bool

    def to_json(self) -> dict[str, Any]:
        """Give the bins as JSON values."""
        return asdict(self)


def bins_of(lowest: float | None, highest: float | None, usual: float | None, *, whole: bool) -> Bins:
    """Choose the bins of a column.

    Args:
        lowest: Its smallest value; None where all rows are null.
        highest: Its largest value.
        usual: A value that hardly any row exceeds; a long tail above it falls into the last bin.
        whole: Whether the values are whole numbers.

    Returns:
        At most 40 bins, whose width is 1, 2 or 5 times a power of ten.
    """
    if lowest is None or highest is None or usual is None:
        return Bins(0.0, 1.0, 1, False)
    # Half of the range is no tail.
    top = float(highest if highest - usual <= usual - lowest else usual)
    width = _round_width((top - lowest) / (MAX_BINS - 2), whole=whole)
    low = math.floor(lowest / width) * width
    count = max(1, math.floor((top - low) / width) + 1)
    if not whole and count > 1 and math.isclose((count - 1) * width + low, highest):
        # The largest value alone on an edge, such as a score of 1, belongs to the bin below.
        count -= 1
    digits = max(0, 2 - math.floor(math.log10(width)))
    return Bins(round(low, digits), round(width, digits), count, top < highest)


def _round_width(width: float, *, whole: bool) -> float:
    if width <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(width))
    rounded = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= width * (1 - 1e-9))
    return max(1.0, rounded) if whole else rounded
