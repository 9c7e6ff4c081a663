"""XLIFF (XML Localisation Interchange File Format), versions 1.0 to 1.2 and 2.0 to 2.2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar
from xml.etree.ElementTree import Element

from paranmt_hf.corpus.reading.language_tables import LanguageTable, Unit, plain_code
from paranmt_hf.corpus.reading.xml_stream import children, elements, name_of, start_tags, text_of


class XliffTable(LanguageTable):
    """An XLIFF file, each segment of which is a row.

    A segment is a `segment` element in versions 2; in versions 1 an `mrk` element of type `seg`, or a whole
    `trans-unit` without such marks. A target is null if it is missing, empty or in the state `new`,
    `needs-translation` or `initial`.
    """

    format: ClassVar[str] = "XLIFF"
    content: ClassVar[str] = "files with a source language (source-language or srcLang)"
    root: ClassVar[str] = "xliff"

    def find_languages(self) -> tuple[Sequence[str], str | None]:
        self._names: dict[str, str] = {}
        sources: list[str] = []
        for name, attributes in start_tags(self.path):
            source, target = _languages(attributes)
            if name in ("file", "xliff") and source is not None:
                sources.append(source)
                for language in (source, target):
                    self._names.setdefault(plain_code(language), language)
        is_one = len(set(map(plain_code, sources))) == 1
        return list(self._names.values()), self._names[plain_code(sources[0])] if is_one else None

    def units(self) -> Iterator[Unit]:
        for unit, around in elements(self.path, ["trans-unit", "unit"]):
            stated: dict[str, str] = {}
            for element in around:
                stated |= element.attrib
            source, target = _languages(stated)
            parts = children(unit, "segment") if name_of(unit) == "unit" else [unit]
            for part in parts:
                for foreign, translation in _segments(part):
                    # If source and target have the same language, the source comes last and replaces the target.
                    yield {
                        self._names[plain_code(target)]: translation,
                        self._names[plain_code(source or "")]: foreign,
                    }


def _languages(attributes: Mapping[str, str]) -> tuple[str | None, str]:
    """Return source and target language from the attributes of `file` (versions 1) or `xliff` (versions 2).

    The source language is None if the attributes lack it; the target language is then "target", the name of its
    column.
    """
    source = attributes.get("source-language", attributes.get("srcLang"))
    return source, attributes.get("target-language", attributes.get("trgLang")) or "target"


def _segments(part: Element) -> Iterator[tuple[list[str], list[str]]]:
    """Read the source and the target of each segment of a `segment` or `trans-unit`.

    Each is a list of one text; the target's is empty if the segment is not translated.
    """
    found = {name: next(iter(children(part, name)), None) for name in ("source", "target", "seg-source")}
    source, target = found["source"], found["target"]
    if source is None:
        return
    state = part.get("state")
    if target is not None:
        state = target.get("state") or state
    # In these states the target is no translation yet, and often a copy of the source.
    if target is None or state in ("new", "needs-translation", "initial"):
        target = Element("target")
    marked, translated = _marked(found["seg-source"]), _marked(target)
    if not marked or marked.keys() != translated.keys():
        marked, translated = {"": source}, {"": target}
    for number, segment in marked.items():
        text = text_of(translated[number])
        yield [text_of(segment)], [text] if text.strip() else []


def _marked(element: Element | None) -> dict[str, Element]:
    """Return the `mrk` elements of type `seg` inside an element, by their ids."""
    found = {}
    for mark in element.iter() if element is not None else ():
        if name_of(mark) == "mrk" and mark.get("mtype") == "seg":
            found[mark.get("mid", "")] = mark
    return found
