"""Templates of parsed pairs and their counts, and the record of parsed pairs.

Iyyer et al. (2018), section 3.3: a template is the top two levels of a linearised parse, and the most frequent ones
are the targets of paraphrases.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.parsing.trees import templates_of
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import checksum, replacing
from paranmt_hf.util.records import Record
from paranmt_hf.util.tables import percent, text_table
from paranmt_hf.util.wording import counted

TEMPLATES_FILE = "templates.tsv"
TEMPLATE_COLUMNS = pa.schema({"template": pa.string(), "count": pa.int64(), "example": pa.string()})


@dataclass(frozen=True)
class ParseSettings:
    """Everything that determines parsed pairs: the pairs and the parser."""

    data: dict[str, Any]
    parser: dict[str, Any]


@dataclass(frozen=True)
class TreeCounts:
    """Numbers of references and translations with a tree, and of pairs of which both have one."""

    reference: int
    translation: int
    both: int


@dataclass(frozen=True, kw_only=True)
class ParseRecord(Record):
    """The record of parsed pairs."""

    FILE: ClassVar[str] = "parses.json"
    KIND: ClassVar[str] = "parsed pairs (paranmt parse)"

    settings: ParseSettings
    source: str  # Names of the sources of the pairs, without their folders
    parser: str  # Name of the parser with its version
    rows: int  # Number of pairs
    trees: TreeCounts  # Numbers of trees
    left_out: dict[str, int]  # Number of pairs that were not chosen, by reason
    templates: int  # Number of distinct templates of the references
    files: dict[str, str]  # SHA-256 of each file of pairs and of the templates


def parsed_files(folder: Path) -> list[Path]:
    """Find the Parquet files of parsed pairs, in order, and compare them with the record."""
    files = ParseRecord.read(folder).files
    return [_checked(folder / name, digest) for name, digest in files.items() if name != TEMPLATES_FILE]


def _checked(path: Path, digest: str | None) -> Path:
    if not path.is_file() or checksum(path) != digest:
        raise InputError(f"{path} is missing or differs from its record; run `paranmt parse` again", path=path)
    return path


class TemplateCounter:
    """Counts templates; the memory grows with the number of distinct ones.

    Equal templates are summed when more than `waiting` counts wait for it.
    """

    def __init__(self, waiting: int = 500_000) -> None:
        self._parts: list[pa.Table] = []
        self._waiting, self._most = 0, waiting

    def add(self, parses: pa.ChunkedArray, sentences: pa.ChunkedArray) -> None:
        """Count the templates of linearised trees [sentence], nulls left out; the first sentence is the example."""
        templates = templates_of(parses)
        ones = pa.repeat(1, len(templates))
        added = pa.table([templates, ones, sentences], names=TEMPLATE_COLUMNS.names).filter(templates.is_valid())
        self._parts.append(_summed(added))
        self._waiting += self._parts[-1].num_rows
        if self._waiting > self._most:
            self._parts, self._waiting = [_summed(pa.concat_tables(self._parts))], 0

    def table(self) -> pa.Table:
        """Templates, counts and examples, the most frequent first, equally frequent ones by their text."""
        parts = self._parts or [TEMPLATE_COLUMNS.empty_table()]
        return _summed(pa.concat_tables(parts)).sort_by([("count", "descending"), ("template", "ascending")])


def _summed(table: pa.Table) -> pa.Table:
    """Sum the counts of equal templates; the first example is kept."""
    groups = table.group_by("template", use_threads=False)
    return groups.aggregate([("count", "sum"), ("example", "first")]).rename_columns(TEMPLATE_COLUMNS.names)


def write_template_counts(table: pa.Table, path: Path) -> None:
    """Write the table of a `TemplateCounter` as tab-separated lines; white space in examples becomes a blank."""
    examples = pc.replace_substring_regex(table["example"], r"\s+", " ")
    columns = [table["template"], table["count"].cast(pa.string()), examples]
    with replacing(path) as aside, aside.open("w", encoding="utf8", newline="\n") as file:
        file.write("\t".join(TEMPLATE_COLUMNS.names) + "\n")
        for batch in pa.table(columns, names=TEMPLATE_COLUMNS.names).to_batches():
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            file.writelines("\t".join(row) + "\n" for row in rows)


@dataclass(frozen=True)
class TemplateCount:
    """A template such as `(S(NP)(VP))`, the number of sentences that have it, and the first of them.

    `share` is its part of all trees, `cumulative_share` that of it and those before it, in [0, 1].
    """

    template: str
    count: int
    example: str
    share: float
    cumulative_share: float


@dataclass(frozen=True)
class CountedTemplates:
    """The most frequent templates of parsed pairs."""

    counts: list[TemplateCount]  # The most frequent first
    total: int  # Number of references with a tree
    different: int  # Number of distinct templates
    parser: str  # Name of the parser

    def summary(self) -> str:
        head = ["template", "count", "share %", "cumulative %"]
        rows = []
        for each in self.counts:
            shares = [percent(each.share), percent(each.cumulative_share)]
            rows.append([each.template, f"{each.count:,}", *shares])
        # Examples differ in length, so they are outside the table.
        table = text_table(head, rows).split("\n")
        examples = ["example", *(each.example for each in self.counts)]
        lines = [f"{counted(self.different, 'template')} of {counted(self.total, 'reference')}, by {self.parser}"]
        lines += [f"{line}  {example}" for line, example in zip(table, examples, strict=True)]
        return "\n".join(lines)


def frequent_templates(parsed: str | Path, *, top: int | None = 20) -> CountedTemplates:
    """Return the most frequent templates of the references of parsed pairs.

    Args:
        parsed: The folder of `paranmt parse`.
        top: Maximum number of templates; None for all.
    """
    folder = Path(parsed).expanduser()
    record = ParseRecord.read(folder)
    total = record.trees.reference
    path = _checked(folder / TEMPLATES_FILE, record.files.get(TEMPLATES_FILE))
    counts: list[TemplateCount] = []
    sum_so_far = 0
    with path.open(encoding="utf8", newline="\n") as file:
        next(file)
        for line in itertools.islice(file, top):
            template, number, example = line.rstrip("\n").split("\t")
            count = int(number)
            sum_so_far += count
            counts.append(TemplateCount(template, count, example, count / total, sum_so_far / total))
    if not counts:
        raise InputError(f"no reference of {folder} has a tree, so there are no templates; use another parser")
    return CountedTemplates(counts, total, record.templates, record.parser)
