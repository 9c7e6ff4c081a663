"""The rows of a table that is stored with fewer bits, as float32: each one from when it is first needed."""

from __future__ import annotations

import mmap
from threading import Lock

import numpy as np

from paranmt_hf.encoders.modules.paranmt_tables import SCALE, WEIGHT, dimension_of, widen


class WidenedRows:
    """The rows of a stored table, of which only those are in float32 that were needed so far.

    A thousand sentences need some thousand rows. So most of a table stays in its file, which processes share. Threads
    may share an object.

    Args:
        stored: Tensors of the table, by name, as `store` makes them; they may be those of a mapped file.

    Attributes:
        shape: Number of rows of the table, and of dimensions.
        array: The rows that were needed so far [place, dimension], float32, each at the next free place.
    """

    def __init__(self, stored: dict[str, np.ndarray]) -> None:
        self._weight, self._scale = stored[WEIGHT], stored.get(SCALE)
        self.shape = (len(self._weight), dimension_of(self._weight))
        # A map, of which only pages that were written to take memory. numpy's arrays of this size have pages of 2 MB.
        reserved = mmap.mmap(-1, 4 * self.shape[0] * self.shape[1], access=mmap.ACCESS_COPY)
        self.array = np.frombuffer(reserved, np.float32).reshape(self.shape)
        self._place_of = np.full(self.shape[0], -1, np.int32)
        # Number of places that hold their row, and the rows of the places behind them.
        self._filled = 0
        self._new: list[int] = []
        self._lock = Lock()

    def place(self, row: int) -> int:
        """Return the place of a row in `array`, which holds the row after the next `fill`."""
        with self._lock:
            place = self._place_of.item(row)
            if place < 0:
                place = self._filled + len(self._new)
                self._new.append(row)
                self._place_of[row] = place
        return place

    def fill(self) -> None:
        """Write the rows that any thread has asked for into `array`."""
        if not self._new:
            return
        with self._lock:
            rows = np.array(self._new, np.int64)
            end = self._filled + len(rows)
            scale = None if self._scale is None else self._scale.take(rows)
            widen(self._weight.take(rows, 0), scale, self.array[self._filled : end])
            self._filled = end
            # Only now, because another thread that finds none reads the array.
            self._new = []

    def places(self, rows: np.ndarray) -> np.ndarray:
        """Return the place in `array` of each of some rows [chosen], int32, and write those that are missing."""
        places = self._place_of.take(rows)
        if len(places) and places.min() < 0:
            for row in np.unique(rows[places < 0]).tolist():
                self.place(row)
            places = self._place_of.take(rows)
        self.fill()
        return places

    def __reduce__(self) -> tuple[type[WidenedRows], tuple[dict[str, np.ndarray]]]:
        scale = {} if self._scale is None else {SCALE: self._scale}
        return WidenedRows, ({WEIGHT: self._weight, **scale},)


def table_rows(stored: dict[str, np.ndarray]) -> np.ndarray | WidenedRows:
    """Return the rows of a stored table: the array itself if it holds float32."""
    return stored[WEIGHT] if stored[WEIGHT].dtype == np.float32 else WidenedRows(stored)


def placed(table: np.ndarray | WidenedRows, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a table as an array [place, dimension], float32, and the place in it of each of some rows [chosen]."""
    return (table.array, table.places(rows)) if isinstance(table, WidenedRows) else (table, rows)
