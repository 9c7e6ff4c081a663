"""The XML of the WMT test sets since 2021: source, references and outputs of systems, by documents and segments."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import ClassVar
from xml.etree.ElementTree import Element

from paranmt_hf.corpus.reading.language_tables import LanguageTable, Unit
from paranmt_hf.corpus.reading.xml_stream import each_tag, elements, name_of, root_of, text_of
from paranmt_hf.errors import InputError

SIDES = ("src", "ref", "hyp")
WHO = {"src": "", "ref": "translator", "hyp": "system"}  # The attribute with who wrote a side

# A side of a document: its kind, its language, and who wrote it.
Side = tuple[str, str, str]


class WmtXmlTable(LanguageTable):
    """Each segment of a document is a row.

    The columns are the languages of the source and of the references, such as `cs` and `en`. References by several
    translators are `en/A` and `en/B`, outputs of systems `en/Online-B`.
    """

    format: ClassVar[str] = "WMT XML"

    @classmethod
    def matches(cls, name: str, head: bytes) -> bool:
        return root_of(head) == "dataset" and b"<doc" in head

    @classmethod
    def open(cls, path: Path, named: Collection[str] = ()) -> WmtXmlTable:
        return cls(path)

    def __init__(self, path: Path) -> None:
        sides: list[Side] = []

        def found(name: str, attributes: dict[str, str]) -> None:
            if name in SIDES and (side := _side(name, attributes)) not in sides:
                sides.append(side)

        each_tag(path, found)
        if not sides:
            raise InputError(
                f"{path}: expected documents with {', '.join(SIDES)}, as in WMT test sets, found none", path=path
            )
        self._columns = {side: _column(side, sides) for side in sides}
        sources = [language for kind, language, _ in sides if kind == "src"]
        super().__init__(path, list(dict.fromkeys(self._columns.values())), sources[0] if len(sources) == 1 else None)

    def units(self) -> Iterator[Unit]:
        for document, _ in elements(self.path, ["doc"]):
            rows: dict[str, dict[str, list[str]]] = {}
            for side in document:
                kind = name_of(side)
                if kind not in SIDES:
                    continue
                column = self._columns[_side(kind, side.attrib)]
                for number, text in _segments(side):
                    rows.setdefault(number, {})[column] = [text]
            yield from rows.values()


def _side(kind: str, attributes: dict[str, str]) -> Side:
    # wmt-format-tools wraps the outputs of systems with `language`.
    language = attributes.get("lang") or attributes.get("language") or kind
    return kind, language, attributes.get(WHO[kind], "")


def _column(side: Side, sides: list[Side]) -> str:
    """The name of the column of a side: its language, and who wrote it if that does not follow."""
    kind, language, who = side
    others = [one for one in sides if one[:2] == (kind, language)]
    return f"{language}/{who}" if kind == "hyp" or len(others) > 1 else language


def _segments(side: Element) -> Iterator[tuple[str, str]]:
    """Number and text of each segment."""
    for element in side.iter():
        if name_of(element) == "seg":
            yield element.get("id", ""), text_of(element)
