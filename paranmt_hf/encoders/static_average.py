"""The average of table rows on the CPU: the one implementation behind `StaticEncoder` and `SentenceEncoder`.

A few sentences are averaged one by one with numpy alone. Columns of many go through `column_average.py`, whose import
(pyarrow, numba) takes longer than some thousand sentences do here. Both add the same rows in the same order in
float32, so the vectors do not depend on which one was taken.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from paranmt_hf.encoders.vocabulary import CUTTERS, AverageTable, trigrams_in
from paranmt_hf.text.definitions import rows_of_word

if TYPE_CHECKING:
    from paranmt_hf.encoders.column_average import ColumnAverage
    from paranmt_hf.text.tokens import TokenTable

T = TypeVar("T")
REMEMBERED_CHUNKS = 120_000  # Distinct chunks of text that are remembered


def normalize(vectors: np.ndarray) -> np.ndarray:
    """Divide vectors [vector, dimension] by their lengths, in place; zeros stay zeros."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    # torch's smallest divisor when it normalises.
    vectors /= np.maximum(lengths, 1e-12)[:, None]
    return vectors


def _take(unused: list[T], make: Callable[[], T]) -> T:
    """Take an object that no other thread uses, or make one.

    It is put back after use, but not after an error, when its caches may be incomplete.
    """
    try:
        return unused.pop()
    except IndexError:
        return make()


class StaticAverage:
    """Sentence vectors as the mean of the rows of their units (WORD, TRIGRAM, Sent2Vec); thread-safe.

    The tables split text in one way and share their memory: changes show at once. The means of several are combined by
    `mode`, `add` or `concatenate`.
    """

    def __init__(
        self, tables: Sequence[AverageTable], mode: str = "concatenate", *, remembered: int = REMEMBERED_CHUNKS
    ) -> None:
        self.tables = tables
        self.mode = mode
        self._remembered = remembered
        widths = [table.rows.shape[1] for table in tables]
        self.dimension = widths[0] if mode == "add" else sum(widths)
        # Characters that are averaged one by one before the columns' packages are imported.
        self._characters_left = 400_000
        # Those that no thread uses.
        self._single: list[_SingleAverage] = []
        self._columns: list[ColumnAverage] = []

    def encode(self, sentences: Sequence[str], *, threads: int = 1) -> np.ndarray:
        """Encode sentences into vectors [sentence, dimension], float32; zeros for a sentence without units."""
        vectors = np.empty((len(sentences), self.dimension), np.float32)
        if self._are_few(sentences):
            single = _take(self._single, lambda: _SingleAverage(self.tables, self.mode, self._remembered))
            single.encode(sentences, vectors)
            self._single.append(single)
            return vectors

        # Sentences of a block, which one thread averages at once; most of its words occurred in it before.
        size = 8192

        def fill(start: int) -> None:
            block = slice(start, start + size)
            columns = _take(self._columns, self._new_columns)
            columns.encode_tokens(columns.tokens(sentences[block]), vectors[block])
            self._columns.append(columns)

        starts = range(0, len(sentences), size)
        if min(threads, len(starts)) > 1:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(fill, starts))
        else:
            for start in starts:
                fill(start)
        return vectors

    def encode_tokens(self, table: TokenTable) -> np.ndarray:
        """Encode sentences given as word tokens into vectors [sentence, dimension], float32."""
        vectors = np.empty((len(table), self.dimension), np.float32)
        columns = _take(self._columns, self._new_columns)
        columns.encode_tokens(table, vectors)
        self._columns.append(columns)
        return vectors

    def warm_up(self) -> None:
        """Import and compile what columns of many sentences need, which happens at the first of them otherwise."""
        self.encode_tokens(self._new_columns().tokens(["a b"]))

    def known_tokens(self, sentences: Sequence[str]) -> np.ndarray:
        """Count the units of each sentence that have their own row [sentence], int64."""
        columns = _take(self._columns, self._new_columns)
        counts = columns.known_tokens(sentences)
        self._columns.append(columns)
        return counts

    def _new_columns(self) -> ColumnAverage:
        from paranmt_hf.encoders.column_average import ColumnAverage

        return ColumnAverage(self.tables, self.mode, self._remembered)

    def _are_few(self, sentences: Sequence[str]) -> bool:
        """Whether sentences are few enough to be averaged one by one: in characters, and the longest of them too."""
        characters, longest = sum(map(len, sentences)), 4096
        if characters <= 1024 or (len(sentences) == 1 and characters <= longest):
            return True
        if "numba" in sys.modules or max(map(len, sentences)) > longest:
            return False
        self._characters_left -= characters
        return self._characters_left >= 0


