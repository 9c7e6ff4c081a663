"""XML files read as a stream, one element at a time, so that memory does not grow with the file.

The parser, expat, loads no external entities, and limits how much the entities of a file can expand.
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
# What may come before the root element: white space, declarations, comments and the document type.
_PROLOG = re.compile(r"\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*(?:\[.*?\])?\s*>", re.DOTALL | re.IGNORECASE)
_ROOT = re.compile(r"<(?:[\w.-]+:)?([\w.-]+)")


def root_of(head: bytes) -> str:
    """Return the name of the root element, without a prefix, from the first bytes of a file.

    The name is empty if the file is neither XML nor SGML.
    """
    is_wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = head.decode("utf-16" if is_wide else "utf-8-sig", errors="replace")
    prolog_end = 0
    while prolog := _PROLOG.match(text, prolog_end):
        prolog_end = prolog.end()
    root = _ROOT.match(text, prolog_end)
    return root[1] if root else ""


def name_of(element: Element) -> str:
    """Return the name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def children(element: Element, name: str) -> list[Element]:
    """Return the direct children of an element that have a name, in any namespace."""
    return [child for child in element if name_of(child) == name]


def elements(path: Path, names: Collection[str]) -> Iterator[tuple[Element, Sequence[Element]]]:
    """Read the elements of a file that have one of some names, each as soon as it is complete.

    An element inside another that is read is not yielded by itself. Elements are emptied once the next one is asked
    for.

    Args:
        path: The file, which may be packed.
        names: Names of the elements to read, without prefixes.

    Yields:
        The element, and the elements around it, outermost first.

    Raises:
        InputError: If the XML is not well formed, or more than 200 elements are nested.
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
                    # Files of the formats read here nest about ten elements.
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
    """Read the start tags of a file, three times as fast as `elements`.

    Yields:
        Name of the element without its prefix, and its attributes with theirs.
    """
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
    """Turn errors of the XML parser in a `with` block into an `InputError` that names the file and the line."""
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
    """Return the text of an element without the inline codes in it; a code that is a line break becomes a blank."""
    parts = [element.text or ""]
    for child in element:
        # These elements hold markup of the document that was translated, and no text.
        is_code = name_of(child) in ("bpt", "ept", "it", "ph", "sub", "ut")
        is_break = any(value in {"lb", "br", "x-br", "x-html-br", "x-lb", "xlf:lb"} for value in child.attrib.values())
        if is_break or (is_code and "<br" in (child.text or "").lower()):
            parts.append(" ")
        elif not is_code:
            parts.append(text_of(child))
        parts.append(child.tail or "")
    return "".join(parts)
