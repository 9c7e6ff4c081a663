"""`Table`: a file whose rows have named columns, in any format.

Every format that the package reads has a subclass; `formats.py` finds the right one for a file. A table gives bytes as
they are in the file; `readers.py` decodes and normalises them and drops unusable rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from paranmt_hf.errors import InputError
from paranmt_hf.util.files import checksum
from paranmt_hf.util.wording import brief, decimal_point

BLOCK_ROWS = 10_000  # Number of rows that are read at once, which bounds the memory and never changes the result


def file_identity(path: Path) -> dict[str, object]:
    """Return what identifies a file: its name without the folder, its size in bytes, and its SHA-256."""
    return {"name": path.name, "bytes": path.stat().st_size, "sha256": checksum(path)}


class Piece(NamedTuple):
    """Consecutive rows as they were read from a file, as bytes or numbers.

    Attributes:
        columns: The columns [row].
        where: Place of the rows for errors; the number of a row follows it, as in `corpus.tsv:12`.
        first: Number of the first row.
        path: The file; None for a source that is no file.
    """

    columns: list[pa.Array]
    where: str
    first: int
    path: Path | None = None


# Returns the new text of a row, given its number, from 0, and the text that it has.
ChangeText = Callable[[int, str], str]
# Returns a row with a new text, given its number, from 0, and its bytes with the end of the line.
ChangeRow = Callable[[int, bytes], bytes]


class NewTexts(NamedTuple):
    """New texts in a column.

    Attributes:
        column: Name or number of the column.
        changed: Booleans [row] that mark the rows with a new text.
        text: Returns the new text of such a row.
    """

    column: str
    changed: np.ndarray
    text: ChangeText


def refuse_row(
    wrong: np.ndarray | pa.Array,
    column: pa.Array,
    place: str,
    first: int,
    expected: str,
    advice: str,
    *,
    option: str | None = None,
    path: Path | None = None,
) -> None:
    """Raise an error about the first wrong row of a column, if there is one.

    Args:
        wrong: Booleans [row] that mark the wrong rows.
        column: Values [row], of which the error shows the wrong one.
        place: Place of the rows; the number of a row follows it.
        first: Number of the first row.
        expected: What the row should hold, for the error.
        advice: What the user can do, for the error.
        option: Parameter that the error is about.
        path: File that the error is about.

    Raises:
        InputError: If any row is wrong.
    """
    rows = np.flatnonzero(np.asarray(wrong))
    if rows.size:
        value = column[int(rows[0])].as_py()
        shown = value.decode(errors="replace") if isinstance(value, bytes) else value
        advice = decimal_point(str(shown), advice)
        where = f"{place}{first + int(rows[0])}"
        raise InputError(f"{where}: expected {expected}, found {brief(shown)}; {advice}", option=option, path=path)


class Table(ABC):
    """The rows of a file in order, each with the same columns.

    Attributes:
        format: Name of the format for people, as in docs/formats.md.
        path: The file.
        names: Names of the columns in the order of the file. A column can also be named by its number, from 1; this
            is the only way if the file has no names, and `names` is empty.
        texts: Names or numbers of the columns that hold text.
        languages: Whether each column is a language, with the language as its name, as in TMX and XLIFF.
    """

    format: ClassVar[str]
    languages: ClassVar[bool] = False

    def __init__(self, path: Path, names: Sequence[str], texts: Sequence[str] | None = None) -> None:
        self.path, self.names = path, tuple(names)
        self.texts = self.names if texts is None else tuple(texts)

    @classmethod
    @abstractmethod
    def matches(cls, name: str, head: bytes) -> bool:
        """Whether a file has this format.

        Args:
            name: Name of the file in lower case, without a suffix such as `.gz`.
            head: The first `lines.HEAD_BYTES` bytes of the file, or all if it is shorter, unpacked.
        """

    @classmethod
    @abstractmethod
    def open(cls, path: Path, named: Collection[str] = ()) -> Table:
        """Open a file; `named` are columns that the user gives, which help to decide whether line 1 has names."""

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the rows, as JSON values."""
        return {"format": self.format, **file_identity(self.path)}

    def label_names(self, column: str) -> Sequence[str] | None:
        """Return the names [label] that the file has for the labels in a column; None if it has none."""
        return None

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.names)

    def has(self, column: str) -> bool:
        """Whether the file has a column of this name, or of this number, from 1."""
        return column in self.names or (column.isdecimal() and 1 <= int(column) <= self.width)

    def position(self, column: str, option: str | None = "columns") -> int:
        """Find a column by its name or its number from 1, and return its index from 0.

        Args:
            column: Name or number of the column.
            option: Parameter in which the user named the column, for errors; None if there is none.

        Raises:
            InputError: If there is no such column, or several have this name.
        """
        count = self.names.count(column)
        if count == 1:
            return self.names.index(column)
        if count == 0 and self.has(column):
            return int(column) - 1
        reason = f"{count} columns {column!r}; rename all but one"
        if count == 0:
            known = ", ".join(self.names) or f"numbers from 1 to {self.width}"
            reason = f"no column {column!r}; its columns are {known}"
        raise InputError(f"{self.path} has {reason}", path=self.path, option=option)

    @abstractmethod
    def pieces(self, columns: Sequence[str], *, numbers: Collection[str] = ()) -> Iterator[Piece]:
        """Read some columns, block by block.

        Args:
            columns: Names or numbers of the columns, in the order in which they are returned.
            numbers: Those of the columns that may hold numbers and then keep a numeric type.

        Yields:
            Consecutive rows: text as bytes, null for a missing value.
        """

    def text_column(self, column: str | None, option: str | None = "column") -> str:
        """Return the column of texts: the one that the user names, else the only column of text.

        Args:
            column: Name or number that the user gives, which must exist; None if the user names no column.
            option: Parameter in which the user names the column, for errors; None if there is none.

        Raises:
            InputError: If the column does not exist, or if there is a choice or no column of text.
        """
        if column is not None:
            self.position(column, option)
            return column
        if len(self.texts) == 1:
            return self.texts[0]
        found = f"several columns of text, {', '.join(self.texts)}" if self.texts else "no column of text"
        advice = "write one of them into a file alone"
        if option is not None:
            advice = f"say which one is read, with `{option}` NAME, or {advice}"
        raise InputError(f"{self.path} has {found}; {advice}", path=self.path, option=option)

    def check_writable(self) -> None:
        """Raise an error if files of this format can be read but not written."""
        if type(self).write is Table.write:
            raise InputError(
                f"{self.path}: {self.format} is read, but not written; write its texts as TSV or JSON lines first",
                path=self.path,
            )

    def write(self, out: Path, kept: np.ndarray, new: NewTexts | None = None) -> None:
        """Write some rows into a new file of the same format, each exactly as it was but for new texts.

        Args:
            out: The new file.
            kept: Booleans [row] that say which rows are written.
            new: New texts in a column; None for none.
        """
        raise NotImplementedError

    def with_text(self, row: bytes, position: int, change: Callable[[str], str]) -> bytes:
        """Return a row of a format of lines with another text in one column.

        Args:
            row: The row, with the end of the line.
            position: Index of the column.
            change: Returns the new text, given the text that the column has.
        """
        raise NotImplementedError

    def changing(self, new: NewTexts | None) -> ChangeRow | None:
        """Return a function that writes new texts into rows of a format of lines; None if there are none."""
        if new is None:
            return None
        position = self.position(new.column)

        def change(number: int, row: bytes) -> bytes:
            return self.with_text(row, position, partial(new.text, number)) if new.changed[number] else row

        return change


def text_rows(table: Table, columns: Sequence[str], numbers: Sequence[str] = ()) -> Iterator[tuple[str, list[str]]]:
    """Read some columns as text, row by row; rows in which all of them are missing are left out.

    Args:
        table: The file.
        columns: Names or numbers of the columns.
        numbers: Those of the columns that may hold numbers, which are written out.

    Yields:
        The place of a row for errors, and its values in the order of `columns`, "" for a missing one.

    Raises:
        InputError: If a value is not UTF-8.
    """
    for piece in table.pieces(columns, numbers=numbers):
        values = [column.to_pylist() for column in piece.columns]
        for number, cells in enumerate(zip(*values, strict=True), piece.first):
            place = f"{piece.where}{number}"
            if all(cell is None for cell in cells):
                continue
            try:
                yield place, ["" if cell is None else _as_text(cell) for cell in cells]
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{place}: expected UTF-8, found the byte {error.object[error.start]:#04x}; convert the file to "
                    "UTF-8",
                    path=table.path,
                ) from None


def _as_text(cell: bytes | float) -> str:
    """Return a cell as text: bytes decoded from UTF-8, a number as Python writes it."""
    return cell.decode("utf8") if isinstance(cell, bytes) else str(cell)
