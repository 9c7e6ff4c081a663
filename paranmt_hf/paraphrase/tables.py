"""Files of labelled sentences, of any format with columns, and writers of TSV, CSV, JSON lines and Parquet."""

from __future__ import annotations

import csv
import json
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paranmt_hf.corpus.reading.formats import open_table
from paranmt_hf.corpus.reading.normalisation import decode, normalise
from paranmt_hf.corpus.reading.tables import Piece
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import check_regular
from paranmt_hf.util.settings import Settings
from paranmt_hf.util.wording import counted

logger = logging.getLogger(__name__)
LABELLED_SUFFIXES = (".tsv", ".csv", ".jsonl", ".parquet")


@dataclass(frozen=True)
class LabelledColumns(Settings):
    """Columns of labelled sentences, by their names or numbers from 1.

    Attributes:
        text: Column of the sentences.
        label: Column of the labels, text or whole numbers; true and false are 1 and 0.
    """

    text: str = "text"
    label: str = "label"


class LabelledFile:
    """The rows of a file of labelled sentences.

    Attributes:
        text: Name of the column of sentences; `text` if the file has no names.
        label: Name of the column of labels; `label` if the file has no names.
    """

    def __init__(self, path: str | Path, columns: LabelledColumns | None = None) -> None:
        columns = columns or LabelledColumns()
        self.path = Path(path).expanduser()
        check_regular(self.path)
        self._columns = [columns.text, columns.label]
        self._table = open_table(self.path, self._columns)
        text, label = (self._table.position(column) for column in self._columns)
        if text == label:
            raise self._error(f"{self.path}: text and label are both the column {columns.text!r}; name two columns")
        names = self._table.names
        self.text = names[text] if names else "text"
        self.label = names[label] if names else "label"

    def _error(self, message: str) -> InputError:
        return InputError(message, option="columns", path=self.path)

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the rows, as JSON values."""
        return {**self._table.identity, "text": self._columns[0], "label": self._columns[1]}

    def batches(self) -> Iterator[pa.Table]:
        """Read tables of `index` (row number, from 0), `source` (white space normalised) and `label`.

        Rows without both, such as blank lines, are counted and left out.
        """
        numbers = [column for column in self._columns[1:] if column not in self._table.texts]
        read = kept = 0
        kind = None
        for piece in self._table.pieces(self._columns, numbers=numbers):
            text, raw = piece.columns
            index = np.arange(read, read + len(text))
            read += len(text)
            label = self._decoded(piece, raw) if pa.types.is_binary(raw.type) else self._whole_numbers(raw)
            rows = pa.table({"index": index, "source": normalise(self._decoded(piece, text)), "label": label})
            whole = rows.filter(pc.or_(text.is_valid(), raw.is_valid()))
            missing = pc.or_kleene(whole["label"].is_null(), pc.equal(whole["label"].cast(pa.string()), ""))
            if pc.any(missing).as_py():
                row = whole["index"].filter(missing)[0].as_py() - index[0]
                raise self._error(
                    f"{piece.where}{piece.first + row} has no {self.label!r}; give each sentence its label"
                )
            kind = kind or label.type
            if label.type != kind:
                raise self._error(
                    f"{self.path}: the column {self.label!r} has text and numbers; write all labels as text, or all "
                    "as whole numbers"
                )
            kept += whole.num_rows
            yield whole
        if not kept:
            raise InputError(f"{self.path} has no row; expected labelled sentences", path=self.path)
        if read > kept:
            logger.warning(f"warning: {self.path}: {counted(read - kept, 'row')} without text and label were left out")

    def _decoded(self, piece: Piece, raw: pa.Array) -> pa.Array:
        """Decode bytes as UTF-8; others are rejected."""
        text = decode(raw)
        wrong = np.flatnonzero(np.asarray(pc.and_(raw.is_valid(), text.is_null())))
        if len(wrong):
            raise self._error(f"{piece.where}{piece.first + wrong[0]} is not UTF-8; convert the file to UTF-8")
        return text

    def _whole_numbers(self, raw: pa.Array) -> pa.Array:
        """Convert labels to int64; JSON is read in double precision, which has every whole number up to 53 bits."""
        try:
            labels = raw.cast(pa.int64())
        except pa.ArrowInvalid:
            labels = None
        exact = labels is not None and (
            pa.types.is_integer(raw.type) or not pc.any(pc.greater(pc.abs(labels), 1 << 53)).as_py()
        )
        if not exact:
            raise self._error(
                f"{self.path}: a {self.label!r} is missing, or neither text nor a whole number of 53 bits or less"
            )
        return labels


class TableWriter:
    """Writes tables into a file in the format of its suffix: .tsv, .csv, .jsonl or .parquet."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._suffix, self._schema = path.suffix.lower(), schema
        self._file: Any
        if self._suffix == ".parquet":
            self._file = pq.ParquetWriter(path, schema)
            return
        self._file = path.open("w", encoding="utf8", newline="")
        if self._suffix != ".jsonl":
            self._write_fields(schema.names)

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, table: pa.Table) -> None:
        """Write rows of the schema."""
        table = table.select(self._schema.names)
        if self._suffix == ".parquet":
            self._file.write_table(table.cast(self._schema))
        elif self._suffix == ".jsonl":
            for row in table.to_pylist():
                self._file.write(json.dumps(row, ensure_ascii=False) + "\n")
        else:
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                self._write_fields([_field(value) for value in row])

    def _write_fields(self, fields: Sequence[str]) -> None:
        if self._suffix == ".csv":
            csv.writer(self._file, lineterminator="\n").writerow(fields)
        else:
            # TSV has no way to write a tab or a line break.
            self._file.write("\t".join(re.sub(r"[\t\r\n]+", " ", field) for field in fields) + "\n")


def _field(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.4f}"
    return "" if value is None else str(value)
