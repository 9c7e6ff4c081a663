"""The bytes of a file in blocks, unpacked if it is packed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from paranmt_hf.errors import InputError
from paranmt_hf.util.packed import DAMAGED, open_packed

BLOCK_BYTES = 1 << 20
HEAD_BYTES = 1 << 16  # The beginning of a file that shows its format


def unpacked(path: Path) -> Iterator[bytes]:
    """Read the bytes of a file in blocks, unpacked if it is packed."""
    try:
        with open_packed(path) as file:
            while block := file.read(BLOCK_BYTES):
                yield block
    except DAMAGED as error:
        raise InputError(
            f"{path}: cannot be read completely ({error}); the file is cut off or damaged: get it again", path=path
        ) from None


def first_bytes(path: Path) -> bytes:
    """Read the beginning of a file, `HEAD_BYTES` or the whole file, unpacked."""
    head = b""
    for block in unpacked(path):
        head += block
        if len(head) >= HEAD_BYTES:
            break
    return head[:HEAD_BYTES]
