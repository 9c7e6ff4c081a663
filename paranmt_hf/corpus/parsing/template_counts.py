"""How often each template is in a corpus: counted out of core, written as a table for people and programs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.parsing.templates import templates_of
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import check_regular, decode_line, replacing

TEMPLATES_FILE = "templates.tsv"
HEAD = ("template", "count", "example")
# Counts that wait before they are added up.
WAITING = 500_000


@dataclass(frozen=True)
class TemplateCount:
    """A template of a corpus.

    Attributes:
        template: The template, `(S(NP)(VP))`.
        count: Sentences that have it.
        example: The first of them.
    """

    template: str
    count: int
    example: str


class TemplateCounter:
    """Counts templates; memory grows with the number of different ones."""

    def __init__(self) -> None:
        self._parts: list[pa.Table] = []
        self._waiting = 0

    def add(self, parses: pa.ChunkedArray, sentences: pa.ChunkedArray) -> None:
        """Count the templates of sentences.

        Args:
            parses: Linearised trees [sentence]; null counts for nothing.
            sentences: The sentences [sentence], from which examples are taken, the first of each template.
        """
        templates = templates_of(parses)
        present = templates.is_valid()
        ones = pa.array(np.ones(len(templates), np.int64))
        added = pa.table([templates, ones, sentences], names=HEAD).filter(present)
        self._parts.append(_summed(added))
        self._waiting += self._parts[-1].num_rows
        if self._waiting > WAITING:
            self._parts, self._waiting = [_summed(pa.concat_tables(self._parts))], 0

    def table(self) -> pa.Table:
        """Templates with their counts and examples, the most frequent first, of equal ones the first by its text."""
        parts = self._parts or [pa.table([[], [], []], pa.schema(zip(HEAD, _TYPES, strict=True)))]
        return _summed(pa.concat_tables(parts)).sort_by([("count", "descending"), ("template", "ascending")])


_TYPES = (pa.string(), pa.int64(), pa.string())


def _summed(table: pa.Table) -> pa.Table:
    """Add up the counts of equal templates; of their examples the first stays."""
    encoded = table["template"].combine_chunks().dictionary_encode()
    indices = encoded.indices.to_numpy()
    counts = np.zeros(len(encoded.dictionary), np.int64)
    np.add.at(counts, indices, table["count"].to_numpy())
    _, first = np.unique(indices, return_index=True)
    return pa.table([encoded.dictionary, counts, table["example"].take(first)], names=HEAD)


def write_template_counts(table: pa.Table, path: Path) -> None:
    """Write what `TemplateCounter.table` gives: a line with the names of the columns, and one for each template.

    Args:
        table: Templates, counts and examples, in the order in which they are written.
        path: The file: fields between tabs; white space in examples becomes a blank.

    Raises:
        WriteError: It cannot be written.
    """
    examples = pc.replace_substring_regex(table["example"], r"\s+", " ")
    columns = [table["template"], table["count"].cast(pa.string()), examples]
    with replacing(path) as aside, aside.open("w", encoding="utf8", newline="\n") as file:
        file.write("\t".join(HEAD) + "\n")
        for batch in pa.table(columns, names=HEAD).to_batches():
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            file.writelines("\t".join(row) + "\n" for row in rows)


def read_template_counts(path: Path, most: int | None = None) -> list[TemplateCount]:
    """Read a file of templates and their counts, the most frequent first.

    Args:
        path: The file, or the folder that `paranmt parse` made.
        most: So many are read; all of them if left out.

    Raises:
        InputError: There is none, or a line is not as it should be; with its number.
    """
    path = path / TEMPLATES_FILE if path.is_dir() else path
    check_regular(path)
    if not path.is_file():
        raise InputError(f"there are no templates {path}; `paranmt parse` writes them")
    with path.open("rb") as file:
        if file.readline().rstrip(b"\r\n") != "\t".join(HEAD).encode():
            raise InputError(
                f"{path}, line 1: expected {', '.join(HEAD)} between tabs; `paranmt parse` writes such files"
            )
        return list(itertools.islice(_counts(path, file), most))


def _counts(path: Path, lines: Iterator[bytes]) -> Iterator[TemplateCount]:
    for number, line in enumerate(lines, 2):
        fields = decode_line(line.rstrip(b"\r\n"), path, number).split("\t")
        if len(fields) != len(HEAD) or not fields[0].startswith("(") or not fields[1].isdecimal():
            raise InputError(f"{path}, line {number}: expected a template, its count and an example between tabs")
        yield TemplateCount(fields[0], int(fields[1]), fields[2])
