"""TMX: Translation Memory eXchange, versions 1.1 to 1.4b."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import ClassVar
from xml.etree.ElementTree import Element

from paranmt_hf.corpus.reading.language_tables import LanguageTable, Unit, plain_code
from paranmt_hf.corpus.reading.xml_stream import LANGUAGE, children, each_tag, elements, root_of, text_of
from paranmt_hf.errors import InputError


class TmxTable(LanguageTable):
    """A translation memory: each `tu` has a `tuv` for each language, or several that are alternatives.

    The source language is that of the attributes `srclang` if these agree, whatever `tuv` comes first.
    """

    format: ClassVar[str] = "TMX"

    @classmethod
    def matches(cls, name: str, head: bytes) -> bool:
        return root_of(head) == "tmx"

    @classmethod
    def open(cls, path: Path, named: Collection[str] = ()) -> TmxTable:
        return cls(path)

    def __init__(self, path: Path) -> None:
        names: dict[str, str] = {}
        sources: set[str] = set()
        header = ""

        def found(name: str, attributes: dict[str, str]) -> None:
            nonlocal header
            if name == "tuv":
                language = attributes.get("xml:lang") or attributes.get("lang") or ""
                names.setdefault(plain_code(language), language.strip())
            elif name == "tu":
                sources.add(plain_code(attributes.get("srclang", header)))
            elif name == "header":
                header = attributes.get("srclang", "")

        each_tag(path, found)
        if "" in names:
            raise InputError(f"{path}: expected a language, xml:lang, in each tuv; one has none", path=path)
        if not names:
            raise InputError(f"{path}: expected translation units (tu), but there are none", path=path)
        source = names.get(sources.pop()) if len(sources) == 1 else None
        super().__init__(path, list(names.values()), source)
        self._names = names

    def units(self) -> Iterator[Unit]:
        for unit, _ in elements(self.path, ["tu"]):
            texts: dict[str, list[str]] = {}
            for variant in children(unit, "tuv"):
                texts.setdefault(self._names[_language(variant)], []).extend(map(text_of, children(variant, "seg")))
            yield texts


def _language(variant: Element) -> str:
    return plain_code(variant.get(LANGUAGE) or variant.get("lang") or "")
