"""The units of a vocabulary as one string of bytes with an index, instead of a Python object for each."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, overload

import numpy as np


class PackedUnits(Sequence[str]):
    """The units of a vocabulary, by row, and the row of each unit.

    It takes a sixth of the memory of a list and a dictionary, which matters where many processes have one each, and
    `find` takes some tenths of a microsecond.

    Args:
        units: Unit of each row.
    """

    def __init__(self, units: Sequence[str]) -> None:
        # JSON can hold halves of surrogate pairs.
        self._text = "".join(units).encode("utf8", "surrogatepass")
        sizes = (len(unit.encode("utf8", "surrogatepass")) for unit in units)
        self._bounds = array("i", accumulate(sizes, initial=0))
        # A hash table with linear probing: a unit is at the first free place from the lowest bits of its hash on.
        # Strings of one process have one hash; in another process it is another one, so `__reduce__` leaves it out.
        self._mask = (1 << (2 * len(units) - 1).bit_length()) - 1
        first = np.fromiter(map(self._mask.__and__, map(hash, units)), np.int64, len(units))
        # Of equal units the last one comes first, because it is the one that a dictionary keeps.
        rows = len(units) - 1 - np.argsort(first[::-1], kind="stable")
        order = np.arange(len(units))
        # No two places are equal, and none is before the first one of its unit.
        places = np.maximum.accumulate(first[rows] - order) + order
        table = np.full(max(self._mask, places.max(initial=0)) + 2, -1, np.int32)
        table[places] = rows
        self._table = array("i", table.tobytes())

    def find(self, unit: str) -> int | None:
        """Return the row of a unit; None if it has none."""
        place = hash(unit) & self._mask
        row = self._table[place]
        if row < 0:
            return None
        text, bounds, encoded = self._text, self._bounds, unit.encode("utf8", "surrogatepass")
        while row >= 0:
            if text[bounds[row] : bounds[row + 1]] == encoded:
                return row
            place += 1
            row = self._table[place]
        return None

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def __iter__(self) -> Iterator[str]:
        # As `__getitem__`, but without an index a unit.
        for begin, end in pairwise(self._bounds):
            yield self._text[begin:end].decode("utf8", "surrogatepass")

    @overload
    def __getitem__(self, row: int) -> str: ...

    @overload
    def __getitem__(self, row: slice) -> list[str]: ...

    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, slice):
            return [self[each] for each in range(len(self))[row]]
        row = range(len(self))[row]
        return self._text[self._bounds[row] : self._bounds[row + 1]].decode("utf8", "surrogatepass")

    def __reduce__(self) -> tuple[type[PackedUnits], tuple[Any, ...]]:
        return PackedUnits, (list(self),)
