"""Templates of parsed pairs and how often they occur; the record of parsed pairs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.parsing.templates import templates_of
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import check_regular, checksum, decode_line, replacing
from paranmt_hf.util.records import from_json, read_json
from paranmt_hf.util.tables import percent, text_table

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


RECORD_FILE = "parses.json"


@dataclass(frozen=True, kw_only=True)
class ParseRecord:
    """The content of `parses.json`.

    Attributes:
        version: Version of this package that wrote it.
        settings: What determined the trees: the pairs, and the parser.
        inputs: Names, without their folders, of what the pairs are from, and what the parser calls itself.
        rows: Pairs.
        trees: How many sentences of each side have a tree, and of how many pairs `both` do.
        left_out: Pairs that were not chosen, by reason.
        templates: Different templates of the references.
        files: Each file of pairs, and the templates, with their SHA-256.
    """

    version: str
    settings: dict[str, Any]
    inputs: dict[str, str]
    rows: int
    trees: dict[str, int]
    left_out: dict[str, int]
    templates: int
    files: dict[str, str]


# What others read of inputs and counts.


@dataclass(frozen=True)
class _Inputs:
    parser: str


@dataclass(frozen=True)
class _Trees:
    reference: int


@dataclass(frozen=True)
class _Shown:
    inputs: _Inputs
    trees: _Trees


def read_parsed(folder: Path) -> ParseRecord:
    """Read the record of parsed pairs."""
    path = folder / RECORD_FILE
    if not path.is_file():
        what = f"it holds no {RECORD_FILE}" if folder.is_dir() else "there is no such folder"
        raise InputError(f"{folder} holds no parsed pairs of this program: {what}; `paranmt parse` makes them")
    values = read_json(path, "the record of parsed pairs")
    record = from_json(ParseRecord, values, path)
    from_json(_Shown, values, path)
    return record


def check_templates(folder: Path, record: ParseRecord) -> None:
    """Refuse counts of templates that are not those that were written."""
    _check(folder / TEMPLATES_FILE, record.files.get(TEMPLATES_FILE))


def parsed_files(folder: Path) -> list[Path]:
    """Find the Parquet files of parsed pairs, in order, as they were written."""
    files = {folder / name: digest for name, digest in read_parsed(folder).files.items() if name != TEMPLATES_FILE}
    for path, digest in files.items():
        _check(path, digest)
    return list(files)


def _check(path: Path, digest: str | None) -> None:
    if not path.is_file() or checksum(path) != digest:
        raise InputError(f"{path} is missing or is not as it was written; run `paranmt parse` again")


@dataclass(frozen=True)
class Templates:
    """The most frequent templates of a corpus.

    Attributes:
        counts: Templates, the most frequent first.
        total: References with a tree, whatever its template.
        different: Different templates among them.
        parser: What gave the trees.
    """

    counts: list[TemplateCount]
    total: int
    different: int
    parser: str

    @property
    def shares(self) -> list[float]:
        """Share of each template in all trees, in [0, 1]."""
        return [each.count / self.total for each in self.counts]

    @property
    def cumulative_shares(self) -> list[float]:
        """Share of each template and those before it, in [0, 1]."""
        sums, done = [], 0
        for each in self.counts:
            done += each.count
            sums.append(done / self.total)
        return sums

    def text(self) -> str:
        """Write a table for a terminal, the examples at its end."""
        head = ["template", "count", "share %", "cumulative %"]
        figures = zip(self.counts, self.shares, self.cumulative_shares, strict=True)
        rows = [[each.template, f"{each.count:,}", percent(share), percent(total)] for each, share, total in figures]
        lines = text_table(head, rows).split("\n")
        examples = ["example", *(each.example for each in self.counts)]
        return "\n".join(f"{line}  {example}" for line, example in zip(lines, examples, strict=True))

    def to_json(self) -> dict[str, Any]:
        """Give the table as JSON values."""
        figures = zip(self.counts, self.shares, self.cumulative_shares, strict=True)
        return {
            "parser": self.parser,
            "references_with_a_tree": self.total,
            "different_templates": self.different,
            "templates": [
                {**asdict(each), "share": share, "cumulative_share": total} for each, share, total in figures
            ],
        }


def frequent_templates(parsed: str | Path, *, top: int | None = 20) -> Templates:
    """Read the most frequent templates of the references of parsed pairs.

    Args:
        parsed: The folder that `paranmt parse` made.
        top: So many of them; None for all.
    """
    if top is not None and top < 1:
        raise InputError(f"top must be at least 1, got {top}")
    folder = Path(parsed).expanduser()
    record = read_parsed(folder)
    check_templates(folder, record)
    counts = read_template_counts(folder, top)
    if not counts or record.trees["reference"] < 1:
        raise InputError(f"no reference of {folder} has a tree, so there are no templates; use another parser")
    return Templates(counts, record.trees["reference"], record.templates, record.inputs["parser"])
