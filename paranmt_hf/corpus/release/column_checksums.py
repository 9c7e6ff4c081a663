"""Checksums of the columns of a corpus: a column that is added later does not change those of the others."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa

from paranmt_hf.text.tokens import text_bytes


class ColumnChecksums:
    """SHA-256 of each column of tables that follow one another, however they are cut into tables and files."""

    def __init__(self) -> None:
        # Of each column: which values are there, the lengths of texts, and the values.
        self._sums: dict[str, tuple[Any, Any, Any]] = {}

    def add(self, table: pa.Table) -> None:
        """Add the next rows."""
        for name in table.column_names:
            valid, lengths, values = self._sums.setdefault(
                name, (hashlib.sha256(), hashlib.sha256(), hashlib.sha256())
            )
            for chunk in table[name].chunks:
                valid.update(np.asarray(chunk.is_valid()).astype(np.uint8).tobytes())
                if pa.types.is_string(chunk.type):
                    text, offsets = text_bytes(chunk)
                    lengths.update(np.diff(offsets).astype("<i4").tobytes())
                    values.update(text.tobytes())
                else:
                    values.update(np.ascontiguousarray(chunk.fill_null(0).to_numpy(zero_copy_only=False)).tobytes())

    def digests(self) -> dict[str, str]:
        """The checksum of each column."""
        return {
            name: hashlib.sha256(b"".join(part.digest() for part in parts)).hexdigest()
            for name, parts in self._sums.items()
        }
