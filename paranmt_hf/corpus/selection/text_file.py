"""Texts on disk, of which any can be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.selection.minhash import ColumnFile
from paranmt_hf.text.tokens import ranges, text_bytes


class TextFile:
    """Texts in a file of their bytes and a file of their bounds, which are overwritten."""

    def __init__(self, path: Path) -> None:
        self._bytes = ColumnFile(path, np.uint8)
        self._bounds = ColumnFile(path.with_suffix(".bounds"), np.int64)
        self._bounds.append(np.zeros(1, np.int64))

    def append(self, texts: pa.Array) -> None:
        """Write the next texts [text]; null is an empty one."""
        content, bounds = text_bytes(texts)
        self._bounds.append(self._bytes.rows + bounds[1:])
        self._bytes.append(content)

    def take(self, rows: np.ndarray) -> pa.Array:
        """Read texts in any order (string) [row]."""
        starts = self._bounds.take(rows)
        places, bounds = ranges(starts, self._bounds.take(rows + 1) - starts)
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(self._bytes.take(places))]
        return pa.Array.from_buffers(pa.large_string(), len(rows), buffers).cast(pa.string())

    def close(self) -> None:
        """Close both files."""
        self._bytes.close()
        self._bounds.close()
