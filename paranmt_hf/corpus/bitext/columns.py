"""Arrow columns and batches: find a column by its path, bring it to one type, cut batches anew."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.errors import InputError

_TEXTS = (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.null())


def find_column(fields: pa.Schema | pa.StructType, path: str, name: str) -> list[str]:
    """Find the column that a name or a path into structs stands for.

    Args:
        fields: The columns there are.
        path: Name of a column, or names joined by dots.
        name: What the columns are of, for the error.

    Returns:
        The name of the column, then of the field in it, and so on.

    Raises:
        InputError: There is none.
    """
    steps: list[str] = []
    level, rest = fields, path
    while level.get_field_index(rest) < 0:
        step, _, rest = rest.partition(".")
        index = level.get_field_index(step)
        if not rest or index < 0 or not pa.types.is_struct(level.field(index).type):
            raise InputError(f"{name}: there is no column {path!r}; the columns are {', '.join(_leaves(fields))}")
        level = level.field(index).type
        steps.append(step)
    return [*steps, rest]


def read_column(batch: pa.RecordBatch, path: str, name: str, *, number: bool) -> pa.Array:
    """Take a column out of a batch.

    Args:
        batch: The rows.
        path: Name of a column, or names joined by dots.
        name: What the batch is of, for the error.
        number: Whether the column is to hold numbers.

    Returns:
        Bytes (binary), because Parquet readers do not check that text is UTF-8; or numbers of whatever type.

    Raises:
        InputError: There is no such column, or it is of another type.
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
    """Cut batches anew: all but the last have `rows` rows, and none is empty."""
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
    """Read a streamed dataset of `datasets` as record batches.

    Raises:
        InputError: The stream breaks off: a damaged file, or a connection that is lost.
    """
    # Closed in any case: readers that are left open abort the interpreter when it ends.
    with contextlib.closing(iter(stream.with_format("arrow").iter(rows))) as tables:
        yield from _batches(tables, name)


def _batches(tables: Iterator[pa.Table], name: str) -> Iterator[pa.RecordBatch]:
    done = 0
    while True:
        try:
            table = next(tables, None)
        except (OSError, ValueError, RuntimeError) as error:
            raise InputError(
                f"{name}: cannot be read beyond row {done}: {error}; fetch it again, or run the command once more"
            ) from error
        if table is None:
            return
        yield from table.combine_chunks().to_batches()
        done += table.num_rows
