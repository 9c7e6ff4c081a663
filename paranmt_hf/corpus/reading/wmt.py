"""Test sets of WMT: since 2021 in XML, until 2020 in SGML, with one file for each side.

Most SGML files are not well-formed XML: they have no root, attributes without quotes, and a bare `&` in texts.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from paranmt_hf.corpus.reading.language_tables import LanguageTable, Unit
from paranmt_hf.corpus.reading.lines import unpacked
from paranmt_hf.corpus.reading.xml_stream import elements, name_of, root_of, start_tags, text_of
from paranmt_hf.errors import InputError

SIDES = ("src", "ref", "hyp")
# A side of a document: its kind (of `SIDES`), its language, and the translator or system that wrote it.
Side = tuple[str, str, str]


class WmtXmlTable(LanguageTable):
    """A test set in XML, each segment of which is a row.

    The columns are the languages of the source and of the references, such as `cs` and `en`. References of several
    translators are the columns `en/A` and `en/B`, outputs of systems `en/Online-B`.
    """

    format: ClassVar[str] = "WMT XML"
    content: ClassVar[str] = f"documents with {', '.join(SIDES)}"

    @classmethod
    def matches(cls, name: str, head: bytes) -> bool:
        return root_of(head) == "dataset" and b"<doc" in head

    def find_languages(self) -> tuple[Sequence[str], str | None]:
        sides: list[Side] = []
        for name, attributes in start_tags(self.path):
            if name in SIDES and (side := _side(name, attributes)) not in sides:
                sides.append(side)
        self._columns: dict[Side, str] = {}
        for side in sides:
            kind, language, who = side
            # The writer is in the name of the column if the language alone does not identify the side.
            is_one = kind != "hyp" and [one[:2] for one in sides].count((kind, language)) == 1
            self._columns[side] = language if is_one else f"{language}/{who}"
        sources = [language for kind, language, _ in sides if kind == "src"]
        return list(dict.fromkeys(self._columns.values())), sources[0] if len(sources) == 1 else None

    def units(self) -> Iterator[Unit]:
        for document, _ in elements(self.path, ["doc"]):
            rows: dict[str, dict[str, list[str]]] = {}
            for side in document:
                kind = name_of(side)
                if kind not in SIDES:
                    continue
                column = self._columns[_side(kind, side.attrib)]
                for element in side.iter():
                    if name_of(element) == "seg":
                        rows.setdefault(element.get("id", ""), {})[column] = [text_of(element)]
            yield from rows.values()


def _side(kind: str, attributes: dict[str, str]) -> Side:
    """Return the side that an element stands for, from its name and its attributes."""
    # wmt-format-tools writes the attribute `language` for outputs of systems.
    language = attributes.get("lang") or attributes.get("language") or kind
    who = {"src": "", "ref": "translator", "hyp": "system"}[kind]
    return kind, language, attributes.get(who, "")


TAG = re.compile(r"<(srcset|refset|tstset|doc)\b([^>]*)>|<seg\b([^>]*)>(.*?)</seg\s*>", re.IGNORECASE | re.DOTALL)
ATTRIBUTE = re.compile(r"""([\w-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
# A bare `&` is no entity, and stays.
ENTITY = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|\w+);")


class Segment(NamedTuple):
    """A segment of a test set."""

    document: str  # Id of the document it is in
    number: str  # Its id within the document
    text: str


class WmtSgmlTable(LanguageTable):
    """One side of a test set in SGML, each segment of which is a row.

    The only column has the language of this side as its name, or `text` if the file does not state one.
    """

    format: ClassVar[str] = "WMT SGML"

    @classmethod
    def matches(cls, name: str, head: bytes) -> bool:
        return name.endswith((".sgm", ".sgml")) or root_of(head).lower() in ("srcset", "refset", "tstset", "mteval")

    def find_languages(self) -> tuple[Sequence[str], str | None]:
        for kind, attributes, _ in _tags(self.path):
            if kind.endswith("set"):
                language = attributes.get("srclang" if kind == "srcset" else "trglang", "")
                return ["text" if language.lower() in ("", "any") else language], None
        return ["text"], None

    def pair_of(self, language: str) -> tuple[str, str]:
        """Raise an error, because this file is only one side of a bitext."""
        raise InputError(
            f"{self.path} is one side of a test set; give both files, one as `source` and one as `reference`",
            path=self.path,
            option="data",
        )

    def segments(self) -> Iterator[Segment]:
        """Read the segments in order.

        Raises:
            InputError: If there are none.
        """
        document, found = "", False
        for kind, attributes, text in _tags(self.path):
            if kind == "doc":
                document = attributes.get("docid", "")
            elif kind == "seg":
                found = True
                yield Segment(
                    document, attributes.get("id", ""), ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
                )
        if not found:
            raise InputError(f"{self.path}: expected segments, <seg id=...>, but there are none", path=self.path)

    def units(self) -> Iterator[Unit]:
        for segment in self.segments():
            yield {self.names[0]: [segment.text]}


def _tags(path: Path) -> Iterator[tuple[str, dict[str, str], str]]:
    """Read the tags of sets, documents and segments in an SGML file.

    Yields:
        Name in lower case, attributes, and for a segment its text, with entities as they are in the file.
    """
    content = b"".join(unpacked(path))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}:{line}: expected text in UTF-8; convert the file, such as with `iconv -f latin1 -t UTF-8`",
            path=path,
        ) from None
    for match in TAG.finditer(text):
        name, attributes, seg_attributes, seg_text = match.groups()
        written = ATTRIBUTE.findall(attributes if name else seg_attributes)
        values = {key.lower(): html.unescape(double or single or bare) for key, double, single, bare in written}
        yield (name or "seg").lower(), values, seg_text or ""
