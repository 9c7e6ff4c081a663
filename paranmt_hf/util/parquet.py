"""Reading of Parquet files with clear errors, and queries by DuckDB of files that are larger than memory."""

from __future__ import annotations

import glob
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.errors import InputError
from paranmt_hf.util.files import existing
from paranmt_hf.util.optional import require

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY_BYTES = 2_000_000_000  # Memory that DuckDB may use by default


@contextmanager
def open_parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file in a `with` block; errors of reading it there become an `InputError` that names the file."""
    existing([path])
    opened = False
    try:
        with pq.ParquetFile(path) as file:
            opened = True
            yield file
    except (pa.ArrowException, OSError) as error:
        reason = str(error).split("\n")[0].rstrip(".")
        # Errors of the system have a number; errors about the content, which Arrow raises, have none.
        if (isinstance(error, OSError) and error.errno is None) or (isinstance(error, pa.ArrowInvalid) and not opened):
            reason = "the file is cut off or damaged"
        raise InputError(f"cannot read {path}: {reason}; expected a Parquet file, get it again", path=path) from None


def read_schema(path: Path) -> pa.Schema:
    """Read the schema of a Parquet file."""
    with open_parquet(path) as file:
        return file.schema_arrow


def check_unique(schema: pa.Schema, columns: Iterable[str], path: Path) -> None:
    """Reject the Parquet file `path` if its `schema` has more than one column of a name in `columns`."""
    for name in columns:
        if schema.names.count(name) > 1:
            raise InputError(f"{path} has {schema.names.count(name)} columns {name}; rename all but one", path=path)


@contextmanager
def database(
    *, memory: int = MEMORY_BYTES, spill: Path | None = None, extra: str = "select"
) -> Iterator[DuckDBPyConnection]:
    """Open a DuckDB database in memory in a `with` block; it spills to disk, and downloads no extensions.

    Args:
        memory: Bytes of memory that DuckDB may use. Its buffers for reading files are not counted.
        spill: Folder in which a temporary folder for what does not fit into memory is created; None for that of the
            system.
        extra: Extra of `paranmt-hf` that installs DuckDB, for the error if it is missing.
    """
    duckdb = require("duckdb", extra)
    with tempfile.TemporaryDirectory(prefix="paranmt-", dir=spill) as folder:
        settings = {
            "memory_limit": f"{memory}B",
            "temp_directory": folder,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "preserve_insertion_order": False,
        }
        with duckdb.connect(":memory:", config=settings) as connection:
            # The commands show their progress themselves.
            connection.execute("SET enable_progress_bar = false")
            try:
                yield connection
            except (RuntimeError, duckdb.InterruptException) as error:
                # After Ctrl-C DuckDB raises one of these two errors.
                if "interrupted" in str(error).lower():
                    raise KeyboardInterrupt from None
                raise


def as_table(files: Iterable[Path]) -> str:
    """Return Parquet files as the SQL expression of a table, `read_parquet([...])`, which has only their columns."""
    # Names are escaped because DuckDB takes `*` and `[` for patterns. Without `hive_partitioning = false`, a folder
    # called `origin=news` would replace the column `origin` of its files.
    names = ", ".join("'" + glob.escape(str(path)).replace("'", "''") + "'" for path in files)
    return f"read_parquet([{names}], hive_partitioning = false)"


def plain_types(table: pa.Table) -> pa.Table:
    """Convert columns of types that few functions of Arrow support; polars and DuckDB write such types.

    Views of text and bytes become plain text and bytes, and float16 becomes float32. Decimal numbers become float64,
    or int64 if their type has no digits after the point.
    """
    table = without_views(table)
    for index, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type):
            number = pa.float64() if field.type.scale else pa.int64()
            table = table.set_column(index, field.name, table.column(index).cast(number))
        elif pa.types.is_float16(field.type):
            table = table.set_column(index, field.name, table.column(index).cast(pa.float32()))
    return table


def without_views(table: pa.Table) -> pa.Table:
    """Convert views of text and bytes to plain text and bytes, because Arrow can neither filter nor slice views.

    Views inside lists and structs are converted too.
    """
    for index, field in enumerate(table.schema):
        kind = without_view(field.type)
        if kind != field.type:
            table = table.set_column(index, field.with_type(kind), table.column(index).cast(kind))
    return table


def without_view(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column after `without_views`: `string` for `string_view`, other types unchanged."""
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(without_view(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(without_view(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(without_view(kind.value_type)))
    return kind
