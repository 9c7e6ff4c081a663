"""Averages over whole columns of sentences: split without a Python object per word, summed by compiled loops.

TRIGRAM adds first inside the distinct words of a block and then over the words of each sentence, which reads a third
of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paranmt_hf.encoders.units import TrigramLookup, lookup
from paranmt_hf.encoders.vocabulary import CUTTERS, AverageTable
from paranmt_hf.text.tokens import TokenTable, WordTokenizer
from paranmt_hf.util.machine import compiled


@compiled()
def _add_rows(table: np.ndarray, rows: np.ndarray, offsets: np.ndarray, out: np.ndarray, begin: int) -> None:
    """Add the rows of each bag to the columns of `out` [bag, ...] starting at `begin`, in order."""
    width = table.shape[1]
    for bag in range(len(offsets) - 1):
        total = out[bag, begin : begin + width]
        for position in range(offsets[bag], offsets[bag + 1]):
            row = table[rows[position]]
            for column in range(width):
                total[column] += row[column]


@compiled()
def _divide(out: np.ndarray, begin: int, width: int, counts: np.ndarray) -> None:
    """Divide the columns of each row of `out`, starting at `begin`, by its count."""
    for index in range(len(counts)):
        divisor = np.float32(counts[index])
        for column in range(begin, begin + width):
            out[index, column] /= divisor


class ColumnAverage:
    """Averages columns of sentences, with a cache of up to `remembered` tokens. Not safe for threads."""

    def __init__(self, tables: Sequence[AverageTable], mode: str, remembered: int) -> None:
        self._mode, self._tokenizer = mode, WordTokenizer(remembered, CUTTERS[tables[0].cut])
        self._parts = [
            (_TrigramColumns if table.vocabulary.kind == "trigram" else _WordColumns)(table) for table in tables
        ]

    def tokens(self, sentences: Sequence[str]) -> TokenTable:
        """Split sentences."""
        return self._tokenizer.tables(sentences)[0]

    def encode_tokens(self, table: TokenTable, out: np.ndarray) -> None:
        """Write the vectors of sentences into `out` [sentence, dimension], float32."""
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
        """Count the units of each sentence that have their own row [sentence]."""
        table = self.tokens(sentences)
        counts = (part.lookup.bags(table).known for part in self._parts)
        return sum(counts, np.zeros(len(sentences), np.int64))


class _WordColumns:
    """Averages of WORD and Sent2Vec."""

    def __init__(self, table: AverageTable) -> None:
        self._rows, self.width = table.rows, table.rows.shape[1]
        self.lookup = lookup(table.vocabulary)

    def write_means(self, table: TokenTable, out: np.ndarray, begin: int) -> None:
        """Write means into the columns of `out` starting at `begin`, which must be zeros."""
        bags = self.lookup.bags(table)
        _add_rows(self._rows, bags.rows, bags.offsets, out, begin)
        _divide(out, begin, self.width, np.maximum(np.diff(bags.offsets), 1))


class _TrigramColumns(_WordColumns):
    """Averages of TRIGRAM."""

    lookup: TrigramLookup

    def write_means(self, table: TokenTable, out: np.ndarray, begin: int) -> None:
        """Write means into the columns of `out` starting at `begin`, which must be zeros."""
        crossings = self.lookup.crossings(table)
        lengths = np.diff(table.offsets)
        # A sentence of n words has n - 1 crossings, one of no words none: the bounds lag by the sentences before.
        between = table.offsets - np.concatenate([[0], np.cumsum(lengths > 0)])
        used = np.zeros(len(table.vocabulary), bool)
        used[table.ids] = True
        inside = self.lookup.inside(np.flatnonzero(used))
        # The distinct words of the block, numbered from 0 in the order of their ids, are rows of `sums`.
        words = (np.cumsum(used) - 1).astype(np.int32)[table.ids]
        sums = np.zeros((len(inside), self.width), np.float32)
        _add_rows(self._rows, inside.rows, inside.offsets, sums, 0)
        _add_rows(sums, words, table.offsets, out, begin)
        _add_rows(self._rows, crossings, between, out, begin)
        # Trigrams of each sentence: a word has as many as characters, and each crossing is one.
        characters = np.concatenate([[0], np.cumsum(np.diff(inside.offsets)[words])])[table.offsets]
        counts = np.diff(characters) + np.diff(between)
        _divide(out, begin, self.width, np.maximum(counts, 1))
