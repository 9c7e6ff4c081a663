"""Write the table of an averaging encoder row by row, without torch."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from paranmt_hf.encoders.modules.paranmt_tables import HASHES, SCALE, WEIGHT, store
from paranmt_hf.errors import InputError

# The tensors of an encoder by name, with their types as safetensors and as numpy name them; wider types come first,
# so that each begins where its numbers may.
TYPES = {"float32": ("F32", np.float32), "float16": ("F16", np.float16), "int8": ("I8", np.int8)}
BUCKETS_AT_ONCE, LARGEST_HALF = 2**20, 65504.0  # Buckets that are written at once, and the largest value of 16 bits


class RowFile:
    """Writes a table of known size row by row, stored as `AverageEmbedding` does; the header is written last.

    `hashes` are the buckets that have a row, ascending; a number for all below it; None for an encoder without
    n-grams.
    """

    def __init__(
        self, path: Path, rows: int, dimension: int, precision: str, hashes: np.ndarray | int | None = None
    ) -> None:
        self._precision, self._hashes, self._scales = precision, hashes, [np.empty(0, np.float32)]
        sizes: list[tuple[str, str, list[int], int]] = []
        if hashes is not None:
            sizes.append((HASHES, "I64", [hashes if isinstance(hashes, int) else len(hashes)], 8))
        if precision == "int8":
            sizes.append((SCALE, "F32", [rows], 4))
        kind, self._type = TYPES[precision]
        sizes.append((WEIGHT, kind, [rows, dimension], np.dtype(self._type).itemsize))
        head, self._starts, end = {}, {}, 0
        for name, type_name, shape, width in sizes:
            start, end = end, end + width * int(np.prod(shape, dtype=object))
            head[name] = {"dtype": type_name, "shape": shape, "data_offsets": [start, end]}
            self._starts[name] = start
        encoded = json.dumps({"__metadata__": {"format": "pt"}, **head}).encode()
        encoded += b" " * (-len(encoded) % 8)
        self._begin = 8 + len(encoded)
        self._file = path.open("wb")
        self._file.write(len(encoded).to_bytes(8, "little") + encoded)
        self._file.seek(self._begin + self._starts[WEIGHT])

    def write(self, rows: np.ndarray) -> None:
        """Append rows [row, dimension], float32."""
        if self._precision == "float16" and len(rows) and (largest := float(np.abs(rows).max())) > LARGEST_HALF:
            raise InputError(
                f"a vector has the value {largest:g}, and float16 ends at {LARGEST_HALF:,.0f}; choose `precision` "
                "float32"
            )
        stored = store(rows, self._precision)
        self._file.write(stored[WEIGHT].tobytes())
        if SCALE in stored:
            self._scales.append(stored[SCALE])

    def close(self) -> None:
        """Write the header, and close the file."""
        if HASHES in self._starts:
            self._file.seek(self._begin + self._starts[HASHES])
            for part in _parts(self._hashes):
                self._file.write(part.astype("<i8").tobytes())
        if SCALE in self._starts:
            self._file.seek(self._begin + self._starts[SCALE])
            self._file.write(np.concatenate(self._scales).tobytes())
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def __enter__(self) -> RowFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self.close()
        else:
            self._file.close()


def _parts(hashes: np.ndarray | int | None) -> Iterator[np.ndarray]:
    """Yield the n-gram buckets (given, or all below a number) in blocks."""
    count = hashes if isinstance(hashes, int) else 0 if hashes is None else len(hashes)
    for start in range(0, count, BUCKETS_AT_ONCE):
        stop = min(start + BUCKETS_AT_ONCE, count)
        yield np.arange(start, stop) if isinstance(hashes, int) else hashes[start:stop]  # type: ignore[index]
