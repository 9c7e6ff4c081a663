r"""CSV: fields with a separator between them, in double quotes where they hold a separator, a quote or a line end.

The separator is the one of `SEPARATORS` that gives most of the first rows the same number of fields. Quotes inside
quotes are doubled, or, if the file cannot be read so, have a backslash before them.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.reading.columns import MAX_LINE_BYTES, read_blocks
from paranmt_hf.corpus.reading.heading import Heading, read_heading
from paranmt_hf.corpus.reading.tables import BLOCK_ROWS, Piece, Table, write_rows
from paranmt_hf.errors import InputError

SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
SAMPLE_ROWS = 1000  # Rows that show the separator and the names
# Bytes as text, one character each, which is fast and loses nothing; UTF-8 leaves quotes and separators alone.
BYTES = "latin-1"


class Form(NamedTuple):
    """How fields are written."""

    separator: str
    escaped: bool = False  # Whether a quote inside quotes has a backslash before it; else it is doubled


class Record(NamedTuple):
    """One row as it is in the file, and its fields, in the encoding `BYTES`."""

    line: int  # Number of its first line, from 1
    raw: list[str]  # Its lines
    fields: list[str]


class CommaSeparated(Table):
    """CSV with or without names; a field in quotes may have several lines."""

    format = "CSV"

    def __init__(self, path: Path, form: Form, heading: Heading) -> None:
        super().__init__(path, heading.names, heading.texts)
        self.form, self._width = form, heading.width

    @classmethod
    def matches(cls, name: str, head: bytes) -> bool:
        return name.endswith(".csv")

    @classmethod
    def open(cls, path: Path, named: Collection[str] = ()) -> Table:
        return cls.of_form(path, find_form(path), named)

    @classmethod
    def of_form(cls, path: Path, form: Form, named: Collection[str] = ()) -> CommaSeparated:
        """Open a file whose form is known."""
        rows = [decoded(record.fields) for record in islice(read_records(path, form), SAMPLE_ROWS)]
        return cls(path, form, read_heading(path, rows, named))

    @property
    def width(self) -> int:
        return self._width

    def pieces(self, columns: Sequence[str], *, numbers: Collection[str] = ()) -> Iterator[Piece]:
        wanted = [self.position(column) for column in columns]
        rows, first = self._rows(), 1
        next(rows) if self.names else None
        while some := [record.fields for record in islice(rows, BLOCK_ROWS)]:
            fields = [[row[at].encode(BYTES) if row else None for row in some] for at in wanted]
            yield Piece([pa.array(column, pa.binary()) for column in fields], f"{self.path}, row ", first)
            first += len(some)

    def write(self, out: Path, kept: np.ndarray) -> None:
        rows = ("".join(record.raw).encode(BYTES) for record in self._rows())
        names = next(rows) if self.names else b""
        write_rows(self.path, out, rows, kept, names=names)

    def _rows(self) -> Iterator[Record]:
        """Read the rows and check the number of their fields; a blank line has none."""
        for record in read_records(self.path, self.form):
            found = len(record.fields)
            if found not in (self._width, 0):
                between = SEPARATORS[self.form.separator]
                raise InputError(
                    f"{self.path}:{record.line}: expected {self._width} fields with {between} between them, got "
                    f"{found}; correct the row, with quotes around a field that holds {between} or line ends",
                    path=self.path,
                )
            yield record


def read_records(path: Path, form: Form) -> Iterator[Record]:
    """Read rows; one whose quotes are not closed or are followed by text is an error with its line."""
    raw: list[str] = []

    def lines() -> Iterator[str]:
        for block in read_blocks(path):
            for line in block.decode(BYTES).split("\n")[:-1]:
                raw.append(f"{line}\n")
                yield unescaped(raw[-1]) if form.escaped else raw[-1]

    csv.field_size_limit(MAX_LINE_BYTES)
    line = 1
    try:
        for fields in csv.reader(lines(), delimiter=form.separator, strict=True):
            yield Record(line, raw.copy(), fields)
            line += len(raw)
            raw.clear()
    except csv.Error as error:
        raise InputError(
            f"{path}:{line}: the row that begins here is not CSV with {SEPARATORS[form.separator]} ({error}); a field "
            "that holds a quote is in quotes, and the quotes inside are doubled: correct the row",
            path=path,
        ) from None


def unescaped(line: str) -> str:
    r"""Double the quotes that have a backslash before them; other backslashes are text."""
    return re.sub(r'\\(["\\])', lambda found: '""' if found[1] == '"' else "\\", line)


def find_form(path: Path) -> Form:
    """Find separator and quotes of a file."""
    best, form = (0.0, 0), Form(",")
    for separator in SEPARATORS:
        found = max(_regularity(path, Form(separator, escaped)) for escaped in (False, True))
        if found > best:
            best, form = found, Form(separator)
    has_backslashes = any(b'\\"' in block for block in read_blocks(path))
    if not has_backslashes or _failure(path, form) is None:
        return form
    escaped = Form(form.separator, escaped=True)
    return form if _failure(path, escaped) else escaped


def _regularity(path: Path, form: Form) -> tuple[float, int]:
    """Part of the first rows that have as many fields as the first of all, and this number; 0 for one field."""
    widths = []
    with suppress(InputError):
        for record in islice(read_records(path, form), SAMPLE_ROWS):
            widths.append(len(record.fields))
    if not widths or widths[0] < 2:
        return 0.0, 0
    return widths.count(widths[0]) / len(widths), widths[0]


def _failure(path: Path, form: Form) -> InputError | None:
    """Read a whole file in a form; returns the error, if there is one."""
    width = None
    try:
        for record in read_records(path, form):
            width = width or len(record.fields)
            if len(record.fields) not in (width, 0):
                return InputError(f"{path}:{record.line}: {len(record.fields)} fields", path=path)
    except InputError as error:
        return error
    return None


def decoded(fields: Sequence[str]) -> list[str]:
    """Read fields as text."""
    return [field.encode(BYTES).decode("utf8", "replace") for field in fields]
