"""Word tokens of whole columns of sentences: the fast path of `text.py`, with equal results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.text import words


@dataclass(frozen=True)
class TokenTable:
    """The word tokens of a column of sentences.

    Attributes:
        ids: Token ids [token], int32, sentence after sentence. They index `vocabulary` and mean nothing outside it.
        offsets: Bounds [sentence + 1], int64: sentence `i` has the tokens `ids[offsets[i]:offsets[i + 1]]`.
        vocabulary: Every token the tokenizer has met so far; longer than the largest id of this table needs.
    """

    ids: np.ndarray
    offsets: np.ndarray
    vocabulary: Sequence[str]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens of each sentence [sentence], int32."""
        return np.diff(self.offsets).astype(np.int32)


class WordTokenizer:
    """Cuts columns of sentences into word tokens, remembering what each chunk gave.

    Args:
        capacity: Number of distinct chunks to remember. Past it everything is forgotten at the start of the next
            table, which bounds the memory on any corpus; the result does not depend on it.
    """

    def __init__(self, capacity: int = 1_000_000) -> None:
        self.capacity = capacity
        self._forget()

    def _forget(self) -> None:
        self._token_ids: dict[str, int] = {}
        self._vocabulary: list[str] = []
        self._chunks: dict[str, int] = {}
        # Token ids of all remembered chunks, end to end; chunk c owns _flat[_starts[c]:_starts[c] + _counts[c]].
        self._flat: list[int] = []
        self._starts: list[int] = []
        self._counts: list[int] = []

    def _learn(self, chunk: str) -> int:
        number = len(self._starts)
        tokens = words(chunk)
        self._starts.append(len(self._flat))
        self._counts.append(len(tokens))
        for token in tokens:
            known = self._token_ids.setdefault(token, len(self._vocabulary))
            if known == len(self._vocabulary):
                self._vocabulary.append(token)
            self._flat.append(known)
        self._chunks[chunk] = number
        return number

    def tables(self, *columns: pa.Array | pa.ChunkedArray | Sequence[str]) -> list[TokenTable]:
        """Cut several columns of sentences; their tables share one vocabulary, so ids can be compared across them.

        Args:
            columns: Columns [sentence] of strings without nulls.
        """
        if len(self._chunks) > self.capacity:
            self._forget()
        return [self._table(column) for column in columns]

    def _table(self, column: pa.Array | pa.ChunkedArray | Sequence[str]) -> TokenTable:
        if not isinstance(column, pa.Array | pa.ChunkedArray):
            column = pa.array(column, pa.string())
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        pieces = pc.split_pattern(column, " ")
        bounds = pieces.offsets.to_numpy()
        encoded = pieces.flatten().dictionary_encode()
        get, learn = self._chunks.get, self._learn
        numbers = []
        for chunk in encoded.dictionary.to_pylist():
            number = get(chunk)
            numbers.append(learn(chunk) if number is None else number)
        distinct = np.array(numbers, np.int64)
        starts, counts, flat = self._gather(distinct)
        chosen = encoded.indices.to_numpy()
        ids, ends = expand(flat, starts[chosen], counts[chosen])
        return TokenTable(ids, ends[bounds - bounds[0]], self._vocabulary)

    def _gather(self, distinct: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Copy the tokens of the distinct chunks of one column into arrays of its own size."""
        counts = np.array([self._counts[number] for number in distinct], np.int64)
        flat: list[int] = []
        for number, count in zip(distinct.tolist(), counts.tolist(), strict=True):
            start = self._starts[number]
            flat.extend(self._flat[start : start + count])
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]]) if len(counts) else counts
        return starts, counts, np.array(flat, np.int32)


def expand(flat: np.ndarray, starts: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lay ranges of `flat` end to end.

    Args:
        flat: Values to take from.
        starts: First position of each range [range].
        counts: Length of each range [range].

    Returns:
        The values [sum of counts], and the bounds [range + 1] of each range in them.
    """
    bounds = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=bounds[1:])
    if not len(counts):
        return flat[:0], bounds
    positions = np.repeat(starts - bounds[:-1], counts) + np.arange(bounds[-1])
    return flat[positions], bounds


@dataclass(frozen=True)
class Bags:
    """The units (words, character n-grams) of a column of sentences as rows of a table.

    Attributes:
        rows: Row of each unit [unit], int32, sentence after sentence.
        offsets: Bounds [sentence + 1], int64: sentence `i` has `rows[offsets[i]:offsets[i + 1]]`.
    """

    rows: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, sentences: np.ndarray) -> Bags:
        """Choose sentences by position [chosen], in that order."""
        starts = self.offsets[:-1][sentences]
        return Bags(*expand(self.rows, starts, self.offsets[1:][sentences] - starts))


def ngram_starts(table: TokenTable, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the word n-grams of every sentence; none reaches across a sentence's end.

    Args:
        table: Tokens of the sentences.
        size: Number of words of an n-gram.

    Returns:
        The position of each n-gram's first token in `table.ids` [n-gram], and its sentence [n-gram], both int64.
    """
    sentences = np.repeat(np.arange(len(table)), np.diff(table.offsets))
    inside = sentences[: 1 - size] == sentences[size - 1 :]
    starts = np.flatnonzero(inside)
    return starts, sentences[starts]
