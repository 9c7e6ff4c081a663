"""Averages over whole columns of sentences: split without a Python object per word, summed by compiled loops.

For TRIGRAM, the rows inside each distinct word of a block are added once, and these sums are added for each sentence.
This reads a third of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from paranmt_hf.encoders.units import TrigramLookup, lookup
from paranmt_hf.encoders.vocabulary import CUTTERS, AverageTable
from paranmt_hf.encoders.widened_rows import placed
from paranmt_hf.text.tokens import TokenTable, WordTokenizer
from paranmt_hf.util.machine import compiled
from paranmt_hf.util.row_sums import add_rows

# Number of bags whose first rows are added before their second ones. With more, their vectors would not stay in the
# cache; with fewer, the second rows, of which few are different, would not.
TOGETHER = 256


class Rows(NamedTuple):
    """The rows of a table that belong to each of some bags."""

    table: np.ndarray  # Vectors [row, dimension], float32
    rows: np.ndarray  # Row of each unit, bag after bag [unit]
    offsets: np.ndarray  # Bounds of the bags in `rows` [bag + 1]


@compiled()
def _rows_of(given: Rows, bag: int) -> np.ndarray:
    """Return the rows of a bag [unit]."""
    return given.rows[given.offsets[bag] : given.offsets[bag + 1]]


def _write_means_of_each(first: Rows, second: Rows, counts: np.ndarray, out: np.ndarray, begin: int) -> None:
    """Do what `_write_means` does, in the same order, without a compiler."""
    means = out[:, begin : begin + first.table.shape[1]]
    for bag, total in enumerate(means):
        vectors = [given.table[_rows_of(given, bag)] for given in (first, second)]
        np.add.reduce(np.concatenate(vectors) if len(vectors[1]) else vectors[0], axis=0, initial=0, out=total)
    means /= counts[:, None]


@compiled(plain=_write_means_of_each)
def _write_means(first: Rows, second: Rows, counts: np.ndarray, out: np.ndarray, begin: int) -> None:
    """Write the sum of the rows of each bag, divided by a number, into columns of `out`.

    Args:
        first: Rows that are added first.
        second: Rows of the same bags that are added then.
        counts: What the sum of each bag is divided by [bag], float32.
        out: Vectors [bag, column].
        begin: First column to write to.
    """
    width = first.table.shape[1]
    for start in range(0, len(counts), TOGETHER):
        stop = min(start + TOGETHER, len(counts))
        for bag in range(start, stop):
            out[bag, begin : begin + width] = 0
            add_rows(out[bag, begin : begin + width], first.table, _rows_of(first, bag))
        for bag in range(start, stop):
            total, divisor = out[bag, begin : begin + width], counts[bag]
            add_rows(total, second.table, _rows_of(second, bag))
            for column in range(width):
                total[column] /= divisor


class ColumnAverage:
    """Averages columns of sentences, and remembers how chunks of text are split. Not thread-safe.

    Args:
        tables: Tables of the encoder, which split text in the same way.
        mode: How the means of several tables are combined: `add` or `concatenate`.
        remembered: Maximum number of distinct chunks that are remembered.
    """

    def __init__(self, tables: Sequence[AverageTable], mode: str, remembered: int) -> None:
        self._mode, self._tokenizer = mode, WordTokenizer(remembered, CUTTERS[tables[0].cut])
        self._parts = [
            (_TrigramColumns if table.vocabulary.kind == "trigram" else _WordColumns)(table) for table in tables
        ]

    def tokens(self, sentences: Sequence[str]) -> TokenTable:
        """Split sentences into word tokens."""
        return self._tokenizer.tables(sentences)[0]

    def encode_tokens(self, table: TokenTable, out: np.ndarray) -> None:
        """Write the vectors of sentences, given as word tokens, into `out` [sentence, dimension], float32."""
        begin = 0
        for index, part in enumerate(self._parts):
            if self._mode == "add" and index:
                further = np.empty_like(out)
                part.write_means(table, further, 0)
                out += further
            else:
                part.write_means(table, out, begin)
                begin += part.width

    def known_tokens(self, sentences: Sequence[str]) -> np.ndarray:
        """Count the units of each sentence that have their own row [sentence], int64."""
        table = self.tokens(sentences)
        counts = (part.lookup.bags(table).known for part in self._parts)
        return sum(counts, np.zeros(len(sentences), np.int64))


class _WordColumns:
    """Averages the rows of words (WORD) or of words and n-grams (Sent2Vec), one table of an encoder."""

    def __init__(self, table: AverageTable) -> None:
        self._table, self.width = table.rows, table.rows.shape[1]
        self.lookup = lookup(table.vocabulary)

    def write_means(self, table: TokenTable, out: np.ndarray, begin: int) -> None:
        """Write the mean of each sentence into `out` [sentence, column] from column `begin`."""
        bags = self.lookup.bags(table)
        self._write(Rows(*placed(self._table, bags.rows), bags.offsets), None, np.diff(bags.offsets), out, begin)

    def _write(self, first: Rows, second: Rows | None, counts: np.ndarray, out: np.ndarray, begin: int) -> None:
        """Write sums of rows, divided by `counts` [sentence], where these are not 0; see `_write_means`."""
        nothing = Rows(first.table, np.empty(0, np.int32), np.zeros(len(counts) + 1, np.int64))
        _write_means(first, second or nothing, np.maximum(counts, 1).astype(np.float32), out, begin)


class _TrigramColumns(_WordColumns):
    """Averages the rows of character trigrams (TRIGRAM), one table of an encoder."""

    lookup: TrigramLookup

    def write_means(self, table: TokenTable, out: np.ndarray, begin: int) -> None:
        """Write the mean of each sentence into `out` [sentence, column] from column `begin`."""
        crossings = self.lookup.crossings(table)
        lengths = np.diff(table.offsets)
        # A crossing is the trigram across two neighbouring words. A sentence of n words has n - 1 of them, and one
        # without words has none, so their bounds are those of the words less the number of non-empty sentences before.
        between = table.offsets - np.concatenate([[0], np.cumsum(lengths > 0)])
        used = np.zeros(len(table.vocabulary), bool)
        used[table.ids] = True
        inside = self.lookup.inside(np.flatnonzero(used))
        # Row i of `sums` belongs to the i-th distinct word of the block, in the order of the ids.
        words = (np.cumsum(used) - 1).astype(np.int32)[table.ids]
        sums = np.empty((len(inside), self.width), np.float32)
        self._write(Rows(*placed(self._table, inside.rows), inside.offsets), None, np.ones(len(inside)), sums, 0)
        # Number of trigrams of a sentence: one for each character of its words, and one for each crossing.
        characters = np.concatenate([[0], np.cumsum(np.diff(inside.offsets)[words])])[table.offsets]
        counts = np.diff(characters) + np.diff(between)
        self._write(
            Rows(sums, words, table.offsets), Rows(*placed(self._table, crossings), between), counts, out, begin
        )
