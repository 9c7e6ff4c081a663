"""Consecutive lines of a file as a column of text, and the error that names one of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.bitext.lines import read_blocks, split_lines
from paranmt_hf.corpus.bitext.normalisation import decode
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import decode_line

# Characters of a line that an error shows.
SHOWN = 60


@dataclass(frozen=True)
class Lines:
    """Consecutive lines of a file.

    Attributes:
        text: The lines [line], string, without their ends.
        path: The file.
        first: Number of the first one, from 1.
    """

    text: pa.Array
    path: Path
    first: int

    def refuse(self, wrong: np.ndarray | pa.Array, expected: str, found: pa.Array | None = None) -> None:
        """Refuse the first line that is wrong, if there is one.

        Args:
            wrong: Booleans [line].
            expected: What each line should hold, for the error.
            found: What each line holds instead [line]; the line itself if left out.

        Raises:
            InputError: A line is wrong; with file and line.
        """
        lines = np.flatnonzero(np.asarray(wrong))
        if lines.size:
            line = int(lines[0])
            text = str((self.text if found is None else found)[line].as_py())
            shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
            raise InputError(
                f"{self.path}, line {self.first + line}: expected {expected}, found {shown!r}; mend the line, or get "
                "the file anew"
            )


def read_text_lines(path: Path) -> Iterator[Lines]:
    r"""Read a text file, plain, .gz, .xz or .zst, about a megabyte at a time; `\n` and `\r\n` end a line.

    Raises:
        InputError: The file is empty, cut off or damaged, or a line is not UTF-8; with file and line.
    """
    first = 1
    for block in read_blocks(path):
        raw = split_lines(block)
        text = decode(raw)
        if text.null_count:
            index = int(np.flatnonzero(np.asarray(text.is_null()))[0])
            decode_line(raw[index].as_py(), path, first + index)
        yield Lines(pc.utf8_rtrim(text, "\r"), path, first)
        first += len(raw)
