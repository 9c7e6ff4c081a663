"""Whether a Parquet file holds what its columns are for; Arrow's reader does not look."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pyarrow as pa

from paranmt_hf.corpus.schema import COLUMNS
from paranmt_hf.errors import InputError

TEXT = frozenset(column.name for column in COLUMNS if pa.types.is_string(column.type))
NUMBERS = frozenset(column.name for column in COLUMNS) - TEXT


def check_types(schema: pa.Schema, columns: Collection[str], path: Path) -> None:
    """Check the types of columns of the schema; numbers and text may have any width.

    Args:
        schema: The columns of a file.
        columns: Those that are read; others are not looked at.
        path: The file, for the error.
    """
    for field in schema:
        if field.name not in columns:
            continue
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        if (field.name in TEXT and not is_text) or (field.name in NUMBERS and not is_number):
            expected = "text" if field.name in TEXT else "numbers"
            raise InputError(
                f"{path}: the column {field.name} holds values of type {field.type}, expected {expected}; write the "
                "file anew"
            )


def check_text(table: pa.Table, path: Path, first: int) -> None:
    """Check that text is UTF-8.

    Args:
        table: Rows of a file.
        path: The file, for the error.
        first: Number of the first row in it.
    """
    for name in table.column_names:
        column = table[name]
        if name not in TEXT or _is_valid(column):
            continue
        row = next(row for row in range(len(column)) if not _is_valid(column.slice(row, 1).combine_chunks()))
        raise InputError(
            f"{path}, row (from 0) {first + row}: the column {name} is not UTF-8; write the file anew, or bring it in "
            "with `paranmt import`, which leaves such rows out"
        )


def _is_valid(column: pa.ChunkedArray | pa.Array) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
