"""Numbers drawn for texts: the same for a text wherever it stands."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa


def text_numbers(column: pa.ChunkedArray, *, size: int = 8, salt: str = "") -> np.ndarray:
    """Draw a number for each text by its hash.

    Args:
        column: Strings [row], without nulls; each distinct one is hashed once.
        size: Bytes of a number, at most 8.
        salt: Another salt, at most 16 bytes, another draw.

    Returns:
        Evenly distributed numbers [row] below 256**size, uint64.
    """
    encoded = column.combine_chunks().dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    numbers = [
        int.from_bytes(hashlib.blake2b(text.encode(), digest_size=size, salt=salt.encode()).digest())
        for text in encoded.dictionary.to_pylist()
    ]
    return np.array(numbers, np.uint64)[encoded.indices.to_numpy()]
