"""XML read as a stream, one element at a time: memory does not grow with the file.

expat loads no external entities, and limits how much entities of a file can expand.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError, XMLPullParser
from xml.parsers import expat

from paranmt_hf.corpus.reading.lines import unpacked
from paranmt_hf.errors import InputError

LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
# What may come before the root element: declarations, comments, and the type of the document.
_PROLOG = re.compile(r"\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*(?:\[.*?\])?\s*>", re.DOTALL | re.IGNORECASE)
_ROOT = re.compile(r"<(?:[\w.-]+:)?([\w.-]+)")


def root_of(head: bytes) -> str:
    """Name of the root element without its prefix, by the beginning of a file; empty if it is no XML or SGML."""
    is_wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = head.decode("utf-16" if is_wide else "utf-8-sig", errors="replace")
    place = 0
    while prolog := _PROLOG.match(text, place):
        place = prolog.end()
    root = _ROOT.match(text, place)
    return root[1] if root else ""


def name_of(element: Element) -> str:
    """Name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def children(element: Element, name: str) -> list[Element]:
    """The elements of a name directly inside an element, in any namespace."""
    return [child for child in element if name_of(child) == name]


def elements(path: Path, names: Collection[str]) -> Iterator[tuple[Element, Sequence[Element]]]:
    """Read the elements of some names, each when it ends, with the elements around it, outermost first.

    An element inside another one that is read does not come by itself. Elements are emptied once they are used.
    """
    around: list[Element] = []
    inside = 0
    parser: Any = XMLPullParser(("start", "end"))
    with _well_formed(path):
        for part in chain(unpacked(path, 1 << 16), [None]):
            if part is None:
                parser.close()
            else:
                parser.feed(part)
            for event, element in parser.read_events():
                if event == "start":
                    # Files of the formats read here have about ten.
                    if len(around) == 200:
                        raise InputError(f"{path}: expected at most 200 elements inside each other", path=path)
                    around.append(element)
                    inside += name_of(element) in names
                    continue
                around.pop()
                if name_of(element) in names:
                    inside -= 1
                    if not inside:
                        yield element, around
                if not inside and around:
                    del around[-1][:]


def start_tags(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Read name, without its prefix, and attributes of each start tag of a file, 3 times as fast as `elements`."""
    found: list[tuple[str, dict[str, str]]] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda name, attributes: found.append((name.rpartition(":")[2], attributes))
    with _well_formed(path):
        for block in unpacked(path):
            parser.Parse(block)
            yield from found
            found.clear()
        parser.Parse(b"", True)


@contextmanager
def _well_formed(path: Path) -> Iterator[None]:
    """Convert the errors of expat in a `with` block to an `InputError` with file and line."""
    try:
        yield
    except (ParseError, expat.ExpatError) as error:
        line = error.position[0] if isinstance(error, ParseError) else error.lineno
        raise InputError(
            f"{path}:{line}: expected well-formed XML, found {str(error).split(':')[0]}; get the file again, or "
            " correct it, such as with `xmllint --recover`",
            path=path,
        ) from None


def text_of(element: Element) -> str:
    """The text of an element without the codes inside it; a code that is a line break becomes a blank."""
    parts = [element.text or ""]
    for child in element:
        # The content of these is markup of the document that was translated, and no text.
        is_code = name_of(child) in ("bpt", "ept", "it", "ph", "sub", "ut")
        is_break = any(value in {"lb", "br", "x-br", "x-html-br", "x-lb", "xlf:lb"} for value in child.attrib.values())
        if is_break or (is_code and "<br" in (child.text or "").lower()):
            parts.append(" ")
        elif not is_code:
            parts.append(text_of(child))
        parts.append(child.tail or "")
    return "".join(parts)
