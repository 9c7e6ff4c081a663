"""Parquet, whatever program wrote it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.reading.arrow_columns import ArrowTable
from paranmt_hf.corpus.reading.labels import label_names
from paranmt_hf.corpus.reading.tables import BLOCK_ROWS, Table
from paranmt_hf.util.parquet import open_parquet, read_schema, without_views

SIGNATURE = b"PAR1"


class ParquetTable(ArrowTable):
    """A Parquet file."""

    format = "Parquet"

    @classmethod
    def matches(cls, name: str, head: bytes) -> bool:
        return head.startswith(SIGNATURE) or name.endswith(".parquet")

    @classmethod
    def open(cls, path: Path, named: Collection[str] = ()) -> Table:
        return cls(path, read_schema(path))

    def label_names(self, column: str) -> Sequence[str] | None:
        return label_names(read_schema(self.path), self.names[self.position(column)])

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with open_parquet(self.path) as file:
            yield from file.iter_batches(BLOCK_ROWS, columns=columns)

    def write(self, out: Path, kept: np.ndarray) -> None:
        done = 0
        with open_parquet(self.path) as file:
            schema = without_views(file.schema_arrow.empty_table()).schema
            with pq.ParquetWriter(out, schema, compression="zstd") as writer:
                for batch in file.iter_batches(BLOCK_ROWS):
                    rows = without_views(pa.Table.from_batches([batch]))
                    writer.write_table(rows.filter(pa.array(kept[done : done + len(batch)])))
                    done += len(batch)
