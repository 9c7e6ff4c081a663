"""JSON files: an object on each line, or an array of objects."""

from __future__ import annotations

import codecs
import json
import math
import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from paranmt_hf.corpus.reading.lines import read_blocks, unpacked, write_lines
from paranmt_hf.corpus.reading.tables import BLOCK_ROWS, NewTexts, Piece, Table
from paranmt_hf.errors import InputError
from paranmt_hf.util.packed import find_packing

EXACT = 1 << 53  # Whole numbers up to this one are exact in double precision
Object = dict[str, Any]
Steps = tuple[str, ...]  # The keys that lead to a value inside nested objects
_OPENING, _COMMA = re.compile(r"\ufeff?\s*\[\s*(?=\S)"), re.compile(r"\s*,\s*(?=\S)")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


class JsonRow(NamedTuple):
    """One row of a JSON file."""

    place: str  # Its place in the file for errors, such as ":12"
    values: Object
    is_utf8: bool = True  # Whether its bytes are UTF-8


class JsonObjects(Table):
    """A file of JSON objects, each of which is a row; subclasses differ in what is between the objects.

    A column is a key, or a path such as `translation.en`; a row without it has null there.
    """

    def __init__(self, path: Path, columns: Sequence[Steps], texts: Sequence[Steps] = ()) -> None:
        super().__init__(path, [".".join(steps) for steps in columns], [".".join(steps) for steps in texts])
        self.columns = columns

    @classmethod
    def open(cls, path: Path, named: Collection[str] = ()) -> Table:
        """Open a file; its columns are those of the first 1,000 rows.

        Raises:
            InputError: If there are no rows, or one object holds them all.
        """
        rows = list(islice(cls(path, []).objects(), 1000))
        if not rows:
            raise InputError(f"{path}: expected rows, but there are none", path=path)
        is_row = any(isinstance(rows[0].values.get(name), str | float | int) for name in named)
        if len(rows) == 1 and _holds_rows(rows[0].values) and not is_row:
            lists = [name for name, value in rows[0].values.items() if isinstance(value, list)]
            key = lists[0] if len(lists) == 1 else "NAME"
            raise InputError(
                f"{path} is one JSON object that holds all rows; expected an object on each line, or an array of "
                f"objects: write it so, such as with `jq -c '.{key}[]' FILE.json > FILE.jsonl`, or in pandas with "
                '`frame.to_json("FILE.jsonl", orient="records", lines=True)`',
                path=path,
            )
        kinds: dict[Steps, set[type]] = {}
        for row in rows:
            for steps, value in leaves(row.values):
                kinds.setdefault(steps, set()).add(type(value))
        return cls(path, list(kinds), [steps for steps, found in kinds.items() if str in found])

    @abstractmethod
    def objects(self) -> Iterator[JsonRow]:
        """Read the rows."""

    def pieces(self, columns: Sequence[str], *, numbers: Collection[str] = ()) -> Iterator[Piece]:
        wanted = self.wanted(columns, numbers)
        rows, first = self.objects(), 1
        while some := list(islice(rows, BLOCK_ROWS)):
            yield Piece(self.values(some, wanted), f"{self.path}, row ", first)
            first += len(some)

    def wanted(self, columns: Sequence[str], numbers: Collection[str]) -> list[tuple[Steps, bool]]:
        """Return for each column the keys that lead to it, and whether it may hold numbers."""
        return [(self.columns[self.position(column)], column in numbers) for column in columns]

    def values(self, rows: Sequence[JsonRow], wanted: Sequence[tuple[Steps, bool]]) -> list[pa.Array]:
        """Return the values of some columns.

        Args:
            rows: The rows.
            wanted: The columns, as `wanted` gives them.

        Returns:
            For each column its values [row]: text as bytes, or numbers if it may hold them and no value is text.

        Raises:
            InputError: If a value has another type.
        """
        return [self._column(rows, steps, is_number=is_number) for steps, is_number in wanted]

    def with_text(self, row: bytes, position: int, change: Callable[[str], str]) -> bytes:
        raw, steps = row.decode("utf8", "surrogateescape"), self.columns[position]
        old = value_of(json.loads(raw), steps)
        new = change(as_utf8(str(old)).decode())
        for found in _STRING.finditer(raw):
            if json.loads(found[0]) != old:
                continue
            # Other columns may hold the same text. Everything but the text is written as it was, numbers too.
            changed = raw[: found.start()] + json.dumps(new, ensure_ascii=found[0].isascii()) + raw[found.end() :]
            if value_of(json.loads(changed), steps) == new:
                return _bytes(changed)
        return row

    def _column(self, rows: Sequence[JsonRow], steps: Steps, *, is_number: bool) -> pa.Array:
        """Return the values [row] of one column; see `values`."""
        expected, kinds = ("a number", (str, int, float)) if is_number else ("text", (str,))
        found: list[Any] = []
        for row in rows:
            value = value_of(row.values, steps)
            if value is not None and not isinstance(value, kinds):
                raise InputError(
                    f"{self.path}{row.place}: expected {expected} in {'.'.join(steps)!r}, found {_shown(value)}; "
                    "correct the row, or name another column",
                    path=self.path,
                )
            found.append(value)
        if is_number and not any(isinstance(value, str) for value in found):
            return _numbers(found)
        texts = []
        for row, value in zip(rows, found, strict=True):
            text = value if isinstance(value, str | None) else str(_as_double(value))
            texts.append(None if text is None else as_utf8(text, is_utf8=row.is_utf8))
        return pa.array(texts, pa.binary())