class _SingleAverage:
    """Averages one sentence at a time, with a cache of split chunks of text. Not safe for threads."""

    def __init__(self, tables: Sequence[AverageTable], mode: str, remembered: int) -> None:
        self._split = CUTTERS[tables[0].cut]
        self._remembered = remembered
        self._parts = []
        for table in tables:
            kind = "piece" if table.vocabulary.has_pieces else table.vocabulary.kind
            self._parts.append(SINGLE[kind](table))
        self._mode = mode
        self._tokens_of: dict[str, list[str]] = {}

    def encode(self, sentences: Sequence[str], out: np.ndarray) -> None:
        """Write the vectors of sentences into `out` [sentence, dimension], float32."""
        if len(self._tokens_of) > self._remembered:
            self._tokens_of.clear()
        for index, sentence in enumerate(sentences):
            out[index] = self._encode(sentence)

    def _encode(self, sentence: str) -> np.ndarray:
        tokens: list[str] = []
        for chunk in sentence.split(" "):
            found = self._tokens_of.get(chunk)
            if found is None:
                found = self._tokens_of[chunk] = self._split(chunk)
            tokens += found
        vectors = [part.mean(tokens) for part in self._parts]
        if self._mode != "add":
            return np.concatenate(vectors) if len(vectors) > 1 else vectors[0]
        for further in vectors[1:]:
            vectors[0] += further
        return vectors[0]


class _SingleWords:
    """Averages the words of one sentence."""

    def __init__(self, table: AverageTable) -> None:
        self._rows, self._ngrams = table.rows, table.vocabulary.ngrams
        self._row_of = table.vocabulary.row_of

    def mean(self, tokens: list[str]) -> np.ndarray:
        """Mean of the tokens' rows [dimension]."""
        get = self._row_of.get
        return self._mean_of([get(token, 0) for token in tokens])

    def _mean_of(self, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        total: np.ndarray = np.add.reduce(self._rows.take(rows, axis=0), axis=0)
        total /= np.float32(max(len(rows), 1))
        return total


class _SinglePieces(_SingleWords):
    """Averages the words of one sentence, or their pieces; the rows of a word are cached."""

    def __init__(self, table: AverageTable) -> None:
        super().__init__(table)
        self._rows_of: dict[str, list[int]] = {}

    def mean(self, tokens: list[str]) -> np.ndarray:
        """Mean of the rows of the tokens or of their pieces [dimension]."""
        return self._mean_of(self._rows_in(tokens))

    def _rows_in(self, tokens: list[str]) -> list[int]:
        """Rows of the units of all tokens, in order."""
        if len(self._rows_of) > REMEMBERED_CHUNKS:
            self._rows_of.clear()
        rows = list[int]()
        for token in tokens:
            found = self._rows_of.get(token)
            if found is None:
                found = self._rows_of[token] = self._look_up(token)
            rows += found
        return rows

    def _look_up(self, token: str) -> list[int]:
        return rows_of_word(token, self._row_of)


class _SingleNgrams(_SingleWords):
    """Averages the words and n-grams of one sentence."""

    def mean(self, tokens: list[str]) -> np.ndarray:
        """Mean of the rows of the known tokens and n-grams [dimension]."""
        assert self._ngrams is not None
        get = self._row_of.get
        rows = np.array([get(token, 0) for token in tokens], np.int32)
        return self._mean_of(self._ngrams.bags(rows, np.array([0, len(rows)]))[0])


class _SingleTrigrams(_SinglePieces):
    """Averages the trigrams of one sentence; the rows in a word are cached."""

    def mean(self, tokens: list[str]) -> np.ndarray:
        """Mean of the rows of the trigrams in the words, then of those across two words [dimension]."""
        rows, get = self._rows_in(tokens), self._row_of.get
        inside = len(rows)
        rows += [get(f"{left[-1]} {right[0]}", 0) for left, right in pairwise(tokens)]
        vectors = self._rows.take(rows, axis=0)
        # First inside each word, as in columns: sums of float32 depend on the order.
        terms = np.empty((len(tokens) + len(rows) - inside, vectors.shape[1]), np.float32)
        begin = 0
        for index, token in enumerate(tokens):
            np.add.reduce(vectors[begin : begin + len(token)], axis=0, out=terms[index])
            begin += len(token)
        terms[len(tokens) :] = vectors[inside:]
        total: np.ndarray = np.add.reduce(terms, axis=0)
        total /= np.float32(max(len(rows), 1))
        return total

    def _look_up(self, token: str) -> list[int]:
        return [self._row_of.get(trigram, 0) for trigram in trigrams_in(token)]


# The average of one sentence for each kind of table.
SINGLE: dict[str, type[_SingleWords]] = {
    "word": _SingleWords,
    "piece": _SinglePieces,
    "trigram": _SingleTrigrams,
    "ngram": _SingleNgrams,
}
