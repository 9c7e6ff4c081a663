"""Columns of fixed-width numbers on disk, written once from front to back and then read anywhere."""

from __future__ import annotations

import mmap
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import numpy as np

from paranmt_hf.corpus.duplicates.shingles import Sets


class ColumnFile:
    """A column of numbers, or of vectors, in a file.

    Args:
        path: The file; it is begun anew.
        kind: Type of its numbers.
        width: Numbers in a row.
    """

    def __init__(self, path: Path, kind: type[np.generic], width: int = 1) -> None:
        self.path, self.kind, self.width, self.rows = path, np.dtype(kind), width, 0
        self._file = path.open("wb")
        self._map: mmap.mmap | None = None

    def append(self, values: np.ndarray) -> None:
        """Write the next rows [row] or [row, number]."""
        self._file.write(np.ascontiguousarray(values, self.kind).data)
        self.rows += len(values)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Read rows in any order [row] or [row, number].

        What was read does not stay in this process's memory; the system keeps what it has room for.
        """
        if not len(rows):
            return np.empty((0, self.width) if self.width > 1 else 0, self.kind)
        if self._map is None:
            self._file.close()
            with self.path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        values = np.frombuffer(self._map, self.kind)
        taken = (values.reshape(-1, self.width) if self.width > 1 else values)[rows]
        del values
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)
        return taken

    def blocks(self, size: int) -> list[tuple[int, int]]:
        """Cut the rows into blocks: their bounds."""
        return [(start, min(start + size, self.rows)) for start in range(0, self.rows, size)]

    def read(self, start: int, stop: int) -> np.ndarray:
        """Read the rows from `start` up to `stop` [row] or [row, number]."""
        if not self._file.closed:
            self._file.flush()
        numbers = (stop - start) * self.width
        values = np.fromfile(self.path, self.kind, numbers, offset=start * self.width * self.kind.itemsize)
        return values.reshape(-1, self.width) if self.width > 1 else values

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
        if self._map is not None:
            self._map.close()


class DocumentStore:
    """Documents on disk: their shingles, their keys in each band, and their vectors where there is an encoder.

    Args:
        folder: Where the files lie.
        bands: Number of keys of a document.
    """

    def __init__(self, folder: Path, bands: int) -> None:
        self.keys = [ColumnFile(folder / f"keys-{band:03d}", np.uint64) for band in range(bands)]
        self._ends = ColumnFile(folder / "ends", np.int64)
        self._shingles = ColumnFile(folder / "shingles", np.uint64)
        self._folder = folder
        self._vectors: ColumnFile | None = None

    def __len__(self) -> int:
        return self._ends.rows

    def append(self, sets: Sets, keys: np.ndarray, vectors: np.ndarray | None = None) -> None:
        """Write the next documents.

        Args:
            sets: Their shingles.
            keys: Their keys [band, document].
            vectors: Their vectors of length 1 [document, dimension].
        """
        self._ends.append(self._shingles.rows + sets.offsets[1:])
        self._shingles.append(sets.values)
        for file, column in zip(self.keys, keys, strict=True):
            file.append(column)
        if vectors is not None:
            if self._vectors is None:
                self._vectors = ColumnFile(self._folder / "vectors", np.float16, vectors.shape[1])
            self._vectors.append(vectors)

    def counts(self, documents: np.ndarray) -> np.ndarray:
        """Count the shingles of some documents [document]."""
        before = np.where(documents > 0, self._ends.take(np.maximum(documents - 1, 0)), 0)
        return self._ends.take(documents) - before

    def sets(self, documents: np.ndarray) -> Sets:
        """Read the shingles of some documents."""
        counts = self.counts(documents)
        at, bounds = _ranges(self._ends.take(documents) - counts, counts)
        return Sets(self._shingles.take(at), bounds)

    def vectors(self, documents: np.ndarray) -> np.ndarray:
        """Read the vectors of some documents [document, dimension], float32."""
        if self._vectors is None:
            raise ValueError("these documents have no vectors")
        return self._vectors.take(documents).astype(np.float32)

    def __enter__(self) -> DocumentStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ExitStack() as stack:
            for file in (*self.keys, self._ends, self._shingles, *([self._vectors] if self._vectors else [])):
                stack.callback(file.close)


def _ranges(starts: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of ranges laid end to end, and the bounds of each."""
    bounds = np.concatenate([[0], np.cumsum(counts)])
    return np.repeat(starts - bounds[:-1], counts) + np.arange(bounds[-1]), bounds
