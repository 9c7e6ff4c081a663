"""Files of labelled sentences, of any format with columns, and writers of TSV, CSV, JSON lines and Parquet."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paranmt_hf.corpus.reading.formats import open_table
from paranmt_hf.corpus.reading.normalisation import decode, normalise
from paranmt_hf.corpus.reading.plain_text import PlainText
from paranmt_hf.corpus.reading.tables import Piece
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import check_regular
from paranmt_hf.util.settings import Settings
from paranmt_hf.util.wording import counted

logger = logging.getLogger(__name__)
LABELLED_SUFFIXES = (".tsv", ".csv", ".jsonl", ".parquet")
MOST_PRECISE = 1 << 53  # JSON is read in double precision, which has every whole number up to here


@dataclass(frozen=True)
class LabelledColumns(Settings):
    """Columns of labelled sentences, by their names or numbers from 1.

    Attributes:
        text: Column of the sentences.
        label: Column of the labels, text or whole numbers; true and false are 1 and 0.
    """

    text: str = "text"
    label: str = "label"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.text == self.label:
            raise InputError(f"text and label are both the column {self.text!r}; name two columns", option="columns")


class LabelledFile:
    """The rows of a file of labelled sentences; labels that the file `out` cannot hold are rejected.

    Attributes:
        text: Name of the column of sentences; `text` if the file has no names.
        label: Name of the column of labels; `label` if the file has no names.
    """

    def __init__(self, path: str | Path, columns: LabelledColumns | None = None, *, out: Path | None = None) -> None:
        columns = columns or LabelledColumns()
        self.path = Path(path).expanduser()
        check_regular(self.path)
        self._columns = [columns.text, columns.label]
        self._table = open_table(self.path, self._columns)
        if isinstance(self._table, PlainText):
            raise InputError(
                f"{self.path} has one text on each line and no labels; write TSV, CSV, JSON lines or Parquet with the "
                "columns text and label, or paraphrase sentences without labels with `paranmt paraphrase text`",
                path=self.path,
                option="columns",
            )
        positions = [self._table.position(column) for column in self._columns]
        if positions[0] == positions[1]:
            raise InputError(
                f"{self.path}: text and label are both the column {columns.text!r}; name two columns", option="columns"
            )
        names = self._table.names
        self.text, self.label = (names[at] for at in positions) if names else ("text", "label")
        self._to_tsv = out is not None and out.suffix.lower() == ".tsv"
        self._is_counted = False

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
            text, label = piece.columns
            index = np.arange(read, read + len(text))
            read += len(text)
            source = normalise(self._decoded(piece, text, self.text))
            rows = pa.table({"index": index, "source": source, "label": self._labels(piece)})
            rows = rows.filter(pc.or_(text.is_valid(), label.is_valid()))
            if not rows.num_rows:
                continue
            kind = kind or rows["label"].type
            if rows["label"].type != kind:
                raise InputError(
                    f"{piece.where}{piece.first}: the column {self.label!r} has text and numbers from here on and "
                    "numbers before; write all labels as text, or all as whole numbers",
                    path=self.path,
                )
            kept += rows.num_rows
            yield rows
        if not kept:
            raise InputError(f"{self.path} has no row; expected labelled sentences", path=self.path)
        if read > kept and not self._is_counted:
            logger.warning(f"warning: {self.path}: {counted(read - kept, 'row')} without text and label were left out")
            self._is_counted = True

    def _decoded(self, piece: Piece, raw: pa.Array, name: str) -> pa.Array:
        """Decode the bytes of a column of a piece; what is not UTF-8 is rejected."""
        text = decode(raw)
        wrong = pc.and_(raw.is_valid(), text.is_null())
        self._check(piece, wrong, f"a {name!r} that is not UTF-8; convert the file to UTF-8")
        return text

    def _labels(self, piece: Piece) -> pa.Array:
        """Read the labels of a piece as text or int64."""
        text, raw = piece.columns
        if pa.types.is_binary(raw.type):
            label = self._decoded(piece, raw, self.label)
            if self._to_tsv:
                wrong = pc.fill_null(pc.match_substring_regex(label, r"[\t\r\n]"), False)
                broken = "with a tab or a line break, which TSV cannot hold; write .jsonl, .csv or .parquet"
                self._check(piece, wrong, f"a {self.label!r} {broken}")
            missing = pc.equal(pc.fill_null(label, ""), "")
        else:
            label = self._whole_numbers(piece)
            missing = label.is_null()
        is_row = pc.or_(text.is_valid(), raw.is_valid())
        self._check(piece, pc.and_(missing, is_row), f"no {self.label!r}; give each sentence its label")
        return label

    def _whole_numbers(self, piece: Piece) -> pa.Array:
        """Read the labels of a piece that are numbers; NaN is a missing one."""
        raw = piece.columns[1]
        if not pa.types.is_integer(raw.type):
            numbers = raw.cast(pa.float64(), safe=False)
            numbers = pc.if_else(pc.is_nan(numbers), None, numbers)
            is_whole = pc.and_(pc.equal(pc.floor(numbers), numbers), pc.less_equal(pc.abs(numbers), MOST_PRECISE))
            wrong = pc.fill_null(pc.invert(is_whole), False)
            self._check(piece, wrong, f"a {self.label!r} that is neither text nor a whole number of 53 bits or less")
            return numbers.cast(pa.int64())
        try:
            return raw.cast(pa.int64())
        except pa.ArrowInvalid:
            raise InputError(
                f"{self.path}: a {self.label!r} is larger than 64 bits can hold", option="columns", path=self.path
            ) from None

    def _check(self, piece: Piece, wrong: pa.Array, found: str) -> None:
        """Reject a piece with `wrong` rows, booleans [row]; the error names the first, and what was `found` there."""
        rows = np.flatnonzero(np.asarray(wrong))
        if rows.size:
            raise InputError(f"{piece.where}{piece.first + rows[0]} has {found}", option="columns", path=self.path)


def with_text(table: pa.Table) -> pa.Table:
    """Replace missing values of the column `source` by empty sentences."""
    column = table.column_names.index("source")
    return table.set_column(column, "source", table["source"].fill_null(""))


class TableWriter:
    """Writes tables into a file in the format of its suffix: .tsv, .csv, .jsonl or .parquet."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._suffix, self._schema = path.suffix.lower(), schema
        self._parquet = pq.ParquetWriter(path, schema) if self._suffix == ".parquet" else None
        self._text = None if self._parquet else path.open("w", encoding="utf8", newline="")
        if self._suffix in (".tsv", ".csv"):
            self._write(self._line(schema.names))

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, *_: object) -> None:
        (self._parquet or self._text).close()  # type: ignore[union-attr]

    def _write(self, line: str) -> None:
        assert self._text is not None
        self._text.write(line + "\n")

    def write(self, table: pa.Table) -> None:
        """Write rows of the schema."""
        if self._parquet is not None:
            self._parquet.write_table(table.select(self._schema.names).cast(self._schema))
        elif self._suffix == ".jsonl":
            for row in table.select(self._schema.names).to_pylist():
                self._write(json.dumps(row, ensure_ascii=False))
        else:
            columns = [table[name].to_pylist() for name in self._schema.names]
            for row in zip(*columns, strict=True):
                self._write(self._line(row))

    def _line(self, values: Iterable[object]) -> str:
        fields = [_field(value) for value in values]
        if self._suffix == ".csv":
            return ",".join(
                f'"{field.replace(chr(34), chr(34) * 2)}"' if set(field) & set(',"\r\n') else field for field in fields
            )
        # Sentences have no tabs and labels with a tab were refused, but a classifier's labels may have some.
        return "\t".join(re.sub(r"[\t\r\n]+", " ", field) for field in fields)


def _field(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)
