"""Averages over whole columns of sentences: split without a Python object per word, summed by compiled loops.

For TRIGRAM, the rows inside each distinct word of a block are added once, and these sums are added for each sentence.
This reads a third of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paranmt_hf.encoders.units import TrigramLookup, lookup
from paranmt_hf.encoders.vocabulary import CUTTERS, AverageTable
from paranmt_hf.encoders.widened_rows import placed
from paranmt_hf.text.tokens import TokenTable, WordTokenizer
from paranmt_hf.util.machine import compiled


@compiled()
def _add_rows(table: np.ndarray, rows: np.ndarray, offsets: np.ndarray, out: np.ndarray, begin: int) -> None:
    """Add the rows of each bag to its vector, in order.

    Args:
        table: Vectors [row, dimension].
        rows: Row of each unit [unit].
        offsets: Bounds of the bags in `rows` [bag + 1].
        out: Vectors [bag, column] to add to, in columns `begin` and following.
        begin: First column.
    """
    width = table.shape[1]
    for bag in range(len(offsets) - 1):
        total = out[bag, begin : begin + width]
        for position in range(offsets[bag], offsets[bag + 1]):
            row = table[rows[position]]
            for column in range(width):
                total[column] += row[column]


@compiled()
def _divide(out: np.ndarray, begin: int, width: int, counts: np.ndarray) -> None:
    """Divide `width` columns of `out` [bag, column], from column `begin`, by the count of each bag [bag]."""
    for index in range(len(counts)):
        divisor = np.float32(counts[index])
        for column in range(begin, begin + width):
            out[index, column] /= divisor


class ColumnAverage:
    """Averages columns of sentences, and remembers how up to `remembered` distinct tokens are split. Not thread-safe.

    Args:
        tables: Tables of the encoder, which split text in the same way.
        mode: How the means of several tables are combined: `add` or `concatenate`.
        remembered: Maximum number of tokens in the cache.
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
                further = np.zeros_like(out)
                part.write_means(table, further, 0)
                out += further
            else:
                out[:, begin : begin + part.width] = 0
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
        """Write the mean of each sentence into `out` [sentence, column] from column `begin`, which must hold zeros."""
        bags = self.lookup.bags(table)
        _add_rows(*placed(self._table, bags.rows), bags.offsets, out, begin)
        _divide(out, begin, self.width, np.maximum(np.diff(bags.offsets), 1))


class _TrigramColumns(_WordColumns):
    """Averages the rows of character trigrams (TRIGRAM), one table of an encoder."""

    lookup: TrigramLookup

    def write_means(self, table: TokenTable, out: np.ndarray, begin: int) -> None:
        """Write the mean of each sentence into `out` [sentence, column] from column `begin`, which must hold zeros."""
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
        sums = np.zeros((len(inside), self.width), np.float32)
        _add_rows(*placed(self._table, inside.rows), inside.offsets, sums, 0)
        _add_rows(sums, words, table.offsets, out, begin)
        _add_rows(*placed(self._table, crossings), between, out, begin)
        # Number of trigrams of a sentence: one for each character of its words, and one for each crossing.
        characters = np.concatenate([[0], np.cumsum(np.diff(inside.offsets)[words])])[table.offsets]
        counts = np.diff(characters) + np.diff(between)
        _divide(out, begin, self.width, np.maximum(counts, 1))
