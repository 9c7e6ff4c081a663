"""Averages of table rows on the CPU: the one implementation behind `StaticEncoder` and `SentenceEncoder`.

A few sentences are averaged one by one with numpy alone. Many sentences go through `column_average.py`, whose imports
(pyarrow, numba) take longer than averaging some thousand sentences one by one. Both add the same rows in the same
order in float32, so the vectors do not depend on which one is used.
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
REMEMBERED_CHUNKS = 120_000  # Maximum number of distinct chunks of text, or words, in a cache


def normalize(vectors: np.ndarray) -> np.ndarray:
    """Divide vectors [vector, dimension] by their lengths, in place, and return them; zeros stay zeros."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    # The smallest divisor of `torch.nn.functional.normalize`.
    vectors /= np.maximum(lengths, 1e-12)[:, None]
    return vectors


def _take(unused: list[T], make: Callable[[], T]) -> T:
    """Remove an object that no thread uses from a list, or make a new one.

    The caller puts it back after use. After an error it does not, because the caches of the object may be incomplete.
    """
    try:
        return unused.pop()
    except IndexError:
        return make()


class StaticAverage:
    """Computes sentence vectors as the mean of the rows of their units (WORD, TRIGRAM, Sent2Vec); thread-safe.

    The tables are not copied, so changes of their rows show at once.

    Args:
        tables: The tables, which must split text in the same way.
        mode: How the means of several tables are combined: `add` or `concatenate`.
        remembered: Maximum number of chunks of text that each thread remembers for single sentences, and a quarter of
            the number for columns of sentences.
    """

    def __init__(
        self, tables: Sequence[AverageTable], mode: str = "concatenate", *, remembered: int = REMEMBERED_CHUNKS
    ) -> None:
        self.tables = tables
        self.mode = mode
        self._remembered = remembered
        widths = [table.rows.shape[1] for table in tables]
        self.dimension = widths[0] if mode == "add" else sum(widths)
        # How many more characters are averaged one by one before it pays to import `column_average`.
        self._characters_left = 400_000
        # Objects that no thread is using.
        self._single: list[_SingleAverage] = []
        self._columns: list[ColumnAverage] = []

    def encode(self, sentences: Sequence[str], *, threads: int = 1) -> np.ndarray:
        """Encode sentences into vectors [sentence, dimension], float32; zeros for a sentence without units.

        Args:
            sentences: The sentences.
            threads: Maximum number of threads; each averages a block of thousands of sentences.
        """
        vectors = np.empty((len(sentences), self.dimension), np.float32)
        if self._are_few(sentences):
            single = _take(self._single, lambda: _SingleAverage(self.tables, self.mode, self._remembered))
            single.encode(sentences, vectors)
            self._single.append(single)
            return vectors

        # Number of sentences that one thread averages at once; in such a block most words occur more than once.
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
        """Import and compile now what many sentences need, instead of when the first of them are encoded."""
        self.encode_tokens(self._new_columns().tokens(["a b"]))

    def known_tokens(self, sentences: Sequence[str]) -> np.ndarray:
        """Count the units of each sentence that have their own row [sentence], int64."""
        columns = _take(self._columns, self._new_columns)
        counts = columns.known_tokens(sentences)
        self._columns.append(columns)
        return counts

    def _new_columns(self) -> ColumnAverage:
        """Make an object that averages many sentences at once."""
        from paranmt_hf.encoders.column_average import ColumnAverage

        # It keeps a chunk in a quarter of the memory, because it has no Python objects.
        return ColumnAverage(self.tables, self.mode, 4 * self._remembered)

    def _are_few(self, sentences: Sequence[str]) -> bool:
        """Whether it is faster to average these sentences one by one than all at once.

        That depends on the number of characters of all of them and of the longest one, and on whether numba was
        imported.
        """
        characters, longest = sum(map(len, sentences)), 4096
        if characters <= 1024 or (len(sentences) == 1 and characters <= longest):
            return True
        if "numba" in sys.modules or max(map(len, sentences)) > longest:
            return False
        self._characters_left -= characters
        return self._characters_left >= 0


