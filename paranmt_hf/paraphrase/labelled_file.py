"""Sentences with labels: TSV, CSV, JSON lines or Parquet with a column of text and one of labels."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from paranmt_hf.corpus.bitext.columns import normalise
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import check_regular, checksum, decode_line
from paranmt_hf.util.settings import check

LABELLED_SUFFIXES = (".tsv", ".csv", ".jsonl", ".parquet")
# Rows that are read at once.
BLOCK_ROWS = 10_000


@dataclass(frozen=True)
class LabelledColumns:
    """Names of the columns of labelled sentences.

    Attributes:
        text: Column of the sentences.
        label: Column of the labels, text or whole numbers.
    """

    text: str = "text"
    label: str = "label"

    def __post_init__(self) -> None:
        check(self)
        if self.text == self.label:
            raise InputError(f"text and label are both the column {self.text!r}; name two columns", option="columns")


class LabelledFile:
    """The rows of a file of labelled sentences; labels that the file `out` cannot hold are rejected."""

    def __init__(self, path: str | Path, columns: LabelledColumns | None = None, *, out: Path | None = None) -> None:
        self.path = Path(path).expanduser()
        check_regular(self.path)
        if not self.path.is_file():
            raise InputError(f"there is no file {path}; expected one with labelled sentences")
        if self.path.suffix.lower() not in LABELLED_SUFFIXES:
            raise InputError(
                f"{path}: expected labelled sentences in a file that ends in {' or '.join(LABELLED_SUFFIXES)}"
            )
        columns = columns or LabelledColumns()
        self.text, self.label = columns.text, columns.label
        self.label_type: pa.DataType | None = None
        self._to_tsv = out is not None and out.suffix.lower() == ".tsv"

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the rows, as JSON values."""
        return {"sha256": checksum(self.path), "text": self.text, "label": self.label}

    def batches(self) -> Iterator[pa.Table]:
        """Read tables of `index` (row number, from 0), `source` (white space normalised) and `label`."""
        read = 0
        for table in self._tables():
            self._check_columns(table.column_names)
            text, label = (table[name].combine_chunks() for name in (self.text, self.label))
            if not pa.types.is_string(text.type) and not pa.types.is_large_string(text.type):
                raise InputError(f"{self.path}: the column {self.text!r} holds {text.type}, expected text")
            label = self._labels(label, read)
            index = pa.array(range(read, read + len(text)), pa.int64())
            read += len(text)
            yield pa.table({"index": index, "source": normalise(text.cast(pa.string())), "label": label})
        if not read:
            raise InputError(f"{self.path} has no row; expected labelled sentences")

    def _check_columns(self, names: list[str]) -> None:
        if twice := [name for name in (self.text, self.label) if names.count(name) > 1]:
            raise InputError(f"{self.path} has several columns {twice[0]!r}; give each its own name")
        if missing := [name for name in (self.text, self.label) if name not in names]:
            raise InputError(
                f"{self.path} has no column {' or '.join(map(repr, missing))}; it has {', '.join(names)}. Name them "
                "with `columns`"
            )

    def _labels(self, column: pa.Array, first: int) -> pa.Array:
        kind = column.type
        if pa.types.is_dictionary(kind):
            column, kind = column.cast(kind.value_type), kind.value_type
        if pa.types.is_integer(kind):
            try:
                column = column.cast(pa.int64())
            except pa.ArrowInvalid:
                raise InputError(f"{self.path}: a {self.label!r} is larger than 64 bits can hold") from None
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
            column = column.cast(pa.string())
        else:
            raise InputError(f"{self.path}: the column {self.label!r} holds {kind}; expected text or whole numbers")
        missing = column.is_null().to_pylist()
        if any(missing) or (pa.types.is_string(column.type) and "" in column.to_pylist()):
            values = column.to_pylist()
            at = next(row for row, value in enumerate(values) if value in (None, ""))
            raise InputError(
                f"{self.path}: row {first + at + 1:,} has no {self.label!r}; give each sentence its label"
            )
        if self._to_tsv and pa.types.is_string(column.type):
            broken = pc.match_substring_regex(column, r"[\t\r\n]").to_pylist()
            if any(broken):
                raise InputError(
                    f"{self.path}: the {self.label!r} of row {first + broken.index(True) + 1:,} holds a tab or a line "
                    "break, which TSV cannot hold; write .jsonl, .csv or .parquet"
                )
        if self.label_type not in (None, column.type):
            raise InputError(f"{self.path}: labels are text in some rows and numbers in others; make them alike")
        self.label_type = column.type
        return column

    def _tables(self) -> Iterator[pa.Table]:
        suffix = self.path.suffix.lower()
        try:
            if suffix == ".parquet":
                with pq.ParquetFile(self.path) as file:
                    self._check_columns(file.schema_arrow.names)
                    for batch in file.iter_batches(BLOCK_ROWS, columns=[self.text, self.label]):
                        # Parquet does not check that text is UTF-8.
                        batch.validate(full=True)
                        yield pa.Table.from_batches([batch])
            elif suffix == ".jsonl":
                yield from self._json_lines()
            else:
                yield from self._delimited("\t" if suffix == ".tsv" else ",")
        except (pa.ArrowException, UnicodeError, OSError) as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"cannot read {self.path}: {reason}") from None

    def _delimited(self, delimiter: str) -> Iterator[pa.Table]:
        quoted = delimiter == ","
        # TSV has no quoting, and no field spans several lines.
        parse = pa_csv.ParseOptions(
            delimiter=delimiter, quote_char='"' if quoted else False, newlines_in_values=quoted
        )
        strings = {self.text: pa.string(), self.label: pa.string()}
        with pa_csv.open_csv(
            self.path,
            parse_options=parse,
            convert_options=pa_csv.ConvertOptions(column_types=strings, strings_can_be_null=False),
        ) as reader:
            self._check_columns(reader.schema.names)
            for batch in reader:
                yield pa.Table.from_batches([batch]).select([self.text, self.label])

    def _json_lines(self) -> Iterator[pa.Table]:
        with self.path.open("rb") as file:
            numbered = enumerate(file, 1)
            while lines := list(islice(numbered, BLOCK_ROWS)):
                rows = [self._row(line, number) for number, line in lines if line.strip()]
                if rows:
                    yield pa.table({name: self._column(rows, name) for name in (self.text, self.label)})

    def _column(self, rows: list[dict[str, Any]], name: str) -> pa.Array:
        values = [row[name] for row in rows]
        try:
            return pa.array(values, None if any(value is not None for value in values) else pa.string())
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
            raise InputError(
                f"{self.path}: {name!r} is of several types, or holds no text; make all text or all whole numbers"
            ) from None

    def _row(self, line: bytes, number: int) -> dict[str, Any]:
        text = decode_line(line, self.path, number)
        try:
            row = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self.path}, line {number:,}: not JSON ({error})") from None
        if not isinstance(row, dict) or self.text not in row or self.label not in row:
            found = ", ".join(row) if isinstance(row, dict) else type(row).__name__
            raise InputError(
                f"{self.path}, line {number:,}: expected {self.text!r} and {self.label!r}, found {found}. Name other "
                "columns with `columns`"
            )
        return row


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
