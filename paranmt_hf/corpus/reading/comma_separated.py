"""CSV files: fields with a separator between them, in double quotes if they hold a separator, a quote or a line end.

The separator is the one of `SEPARATORS` that gives most of the first rows the same number of fields. Quotes inside a
quoted field are either doubled, or have a backslash before them.
"""

from __future__ import annotations

import csv
import io
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.reading.heading import Heading, read_heading
from paranmt_hf.corpus.reading.lines import MAX_LINE_BYTES, first_bytes, read_blocks, write_rows
from paranmt_hf.corpus.reading.tables import BLOCK_ROWS, NewTexts, Piece, Table
from paranmt_hf.errors import InputError

SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
SAMPLE_ROWS = 1000  # Number of rows from which separator and names are found
# Files are read in this encoding, one character for each byte, which is fast and loses nothing. Quotes and separators
# are the same as in UTF-8.
BYTES = "latin-1"
ESCAPE = re.compile(r'\\(["\\])')
ESCAPED_QUOTE = "\ue000"  # Stands for a quote with a backslash before it while a row is read; no byte decodes to it


class Form(NamedTuple):
    """How the fields of a file are written."""

    separator: str  # One of `SEPARATORS`
    escaped: bool = False  # Whether a quote inside quotes has a backslash before it; otherwise it is doubled


class SeparatedRow(NamedTuple):
    """One row of a file; its text has one character for each byte, as `BYTES` says."""

    line: int  # Number of its first line, from 1
    raw: list[str]  # Its lines as they are in the file; cleared when the next row is read
    fields: list[str]  # Its fields, without the quotes around them


class CommaSeparated(Table):
    """A CSV file with or without names; a field in quotes may have several lines."""

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
        """Open a file whose separator and quotes are known; `named` are columns that the user gives."""
        # The first line of files saved for Excel names the separator, such as `sep=;`.
        if said := re.match(rb'(?:\xef\xbb\xbf)?"?(sep=[,;|\t])"?\r?\n', first_bytes(path)):
            raise InputError(
                f"{path}:1: {said[1].decode()!r} is for Excel alone, which reads it as the separator; remove the "
                f"line, such as with `tail -n +2 {path.name}`",
                path=path,
            )
        rows = []
        for record in islice(read_separated(path, form), SAMPLE_ROWS):
            rows.append([field.encode(BYTES).decode("utf8", "replace") for field in record.fields])
        return cls(path, form, read_heading(path, rows, named, cls.format))

    @property
    def width(self) -> int:
        return self._width

    def pieces(self, columns: Sequence[str], *, numbers: Collection[str] = ()) -> Iterator[Piece]:
        wanted = [self.position(column) for column in columns]
        reader, first = _reader(self.path, self.form), 1
        while True:
            rows: list[list[str]] | None = None
            with suppress(csv.Error):
                rows = list(islice(reader, BLOCK_ROWS))
            if rows is None or not {len(row) for row in rows} <= {self._width, 0}:
                # Read the file in the slower way, which raises an error with the number of the line.
                deque(self._rows(), maxlen=0)
            if not rows:
                return
            rows = rows[1:] if first == 1 and self.names else rows
            fields = [[row[index].encode(BYTES) if row else None for row in rows] for index in wanted]
            yield Piece([pa.array(column, pa.binary()) for column in fields], f"{self.path}, row ", first)
            first += len(rows)

    def write(self, out: Path, kept: np.ndarray, new: NewTexts | None = None) -> None:
        rows = ("".join(record.raw).encode(BYTES) for record in self._rows())
        names = next(rows) if self.names else b""
        write_rows(self.path, out, rows, kept, names=names, change=self.changing(new))

    def with_text(self, row: bytes, position: int, change: Callable[[str], str]) -> bytes:
        raw = row.decode("utf8", "surrogateescape")
        (fields,) = _parsed((_prepared(line, self.form) for line in io.StringIO(raw, newline="\n")), self.form)
        start, end = _span(raw, position, self.form)
        text = change(fields[position])
        if self.form.escaped:
            text = text.replace("\\", "\\\\")
        # Without its first sentence, a text that had no quotes around it may begin with one.
        if raw[start : start + 1] == '"' or text.startswith('"'):
            doubled = text.replace('"', '\\"' if self.form.escaped else '""')
            text = f'"{doubled}"'
        return (raw[:start] + text + raw[end:]).encode("utf8", "surrogateescape")

    def _rows(self) -> Iterator[SeparatedRow]:
        """Read the rows, and reject one with a wrong number of fields; a blank line has no fields."""
        for record in read_separated(self.path, self.form):
            if len(record.fields) != self._width and record.fields:
                between = SEPARATORS[self.form.separator]
                raise InputError(
                    f"{self.path}:{record.line}: expected {self._width} fields with {between} between them, got "
                    f"{len(record.fields)}; correct the row, with quotes around a field that holds {between} or line "
                    "ends",
                    path=self.path,
                )
            yield record


