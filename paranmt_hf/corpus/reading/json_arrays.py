"""A JSON array of objects, each of which is a row."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from paranmt_hf.corpus.reading.json_lines import JsonObjects, JsonRow, Object
from paranmt_hf.corpus.reading.lines import unpacked
from paranmt_hf.errors import InputError
from paranmt_hf.util.packed import find_packing

_OPENING, _COMMA = re.compile(r"\ufeff?\s*\[\s*(?=\S)"), re.compile(r"\s*,\s*(?=\S)")
_CLOSING = re.compile(r"\s*\]\s*")


class _Element(NamedTuple):
    """An element of the array."""

    line: int  # Number of its first line, from 1
    before: str  # What is between it and the one before
    raw: str  # Its text
    values: Object


class JsonArray(JsonObjects):
    """A JSON array of objects; its elements are read one after the other."""

    format = "JSON array"

    @classmethod
    def matches(cls, name: str, head: bytes) -> bool:
        text = head.removeprefix(codecs.BOM_UTF8).lstrip()
        return text.startswith(b"[") and (name.endswith(".json") or text[1:].lstrip().startswith(b"{"))

    def objects(self) -> Iterator[JsonRow]:
        for element in self._elements():
            yield JsonRow(f":{element.line}", element.values)

    def write(self, out: Path, kept: np.ndarray) -> None:
        packing, between, end = find_packing(self.path), None, b"]\n"
        with out.open("wb") if packing is None else packing.create(out) as file:
            written = 0
            for index, element in enumerate(self._elements()):
                if index == 0:
                    file.write(_bytes(element.before))
                    end = b"\n]\n" if "\n" in element.before else end
                else:
                    between = between or element.before
                if kept[index]:
                    file.write(_bytes(between or ",") if written else b"")
                    file.write(_bytes(element.raw))
                    written += 1
            file.write(end)

    def _elements(self) -> Iterator[_Element]:
        blocks = self._blocks()
        text, at, line, before = next(blocks, ""), 0, 1, _OPENING
        decode = json.JSONDecoder().raw_decode
        while True:
            start = before.match(text, at)
            begin = start.end() if start else at
            reason = "expected a comma or the end of the array"
            try:
                values, end = decode(text, begin) if start else (None, at)
            except (ValueError, RecursionError) as error:
                start, reason = None, str(error)
            if start is None:
                # An element may continue in the next block.
                if more := next(blocks, ""):
                    text, at = text[at:] + more, 0
                    continue
                rest = text[at:]
                if _CLOSING.fullmatch(rest if before is _COMMA else rest.lstrip("\ufeff \t\r\n")[1:]):
                    return
                line += text.count("\n", at, begin)
                raise InputError(
                    f"{self.path}:{line}: this JSON array cannot be read on from here ({reason}); correct the file, "
                    "or write it again",
                    path=self.path,
                )
            line += text.count("\n", at, start.end())
            if not isinstance(values, dict):
                raise InputError(
                    f"{self.path}:{line}: expected an array of objects, found {text[start.end() : end][:60]}; write "
                    'each row as an object, such as {"text": "A dog runs."}',
                    path=self.path,
                )
            yield _Element(line, start[0], text[start.end() : end], values)
            line += text.count("\n", start.end(), end)
            at, before = end, _COMMA

    def _blocks(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf8")("surrogateescape")
        for block in unpacked(self.path):
            yield decoder.decode(block)


def _bytes(text: str) -> bytes:
    return text.encode("utf8", "surrogateescape")
