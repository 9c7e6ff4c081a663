"""TMX (Translation Memory eXchange), versions 1.1 to 1.4b."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from paranmt_hf.corpus.reading.language_tables import LanguageTable, Unit, plain_code
from paranmt_hf.corpus.reading.xml_stream import LANGUAGE, children, elements, start_tags, text_of
from paranmt_hf.errors import InputError


class TmxTable(LanguageTable):
    """A translation memory: each `tu` element has a `tuv` for each language, or several that are alternatives.

    The source language is the one in the attributes `srclang`, if all of them agree; the order of the `tuv` elements
    says nothing.
    """

    format: ClassVar[str] = "TMX"
    content: ClassVar[str] = "translation units (tu) with a language, xml:lang, in each tuv"
    root: ClassVar[str] = "tmx"

    def find_languages(self) -> tuple[Sequence[str], str | None]:
        self._names: dict[str, str] = {}
        sources: set[str] = set()
        # A `tu` without `srclang` has that of the header.
        header = ""
        for name, attributes in start_tags(self.path):
            if name == "tuv":
                language = attributes.get("xml:lang") or attributes.get("lang") or ""
                self._names.setdefault(plain_code(language), language.strip())
            elif name == "tu":
                sources.add(plain_code(attributes.get("srclang", header)))
            elif name == "header":
                header = attributes.get("srclang", "")
        # The texts of a `tuv` without a language have no column.
        if "" in self._names:
            raise InputError(f"{self.path}: a tuv has no language; give each the attribute xml:lang", path=self.path)
        source = self._names.get(sources.pop()) if len(sources) == 1 else None
        return list(self._names.values()), source

    def units(self) -> Iterator[Unit]:
        for unit, _ in elements(self.path, ["tu"]):
            texts: dict[str, list[str]] = {}
            for variant in children(unit, "tuv"):
                language = self._names[plain_code(variant.get(LANGUAGE) or variant.get("lang") or "")]
                texts.setdefault(language, []).extend(map(text_of, children(variant, "seg")))
            yield texts
