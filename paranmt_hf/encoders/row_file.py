"""Write the table of an averaging encoder into a file row by row, without torch."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from paranmt_hf.encoders.modules.paranmt_tables import HASHES, SCALE, WEIGHT, store
from paranmt_hf.errors import InputError


class RowFile:
    """Writes a table of known size row by row, in the format of `AverageEmbedding`; used in a `with` block.

    Args:
        path: The safetensors file.
        rows: Number of rows.
        dimension: Dimensions of a row.
        precision: float32, float16 or int8.
        hashes: The buckets of n-grams that have a row [n-gram row], int64; None for an encoder without n-grams.
    """

    def __init__(
        self, path: Path, rows: int, dimension: int, precision: str, hashes: np.ndarray | None = None
    ) -> None:
        self._precision = precision
        self._hashes = hashes
        self._scales: list[np.ndarray] = []
        # Tensors of wider numbers come first, so that each begins at a multiple of its number's size.
        tensors: list[tuple[str, str, list[int], int]] = []
        if hashes is not None:
            tensors.append((HASHES, "I64", [len(hashes)], 8))
        if precision == "int8":
            tensors.append((SCALE, "F32", [rows], 4))
        type_name, width = {"float32": ("F32", 4), "float16": ("F16", 2), "int8": ("I8", 1)}[precision]
        tensors.append((WEIGHT, type_name, [rows, dimension], width))
        head: dict[str, Any] = {"__metadata__": {"format": "pt"}}
        end = 0
        for name, kind, shape, width in tensors:
            start = end
            end += width * math.prod(shape)
            head[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, end]}
        encoded = json.dumps(head).encode()
        encoded += b" " * (-len(encoded) % 8)
        self._begin = 8 + len(encoded)
        self._file = path.open("wb")
        self._file.write(len(encoded).to_bytes(8, "little") + encoded)
        # The rows come last in the file. The tensors before them are written when the file is closed.
        self._file.seek(self._begin + start)

    def write(self, rows: np.ndarray) -> None:
        """Append rows [row, dimension], float32.

        Raises:
            InputError: A value is too large for float16.
        """
        largest = float(np.abs(rows).max(initial=0))
        highest = float(np.finfo(np.float16).max)
        if self._precision == "float16" and largest > highest:
            raise InputError(
                f"a vector has the value {largest:g}, and float16 ends at {highest:,.0f}; choose `precision` float32",
                option="precision",
            )
        stored = store(rows, self._precision)
        self._file.write(stored[WEIGHT].data)
        if SCALE in stored:
            self._scales.append(stored[SCALE])

    def __enter__(self) -> RowFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with self._file:
            if kind is not None:
                return
            self._file.seek(self._begin)
            if self._hashes is not None:
                self._file.write(self._hashes.data)
            for scale in self._scales:
                self._file.write(scale.data)
            self._file.flush()
            os.fsync(self._file.fileno())
