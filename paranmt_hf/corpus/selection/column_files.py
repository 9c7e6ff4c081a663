"""Columns of numbers, lists and texts in files, from which any rows can be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from paranmt_hf.text.tokens import text_bytes
from paranmt_hf.util.ranges import ranges


class ColumnFile:
    """A column of numbers in a file; an existing file is overwritten.

    Args:
        path: The file.
        kind: NumPy type of the numbers.

    Attributes:
        rows: Number of rows written so far.
    """

    def __init__(self, path: Path, kind: type[np.generic]) -> None:
        self.path, self.kind = path, np.dtype(kind)
        self.rows = 0
        self._file = path.open("wb")

    def append(self, values: np.ndarray) -> None:
        """Write the next numbers [row]."""
        self._file.write(np.ascontiguousarray(values, self.kind).data)
        self.rows += len(values)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return the numbers of some rows, in the order of `rows` [chosen row], which need not be sorted."""
        if not len(rows):
            return np.empty(0, self.kind)
        self._file.flush()
        # The file is mapped again each time, so that what was read before does not count as memory of this process.
        return np.memmap(self.path, self.kind, "r", shape=self.rows)[rows]

    def read(self, start: int, count: int) -> np.ndarray:
        """Return the numbers [row] of up to `count` rows from the row `start` on."""
        self._file.flush()
        return np.fromfile(self.path, self.kind, count, offset=start * self.kind.itemsize)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class ListFile:
    """Lists of numbers in two files, one of the numbers and one of the bounds of the lists.

    Existing files are overwritten.

    Args:
        path: The file of the numbers; that of the bounds has the suffix `.bounds`.
        kind: NumPy type of the numbers.
    """

    def __init__(self, path: Path, kind: type[np.generic]) -> None:
        self._values = ColumnFile(path, kind)
        self._bounds = ColumnFile(path.with_suffix(".bounds"), np.int64)
        self._bounds.append(np.zeros(1, np.int64))

    def __len__(self) -> int:
        return self._bounds.rows - 1

    def append(self, values: np.ndarray, bounds: np.ndarray) -> None:
        """Write the next lists: list `i` has the numbers `values[bounds[i]:bounds[i + 1]]`."""
        self._bounds.append(self._values.rows + bounds[1:])
        self._values.append(values)

    def lengths(self, rows: np.ndarray) -> np.ndarray:
        """Return the lengths [chosen row] of some lists."""
        return self._bounds.take(rows + 1) - self._bounds.take(rows)

    def take(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return some lists, in any order: their numbers, and the bounds [chosen row + 1] of each list in these."""
        indices, bounds = ranges(self._bounds.take(rows), self.lengths(rows))
        return self._values.take(indices), bounds

    def close(self) -> None:
        """Close both files."""
        self._values.close()
        self._bounds.close()


class TextFile:
    """Texts in files, which are overwritten if they exist."""

    def __init__(self, path: Path) -> None:
        self._bytes = ListFile(path, np.uint8)
        self.close = self._bytes.close

    def append(self, texts: pa.Array) -> None:
        """Write the next texts [text]; null becomes an empty text."""
        self._bytes.append(*text_bytes(texts))

    def take(self, rows: np.ndarray) -> pa.Array:
        """Return some texts [chosen row], string, in any order."""
        content, bounds = self._bytes.take(rows)
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(content)]
        return pa.Array.from_buffers(pa.large_string(), len(rows), buffers).cast(pa.string())