class JsonLines(JsonObjects):
    """A file with one JSON object on each line; an empty line is a row without any value."""

    format = "JSON lines"

    @classmethod
    def matches(cls, name: str, head: bytes) -> bool:
        if name.endswith((".jsonl", ".ndjson", ".jsonlines", ".json")):
            return True
        line = head.partition(b"\n")[0]
        if not line.lstrip().startswith(b'{"'):
            return False
        try:
            return isinstance(json.loads(line), dict)
        except (ValueError, RecursionError):
            # A long line may fail to parse only because the head of the file ends inside it.
            return len(line) > 1 << 15

    def objects(self) -> Iterator[JsonRow]:
        first = 1
        for block in read_blocks(self.path):
            yield from self._rows(block, first)
            first += block.count(b"\n")

    def pieces(self, columns: Sequence[str], *, numbers: Collection[str] = ()) -> Iterator[Piece]:
        wanted = self.wanted(columns, numbers)
        first = 1
        for block in read_blocks(self.path):
            lines = block.count(b"\n")
            found = _read_by_arrow(block, wanted)
            if found is None or len(found[0]) != lines:
                found = self.values(list(self._rows(block, first)), wanted)
            yield Piece(found, f"{self.path}:", first)
            first += lines

    def _rows(self, block: bytes, first: int) -> Iterator[JsonRow]:
        """Read the rows of a block of lines, the first of which has the number `first`."""
        for number, line in enumerate(block.split(b"\n")[:-1], first):
            yield _parse(line, self.path, f":{number}")

    def write(self, out: Path, kept: np.ndarray, new: NewTexts | None = None) -> None:
        write_lines(self.path, out, kept, change=self.changing(new))


class JsonArray(JsonObjects):
    """A file with one JSON array of objects, which are read one after the other."""

    format = "JSON array"

    @classmethod
    def matches(cls, name: str, head: bytes) -> bool:
        text = head.removeprefix(codecs.BOM_UTF8).lstrip()
        return text.startswith(b"[") and (name.endswith(".json") or text[1:].lstrip().startswith(b"{"))

    def objects(self) -> Iterator[JsonRow]:
        for line, _, _, values in self._elements():
            yield JsonRow(f":{line}", values)

    def write(self, out: Path, kept: np.ndarray, new: NewTexts | None = None) -> None:
        packing, change = find_packing(self.path), self.changing(new)
        opening, separator, written = "[", ",", 0
        with out.open("wb") if packing is None else packing.create(out) as file:
            for index, (_, before, raw, _) in enumerate(self._elements()):
                if index == 0:
                    opening = before
                    file.write(_bytes(opening))
                if index == 1:
                    separator = before
                if kept[index]:
                    element = _bytes(raw) if change is None else change(index, _bytes(raw))
                    file.write(_bytes(separator) + element if written else element)
                    written += 1
            file.write(b"\n]\n" if "\n" in opening else b"]\n")

    def _elements(self) -> Iterator[tuple[int, str, str, Object]]:
        """Read the elements of the array.

        Yields:
            Number of the line in which the element begins, from 1; the text between it and the one before; its own
            text; its values.
        """
        decoder = codecs.getincrementaldecoder("utf8")("surrogateescape")
        blocks = map(decoder.decode, unpacked(self.path))
        text, position, line, before = next(blocks, ""), 0, 1, _OPENING
        decode = json.JSONDecoder().raw_decode
        while True:
            start, reason = before.match(text, position), "expected a comma or the end of the array"
            begin = start.end() if start else position
            try:
                values, end = decode(text, begin) if start else (None, position)
            except (ValueError, RecursionError) as error:
                start, reason = None, str(error)
            if start is None:
                # An element may continue in the next block.
                if more := next(blocks, ""):
                    text, position = text[position:] + more, 0
                    continue
                rest = text[position:]
                if re.fullmatch(r"\s*\]\s*", rest if before is _COMMA else rest.lstrip("\ufeff \t\r\n")[1:]):
                    return
                line += text.count("\n", position, begin)
                raise InputError(
                    f"{self.path}:{line}: this JSON array cannot be read on from here ({reason}); correct the file, "
                    "or write it again",
                    path=self.path,
                )
            line += text.count("\n", position, begin)
            if not isinstance(values, dict):
                raise InputError(
                    f"{self.path}:{line}: expected an array of objects, found {text[begin:end][:60]}; write each row "
                    'as an object, such as {"text": "A dog runs."}',
                    path=self.path,
                )
            yield line, text[position:begin], text[begin:end], values
            line += text.count("\n", begin, end)
            position, before = end, _COMMA


