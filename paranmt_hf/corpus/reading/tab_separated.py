"""TSV files: each line is a row, with tabs between its fields.

Quotes are text, unless the whole file shows otherwise: programs such as pandas write quotes around fields that hold a
tab, a quote or a line end. `has_quoted_fields` finds out which kind a file is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.reading.comma_separated import CommaSeparated, Form, read_separated
from paranmt_hf.corpus.reading.heading import Heading, is_number, read_heading
from paranmt_hf.corpus.reading.lines import HEAD_BYTES, read_blocks, split_lines, write_lines
from paranmt_hf.corpus.reading.tables import NewTexts, Piece, Table
from paranmt_hf.errors import InputError

QUOTED_TABS = Form("\t")


class TabSeparated(Table):
    """A TSV file whose quotes are text. A blank line is a row without any field.

    Args:
        path: The file.
        heading: Its columns.
        optional_fields: How many fields at the end of a row may be missing.
    """

    format = "TSV"

    def __init__(self, path: Path, heading: Heading, optional_fields: int = 0) -> None:
        super().__init__(path, heading.names, heading.texts)
        self._width, self._optional_fields = heading.width, optional_fields

    @classmethod
    def matches(cls, name: str, head: bytes) -> bool:
        if name.endswith((".tsv", ".tab")):
            return True
        # At least 90 % of the lines have the same number of tabs. The last line is left out if the head cuts it.
        whole = head[: head.rfind(b"\n") + 1] if len(head) >= HEAD_BYTES else head
        lines = [line for line in (whole or head).split(b"\n") if line.strip()]
        tabs, count = Counter(line.count(b"\t") for line in lines).most_common(1)[0] if lines else (0, 0)
        are_inside = any(b"\t" in line.strip() for line in lines)
        return tabs > 0 and are_inside and count >= 0.9 * len(lines)

    @classmethod
    def open(cls, path: Path, named: Collection[str] = ()) -> Table:
        if has_quoted_fields(path):
            return QuotedTabSeparated.of_form(path, QUOTED_TABS, named)
        lines = next(read_blocks(path)).replace(b"\r\n", b"\n")[: 1 << 16].split(b"\n")
        rows = [line.decode("utf8", "replace").split("\t") for line in lines[: max(1, len(lines) - 1)]]
        return cls(path, read_heading(path, rows, named, cls.format))

    @property
    def width(self) -> int:
        return self._width

    def pieces(self, columns: Sequence[str], *, numbers: Collection[str] = ()) -> Iterator[Piece]:
        wanted = [self.position(column) for column in columns]
        first = 1
        for block in read_blocks(self.path):
            lines = split_lines(block.replace(b"\r\n", b"\n"))
            names = int(first == 1 and bool(self.names))
            rows = lines.slice(names)
            yield Piece(self._fields(rows, wanted, first + names), f"{self.path}:", first + names)
            first += len(lines)

    def write(self, out: Path, kept: np.ndarray, new: NewTexts | None = None) -> None:
        write_lines(self.path, out, kept, names=bool(self.names), change=self.changing(new))

    def with_text(self, row: bytes, position: int, change: Callable[[str], str]) -> bytes:
        line = row.removesuffix(b"\n").removesuffix(b"\r")
        fields = line.split(b"\t")
        fields[position] = change(fields[position].decode()).encode()
        return b"\t".join(fields) + row[len(line) :]

    def _fields(self, lines: pa.Array, wanted: Sequence[int], first: int) -> list[pa.Array]:
        """Split lines into fields.

        Args:
            lines: The lines [line], binary.
            wanted: Positions of the fields that are returned, from 0.
            first: Number of the first line.

        Returns:
            For each wanted field its values [line], null where a line lacks it or is blank.

        Raises:
            InputError: If a line has too few or too many fields.
        """
        fields = pc.split_pattern(lines, b"\t")
        counts = np.asarray(pc.list_value_length(fields))
        least = self._width - self._optional_fields
        absent = np.zeros(len(lines), bool)
        for row in np.flatnonzero((counts < least) | (counts > self._width)):
            if lines[int(row)].as_py().strip():
                expected = f"{least} to {self._width}" if self._optional_fields else f"{self._width}"
                raise InputError(
                    f"{self.path}:{first + row}: expected {expected} fields with tabs between them, got "
                    f"{counts[row]}; a tab inside a text or a broken line would shift the columns, so correct the "
                    "line",
                    path=self.path,
                )
            absent[row] = True
        starts, flat = np.cumsum(counts) - counts, fields.flatten()
        return [flat.take(pa.array(starts + index, mask=absent | (counts <= index))) for index in wanted]


class QuotedTabSeparated(CommaSeparated):
    """A TSV file with quotes around fields that hold a tab, a quote or a line end, as pandas writes them."""

    format = "TSV"


# `_ROW` matches a row whose quotes all stand around whole fields. `_NEEDED` finds a field that needs its quotes.
_FIELD = r'(?:"(?:[^"]|"")*"|[^"\t\n]*)'
_ROW = re.compile(rf"{_FIELD}(?:\t{_FIELD})*\r?\n?")
_NEEDED = re.compile(r'(?:^|\t)"(?:[^"]|"")*(?:""|[\t\n])')


def has_quoted_fields(path: Path) -> bool:
    """Whether the quotes of a file hold its fields together, rather than being text.

    They do if all these hold:

    - Quotes stand around whole fields only, and quotes inside are doubled.
    - Read so, all rows have the same number of fields.
    - Some field needs its quotes, or all fields of text have quotes.
    """
    if not any(b'"' in block for block in read_blocks(path)):
        return False
    width, is_needed, is_everywhere = 0, False, True
    try:
        for record in read_separated(path, QUOTED_TABS):
            width = width or len(record.fields)
            if len(record.fields) not in (width, 0):
                return False
            raw = record.raw[0] if len(record.raw) == 1 else "".join(record.raw)
            if '"' in raw:
                if not _ROW.fullmatch(raw):
                    return False
                is_needed = is_needed or bool(_NEEDED.search(raw))
            if is_everywhere:
                is_everywhere = all(
                    field.startswith('"') or not field or is_number(field) for field in raw.strip("\r\n").split("\t")
                )
    except InputError:
        return False
    return is_needed or is_everywhere
