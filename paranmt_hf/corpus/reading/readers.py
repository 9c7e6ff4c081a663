"""Readers: they turn files into Arrow record batches of normalised text; `hub_dataset.py` has that for datasets.

A reader takes one bounded piece of the input at a time, whatever the size of the input, and works on whole columns.
Rows that cannot be used are dropped, and counted by reason in a `Report`. The column `id` counts all rows, so it is
the same whatever is dropped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.reading.arrow_tables import rebatch
from paranmt_hf.corpus.reading.formats import find_format, open_table
from paranmt_hf.corpus.reading.labels import LABEL, Wanted, check_label_names, paraphrase_labels, unwanted_labels
from paranmt_hf.corpus.reading.lines import read_blocks, split_lines
from paranmt_hf.corpus.reading.normalisation import decode, normalise, read_numbers
from paranmt_hf.corpus.reading.plain_text import PlainText
from paranmt_hf.corpus.reading.splitting import SentenceSplitter, split_rows
from paranmt_hf.corpus.reading.tables import Piece, Table, file_identity
from paranmt_hf.errors import InputError
from paranmt_hf.util.wording import counted

DOCUMENT = "document"  # Name of the column that says which document a sentence is from
UNEQUAL = "documents with unequal numbers of sentences"  # Why a pair of documents is dropped
MAX_CHARACTERS = 1000  # Rows with longer texts are dropped by default, because these are no sentences


@dataclass
class Report:
    """Number of rows that were read, kept and dropped."""

    read: int = 0  # Number of rows read so far
    kept: int = 0  # Number of those rows that could be used
    dropped: dict[str, int] = field(default_factory=dict)  # Number of dropped rows, by reason

    def describe(self) -> str:
        """Describe the counts in one line, such as `read 4 rows, kept 3, dropped 1 (1 empty)`."""
        line = f"read {counted(self.read, 'row')}, kept {self.kept:,}, dropped {self.read - self.kept:,}"
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(self.dropped.items()))
        return f"{line} ({reasons})" if reasons else line

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        return {"read": self.read, "kept": self.kept, "dropped": dict(sorted(self.dropped.items()))}


class TextOptions(TypedDict, total=False):
    """Options of all readers that take columns; see `Reader`."""

    numbers: Collection[str]  # Columns of numbers, which the files may also hold as text
    optional: Collection[str]  # Columns whose values may be missing; they are null then
    max_characters: int  # Rows with a longer text are dropped; default: `MAX_CHARACTERS`
    wanted: Wanted  # Which pairs are kept if there is a column `label`; default: all


class Reader(ABC):
    """Base class of readers; a subclass reads the pieces of one kind of source.

    A column called `label` holds labels of paraphrases: 1, 0 or null, int32.

    Attributes:
        label: Description of the source, for errors.
        columns: Names of the columns that are read.
        splitters: For each column of documents how these are split; each sentence becomes a row. None by default.

    Args:
        columns: Names of the columns.
        numbers: Columns of numbers, which the source may also hold as text.
        optional: Columns whose values may be missing; they are null then.
        max_characters: Rows with a longer text are dropped.
        wanted: Which pairs are kept if there is a column `label`.
    """

    label: str

    def __init__(
        self,
        columns: Collection[str],
        *,
        numbers: Collection[str] = (),
        optional: Collection[str] = (),
        max_characters: int = MAX_CHARACTERS,
        wanted: Wanted = "any",
    ) -> None:
        self.columns, self.wanted = tuple(columns), wanted
        self.splitters: Mapping[str, SentenceSplitter] = {}
        self.numbers, self.optional, self.max_characters = frozenset(numbers), frozenset(optional), max_characters

    def batches(self, report: Report, *, rows: int = 10_000) -> Iterator[pa.RecordBatch]:
        """Read the usable rows.

        Args:
            report: Counts the rows as they are read, which may be ahead of the batches.
            rows: Number of rows in a batch; only the last has fewer.

        Yields:
            `id` (int64), the index of the row in the input, dropped rows counted; then the columns: text as string,
            numbers as float32, labels as int32. If documents are split, `id` counts sentences, and the last column is
            `document` (int64), the index of the document in the input.

        Raises:
            InputError: If there are no rows at all, or a number or label is wrong.
        """
        return rebatch(self._kept(report), rows)

    @property
    def identity(self) -> dict[str, object]:
        """Everything that determines the rows, as JSON values without local folders; files are hashed at each call."""
        settings = {"numbers": sorted(self.numbers), "optional": sorted(self.optional)}
        labels = {"wanted": self.wanted} if LABEL in self.columns else {}
        split = {"split": {name: one.identity for name, one in self.splitters.items()}} if self.splitters else {}
        return {**self.source(), **settings, **labels, **split, "max_characters": self.max_characters}

    @abstractmethod
    def source(self) -> dict[str, object]:
        """Return what identifies the source, as JSON values."""

    @abstractmethod
    def pieces(self) -> Iterator[Piece]:
        """Read the rows as they are in the source: the columns in the order of `columns`, text as bytes."""

    def _kept(self, report: Report) -> Iterator[pa.RecordBatch]:
        """Read the usable rows, in batches of any size, and count the others in the report."""
        first = documents = 0
        for piece in self.pieces():
            added, unequal = {}, {}
            if self.splitters:
                split = split_rows(dict(zip(self.columns, piece.columns, strict=True)), self.splitters)
                added, unequal = {DOCUMENT: pa.array(split.documents + documents)}, {UNEQUAL: split.unequal}
                documents += len(piece.columns[0])
                piece = piece._replace(columns=split.columns)
            columns, wrong = self._checked(piece)
            wrong = unequal | wrong
            rows = len(columns[0])
            good = np.ones(rows, bool)
            for reason, mask in wrong.items():
                if count := int(np.count_nonzero(good & mask)):
                    report.dropped[reason] = report.dropped.get(reason, 0) + count
                good &= ~mask
            report.read += rows
            report.kept += int(np.count_nonzero(good))
            ids = pa.array(np.arange(first, first + rows))
            batch = pa.record_batch([ids, *columns, *added.values()], names=["id", *self.columns, *added])
            yield batch.filter(pa.array(good))
            first += rows
        if not first:
            raise InputError(f"expected rows, but there are none in {self.label}")

    def _checked(self, piece: Piece) -> tuple[list[pa.Array], dict[str, np.ndarray]]:
        """Normalise the columns of a piece, and find the rows to drop.

        Returns:
            The columns [row], and for each reason to drop rows a mask [row].
        """
        undecodable, empty, long = np.zeros((3, len(piece.columns[0])), bool)
        # A row without any value, such as a blank line, is dropped because its text is missing; its numbers may then
        # be missing too. This needs a column of text that is not optional.
        blank = np.zeros_like(empty)
        if set(self.columns) - self.numbers - self.optional - {LABEL}:
            blank = np.logical_and.reduce([np.asarray(column.is_null()) for column in piece.columns])
        columns = []
        unwanted: dict[str, np.ndarray] = {}
        for name, raw in zip(self.columns, piece.columns, strict=True):
            if name == LABEL:
                columns.append(paraphrase_labels(raw, piece.where, piece.first, piece.path))
                unwanted = unwanted_labels(columns[-1], self.wanted)
                continue
            if name in self.numbers:
                optional = name in self.optional
                where = (piece.where, piece.first, piece.path)
                columns.append(read_numbers(raw, name, *where, optional=optional, skipped=blank))
                continue
            text = decode(raw)
            undecodable |= np.asarray(pc.and_(raw.is_valid(), text.is_null()))
            text = normalise(text)
            lengths = pc.fill_null(pc.utf8_length(text), 0)
            long |= np.asarray(pc.greater(lengths, self.max_characters))
            if name in self.optional:
                text = pc.if_else(pc.equal(lengths, 0), pa.scalar(None, pa.string()), text)
            else:
                empty |= np.asarray(pc.equal(lengths, 0))
            columns.append(text)
        return columns, {**unwanted, "undecodable": undecodable, "empty": empty, "over-long": long}


class Side:
    """One of several files that are read in parallel, line by line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._blocks = read_blocks(path)
        self._held = pa.array([], pa.binary())
        self._taken = 0

    def fill(self) -> int:
        """Return the number of buffered lines, after reading more if there are none; 0 at the end of the file."""
        if not len(self._held):
            block = next(self._blocks, None)
            if block is not None:
                self._held = split_lines(block)
        return len(self._held)

    def take(self, lines: int) -> pa.Array:
        """Return the next lines [line], binary, from the buffer."""
        first_lines, self._held = self._held[:lines], self._held[lines:]
        self._taken += lines
        return first_lines

    def count(self) -> int:
        """Return the number of lines in the whole file, which is read to its end."""
        return self._taken + len(self._held) + sum(block.count(b"\n") for block in self._blocks)


