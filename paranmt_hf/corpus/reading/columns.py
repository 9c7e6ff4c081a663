"""Files as lines and fields, and columns of text and numbers.

Bounded blocks of bytes in, Arrow arrays of bytes out, no Python object per line; decoding, normalisation, and columns
of Arrow batches by their paths.
"""

from __future__ import annotations

import codecs
import contextlib
import unicodedata
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.reading.blocks import unpacked
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import checksum
from paranmt_hf.util.wording import decimal_point

# Marks at the start of other encodings; that of UTF-32 begins with that of UTF-16.
OTHER_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
MAX_LINE_BYTES = 1 << 26  # A longer line is not a sentence: the file has other line ends, or is not text


def file_identity(path: Path) -> dict[str, object]:
    """Identify a file: its name without the folder, its size in bytes, the SHA-256 of the bytes."""
    return {"name": path.name, "bytes": path.stat().st_size, "sha256": checksum(path)}


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


# `[^\PZ ]` is every white space but the blank. Rows without a match keep their bytes, and matching costs a tenth of
# replacing.
_UNTIDY = r"\A | \z|  |[^\PZ ]|\p{Cc}"
_SPACES = r"[\pZ\p{Cc}]+"
# First bytes of the characters outside ASCII that the pattern may find: U+0080 to U+00BF, and U+1000 to U+3FFF.
_LEADS = (0xC2, 0xE1, 0xE2, 0xE3)
# Text below U+0300 is its own NFC: composition and reordering need a character from there on. Its first byte in UTF-8.
_COMPOSABLE = 0xCC


def normalise(column: pa.Array) -> pa.Array:
    """Normalise text (string) to the form that the corpus stores; null stays null.

    Unicode NFC; every run of white space and control characters (categories Z* and Cc, NUL included) becomes one
    blank; none remains at either end. Nothing else changes: quotes, case, soft hyphens and zero-width joiners stay.
    The Unicode data of the composition is Python's.
    """
    # Most untidy rows only have a carriage return or a blank at an end, and this costs next to nothing.
    column = pc.ascii_trim_whitespace(column)
    # The pattern is slow, and few rows hold a byte that it can find.
    suspects = np.flatnonzero(_rows_with(column, _may_be_untidy))
    untidy = pc.match_substring_regex(column.take(pa.array(suspects)), _UNTIDY)
    rows = np.zeros(len(column), bool)
    rows[suspects] = untidy.to_numpy(zero_copy_only=False)
    return composed(_rewrite(column, rows, _tidy))


def decode(column: pa.Array) -> pa.Array:
    """Read bytes as UTF-8 text; null if the bytes are null or not UTF-8."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([_decoded(value) for value in column.to_pylist()], pa.string())


def read_numbers(
    column: pa.Array, name: str, where: str, first: int, *, optional: bool = False, skipped: np.ndarray | None = None
) -> pa.Array:
    """Convert numbers, or bytes that spell them, to float32.

    Missing numbers are null where they are `optional`, and in the rows `skipped`, booleans [row].
    An error names the column `name` and its place: `where`, followed by the number of the row, counted from `first`.
    """
    values, missing = column, np.asarray(column.is_null())
    if pa.types.is_binary(column.type):
        values = normalise(decode(column))
        missing |= np.asarray(pc.fill_null(pc.equal(pc.utf8_length(values), 0), False))
        try:
            values = values.cast(pa.float64())
        except pa.ArrowInvalid:
            values = pa.array([_number(text) for text in values], pa.float64())
    numbers = values.cast(pa.float32(), safe=False)
    bad = ~np.isfinite(numbers.to_numpy(zero_copy_only=False))
    may_lack = missing if optional else missing & (False if skipped is None else skipped)
    if (wrong := np.flatnonzero(bad & ~may_lack)).size:
        value = column[int(wrong[0])].as_py()
        text = value.decode(errors="replace") if isinstance(value, bytes) else value
        raise InputError(
            f"{where}{first + wrong[0]}: expected a finite number in column {name!r}, got {text!r}; "
            f"{decimal_point(str(text), 'correct or remove the row')}"
        )
    return numbers


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode("utf-8")
    except UnicodeDecodeError:
        return None


def composed(column: pa.Array) -> pa.Array:
    """Normalise text [sentence] to NFC: a letter and its accent become one character if possible."""
    return _rewrite(column, _rows_with(column, lambda text: text >= _COMPOSABLE), _compose)


def _tidy(column: pa.Array) -> pa.Array:
    return pc.ascii_trim(pc.replace_substring_regex(column, _SPACES, " "), " ")


def _compose(column: pa.Array) -> pa.Array:
    # Not Arrow's own function: before version 26 it decomposes and does not compose again.
    return pa.array([unicodedata.normalize("NFC", text) for text in column.to_pylist()], pa.string())


def _may_be_untidy(text: np.ndarray) -> np.ndarray:
    """Mark the bytes [byte] that may belong to a match of `_UNTIDY` within a row; no match is missed."""
    found = (text < ord(" ")) | (text == 0x7F)
    for lead in _LEADS:
        found |= text == lead
    blank = text == ord(" ")
    found[1:] |= blank[1:] & blank[:-1]
    return found


def _rows_with(column: pa.Array, find: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Mark the rows [row] with a byte that `find` marks; nulls have none."""
    rows = np.zeros(len(column), bool)
    _, offsets, values = column.buffers()
    if not len(column) or values is None:
        return rows
    bounds = np.frombuffer(offsets, np.int32, len(column) + 1, 4 * column.offset)
    found = np.flatnonzero(find(np.frombuffer(values, np.uint8, bounds[-1])[bounds[0] :]))
    rows[np.searchsorted(bounds, found + bounds[0], side="right") - 1] = True
    return rows & column.is_valid().to_numpy(zero_copy_only=False)


