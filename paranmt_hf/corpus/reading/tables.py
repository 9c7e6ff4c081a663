"""`Table`: a file whose rows have named columns, whatever its format.

Every format that the package reads is a subclass; `formats.py` finds the one of a file. A table gives bytes as they
are in the file: decoding, normalisation and the choice of usable rows belong to `readers.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from paranmt_hf.errors import InputError
from paranmt_hf.util.files import checksum
from paranmt_hf.util.wording import brief, decimal_point

BLOCK_ROWS = 10_000  # Rows that are read at once: bounds the memory, never changes the result


def file_identity(path: Path) -> dict[str, object]:
    """Identify a file: its name without the folder, its size in bytes, the SHA-256 of the bytes."""
    return {"name": path.name, "bytes": path.stat().st_size, "sha256": checksum(path)}


class Piece(NamedTuple):
    """Consecutive rows as they were read, bytes or numbers.

    Errors name the place of a row: `where`, followed by its number, counted from `first`; `path` is the file.
    """

    columns: list[pa.Array]
    where: str
    first: int
    path: Path | None = None


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
    """Reject the first `wrong` row [row] of a column; its place is `place` and its number, counted from `first`."""
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
        names: Names of the columns in the order of the file; a column can also be named by its number, from 1.
            Empty if the file has no names, and columns are numbers alone.
        texts: The columns that hold text, by their names or numbers.
        languages: Whether the names are the languages of the columns, as in TMX and XLIFF.
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
            name: Name of the file in lower case, without the suffix of its packing.
            head: The first bytes of the file, unpacked: `lines.HEAD_BYTES` or the whole file.
        """

    @classmethod
    @abstractmethod
    def open(cls, path: Path, named: Collection[str] = ()) -> Table:
        """Open a file; `named` are columns that it must have by what the user says."""

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the rows, as JSON values."""
        return {"format": self.format, **file_identity(self.path)}

    def label_names(self, column: str) -> Sequence[str] | None:
        """Names [label] of the labels in a column; None where labels have none."""
        return None

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.names)

    def has(self, column: str) -> bool:
        """Whether there is a column of a name, or of a number from 1."""
        return column in self.names or (column.isdecimal() and 1 <= int(column) <= self.width)

    def position(self, column: str, option: str | None = "columns") -> int:
        """Find a column by its name or its number from 1; returns its index, from 0.

        `option` is the name of the parameter that names the column, for errors.
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
        """Read some columns, in the given order, block by block.

        Text is binary; a column among `numbers` may have a numeric type instead. A missing value is null.
        """

    def text_column(self, column: str | None, option: str | None = "column") -> str:
        """Check the column of texts that a user names; the default is the only column of text.

        `option` is the name of the parameter that names it, for errors; None if there is none.
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
        """Reject a file in a format that is read and not written."""
        if type(self).write is Table.write:
            raise InputError(
                f"{self.path}: {self.format} is read, but not written; write its texts as TSV or JSON lines first",
                path=self.path,
            )

    def write(self, out: Path, kept: np.ndarray) -> None:
        """Write the rows that are `kept`, booleans [row], into a new file of the same format, each as it was."""
        raise NotImplementedError


def text_rows(table: Table, columns: Sequence[str], numbers: Sequence[str] = ()) -> Iterator[tuple[str, list[str]]]:
    """Read some columns as text, a missing value as an empty one; rows without any value are left out.

    Yields:
        The place of a row for errors, and its values.
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
    return cell.decode("utf8") if isinstance(cell, bytes) else str(cell)