class LineFiles(Reader):
    r"""Text files that are aligned line by line, such as the Moses format of OPUS.

    Lines end at `\n` alone, and the last may lack it. Files may be packed.

    Args:
        files: The file for each column.
        max_characters: Rows with a longer text are dropped.
    """

    def __init__(self, files: Mapping[str, Path], *, max_characters: int = MAX_CHARACTERS) -> None:
        super().__init__(files, max_characters=max_characters)
        self.files = dict(zip(files, map(Path, files.values()), strict=True))
        for path in self.files.values():
            check_lines(path)
        self.label = " and ".join(map(str, self.files.values()))

    def source(self) -> dict[str, object]:
        return {"kind": "lines", "files": {column: file_identity(path) for column, path in self.files.items()}}

    def pieces(self) -> Iterator[Piece]:
        sides = [Side(path) for path in self.files.values()]
        while rows := min([side.fill() for side in sides]):
            yield Piece([side.take(rows) for side in sides], "line ", 1)
        lengths = [side.count() for side in sides]
        if len(set(lengths)) > 1:
            counts = ", ".join(f"{side.path} has {lines:,}" for side, lines in zip(sides, lengths, strict=True))
            raise InputError(
                f"expected files of equally many lines, but {counts}: a line is missing or one too many, "
                "and from there on the pairs are wrong; get both files from the same release"
            )


