"""`Table`: a file whose rows have named columns, whatever its format.

Every format that the package reads is a subclass; `formats.py` finds the one of a file. A table gives bytes as they
are in the file: decoding, normalisation and the choice of usable rows belong to `readers.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from paranmt_hf.corpus.reading.columns import file_identity
from paranmt_hf.errors import InputError


class Piece(NamedTuple):
    """Consecutive rows as they were read, bytes or numbers.

    Errors name the place of a row: `where`, followed by its number, counted from `first`.
    """

    columns: list[pa.Array]
    where: str
    first: int


class Table(ABC):
    """The rows of a file in order, each with the same columns.

    Attributes:
        format: Name of the format for people, as in docs/formats.md.
        path: The file.
        names: Names of the columns in the order of the file; a column can also be named by its number, from 1.
            Empty if the file has no names, and columns are numbers alone.
        languages: Whether the names are the languages of the columns, as in TMX and XLIFF.
    """

    format: ClassVar[str]
    languages: ClassVar[bool] = False

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self.path, self.names = path, tuple(names)

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the rows, as JSON values."""
        return {"format": self.format, **file_identity(self.path)}

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.names)

    def position(self, column: str) -> int:
        """Find a column by its name or its number from 1; returns its index, from 0."""
        if (count := self.names.count(column)) == 1:
            return self.names.index(column)
        if count:
            raise InputError(f"{self.path} has {count} columns {column!r}; rename all but one", path=self.path)
        if column.isdecimal() and 1 <= int(column) <= self.width:
            return int(column) - 1
        known = ", ".join(self.names) or f"numbers from 1 to {self.width}"
        raise InputError(
            f"{self.path} has no column {column!r}; its columns are {known}", path=self.path, option="columns"
        )

    @abstractmethod
    def pieces(self, columns: Sequence[str], *, numbers: Collection[str] = ()) -> Iterator[Piece]:
        """Read some columns, in the given order, block by block.

        Text is binary; a column among `numbers` may have a numeric type instead. A missing value is null.
        """
