"""JSON lines: a JSON object on each line."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.reading.columns import read_blocks
from paranmt_hf.corpus.reading.tables import BLOCK_ROWS, Piece, Table, write_rows
from paranmt_hf.errors import InputError

SUFFIXES = (".jsonl", ".ndjson", ".jsonlines")
SAMPLE_ROWS = 1000  # Rows that show the columns
Object = dict[str, Any]


class Row(NamedTuple):
    """An object, and the place in the file that errors name."""

    place: str
    values: Object
    is_utf8: bool = True


class JsonObjects(Table):
    """Rows of JSON objects; subclasses differ in what is between the objects.

    A column is a key or a path such as `translation.en`; a row without it has a null there.
    """

    @classmethod
    def open(cls, path: Path, named: Collection[str] = ()) -> Table:
        """Find the columns in the first rows."""
        table = cls(path, [])
        kinds: dict[str, set[type]] = {}
        for row in islice(table.objects(), SAMPLE_ROWS):
            for name, value in leaves(row.values):
                kinds.setdefault(name, set()).add(type(value))
        texts = [name for name, found in kinds.items() if str in found]
        return cls(path, list(kinds), texts)

    @abstractmethod
    def objects(self) -> Iterator[Row]:
        """Read the rows."""

    def pieces(self, columns: Sequence[str], *, numbers: Collection[str] = ()) -> Iterator[Piece]:
        names = [self.names[self.position(column)] for column in columns]
        are_numbers = [column in numbers for column in columns]
        rows, first = self.objects(), 1
        while some := list(islice(rows, BLOCK_ROWS)):
            found = [
                self._numbers(some, name) if is_number else self._texts(some, name)
                for name, is_number in zip(names, are_numbers, strict=True)
            ]
            yield Piece(found, f"{self.path}, row ", first)
            first += len(some)

    def _texts(self, rows: Sequence[Row], name: str) -> pa.Array:
        texts = []
        for row in rows:
            text = value_of(row.values, name)
            if not isinstance(text, str | None):
                raise self._wrong(row, "text", name, text)
            texts.append(None if text is None else encoded(text, is_utf8=row.is_utf8))
        return pa.array(texts, pa.binary())

    def _numbers(self, rows: Sequence[Row], name: str) -> pa.Array:
        found = []
        for row in rows:
            number = value_of(row.values, name)
            if not isinstance(number, str | int | float | None):
                raise self._wrong(row, "a number", name, number)
            found.append(float(number) if isinstance(number, bool) else number)
        if any(isinstance(number, str) for number in found):
            return pa.array([None if number is None else encoded(str(number)) for number in found], pa.binary())
        return pa.array(found, pa.float64())

    def _wrong(self, row: Row, expected: str, name: str, found: object) -> InputError:
        return InputError(
            f"{self.path}{row.place}: expected {expected} in {name!r}, found {_shown(found)}; correct the row, or "
            "name another column",
            path=self.path,
        )


class JsonLines(JsonObjects):
    """JSON objects, one on each line; an empty line is a row without any value."""

    format = "JSON lines"

    @classmethod
    def matches(cls, name: str, head: bytes) -> bool:
        return name.endswith((*SUFFIXES, ".json")) or _is_object(head.partition(b"\n")[0])

    def objects(self) -> Iterator[Row]:
        number = 0
        for block in read_blocks(self.path):
            for line in block.split(b"\n")[:-1]:
                number += 1
                row = _parse(line, self.path, f":{number}")
                if number == 1:
                    self._check_first(row.values)
                yield row

    def write(self, out: Path, kept: np.ndarray) -> None:
        rows = (line + b"\n" for block in read_blocks(self.path) for line in block.split(b"\n")[:-1])
        write_rows(self.path, out, rows, kept)

    def _check_first(self, values: Object) -> None:
        """Reject a file that is one object with all the rows, which have other forms in other programs."""
        if nested := [name for name, value in values.items() if _is_table(value)]:
            raise InputError(
                f"{self.path} is one JSON object, with rows in {nested[0]!r}; expected an object on each line, or an "
                f"array of objects: write it so, such as with `jq -c '.{nested[0]}[]' FILE.json > FILE.jsonl`, or in "
                'pandas with `frame.to_json("FILE.jsonl", orient="records", lines=True)`',
                path=self.path,
            )


def _is_object(line: bytes) -> bool:
    """Whether a line is a JSON object; one that is longer than the head of a file may be cut."""
    if not line.lstrip().startswith(b'{"'):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return len(line) > 1 << 15
    return True


def _is_table(value: object) -> bool:
    """Whether a value holds rows: a list of objects, or a column as pandas writes it."""
    if isinstance(value, dict):
        return len(value) > 1 and list(value)[:2] == ["0", "1"]
    return isinstance(value, list) and len(value) > 0 and isinstance(value[0], dict)


def _parse(line: bytes, path: Path, place: str) -> Row:
    """Read a line; an empty one has no values."""
    is_utf8 = True
    try:
        text = line.decode("utf8")
    except UnicodeDecodeError:
        # These bytes stay as they are, and the reader counts the row.
        text, is_utf8 = line.decode("utf8", "surrogateescape"), False
    try:
        values = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path}{place}: this line is not JSON ({error}); expected an object on each line: correct the line, or "
            "write the file again",
            path=path,
        ) from None
    if not isinstance(values, dict):
        raise InputError(
            f"{path}{place}: expected a JSON object, found {_shown(values)}; write each row as an object on a line of "
            'its own, such as {"text": "A dog runs."}',
            path=path,
        )
    return Row(place, values, is_utf8)


def leaves(values: Object, before: str = "") -> Iterator[tuple[str, object]]:
    """Names and values of an object, with paths such as `translation.en` for objects inside."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def value_of(values: Object, path: str) -> object:
    """Find a value by its key or dotted path; None if there is none."""
    if path in values:
        return values[path]
    step, _, rest = path.partition(".")
    inner = values.get(step)
    return value_of(inner, rest) if rest and isinstance(inner, dict) else None


def encoded(text: str, *, is_utf8: bool = True) -> bytes:
    """Encode text of JSON in UTF-8.

    Half a surrogate pair, which JSON can spell, becomes U+FFFD; bytes of a file that `is_utf8` not are as they were.
    """
    try:
        return text.encode("utf8", "strict" if is_utf8 else "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf8")


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}…"