def check_lines(path: Path) -> None:
    """Raise an error if a file is not plain text, because its lines would not be sentences."""
    kind = find_format(path)
    if kind is not PlainText:
        raise InputError(
            f"{path} is {kind.format}; expected a text file with one sentence on a line (files with columns: "
            "`paranmt build --data FILE`)",
            path=path,
        )


class TableFiles(Reader):
    """Files of any format with columns, read one after the other.

    Args:
        files: Files, folders of `Dataset.save_to_disk`, or open tables.
        columns: For each column of the reader the name of the column in the files, or its number from 1.
        options: See `TextOptions`.
    """

    def __init__(
        self, files: Sequence[str | Path | Table], columns: Mapping[str, str], **options: Unpack[TextOptions]
    ) -> None:
        super().__init__(columns, **options)
        if not files:
            raise InputError("expected at least one file, got none")
        self.paths = dict(columns)
        self.tables = [file if isinstance(file, Table) else open_table(file, columns.values()) for file in files]
        for table in self.tables:
            for column in self.paths.values():
                table.position(column)
            if LABEL in self.paths:
                check_label_names(table.label_names(self.paths[LABEL]), self.paths[LABEL], table.path)
        self.label = ", ".join(str(table.path) for table in self.tables)

    def source(self) -> dict[str, object]:
        return {"kind": "tables", "files": [table.identity for table in self.tables], "columns": self.paths}

    def pieces(self) -> Iterator[Piece]:
        numbers = [self.paths[name] for name in self.columns if name in {LABEL, *self.numbers}]
        for table in self.tables:
            for piece in table.pieces(list(self.paths.values()), numbers=numbers):
                yield piece._replace(path=table.path)
