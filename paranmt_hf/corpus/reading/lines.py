"""Files read as blocks of bytes or as lines, unpacked if they are packed, without a Python object for each line."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.errors import InputError
from paranmt_hf.util.packed import DAMAGED, find_packing, open_packed

BLOCK_BYTES = 1 << 20
HEAD_BYTES = 1 << 16  # Number of bytes at the beginning of a file by which its format is found
MAX_LINE_BYTES = 1 << 26  # A longer line is not a sentence: the file has other line ends, or is not text
# Byte order marks of encodings that are not read. The mark of UTF-32 begins with that of UTF-16, so it comes first.
OTHER_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def unpacked(path: Path, size: int | None = None) -> Iterator[bytes]:
    """Read a file in blocks of `size` bytes (default: `BLOCK_BYTES`), unpacked if it is packed.

    Raises:
        InputError: If a packed file is cut off or damaged.
    """
    try:
        with open_packed(path) as file:
            while block := file.read(size or BLOCK_BYTES):
                yield block
    except DAMAGED as error:
        raise InputError(
            f"{path}: cannot be read completely ({error}); the file is cut off or damaged: get it again", path=path
        ) from None


def first_bytes(path: Path) -> bytes:
    """Read the first `HEAD_BYTES` bytes of a file, or all if it is shorter, unpacked if it is packed."""
    head = b""
    for block in unpacked(path):
        head += block
        if len(head) >= HEAD_BYTES:
            break
    return head[:HEAD_BYTES]


def read_blocks(path: Path) -> Iterator[bytes]:
    r"""Read a text file in blocks of whole lines, each of about `BLOCK_BYTES`; every block ends with `\n`.

    Lines end at `\n` alone. Packed files are unpacked, and a byte order mark at the start is left out.

    Raises:
        InputError: If the file is empty, a line has more than `MAX_LINE_BYTES`, or the file is in UTF-16 or UTF-32.
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
    """Remove a UTF-8 byte order mark from the first bytes of a file; reject the marks of other encodings."""
    for mark, encoding in OTHER_MARKS.items():
        # Without this check, English text in UTF-16 would be read as letters with zero bytes between them.
        if start.startswith(mark):
            raise InputError(
                f"{path}: expected text in UTF-8, but its first bytes are those of {encoding}; convert it, such as "
                f"with `iconv -f {encoding} -t UTF-8`",
                path=path,
            )
    return start.removeprefix(codecs.BOM_UTF8)


def split_lines(block: bytes) -> pa.Array:
    """Split a block of whole lines, less than 2 GiB, into an array of lines [line], binary, without their ends."""
    return pc.split_pattern(pa.array([block[:-1]], pa.binary()), b"\n").flatten()


def write_rows(
    source: Path,
    out: Path,
    rows: Iterable[bytes],
    kept: np.ndarray,
    *,
    names: bytes = b"",
    change: Callable[[int, bytes], bytes] | None = None,
) -> None:
    """Write some rows of a file into a new file, packed as `source` is.

    Args:
        source: The file that the rows are from.
        out: The new file.
        rows: The rows as bytes, with their ends.
        kept: Booleans [row] that say which rows are written.
        names: Line with the names of the columns, which is written first; empty if there is none.
        change: Returns what is written, given the number of a row, from 0, and the row; None for the row as it is.
    """
    packing, is_kept = find_packing(source), iter(kept.tolist())
    with out.open("wb") if packing is None else packing.create(out) as file:
        file.write(names)
        for number, row in enumerate(rows):
            if next(is_kept, False):
                file.write(row if change is None else change(number, row))


def write_lines(
    source: Path,
    out: Path,
    kept: np.ndarray,
    *,
    names: bool = False,
    change: Callable[[int, bytes], bytes] | None = None,
) -> None:
    """Write some lines of a file into a new file, packed as `source` is.

    Args:
        source: The file.
        out: The new file.
        kept: Booleans [line] that say which lines are written.
        names: Whether the first line has names of columns; it is written too, and does not count as a line.
        change: Returns what is written, as in `write_rows`.
    """
    lines = (line + b"\n" for block in read_blocks(source) for line in block.split(b"\n")[:-1])
    write_rows(source, out, lines, kept, names=next(lines) if names else b"", change=change)
