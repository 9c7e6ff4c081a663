"""The SGML of the WMT test sets until 2020: a file for each side, with documents and numbered segments.

Most of these files are no well-formed XML: they have no root, attributes without quotes, and a bare `&` in texts.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import ClassVar, NamedTuple

from paranmt_hf.corpus.reading.language_tables import LanguageTable, Unit
from paranmt_hf.corpus.reading.lines import unpacked
from paranmt_hf.corpus.reading.xml_stream import root_of
from paranmt_hf.errors import InputError

TAG = re.compile(r"<(srcset|refset|tstset|doc)\b([^>]*)>|<seg\b([^>]*)>(.*?)</seg\s*>", re.IGNORECASE | re.DOTALL)
ATTRIBUTE = re.compile(r"""([\w-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
ENTITY = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|\w+);")
ROOTS = ("srcset", "refset", "tstset", "mteval")
NO_LANGUAGE = ("", "any")  # What a file has in place of a language that it does not state


class Segment(NamedTuple):
    """A segment of a test set."""

    document: str  # Id of its document
    number: str  # Its id in the document
    text: str


class WmtSgmlTable(LanguageTable):
    """One side of a test set: each segment is a row, and the only column is its language, or `text`."""

    format: ClassVar[str] = "WMT SGML"

    @classmethod
    def matches(cls, name: str, head: bytes) -> bool:
        return name.endswith((".sgm", ".sgml")) or root_of(head).lower() in ROOTS

    @classmethod
    def open(cls, path: Path, named: Collection[str] = ()) -> WmtSgmlTable:
        return cls(path)

    def __init__(self, path: Path) -> None:
        language = next((_language(kind, given) for kind, given, _ in _tags(path) if kind.endswith("set")), "")
        super().__init__(path, ["text" if language.lower() in NO_LANGUAGE else language])

    def pair_of(self, language: str) -> tuple[str, str]:
        raise InputError(
            f"{self.path} is one side of a test set; give both files, one as `source` and one as `reference`",
            path=self.path,
            option="data",
        )

    def segments(self) -> Iterator[Segment]:
        """Read the segments in order."""
        document, found = "", False
        for kind, attributes, text in _tags(self.path):
            if kind == "doc":
                document = attributes.get("docid", "")
            elif kind == "seg":
                found = True
                yield Segment(document, attributes.get("id", ""), _unescaped(text))
        if not found:
            raise InputError(f"{self.path}: expected segments, <seg id=...>, but there are none", path=self.path)

    def units(self) -> Iterator[Unit]:
        for segment in self.segments():
            yield {self.names[0]: [segment.text]}


def _tags(path: Path) -> Iterator[tuple[str, dict[str, str], str]]:
    """Read the tags of sets, documents and segments: name in lower case, attributes, and text of a segment."""
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
        name, attributes, own, content_of_segment = match.groups()
        given = ATTRIBUTE.findall(attributes if name else own)
        values = {key.lower(): html.unescape(double or single or bare) for key, double, single, bare in given}
        yield (name or "seg").lower(), values, content_of_segment or ""


def _language(kind: str, attributes: dict[str, str]) -> str:
    return attributes.get("srclang" if kind == "srcset" else "trglang", "")


def _unescaped(text: str) -> str:
    """Replace entities that end in a semicolon; a bare `&` stays."""
    return ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
