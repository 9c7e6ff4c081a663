"""Tables in files, TSV, CSV, JSON lines or Parquet, and sentences with labels in them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from paranmt_hf.corpus.reading.columns import normalise
from paranmt_hf.corpus.reading.comma_separated import Form, find_form
from paranmt_hf.corpus.reading.tab_separated import has_quoted_fields
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import check_regular, checksum
from paranmt_hf.util.settings import Settings

LABELLED_SUFFIXES = (".tsv", ".csv", ".jsonl", ".parquet")
JSON_LINES = (".jsonl", ".ndjson")
BLOCK_ROWS = 10_000  # Rows of Parquet that are read at once


def read_text_table(
    path: Path, types: Mapping[str, pa.DataType], columns: Collection[str], advice: str
) -> Iterator[pa.Table]:
    """Read some columns of a file, block by block: TSV or CSV with a header, JSON lines, or Parquet.

    `types` are those of columns of TSV, CSV and JSON; others are as found. `columns` must be there, others of `types`
    are read if they are; errors end with `advice`.
    """
    check_regular(path)
    parquet = path.suffix.lower() == ".parquet"
    try:
        with pq.ParquetFile(path) if parquet else _text_reader(path, types) as reader:
            names = (reader.schema_arrow if parquet else reader.schema).names
            if missing := [name for name in columns if name not in names]:
                raise InputError(
                    f"{path} has no column {', '.join(missing)}; it has {', '.join(names)}; {advice}", path=path
                )
            kept = [name for name in dict.fromkeys([*columns, *types]) if name in names]
            if twice := [name for name in kept if names.count(name) > 1]:
                raise InputError(f"{path} has several columns {twice[0]}; {advice}", path=path)
            for batch in reader.iter_batches(BLOCK_ROWS, columns=kept) if parquet else reader:
                # Parquet does not check that text is UTF-8.
                batch.validate(full=True)
                yield pa.Table.from_batches([batch]).select(kept)
    except (pa.ArrowException, UnicodeError, OSError) as error:
        raise InputError(f"cannot read {path}: {' '.join(str(error).split())[:200]}; {advice}", path=path) from None


def _text_reader(path: Path, types: Mapping[str, pa.DataType]) -> Any:  # noqa: ANN401 - a reader of pyarrow
    if path.suffix.lower() in JSON_LINES:
        parse = pa.json.ParseOptions(explicit_schema=pa.schema(types))
        return pa.json.open_json(path, parse_options=parse)
    quoted = path.suffix.lower() == ".csv" or has_quoted_fields(path)
    form = find_form(path) if path.suffix.lower() == ".csv" else Form("\t")
    parse = pa.csv.ParseOptions(
        delimiter=form.separator,
        quote_char='"' if quoted else False,
        escape_char="\\" if form.escaped else False,
        newlines_in_values=quoted,
    )
    # Only empty fields are missing: `null` and `NA` are words.
    convert = pa.csv.ConvertOptions(column_types=types, strings_can_be_null=True, null_values=[""])
    return pa.csv.open_csv(path, parse_options=parse, convert_options=convert)


@dataclass(frozen=True)
class LabelledColumns(Settings):
    """Names of the columns of labelled sentences.

    Attributes:
        text: Column of the sentences.
        label: Column of the labels, text or whole numbers.
    """

    text: str = "text"
    label: str = "label"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.text == self.label:
            raise InputError(f"text and label are both the column {self.text!r}; name two columns", option="columns")


class LabelledFile:
    """The rows of a file of labelled sentences; labels that the file `out` cannot hold are rejected."""

    def __init__(self, path: str | Path, columns: LabelledColumns | None = None, *, out: Path | None = None) -> None:
        self.path = Path(path).expanduser()
        if not self.path.exists():
            raise InputError(f"there is no file {path}; expected one with labelled sentences", path=self.path)
        if self.path.suffix.lower() not in {*LABELLED_SUFFIXES, *JSON_LINES}:
            raise InputError(
                f"{path}: expected labelled sentences in a file that ends in {' or '.join(LABELLED_SUFFIXES)}",
                path=self.path,
            )
        check_regular(self.path)
        columns = columns or LabelledColumns()
        self.text, self.label = columns.text, columns.label
        self._to_tsv = out is not None and out.suffix.lower() == ".tsv"

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the rows, as JSON values."""
        return {"sha256": checksum(self.path), "text": self.text, "label": self.label}

    def batches(self) -> Iterator[pa.Table]:
        """Read tables of `index` (row number, from 0), `source` (white space normalised) and `label`."""
        read = 0
        types = {self.text: pa.string()}
        if self.path.suffix.lower() not in JSON_LINES:
            types[self.label] = pa.string()
        for table in read_text_table(self.path, types, [self.text, self.label], "name others with `columns`"):
            text, label = (table[name].combine_chunks() for name in (self.text, self.label))
            if not pa.types.is_string(text.type) and not pa.types.is_large_string(text.type):
                raise InputError(f"{self.path}: the column {self.text!r} holds {text.type}, expected text")
            label = self._labels(label, read)
            index = pa.array(range(read, read + len(text)), pa.int64())
            read += len(text)
            yield pa.table({"index": index, "source": normalise(text.cast(pa.string())), "label": label})
        if not read:
            raise InputError(f"{self.path} has no row; expected labelled sentences")

    def _labels(self, column: pa.Array, first: int) -> pa.Array:
        """Convert labels to text or int64; `first` is the number of rows before them."""
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_integer(column.type):
            try:
                column = column.cast(pa.int64())
            except pa.ArrowInvalid:
                raise InputError(f"{self.path}: a {self.label!r} is larger than 64 bits can hold") from None
            broken = column.is_null()
        elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = column.cast(pa.string())
            broken = pc.fill_null(pc.match_substring_regex(column, r"^$|[\t\r\n]" if self._to_tsv else "^$"), True)
        else:
            raise InputError(
                f"{self.path}: the column {self.label!r} holds {column.type}; expected text or whole numbers"
            )
        if pc.any(broken).as_py():
            at = broken.index(True).as_py()
            what = f"{self.path}: row {first + at + 1:,}"
            if column[at].as_py():
                raise InputError(
                    f"{what} has a {self.label!r} with a tab or a line break, which TSV cannot hold; write .jsonl, "
                    ".csv or .parquet"
                )
            raise InputError(f"{what} has no {self.label!r}; give each sentence its label")
        return column


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
