"""Parquet, whatever program wrote it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.reading.columns import leaf_types, read_column
from paranmt_hf.corpus.reading.labels import label_names
from paranmt_hf.corpus.reading.tables import BLOCK_ROWS, Piece, Table
from paranmt_hf.util.parquet import open_parquet, read_schema, without_views

SIGNATURE = b"PAR1"


class ParquetTable(Table):
    """A Parquet file; a column is a name or a path into structs such as `translation.cs`."""

    format = "Parquet"

    @classmethod
    def matches(cls, name: str, head: bytes) -> bool:
        return head.startswith(SIGNATURE) or name.endswith(".parquet")

    @classmethod
    def open(cls, path: Path, named: Collection[str] = ()) -> Table:
        types = leaf_types(read_schema(path))
        return cls(path, [name for name, _ in types], [name for name, kind in types if is_text(kind)])

    def label_names(self, column: str) -> Sequence[str] | None:
        return label_names(read_schema(self.path), self.names[self.position(column)])

    def pieces(self, columns: Sequence[str], *, numbers: Collection[str] = ()) -> Iterator[Piece]:
        names = [self.names[self.position(column)] for column in columns]
        rows = 0
        with open_parquet(self.path) as file:
            for batch in file.iter_batches(BLOCK_ROWS, columns=names):
                found = [
                    read_column(batch, name, str(self.path), number=column in numbers)
                    for name, column in zip(names, columns, strict=True)
                ]
                yield Piece(found, f"{self.path}, row (from 0) ", rows)
                rows += batch.num_rows

    def write(self, out: Path, kept: np.ndarray) -> None:
        done = 0
        with open_parquet(self.path) as file:
            schema = without_views(file.schema_arrow.empty_table()).schema
            with pq.ParquetWriter(out, schema, compression="zstd") as writer:
                for batch in file.iter_batches(BLOCK_ROWS):
                    rows = without_views(pa.Table.from_batches([batch]))
                    writer.write_table(rows.filter(pa.array(kept[done : done + len(batch)])))
                    done += len(batch)


def is_text(kind: pa.DataType) -> bool:
    """Whether a column is text, of a dictionary too."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return kind in (pa.string(), pa.large_string(), pa.string_view())