class _SingleAverage:
    """Averages one sentence at a time, and remembers how chunks of text are split. Not thread-safe.

    Args:
        tables: Tables of the encoder, which split text in the same way.
        mode: How the means of several tables are combined: `add` or `concatenate`.
        remembered: Maximum number of chunks in the cache.
    """

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
        """Compute the vector of one sentence [dimension]."""
        tokens: list[str] = []
        for chunk in sentence.split(" "):
            chunk_tokens = self._tokens_of.get(chunk)
            if chunk_tokens is None:
                chunk_tokens = self._tokens_of[chunk] = self._split(chunk)
            tokens += chunk_tokens
        vectors = [part.mean(tokens) for part in self._parts]
        if self._mode != "add":
            return np.concatenate(vectors) if len(vectors) > 1 else vectors[0]
        for further in vectors[1:]:
            vectors[0] += further
        return vectors[0]


class _SingleWords:
    """Averages the rows of one sentence's words."""

    def __init__(self, table: AverageTable) -> None:
        self._rows, self._ngrams = table.rows, table.vocabulary.ngrams
        self._row_of = table.vocabulary.row_of

    def mean(self, tokens: list[str]) -> np.ndarray:
        """Compute the mean of the tokens' rows [dimension]."""
        get = self._row_of.get
        return self._mean_of([get(token, 0) for token in tokens])

    def _mean_of(self, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        """Compute the mean of these rows of the table [dimension]; zeros if there are none."""
        total: np.ndarray = np.add.reduce(self._rows.take(rows, axis=0), axis=0)
        total /= np.float32(max(len(rows), 1))
        return total


class _SinglePieces(_SingleWords):
    """Averages the rows of one sentence's words, or of their pieces; remembers the rows of each word."""

    def __init__(self, table: AverageTable) -> None:
        super().__init__(table)
        self._rows_of: dict[str, list[int]] = {}

    def mean(self, tokens: list[str]) -> np.ndarray:
        """Compute the mean of the rows of the tokens or their pieces [dimension]."""
        return self._mean_of(self._rows_in(tokens))

    def _rows_in(self, tokens: list[str]) -> list[int]:
        """Return the rows of the units of all tokens, in order."""
        if len(self._rows_of) > REMEMBERED_CHUNKS:
            self._rows_of.clear()
        rows = list[int]()
        for token in tokens:
            token_rows = self._rows_of.get(token)
            if token_rows is None:
                token_rows = self._rows_of[token] = self._look_up(token)
            rows += token_rows
        return rows

    def _look_up(self, token: str) -> list[int]:
        """Return the rows of the units of one token."""
        return rows_of_word(token, self._row_of)


class _SingleNgrams(_SingleWords):
    """Averages the rows of one sentence's words and n-grams."""

    def mean(self, tokens: list[str]) -> np.ndarray:
        """Compute the mean of the rows of the known tokens and n-grams [dimension]."""
        assert self._ngrams is not None
        get = self._row_of.get
        rows = np.array([get(token, 0) for token in tokens], np.int32)
        return self._mean_of(self._ngrams.bags(rows, np.array([0, len(rows)]))[0])


class _SingleTrigrams(_SinglePieces):
    """Averages the rows of one sentence's character trigrams; remembers the rows inside each word."""

    def mean(self, tokens: list[str]) -> np.ndarray:
        """Compute the mean of the rows of the trigrams in the words, and of those across two words [dimension]."""
        rows, get = self._rows_in(tokens), self._row_of.get
        inside = len(rows)
        rows += [get(f"{left[-1]} {right[0]}", 0) for left, right in pairwise(tokens)]
        vectors = self._rows.take(rows, axis=0)
        # Add the rows inside each word first, as `column_average.py` does: sums of float32 depend on the order.
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
        """Return the rows of the trigrams in one token and the blanks around it."""
        return [self._row_of.get(trigram, 0) for trigram in trigrams_in(token)]


# The class that averages one sentence, by the kind of the table's units; `piece` is for words with pieces.
SINGLE: dict[str, type[_SingleWords]] = {
    "word": _SingleWords,
    "piece": _SinglePieces,
    "trigram": _SingleTrigrams,
    "ngram": _SingleNgrams,
}
