"""Columns of text and numbers: decoding, normalisation, and columns of Arrow batches by their paths."""

from __future__ import annotations

import contextlib
import unicodedata
from collections.abc import Callable, Generator, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.errors import InputError

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


def read_numbers(column: pa.Array, name: str, where: str, first: int, *, optional: bool = False) -> pa.Array:
    """Convert numbers, or bytes that spell them, to float32; if `optional`, missing numbers are null.

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
    if (wrong := np.flatnonzero(bad & ~missing if optional else bad)).size:
        value = column[int(wrong[0])].as_py()
        text = value.decode(errors="replace") if isinstance(value, bytes) else value
        raise InputError(
            f"{where}{first + wrong[0]}: expected a finite number in column {name!r}, got {text!r}; "
            "correct or remove the row"
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


_TEXTS = (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.null())


def find_column(fields: pa.Schema | pa.StructType, path: str, name: str) -> list[str]:
    """Find a column by its name or a dotted path into structs; returns the names along the path."""
    steps: list[str] = []
    level, rest = fields, path
    while level.get_field_index(rest) < 0:
        step, _, rest = rest.partition(".")
        index = level.get_field_index(step)
        if not rest or index < 0 or not pa.types.is_struct(level.field(index).type):
            leaves = _leaves(fields)
            found = f"are {leaves.count(path)} columns" if path in leaves else "is no column"
            raise InputError(f"{name}: there {found} {path!r}; the columns are {', '.join(leaves)}")
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
    if number and (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return column
    wanted = "numbers" if number else "text"
    raise InputError(f"{name}: expected {wanted} in column {path!r}, got values of type {kind}")


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


def _leaves(fields: pa.Schema | pa.StructType) -> list[str]:
    names = []
    for item in fields:
        inner = _leaves(item.type) if pa.types.is_struct(item.type) else []
        names += [f"{item.name}.{name}" for name in inner] or [item.name]
    return names


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
