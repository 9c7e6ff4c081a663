"""Files as blocks of bytes and as lines, unpacked if they are packed; no Python object per line."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.errors import InputError
from paranmt_hf.util.packed import DAMAGED, find_packing, open_packed

BLOCK_BYTES = 1 << 20
HEAD_BYTES = 1 << 16  # The beginning of a file that shows its format
MAX_LINE_BYTES = 1 << 26  # A longer line is not a sentence: the file has other line ends, or is not text
# Marks at the start of other encodings; that of UTF-32 begins with that of UTF-16.
OTHER_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def unpacked(path: Path, size: int | None = None) -> Iterator[bytes]:
    """Read the bytes of a file in blocks of some `size`, by default `BLOCK_BYTES`, unpacked if it is packed."""
    try:
        with open_packed(path) as file:
            while block := file.read(size or BLOCK_BYTES):
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


def read_blocks(path: Path) -> Iterator[bytes]:
    r"""Read whole lines, about `BLOCK_BYTES` at a time; the last byte of each block is `\n`.

    Lines end at `\n` alone. Packed files are unpacked; a byte order mark at the start is left out.
    """
    lines = held = 0
    pending: list[bytes] = []
    for block in unpacked(path):
        head, newline, tail = block.rpartition(b"\n")
        if newline:
            whole = b"".join([*pending, head, newline])
            yield whole if lines else without_mark(whole, path)
            lines += whole.count(newline)
            pending, held = [], 0
        pending.append(tail)
        held += len(tail)
        if held > MAX_LINE_BYTES:
            raise InputError(
                f"{path}:{lines + 1}: this line has more than {MAX_LINE_BYTES:,} bytes; expected text with a sentence "
                r"on each line and lines that end with \n",
                path=path,
            )
    rest = b"".join(pending)
    rest = rest if lines else without_mark(rest, path)
    if rest:
        yield rest + b"\n"
    elif not lines:
        raise InputError(f"{path}: expected lines of text, but the file is empty", path=path)


def without_mark(start: bytes, path: Path) -> bytes:
    """Remove the byte order mark from the start of a file; reject those of encodings other than UTF-8."""
    for mark, encoding in OTHER_MARKS.items():
        # Read as UTF-8, English in UTF-16 is letters with a zero byte between them, and no error.
        if start.startswith(mark):
            raise InputError(
                f"{path}: expected text in UTF-8, but its first bytes are those of {encoding}; convert it, such as "
                f"with `iconv -f {encoding} -t UTF-8`",
                path=path,
            )
    return start.removeprefix(codecs.BOM_UTF8)


def split_lines(block: bytes) -> pa.Array:
    """Split a block of whole lines, less than 2 GiB, into lines (binary, without their ends)."""
    return pc.split_pattern(pa.array([block[:-1]], pa.binary()), b"\n").flatten()


def write_rows(source: Path, out: Path, rows: Iterable[bytes], kept: np.ndarray, *, names: bytes = b"") -> None:
    """Write the rows that are `kept`, booleans [row], after a line of `names`, packed as `source` is."""
    packing, left = find_packing(source), iter(kept.tolist())
    with out.open("wb") if packing is None else packing.create(out) as file:
        file.write(names)
        for row in rows:
            if next(left, False):
                file.write(row)


def write_lines(source: Path, out: Path, kept: np.ndarray, *, names: bool = False) -> None:
    """Write the lines that are `kept`, booleans [line], after the first line if it has `names`; see `write_rows`."""
    lines = (line + b"\n" for block in read_blocks(source) for line in block.split(b"\n")[:-1])
    write_rows(source, out, lines, kept, names=next(lines) if names else b"")
