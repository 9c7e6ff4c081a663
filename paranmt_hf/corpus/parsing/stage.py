"""Pairs of a shard get the trees of both sentences: what the shard jobs run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from paranmt_hf.corpus.bitext.normalisation import normalise
from paranmt_hf.corpus.jobs.shards import Report, Work
from paranmt_hf.corpus.parsing.parser import Parser, named_parsers
from paranmt_hf.corpus.parsing.templates import linearised
from paranmt_hf.corpus.parsing.tree_index import TreeIndex
from paranmt_hf.errors import InputError

# Columns with the trees, by the columns with the sentences.
PARSES = {"reference": "reference_parse", "translation": "translation_parse"}
# Sentences after which a parser that takes all of them at once is asked for progress.
BLOCK = 1000


@dataclass(frozen=True)
class ParseStage:
    """Shards of pairs get the columns of `PARSES`: linearised trees, null where the parser finds none.

    Attributes:
        parser: Its name, the folder of an index of trees, or a parser of your own, which workers receive pickled.
        name: What it calls itself, with its version.
        seconds: What a sentence may take, for parsers that can take long.
        checksum: That of the file of trees, where they come from one.
    """

    parser: str | Path | Parser
    name: str
    seconds: int
    checksum: str | None = None
    label: str = "parse"
    unit: str = "pairs"

    @property
    def identity(self) -> dict[str, Any]:
        """What determines the trees."""
        return {"parser": {"name": self.name, **({"sha256": self.checksum} if self.checksum else {})}}

    def load(self) -> Work:
        """Start the parser.

        Raises:
            InputError: It is missing, or not the one that the job was started with.
        """
        parser = self._open()
        if parser.name != self.name:
            raise InputError(f"this worker has {parser.name}, the work began with {self.name}; install the same")

        def work(table: pa.Table, report: Report) -> tuple[pa.Table, dict[str, int]]:
            return parse_table(table, parser, report), {}

        return work

    def _open(self) -> Parser:
        if isinstance(self.parser, Path):
            return TreeIndex(self.parser, self.name)
        if isinstance(self.parser, str):
            return named_parsers(seconds=self.seconds, processes=1)[self.parser]()
        return self.parser


def sentences_of(table: pa.Table) -> pa.DictionaryArray:
    """Find the sentences of a shard that are parsed, each once: all references, then all translations [2 x pair]."""
    sides = [normalise(table[side].combine_chunks()) for side in PARSES]
    return pa.concat_arrays(sides).dictionary_encode()


def parse_table(table: pa.Table, parser: Parser, report: Report) -> pa.Table:
    """Parse both sentences of pairs, each distinct sentence once.

    Args:
        table: Columns `reference` and `translation` [pair]; null has no tree. Other columns stay.
        parser: The parser.
        report: Told the rows that are as good as done.

    Returns:
        The table with the columns of `PARSES` at its end.
    """
    encoded = sentences_of(table)
    sentences = encoded.dictionary.to_pylist()
    trees: list[str | None] = []
    step = parser.at_once or BLOCK
    for start in range(0, len(sentences), step):
        block = sentences[start : start + step]
        trees += [None if tree is None else linearised(tree) for tree in parser.trees(block)]
        report(table.num_rows * len(trees) // len(sentences))
    column = pa.array(trees, pa.string()).take(encoded.indices)
    for index, name in enumerate(PARSES.values()):
        table = table.append_column(name, column.slice(index * table.num_rows, table.num_rows))
    return table
