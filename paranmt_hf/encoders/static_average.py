"""Averages of table rows on the CPU: the one implementation behind `StaticEncoder` and `SentenceEncoder`.

A few sentences are averaged one by one with numpy alone. Many sentences go through `column_average.py`, whose imports
(pyarrow, numba) take longer than averaging some thousand sentences one by one. Both add the same rows in the same
order in float32, so the vectors do not depend on which one is used (with two dimensions or more: numpy adds a single
column in another order).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from paranmt_hf.encoders.vocabulary import CUTTERS, AverageTable, trigrams_in
from paranmt_hf.encoders.widened_rows import placed
from paranmt_hf.text.definitions import rows_of_word

if TYPE_CHECKING:
    from paranmt_hf.encoders.column_average import ColumnAverage
    from paranmt_hf.text.tokens import TokenTable

T = TypeVar("T")
REMEMBERED_CHUNKS = 120_000  # Maximum number of distinct chunks of text, or words, in a cache
TOGETHER = 32  # Number of sentences whose rows are gathered at once: so few that they stay in the processor's cache


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


class _Remembered(dict[str, T]):
    """What a function returned for each text, so that it is called once for each.

    Args:
        compute: The function.
        most: Maximum number of texts; if there are more, all are forgotten.
    """

    def __init__(self, compute: Callable[[str], T], most: int) -> None:
        super().__init__()
        self._compute, self._most = compute, most

    def __missing__(self, text: str) -> T:
        if len(self) >= self._most:
            self.clear()
        found = self[text] = self._compute(text)
        return found


def _write_mean(terms: np.ndarray, count: int, out: np.ndarray) -> None:
    """Write the sum of terms [term, dimension], divided by a count unless that is 0, into `out` [dimension]."""
    np.add.reduce(terms, 0, out=out)
    np.divide(out, count or 1, out)


class _SingleAverage:
    """Averages one sentence at a time, and remembers how chunks of text are split. Not thread-safe.

    Args:
        tables: Tables of the encoder, which split text in the same way.
        mode: How the means of several tables are combined: `add` or `concatenate`.
        remembered: Maximum number of texts in a cache.
    """

    def __init__(self, tables: Sequence[AverageTable], mode: str, remembered: int) -> None:
        self._parts = []
        for table in tables:
            kind = "piece" if table.vocabulary.has_pieces else table.vocabulary.kind
            self._parts.append(SINGLE[kind](table, remembered))
        self._mode = mode

    def encode(self, sentences: Sequence[str], out: np.ndarray) -> None:
        """Write the vectors of sentences into `out` [sentence, dimension], float32."""
        for start in range(0, len(sentences), TOGETHER):
            block = slice(start, start + TOGETHER)
            self._encode([sentence.split(" ") for sentence in sentences[block]], out[block])

    def _encode(self, chunks: list[list[str]], out: np.ndarray) -> None:
        """Write the vectors of sentences, given as chunks between blanks, into `out` [sentence, dimension]."""
        begin = 0
        for index, part in enumerate(self._parts):
            if self._mode == "add" and index:
                further = np.empty_like(out)
                part.encode(chunks, further)
                out += further
            else:
                part.encode(chunks, out[:, begin : begin + part.width])
                begin += part.width


class _SingleWords:
    """Averages the rows of a few sentences' words.

    A row is remembered by its place in an array of the rows that were needed so far, or of all.

    Args:
        table: The table.
        remembered: Maximum number of texts in a cache.
    """

    def __init__(self, table: AverageTable, remembered: int) -> None:
        self.width = table.rows.shape[1]
        self._rows, self._split = table.rows, CUTTERS[table.cut]
        self._find, self._ngrams = table.vocabulary.find, table.vocabulary.ngrams
        # What is known of each chunk of text between blanks.
        self._of_chunk = _Remembered[tuple[Any, ...]](self._chunk, remembered)

    def encode(self, chunks: list[list[str]], out: np.ndarray) -> None:
        """Write the means of sentences into `out` [sentence, dimension]; zeros for a sentence without units.

        Args:
            chunks: The chunks between blanks of each sentence.
            out: Where the means are written.
        """
        get = self._of_chunk.__getitem__
        self._write([list(chain.from_iterable(map(get, each))) for each in chunks], out)

    def _chunk(self, chunk: str) -> tuple[Any, ...]:
        """Return what is known of a chunk: the places of its words."""
        return tuple(map(self._place, self._split(chunk)))

    def _place(self, unit: str) -> int:
        """Return the place of a unit."""
        return self._place_of_row(self._find(unit) or 0)

    def _place_of_row(self, row: int) -> int:
        """Return the place of a row."""
        return row if isinstance(self._rows, np.ndarray) else self._rows.place(row)

    def _vectors(self, places: list[int]) -> np.ndarray:
        """Return the vectors at some places [chosen, dimension]."""
        if isinstance(self._rows, np.ndarray):
            return self._rows.take(places, 0)
        self._rows.fill()
        return self._rows.array.take(places, 0)

    def _write(self, known: list[list[Any]], out: np.ndarray) -> None:
        """Write the means of sentences into `out` [sentence, dimension], given what is known of their chunks."""
        vectors = self._vectors(list(chain.from_iterable(known)))
        begin = 0
        for places, mean in zip(known, out, strict=True):
            end = begin + len(places)
            _write_mean(vectors[begin:end], len(places), mean)
            begin = end


class _SinglePieces(_SingleWords):
    """Averages the rows of a few sentences' words, or of their pieces."""

    def _chunk(self, chunk: str) -> tuple[int, ...]:
        """Return what is known of a chunk: the places of its words or their pieces."""
        return tuple(self._place_of_row(row) for word in self._split(chunk) for row in rows_of_word(word, self._find))


