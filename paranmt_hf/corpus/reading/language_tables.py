"""`LanguageTable`: files of translations with a column for each language: TMX, XLIFF, PO, and XML and SGML of WMT."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, islice, product
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from paranmt_hf.corpus.reading.tables import BLOCK_ROWS, Piece, Table
from paranmt_hf.corpus.reading.xml_stream import root_of
from paranmt_hf.errors import InputError

# The texts of a translation unit, by language. A language has several texts if the unit has alternative translations.
Unit = Mapping[str, Sequence[str]]


class LanguageTable(Table):
    """A file of translation units, each with texts in some languages; the names of the columns are the languages.

    A unit is a row, with null for a language that it lacks. If it has several texts of a language, every combination
    with the texts of the other languages that are read is a row.

    Attributes:
        content: What a file must have to be read, for error messages.
        root: Name of the root element of the file, if it is XML.
        source_language: The language that the others are translated from, as the file states; None if it does not.
    """

    languages: ClassVar[bool] = True
    content: ClassVar[str] = ""
    root: ClassVar[str] = ""

    def __init__(self, path: Path) -> None:
        self.path = path
        names, self.source_language = self.find_languages()
        if not names:
            raise InputError(f"{path} is {self.format}; expected {self.content}, but there are none", path=path)
        super().__init__(path, names)

    @classmethod
    def matches(cls, name: str, head: bytes) -> bool:
        return root_of(head) == cls.root

    @classmethod
    def open(cls, path: Path, named: Collection[str] = ()) -> LanguageTable:
        return cls(path)

    @abstractmethod
    def find_languages(self) -> tuple[Sequence[str], str | None]:
        """Find the languages of the file, and its source language, None if it does not state one.

        There are no languages if the file lacks what `content` describes.
        """

    @abstractmethod
    def units(self) -> Iterator[Unit]:
        """Read the translation units; their languages are spelt as in `names`."""

    def has(self, column: str) -> bool:
        return bool(self._columns_of(column)) or super().has(column)

    def position(self, column: str, option: str | None = "columns") -> int:
        """Find the column of a language, and return its index from 0.

        Case, and whether a hyphen or an underscore is written, do not matter: `cs_cz` finds `cs-CZ`. `cs` finds it too
        if no other column is Czech.
        """
        found = self._columns_of(column)
        if not found:
            return super().position(column, option)
        exact = [name for name in found if plain_code(name) == plain_code(column)]
        if not exact and len(found) > 1:
            raise self._ambiguous(column, found, option)
        return self.names.index((exact or found)[0])

    def _columns_of(self, language: str) -> list[str]:
        """Find all columns of a language, those of its countries included: `en` finds `en`, `en-US` and `en-GB`."""
        code = plain_code(language)
        return [name for name in self.names if f"{plain_code(name)}-".startswith(f"{code}-")]

    def _ambiguous(self, language: str, names: Sequence[str], option: str | None = "columns") -> InputError:
        """Make the error for a language that several columns have."""
        return InputError(
            f"{self.path} has several columns of the language {language!r}: {', '.join(names)}; name one of them with "
            f"`{option}`",
            path=self.path,
            option=option,
        )

    def pair_of(self, language: str) -> tuple[str, str]:
        """Choose the columns of a bitext: the foreign one, and the one in `language` (ISO 639-1).

        The foreign one is the source language that the file states, else the only other column.

        Raises:
            InputError: If there is no column in `language`, or a choice between several columns.
        """
        if not self._columns_of(language):
            raise InputError(
                f"{self.path} has no texts in {language}, the `language` of the corpus; its columns are "
                f"{', '.join(self.names)}: name both with `columns`, such as source={self.names[0]},"
                f"reference={self.names[-1]}",
                path=self.path,
                option="columns",
            )
        reference = self.names[self.position(language)]
        others = [name for name in self.names if name != reference]
        source = self.source_language if self.source_language in others else next(iter(others), reference)
        for chosen in (reference, source):
            # If there are `en` and `en-US`, the rows of one of them would be lost.
            if len(columns := self._columns_of(chosen)) > 1:
                raise self._ambiguous(chosen, columns)
        if len(others) != 1 and self.source_language not in others:
            found = ", ".join(others) or "none"
            raise InputError(
                f"{self.path}: expected one language besides {reference}, found {found}; name both with `columns`, "
                f"such as source={others[0] if others else 'cs'},reference={reference}",
                path=self.path,
                option="columns",
            )
        return source, reference

    def pieces(self, columns: Sequence[str], *, numbers: Collection[str] = ()) -> Iterator[Piece]:
        names = [self.names[self.position(column)] for column in columns]
        rows = chain.from_iterable(product(*(unit.get(name) or (None,) for name in names)) for unit in self.units())
        first = 1
        while some := list(islice(rows, BLOCK_ROWS)):
            texts = [pa.array(column, pa.string()).cast(pa.binary()) for column in zip(*some, strict=True)]
            yield Piece(texts, f"{self.path}, pair ", first)
            first += len(some)


def plain_code(language: str) -> str:
    """Return the code of a language in lower case with hyphens, such as `pt-br` for `pt_BR`."""
    return language.strip().replace("_", "-").lower()
