"""XLIFF: XML Localisation Interchange File Format, versions 1.0 to 1.2 and 2.0 to 2.2."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import ClassVar
from xml.etree.ElementTree import Element

from paranmt_hf.corpus.reading.language_tables import LanguageTable, Unit, plain_code
from paranmt_hf.corpus.reading.xml_stream import children, each_tag, elements, name_of, root_of, text_of
from paranmt_hf.errors import InputError

# Attributes with the languages: of `file` in versions 1, of `xliff` in versions 2.
SOURCE_ATTRIBUTES = ("source-language", "srcLang")
TARGET_ATTRIBUTES = ("target-language", "trgLang")
# States of a target that is not a translation yet, often a copy of the source.
UNTRANSLATED = frozenset(["new", "needs-translation", "initial"])
NO_TARGET = "target"  # Column of the targets of a file that does not say their language


class XliffTable(LanguageTable):
    """Each segment is a row: a `segment` of versions 2, an `mrk` of type `seg` of versions 1, else a `trans-unit`.

    A target that is missing, empty or in a state such as `new`, `needs-translation` or `initial` is null.
    """

    format: ClassVar[str] = "XLIFF"

    @classmethod
    def matches(cls, name: str, head: bytes) -> bool:
        return root_of(head) == "xliff"

    @classmethod
    def open(cls, path: Path, named: Collection[str] = ()) -> XliffTable:
        return cls(path)

    def __init__(self, path: Path) -> None:
        names: dict[str, str] = {}
        sources: list[str] = []

        def found(name: str, attributes: dict[str, str]) -> None:
            source = _first(attributes, SOURCE_ATTRIBUTES)
            if name in ("file", "xliff") and source is not None:
                target = _first(attributes, TARGET_ATTRIBUTES) or NO_TARGET
                sources.append(source)
                for language in (source, target):
                    names.setdefault(plain_code(language), language)

        each_tag(path, found)
        if not names:
            raise InputError(
                f"{path}: expected the source language of an XLIFF file ({' or '.join(SOURCE_ATTRIBUTES)}), but it is "
                "not there",
                path=path,
            )
        source = names[plain_code(sources[0])] if len(set(map(plain_code, sources))) == 1 else None
        super().__init__(path, list(names.values()), source)
        self._names = names

    def units(self) -> Iterator[Unit]:
        for unit, around in elements(self.path, ["trans-unit", "unit"]):
            stated: dict[str, str] = {}
            for element in around:
                stated |= element.attrib
            source = plain_code(_first(stated, SOURCE_ATTRIBUTES) or "")
            target = plain_code(_first(stated, TARGET_ATTRIBUTES) or NO_TARGET)
            parts = children(unit, "segment") if name_of(unit) == "unit" else [unit]
            for part in parts:
                for foreign, translation in _segments(part):
                    # Of a file whose source and target have one language, the targets are left out.
                    yield {self._names[target]: translation, self._names[source]: foreign}


def _first(attributes: dict[str, str], names: Sequence[str]) -> str | None:
    """The first attribute with one of some names."""
    return next((attributes[name] for name in names if name in attributes), None)


def _segments(part: Element) -> Iterator[tuple[list[str], list[str]]]:
    """Source and target of each segment of a `segment` or `trans-unit`; targets not yet translated are empty."""
    source, target = (next(iter(children(part, name)), None) for name in ("source", "target"))
    if source is None:
        return
    segmented = next(iter(children(part, "seg-source")), None)
    state = part.get("state") if target is None else target.get("state") or part.get("state")
    if target is None or state in UNTRANSLATED:
        target = Element("target")
    marked = {} if segmented is None else _marked(segmented)
    translated = _marked(target)
    if marked and marked.keys() == translated.keys():
        for number, segment in marked.items():
            yield [text_of(segment)], _if_any(translated[number])
    else:
        yield [text_of(source)], _if_any(target)


def _marked(element: Element) -> dict[str, Element]:
    """The segments that are marked inside an element, by their numbers."""
    marks = [mark for mark in element.iter() if name_of(mark) == "mrk" and mark.get("mtype") == "seg"]
    return {mark.get("mid", ""): mark for mark in marks}


def _if_any(element: Element) -> list[str]:
    text = text_of(element)
    return [text] if text.strip() else []