def read_separated(path: Path, form: Form) -> Iterator[SeparatedRow]:
    """Read the rows of a file, whatever their numbers of fields.

    Raises:
        InputError: If quotes are not closed, or text follows a closing quote; it names the line.
    """
    raw: list[str] = []
    line = 1
    try:
        for fields in _reader(path, form, raw):
            yield SeparatedRow(line, raw, fields)
            line += len(raw)
            raw.clear()
    except csv.Error as error:
        raise InputError(
            f"{path}:{line}: the row that begins here is not CSV with {SEPARATORS[form.separator]} ({error}); a field "
            "that holds a quote is in quotes, and the quotes inside are doubled: correct the row",
            path=path,
        ) from None


def _reader(path: Path, form: Form, raw: list[str] | None = None) -> Iterator[list[str]]:
    """Read the fields of each row; the lines of a row are appended to `raw` before the row is yielded.

    Raises:
        csv.Error: If a row is not in this form.
    """
    return _parsed(_lines(path, form, raw), form)


def _parsed(lines: Iterable[str], form: Form) -> Iterator[list[str]]:
    """Parse lines that `_prepared` returned into the fields of each row; raises `csv.Error` as `_reader` does."""
    csv.field_size_limit(MAX_LINE_BYTES)
    reader = csv.reader(lines, delimiter=form.separator, strict=True)
    if not form.escaped:
        return reader
    return ([field.replace(ESCAPED_QUOTE, '"') for field in fields] for fields in reader)


def _lines(path: Path, form: Form, raw: list[str] | None) -> Iterator[str]:
    """Read the lines of a file, appending each to `raw`; an escaped quote becomes `ESCAPED_QUOTE`."""
    for block in read_blocks(path):
        lines = io.StringIO(block.decode(BYTES), newline="\n")
        if raw is None and not form.escaped:
            yield from lines
            continue
        for line in lines:
            if raw is not None:
                raw.append(line)
            yield _prepared(line, form)


def _prepared(line: str, form: Form) -> str:
    """Return a line for `csv`, with `ESCAPED_QUOTE` for each escaped quote."""
    # A backslash before another backslash is dropped; any other is text.
    return ESCAPE.sub(lambda found: ESCAPED_QUOTE if found[1] == '"' else "\\", line) if form.escaped else line


def _span(raw: str, position: int, form: Form) -> tuple[int, int]:
    """Return where a field of a row begins and ends, with the quotes around it.

    Args:
        raw: The row as it is in the file.
        position: Index of the field.
        form: How the fields are written.
    """
    inside = r'(?:\\.|""|[^"\\])*' if form.escaped else r'(?:""|[^"])*'
    separator = re.escape(form.separator)
    field = re.compile(rf'(?:"{inside}"|[^{separator}\r\n]*)(?:{separator}|\r?\n|\Z)', re.DOTALL)
    found = [match.span() for match in islice(field.finditer(raw), position + 1)]
    start, end = found[position]
    return start, start + len(raw[start:end].rstrip(form.separator + "\r\n"))


def find_form(path: Path) -> Form:
    """Find out the separator of a file and how quotes are written inside quotes."""
    best, form = (0.0, 0), Form(",")
    for separator in SEPARATORS:
        found = max(_regularity(path, Form(separator, escaped)) for escaped in (False, True))
        if found > best:
            best, form = found, Form(separator)
    if not any(b'\\"' in block for block in read_blocks(path)):
        return form
    escaped = Form(form.separator, escaped=True)
    if _failure(path, escaped):
        return form
    # If both ways to write quotes are possible, a doubled quote somewhere decides.
    is_doubled = any(re.search(rb'[^,;|\t\n"\\]""', block) for block in read_blocks(path))
    return form if is_doubled and _failure(path, form) is None else escaped


def _regularity(path: Path, form: Form) -> tuple[float, int]:
    """Return the share of the first rows with as many fields as the very first, and that number of fields.

    Both are 0 if the first row has only one field.
    """
    widths = []
    with suppress(InputError):
        for record in islice(read_separated(path, form), SAMPLE_ROWS):
            widths.append(len(record.fields))
    if not widths or widths[0] < 2:
        return 0.0, 0
    return widths.count(widths[0]) / len(widths), widths[0]


def _failure(path: Path, form: Form) -> InputError | None:
    """Read a whole file in a form; return the error, or None if all rows have the same number of fields."""
    width = None
    try:
        for record in read_separated(path, form):
            width = width or len(record.fields)
            if len(record.fields) not in (width, 0):
                return InputError(f"{path}:{record.line}: {len(record.fields)} fields", path=path)
    except InputError as error:
        return error
    return None
