"""Checksums of the columns of a corpus, each on its own, so that adding a column does not change the others."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa

from paranmt_hf.text.tokens import text_bytes


class ColumnChecksums:
    """Computes the SHA-256 of each column of consecutive tables, however the rows are cut into tables."""

    def __init__(self) -> None:
        # Three hashes for each column: of which values are valid, of the lengths of texts, and of the values.
        self._sums: dict[str, tuple[Any, Any, Any]] = {}

    def add(self, table: pa.Table) -> None:
        """Add a table with the next rows."""
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
        """Return the SHA-256 of each column, in hexadecimal, by its name."""
        return {
            name: hashlib.sha256(b"".join(one.digest() for one in hashes)).hexdigest()
            for name, hashes in self._sums.items()
        }
