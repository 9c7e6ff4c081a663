"""Plain text files: each line is a text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import numpy as np

from paranmt_hf.corpus.reading.lines import read_blocks, split_lines, write_lines
from paranmt_hf.corpus.reading.tables import NewTexts, Piece, Table

TEXT = "text"


class PlainText(Table):
    r"""A text file, whose lines are the column `text`; they end at `\n` alone."""

    format = "plain text"

    @classmethod
    def matches(cls, name: str, head: bytes) -> bool:
        return True

    @classmethod
    def open(cls, path: Path, named: Collection[str] = ()) -> Table:
        return cls(path, [TEXT])

    def pieces(self, columns: Sequence[str], *, numbers: Collection[str] = ()) -> Iterator[Piece]:
        for column in columns:
            self.position(column)
        first = 1
        for block in read_blocks(self.path):
            lines = split_lines(block)
            yield Piece([lines] * len(columns), f"{self.path}:", first)
            first += len(lines)

    def write(self, out: Path, kept: np.ndarray, new: NewTexts | None = None) -> None:
        write_lines(self.path, out, kept, change=self.changing(new))

    def with_text(self, row: bytes, position: int, change: Callable[[str], str]) -> bytes:
        return change(row[:-1].decode()).encode() + b"\n"
