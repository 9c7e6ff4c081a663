"""Columns of numbers, of lists and of texts in files, of which any rows can be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from paranmt_hf.text.tokens import ranges, text_bytes


class ColumnFile:
    """A column of numbers in a file, which is overwritten."""

    def __init__(self, path: Path, kind: type[np.generic]) -> None:
        self.path, self.kind = path, np.dtype(kind)
        self.rows = 0
        self._file = path.open("wb")

    def append(self, values: np.ndarray) -> None:
        self._file.write(np.ascontiguousarray(values, self.kind).data)
        self.rows += len(values)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Read rows in any order [row]."""
        if not len(rows):
            return np.empty(0, self.kind)
        self._file.flush()
        # Mapped again each time, so that what was read does not stay in the memory of this process.
        return np.memmap(self.path, self.kind, "r", shape=self.rows)[rows]

    def read(self, start: int, count: int) -> np.ndarray:
        """Read up to `count` numbers from a row on [row]."""
        self._file.flush()
        return np.fromfile(self.path, self.kind, count, offset=start * self.kind.itemsize)

    def close(self) -> None:
        self._file.close()


class ListFile:
    """Lists of numbers in a file of the numbers and a file of the bounds of each list, which are overwritten."""

    def __init__(self, path: Path, kind: type[np.generic]) -> None:
        self._values = ColumnFile(path, kind)
        self._bounds = ColumnFile(path.with_suffix(".bounds"), np.int64)
        self._bounds.append(np.zeros(1, np.int64))

    def __len__(self) -> int:
        return self._bounds.rows - 1

    def append(self, values: np.ndarray, bounds: np.ndarray) -> None:
        """Write the next lists: their numbers, and the bounds of each in these [list + 1]."""
        self._bounds.append(self._values.rows + bounds[1:])
        self._values.append(values)

    def lengths(self, rows: np.ndarray) -> np.ndarray:
        """Lengths of some lists [row]."""
        return self._bounds.take(rows + 1) - self._bounds.take(rows)

    def take(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Read lists in any order: their numbers, and the bounds of each in these [row + 1]."""
        places, bounds = ranges(self._bounds.take(rows), self.lengths(rows))
        return self._values.take(places), bounds

    def close(self) -> None:
        self._values.close()
        self._bounds.close()


class TextFile:
    """Texts on disk, in files that are overwritten."""

    def __init__(self, path: Path) -> None:
        self._bytes = ListFile(path, np.uint8)
        self.close = self._bytes.close

    def append(self, texts: pa.Array) -> None:
        """Write the next texts [text]; null is an empty one."""
        self._bytes.append(*text_bytes(texts))

    def take(self, rows: np.ndarray) -> pa.Array:
        """Read texts in any order (string) [row]."""
        content, bounds = self._bytes.take(rows)
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(content)]
        return pa.Array.from_buffers(pa.large_string(), len(rows), buffers).cast(pa.string())