def _bytes(text: str) -> bytes:
    """Encode text in UTF-8; bytes of the file that were not UTF-8 stay as they were."""
    return text.encode("utf8", "surrogateescape")


def _read_by_arrow(block: bytes, wanted: Sequence[tuple[Steps, bool]]) -> list[pa.Array] | None:
    """Read columns from whole lines of JSON, ten times as fast as Python does; None if Arrow cannot read the lines.

    That is so if the JSON is broken, has half a surrogate pair, a key twice in an object, or a number that is text. It
    is so too for a number of more than 53 bits, which in double precision may not be exact.

    Args:
        block: The lines.
        wanted: For each column the keys that lead to it, and whether it may hold numbers.
    """
    fields: dict[str, Any] = {}
    for steps, is_number in wanted:
        inner = fields
        for step in steps[:-1]:
            inner = inner.setdefault(step, {})
        inner[steps[-1]] = pa.float64() if is_number else pa.string()
    parse = pyarrow.json.ParseOptions(explicit_schema=pa.schema(_types(fields)), unexpected_field_behavior="ignore")
    read = pyarrow.json.ReadOptions(use_threads=False, block_size=len(block) + 1)
    try:
        table = pyarrow.json.read_json(pa.BufferReader(block), read_options=read, parse_options=parse)
    except pa.ArrowException:
        return None
    found = []
    for steps, is_number in wanted:
        column = table.combine_chunks()[steps[0]].combine_chunks()
        for step in steps[1:]:
            column = pc.struct_field(column, step)
        if is_number and pc.any(pc.greater(pc.abs(column), EXACT)).as_py():
            return None
        found.append(column if is_number else column.cast(pa.binary()))
    return found


def _as_double(value: float) -> float:
    """Return the nearest number in double precision; infinity for a whole number beyond all of these."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _numbers(values: Sequence[float | None]) -> pa.Array:
    """Return numbers as an array in double precision; as int64 if they are whole and too large to be exact in it."""
    known = [value for value in values if value is not None]
    # The type is compared because True and False are instances of `int` too.
    if all(type(value) is int for value in known) and EXACT < max(map(abs, known), default=0) < 1 << 63:
        return pa.array(values, pa.int64())
    return pa.array([None if value is None else _as_double(value) for value in values], pa.float64())


def _types(fields: dict[str, Any]) -> list[tuple[str, pa.DataType]]:
    """Return the types of fields for Arrow; a nested dictionary of fields becomes a struct."""
    return [(name, pa.struct(_types(kind)) if isinstance(kind, dict) else kind) for name, kind in fields.items()]


def _holds_rows(values: Object) -> bool:
    """Whether an object holds all rows, as `{"data": [...]}` does, or what pandas writes by default."""
    for value in (values, *values.values()):
        if isinstance(value, list) and value and isinstance(value[0], dict | list):
            return True
        if isinstance(value, dict) and list(value)[:2] == ["0", "1"]:
            return True
    return False


def _parse(line: bytes, path: Path, place: str) -> JsonRow:
    """Read one line as a row; an empty line has no values.

    Raises:
        InputError: If the line is no JSON object.
    """
    is_utf8 = True
    try:
        text = line.decode("utf8")
    except UnicodeDecodeError:
        # The bytes are kept as they are, so that the reader drops and counts the row.
        text, is_utf8 = line.decode("utf8", "surrogateescape"), False
    try:
        values = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path}{place}: this line is not JSON ({error}); expected an object on each line, which `jq -c .` "
            "writes (`jq -c '.data[]'` if one object holds all rows): correct the line, or write the file so",
            path=path,
        ) from None
    if not isinstance(values, dict):
        raise InputError(
            f"{path}{place}: expected a JSON object, found {_shown(values)}; write each row as an object on a line of "
            'its own, such as {"text": "A dog runs."}',
            path=path,
        )
    return JsonRow(place, values, is_utf8)


def leaves(values: Object, before: Steps = ()) -> Iterator[tuple[Steps, object]]:
    """Return the values in an object and in the objects inside it, each with the keys that lead to it."""
    for name, value in values.items():
        # The keys of objects nested more than 20 deep have no columns of their own.
        if isinstance(value, dict) and len(before) < 20:
            yield from leaves(value, (*before, name))
        else:
            yield (*before, name), value


def value_of(values: Object, steps: Steps) -> object:
    """Return the value to which some keys lead; None if there is none."""
    found: object = values
    for step in steps:
        if not isinstance(found, dict):
            return None
        found = found.get(step)
    return found


def as_utf8(text: str, *, is_utf8: bool = True) -> bytes:
    """Encode text from JSON in UTF-8.

    Half a surrogate pair, which JSON can spell, becomes U+FFFD. If `is_utf8` is False, the line of the file was not
    UTF-8, and its bytes are restored as they were.
    """
    try:
        return text.encode("utf8", "strict" if is_utf8 else "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf8")


def _shown(value: object) -> str:
    """Describe a value in an error: text and numbers as JSON, cut at 60 characters, others by their type."""
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str | int | float) else type(value).__name__
    return text if len(text) <= 60 else f"{text[:60]}…"