class _SingleNgrams(_SingleWords):
    """Averages the rows of a few sentences' words and n-grams."""

    def _chunk(self, chunk: str) -> tuple[int, ...]:
        """Return what is known of a chunk: the rows of its words, from which n-grams are hashed."""
        return tuple(self._find(word) or 0 for word in self._split(chunk))

    def _write(self, known: list[list[int]], out: np.ndarray) -> None:
        assert self._ngrams is not None
        for words, mean in zip(known, out, strict=True):
            rows, _ = self._ngrams.bags(np.array(words, np.int32), np.array([0, len(words)]))
            array, places = placed(self._rows, rows)
            _write_mean(array.take(places, 0), len(rows), mean)


class _SingleTrigrams(_SingleWords):
    """Averages the rows of a few sentences' character trigrams."""

    def __init__(self, table: AverageTable, remembered: int) -> None:
        super().__init__(table, remembered)
        # The places of the trigrams in each word and the blanks around it, and the place of each one across two words.
        self._of_word = _Remembered[tuple[int, ...]](
            lambda word: tuple(map(self._place, trigrams_in(word))), remembered
        )
        self._of_crossing = _Remembered[int](self._place, remembered)

    def _chunk(self, chunk: str) -> tuple[str, ...]:
        """Return what is known of a chunk: its words."""
        return tuple(self._split(chunk))

    def _write(self, known: list[list[str]], out: np.ndarray) -> None:
        get, across = self._of_word.__getitem__, self._of_crossing.__getitem__
        for words, mean in zip(known, out, strict=True):
            inside = list(map(get, words))
            crossings = [across(f"{left[-1]} {right[0]}") for left, right in pairwise(words)]
            vectors = self._vectors([*chain.from_iterable(inside), *crossings])
            # Add the rows inside each word first, as `column_average.py` does: sums of float32 depend on the order.
            terms = np.empty((len(words) + len(crossings), self.width), np.float32)
            begin = 0
            for index, places in enumerate(inside):
                end = begin + len(places)
                np.add.reduce(vectors[begin:end], 0, out=terms[index])
                begin = end
            terms[len(words) :] = vectors[begin:]
            _write_mean(terms, len(vectors), mean)


# The class that averages one sentence, by the kind of the table's units; `piece` is for words with pieces.
SINGLE: dict[str, type[_SingleWords]] = {
    "word": _SingleWords,
    "piece": _SinglePieces,
    "trigram": _SingleTrigrams,
    "ngram": _SingleNgrams,
}
