"""Sentences of a corpus: a text file with one on a line, a column of Parquet, or a side of a release."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.bitext.normalisation import decode, normalise
from paranmt_hf.corpus.bitext.readers import LineFiles, ParquetFiles, Reader, Report
from paranmt_hf.corpus.pairs import SIDES
from paranmt_hf.corpus.release import release_files
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import check_regular

# Files of columns that would be taken for sentences.
NOT_LINES = (".tsv", ".csv", ".json", ".jsonl")


class SentenceFile:
    """The sentences of one corpus.

    Args:
        path: A text file (plain, .gz, .xz or .zst), a Parquet file, or the folder of a release.
        column: Of a Parquet file, which it needs unless it has one column of text alone; of a release `reference` or
            `translation`, without it `reference`.

    Raises:
        InputError: It is missing, or has no such column.
    """

    def __init__(self, path: str | Path, column: str | None = None) -> None:
        self.path = Path(path).expanduser()
        check_regular(self.path)
        self._reader = self._open(column)

    def _open(self, column: str | None) -> Reader:
        if self.path.is_dir():
            if column not in (None, *SIDES):
                raise InputError(f"{self.path}: a release has the sides {' and '.join(SIDES)}, not {column!r}")
            return ParquetFiles(release_files(self.path), {"sentence": column or SIDES[0]})
        if self.path.suffix == ".parquet" and self.path.exists():
            return ParquetFiles([self.path], {"sentence": column or _only_text(self.path)})
        if column is not None:
            raise InputError(f"{self.path}: --column is for Parquet files and releases; a text file has none")
        if self.path.name.removesuffix(".gz").endswith(NOT_LINES):
            raise InputError(
                f"{self.path}: expected one sentence on a line, or Parquet; this ends in {self.path.suffix}"
            )
        return LineFiles({"sentence": self.path})

    @property
    def identity(self) -> dict[str, Any]:
        """What determines the sentences, as JSON values; files are hashed each time that it is asked for."""
        return self._reader.identity

    def batches(self, report: Report) -> Iterator[tuple[np.ndarray, pa.Array]]:
        """Read numbers of lines, from 0, and sentences; what cannot be used is counted and left out."""
        for batch in self._reader.batches(report):
            yield batch["id"].to_numpy(), batch["sentence"]

    def lines(self) -> Iterator[pa.Array]:
        """Read every sentence in its place: a null of Parquet as an empty one, and null where it is not UTF-8."""
        for piece in self._reader.pieces():
            column = piece.columns[0]
            yield normalise(decode(column.fill_null(pa.scalar("", column.type))))


def _only_text(path: Path) -> str:
    """Name the one column of text of a Parquet file."""
    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: expected a Parquet file, but cannot read it ({error}); get it again") from None
    names = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)]
    if len(names) != 1:
        raise InputError(
            f"{path} has {'no column' if not names else 'several columns'} of text among {', '.join(schema.names)}; "
            "name one with --column"
        )
    return names[0]
