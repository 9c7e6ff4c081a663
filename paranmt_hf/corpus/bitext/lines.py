"""Files as lines and fields: bounded blocks of bytes in, Arrow arrays of bytes out, no Python object per line."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.errors import InputError
from paranmt_hf.util.files import checksum

BLOCK_BYTES = 1 << 20
# Marks at the start of other encodings; that of UTF-32 begins with that of UTF-16.
OTHER_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
# A longer line is not a sentence: the file has other line ends, or is not text.
MAX_LINE_BYTES = 1 << 26

_NEWLINE = 10


_OPENERS: dict[str, Callable[[str], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": lambda path: pa.CompressedInputStream(pa.OSFile(path), "zstd"),
}


def file_identity(path: Path) -> dict[str, object]:
    """Identify a file: its name without the folder, its size in bytes, the SHA-256 of the bytes."""
    return {"name": path.name, "bytes": path.stat().st_size, "sha256": checksum(path)}


def read_blocks(path: Path) -> Iterator[bytes]:
    r"""Read whole lines, about `BLOCK_BYTES` at a time; the last byte of each block is `\n`.

    Lines end at `\n` alone. Files with the suffixes .gz, .bz2, .xz and .zst are decompressed; a byte order mark at
    the start is left out.
    """
    lines = held = 0
    pending: list[bytes] = []
    for block in _read(path):
        if isinstance(block, Exception):
            raise InputError(
                f"{path}: cannot be read completely ({block}); the file is cut off, damaged or not what its suffix "
                "says: get it again"
            )
        head, newline, tail = block.rpartition(b"\n")
        if newline:
            whole = b"".join([*pending, head, newline])
            yield whole if lines else _without_mark(whole, path)
            lines += whole.count(newline)
            pending, held = [], 0
        pending.append(tail)
        held += len(tail)
        if held > MAX_LINE_BYTES:
            raise InputError(
                f"{path}:{lines + 1}: this line has more than {MAX_LINE_BYTES:,} bytes; expected text with a sentence "
                r"on each line and lines that end with \n"
            )
    rest = b"".join(pending)
    rest = rest if lines else _without_mark(rest, path)
    if rest:
        yield rest + b"\n"
    elif not lines:
        raise InputError(f"{path}: expected lines of text, but the file is empty")


def _without_mark(start: bytes, path: Path) -> bytes:
    """Remove the byte order mark from the start of a file; reject those of encodings other than UTF-8."""
    for mark, encoding in OTHER_MARKS.items():
        # Read as UTF-8, English in UTF-16 is letters with a zero byte between them, and no error.
        if start.startswith(mark):
            raise InputError(
                f"{path}: expected text in UTF-8, but its first bytes are those of {encoding}; convert it, such as "
                f"with `iconv -f {encoding} -t UTF-8`"
            )
    return start.removeprefix(codecs.BOM_UTF8)


def opened(path: Path) -> BinaryIO:
    """Open a file to read its bytes, unpacked if its suffix is one of .gz, .bz2, .xz and .zst."""
    unpack = _OPENERS.get(path.suffix.lower())
    return path.open("rb") if unpack is None else cast(BinaryIO, unpack(str(path)))


def _read(path: Path) -> Iterator[bytes | Exception]:
    """Yield the bytes of a file and, at the end, the error that stopped reading, if any."""
    try:
        with opened(path) as file:
            while block := file.read(BLOCK_BYTES):
                yield block
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        yield error


def split_lines(block: bytes) -> pa.Array:
    """Split a block of whole lines, less than 2 GiB, into lines (binary, without their ends)."""
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == _NEWLINE)
    # An array of bytes has no gaps, so the line ends are made its odd elements.
    offsets = np.zeros(2 * len(ends), np.int32)
    offsets[1::2], offsets[2::2] = ends, ends[:-1] + 1
    count = len(offsets) - 1
    both = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(block)])
    return both.take(pa.array(np.arange(0, count, 2)))


def count_fields(block: bytes) -> int:
    """Count the fields of the first line of a block."""
    return block.count(b"\t", 0, block.index(b"\n")) + 1


def find_fields(lines: pa.Array, wanted: Sequence[int], counts: range, path: Path, first: int) -> list[pa.Array]:
    """Split lines (binary) at tabs; returns the `wanted` fields [line], from 0, null where a line has fewer.

    Each line must have one of the `counts` of fields. `path` and `first`, the number of the first line, are for the
    error.
    """
    fields = pc.split_pattern(lines, b"\t")
    found = np.asarray(pc.list_value_length(fields))
    if (wrong := np.flatnonzero((found < counts[0]) | (found > counts[-1]))).size:
        expected = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}"
        raise InputError(
            f"{path}:{first + wrong[0]}: expected {expected} fields with tabs between them, got {found[wrong[0]]}; a "
            "tab inside a text or a broken line would shift the columns, so correct the line"
        )
    starts, flat = np.cumsum(found) - found, fields.flatten()
    return [flat.take(pa.array(starts + index, mask=found <= index)) for index in wanted]


class Side:
    """One of several files that are read in parallel."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._blocks = read_blocks(path)
        self._held = pa.array([], pa.binary())
        self._taken = 0

    def fill(self) -> int:
        """Return the number of buffered lines, reading more if there are none; 0 at the end of the file."""
        if not len(self._held):
            block = next(self._blocks, None)
            if block is not None:
                self._held = split_lines(block)
        return len(self._held)

    def take(self, lines: int) -> pa.Array:
        """Return buffered lines (binary)."""
        taken, self._held = self._held[:lines], self._held[lines:]
        self._taken += lines
        return taken

    def count(self) -> int:
        """Count all lines of the file; reads it to the end."""
        return self._taken + len(self._held) + sum(block.count(b"\n") for block in self._blocks)
