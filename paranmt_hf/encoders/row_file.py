"""Write the table of an averaging encoder row by row, without torch."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from paranmt_hf.encoders.modules.paranmt_tables import HASHES, SCALE, WEIGHT, store
from paranmt_hf.errors import InputError

TYPES = {"float32": ("F32", 4), "float16": ("F16", 2), "int8": ("I8", 1)}  # Name in safetensors, and bytes of a value
BUCKETS_AT_ONCE, LARGEST_HALF = 2**20, 65504.0  # Buckets that are written at once, and the largest value of 16 bits


class RowFile:
    """Writes a table of known size row by row, stored as `AverageEmbedding` does.

    `hashes` are the buckets that have a row, ascending; a number for all below it; None for an encoder without
    n-grams.
    """

    def __init__(
        self, path: Path, rows: int, dimension: int, precision: str, hashes: np.ndarray | int | None = None
    ) -> None:
        self._precision, self._hashes, self._scales = precision, hashes, list[np.ndarray]()
        # Type, shape and bytes of a value; wider types come first, so that all are aligned.
        tensors: dict[str, tuple[str, list[int], int]] = {}
        if hashes is not None:
            tensors[HASHES] = ("I64", [hashes if isinstance(hashes, int) else len(hashes)], 8)
        if precision == "int8":
            tensors[SCALE] = ("F32", [rows], 4)
        tensors[WEIGHT] = (TYPES[precision][0], [rows, dimension], TYPES[precision][1])
        head, start, end = {}, 0, 0
        for name, (type_name, shape, width) in tensors.items():
            start, end = end, end + width * math.prod(shape)
            head[name] = {"dtype": type_name, "shape": shape, "data_offsets": [start, end]}
        encoded = json.dumps({"__metadata__": {"format": "pt"}, **head}).encode()
        encoded += b" " * (-len(encoded) % 8)
        self._begin = 8 + len(encoded)
        self._file = path.open("wb")
        self._file.write(len(encoded).to_bytes(8, "little") + encoded)
        # The rows are last; what is before them is written at the end.
        self._file.seek(self._begin + start)

    def write(self, rows: np.ndarray) -> None:
        """Append rows [row, dimension], float32."""
        if self._precision == "float16" and len(rows) and (largest := float(np.abs(rows).max())) > LARGEST_HALF:
            raise InputError(
                f"a vector has the value {largest:g}, and float16 ends at {LARGEST_HALF:,.0f}; choose `precision` "
                "float32"
            )
        stored = store(rows, self._precision)
        self._file.write(stored[WEIGHT].data)
        if SCALE in stored:
            self._scales.append(stored[SCALE])

    def close(self) -> None:
        """Write buckets and scales, and close the file."""
        self._file.seek(self._begin)
        for part in chain(_parts(self._hashes), self._scales):
            self._file.write(part.data)
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
    """Yield the n-gram buckets (given, or all below a number), int64, in blocks."""
    if isinstance(hashes, int):
        for start in range(0, hashes, BUCKETS_AT_ONCE):
            yield np.arange(start, min(start + BUCKETS_AT_ONCE, hashes))
    elif hashes is not None:
        yield hashes