def _rewrite(column: pa.Array, rows: np.ndarray, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Change some rows of a column."""
    if not rows.any():
        return column
    mask = pa.array(rows)
    return pc.replace_with_mask(column, mask, change(column.filter(mask)))


def _number(text: pa.Scalar) -> float | None:
    try:
        return text.cast(pa.float64()).as_py()
    except pa.ArrowInvalid:
        return None


_TEXTS = (
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
    pa.null(),
)


def find_column(fields: pa.Schema | pa.StructType, path: str, name: str) -> list[str]:
    """Find a column by its name or a dotted path into structs; returns the names along the path."""
    steps: list[str] = []
    level, rest = fields, path
    while level.get_field_index(rest) < 0:
        step, _, rest = rest.partition(".")
        index = level.get_field_index(step)
        if not rest or index < 0 or not pa.types.is_struct(level.field(index).type):
            leaves = [leaf for leaf, _ in leaf_types(fields)]
            found = f"are {leaves.count(path)} columns" if path in leaves else "is no column"
            raise InputError(f"{name}: there {found} {path!r}; the columns are {', '.join(leaves)}", option="columns")
        level = level.field(index).type
        steps.append(step)
    return [*steps, rest]


def read_column(batch: pa.RecordBatch, path: str, name: str, *, number: bool) -> pa.Array:
    """Return a column of a batch of the dataset `name`, by its name or dotted path.

    Text is returned as bytes, because Parquet readers do not check that it is UTF-8; numbers keep their type.
    """
    first, *rest = find_column(batch.schema, path, name)
    column = batch.column(first)
    for step in rest:
        column = pc.struct_field(column, step)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if kind in _TEXTS:
        return column.cast(pa.binary())
    if number and pa.types.is_boolean(kind):
        return column.cast(pa.int8())
    if number and (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return column
    wanted = "numbers" if number else "text"
    advice = ""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        advice = f"; write a row for each, such as with `frame.explode({path!r})` of pandas"
    raise InputError(f"{name}: expected {wanted} in column {path!r}, got values of type {kind}{advice}")


def rebatch(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Regroup batches: all but the last have `rows` rows, and none is empty."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= rows:
            joined = pa.concat_batches(held)
            count %= rows
            whole = joined.num_rows - count
            yield from (joined.slice(start, rows) for start in range(0, whole, rows))
            held = [joined.slice(whole)]
    if count:
        yield pa.concat_batches(held)


def leaf_types(fields: pa.Schema | pa.StructType) -> list[tuple[str, pa.DataType]]:
    """Names and types of columns, with paths such as `translation.cs` for those inside structs."""
    found: list[tuple[str, pa.DataType]] = []
    for item in fields:
        inner = leaf_types(item.type) if pa.types.is_struct(item.type) else []
        found += [(f"{item.name}.{name}", kind) for name, kind in inner] or [(item.name, item.type)]
    return found


def stream_batches(stream: Any, name: str, rows: int) -> Generator[pa.RecordBatch, None, None]:  # noqa: ANN401 - a streamed dataset
    """Read a streamed dataset of `datasets` as record batches."""
    done = 0
    # Closed in any case: readers that are left open abort the interpreter when it ends.
    with contextlib.closing(iter(stream.with_format("arrow").iter(rows))) as tables:
        try:
            for table in tables:
                yield from table.combine_chunks().to_batches()
                done += table.num_rows
        except (OSError, ValueError, RuntimeError) as error:
            raise InputError(
                f"{name}: cannot be read beyond row {done}: {error}; fetch it again, or run the command once more"
            ) from error
