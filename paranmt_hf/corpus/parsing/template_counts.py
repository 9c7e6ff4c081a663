"""Templates of parsed pairs with their counts, and the record of parsed pairs.

A template is the top two levels of a linearised tree; the most frequent templates are the targets of paraphrases
(Iyyer et al. 2018, section 3.3).
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
    """Everything that determines parsed pairs: the identities of the pairs and of the parser."""

    data: dict[str, Any]
    parser: dict[str, Any]


@dataclass(frozen=True)
class TreeCounts:
    """Number of references with a tree, of translations with a tree, and of pairs in which both have one."""

    reference: int
    translation: int
    both: int


@dataclass(frozen=True, kw_only=True)
class ParseRecord(Record):
    """The record of parsed pairs, `parses.json`."""

    FILE: ClassVar[str] = "parses.json"
    KIND: ClassVar[str] = "parsed pairs (paranmt parse)"

    settings: ParseSettings
    source: str  # Names of the sources of the pairs, without their folders
    parser: str  # Name of the parser, with its version
    rows: int  # Number of pairs
    trees: TreeCounts  # Number of sentences with a tree
    left_out: dict[str, int]  # Number of pairs that were left out, by reason
    templates: int  # Number of distinct templates of the references
    files: dict[str, str]  # SHA-256 of each file of pairs and of the file of templates, by its name


def parsed_files(folder: Path) -> list[Path]:
    """Return the Parquet files of parsed pairs, in order, after checking them against the record."""
    files = ParseRecord.read(folder).files
    return [_checked(folder / name, digest) for name, digest in files.items() if name != TEMPLATES_FILE]


def _checked(path: Path, digest: str | None) -> Path:
    """Return a file, after checking that it exists and has the SHA-256 of the record."""
    if not path.is_file() or checksum(path) != digest:
        raise InputError(f"{path} is missing or differs from its record; run `paranmt parse` again", path=path)
    return path


class TemplateCounter:
    """Counts the templates of trees; memory grows with the number of distinct templates.

    Args:
        waiting: Number of counts that may wait before those of equal templates are added up.
    """

    def __init__(self, waiting: int = 500_000) -> None:
        self._parts: list[pa.Table] = []
        self._waiting, self._most = 0, waiting

    def add(self, parses: pa.ChunkedArray, sentences: pa.ChunkedArray) -> None:
        """Count the templates of linearised trees [sentence], null for none.

        The first sentence with a template becomes its example.
        """
        templates = templates_of(parses)
        ones = pa.repeat(1, len(templates))
        added = pa.table([templates, ones, sentences], names=TEMPLATE_COLUMNS.names).filter(templates.is_valid())
        self._parts.append(_summed(added))
        self._waiting += self._parts[-1].num_rows
        if self._waiting > self._most:
            self._parts, self._waiting = [_summed(pa.concat_tables(self._parts))], 0

    def table(self) -> pa.Table:
        """Return templates, counts and examples, the most frequent first, equally frequent ones by their text."""
        parts = self._parts or [TEMPLATE_COLUMNS.empty_table()]
        return _summed(pa.concat_tables(parts)).sort_by([("count", "descending"), ("template", "ascending")])


def _summed(table: pa.Table) -> pa.Table:
    """Add up the counts of equal templates; the first example of each is kept."""
    groups = table.group_by("template", use_threads=False)
    return groups.aggregate([("count", "sum"), ("example", "first")]).rename_columns(TEMPLATE_COLUMNS.names)


def write_template_counts(table: pa.Table, path: Path) -> None:
    """Write the table of a `TemplateCounter` into a TSV file; white space in examples becomes a blank."""
    examples = pc.replace_substring_regex(table["example"], r"\s+", " ")
    columns = [table["template"], table["count"].cast(pa.string()), examples]
    with replacing(path) as aside, aside.open("w", encoding="utf8", newline="\n") as file:
        file.write("\t".join(TEMPLATE_COLUMNS.names) + "\n")
        for batch in pa.table(columns, names=TEMPLATE_COLUMNS.names).to_batches():
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            file.writelines("\t".join(row) + "\n" for row in rows)


@dataclass(frozen=True)
class TemplateCount:
    """A template and how frequent it is.

    Attributes:
        template: The template, such as `(S(NP)(VP))`.
        count: Number of sentences that have it.
        example: The first of these sentences.
        share: Share of these sentences among all with a tree, in [0, 1].
        cumulative_share: Sum of the shares of this template and all more frequent ones, in [0, 1].
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
        """Return the templates as a table, each with its example."""
        head = ["template", "count", "share %", "cumulative %"]
        rows = []
        for one in self.counts:
            shares = [percent(one.share), percent(one.cumulative_share)]
            rows.append([one.template, f"{one.count:,}", *shares])
        # Examples follow the table rather than being a column, which would be as wide as the longest.
        table = text_table(head, rows).split("\n")
        examples = ["example", *(one.example for one in self.counts)]
        lines = [f"{counted(self.different, 'template')} of {counted(self.total, 'reference')}, by {self.parser}"]
        lines += [f"{line}  {example}" for line, example in zip(table, examples, strict=True)]
        return "\n".join(lines)


def frequent_templates(parsed: str | Path, *, top: int | None = 20) -> CountedTemplates:
    """Return the most frequent templates of the references in parsed pairs.

    Args:
        parsed: Folder that `paranmt parse` wrote.
        top: Largest number of templates; None for all.

    Raises:
        InputError: If no reference has a tree.
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
