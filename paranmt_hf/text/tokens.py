"""Word tokens of whole columns of sentences: the fast path of `definitions.py`, with equal results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from paranmt_hf.text.definitions import cut_chunk
from paranmt_hf.text.fast_split import cut_column, uncut_pieces
from paranmt_hf.util.optional import available
from paranmt_hf.util.ranges import expand

PART_BYTES = 2**22  # Number of bytes of text that are split at once


@dataclass(frozen=True)
class TokenTable:
    """The word tokens of a column of sentences."""

    # Token ids [token], int32, sentence after sentence. They index `vocabulary` and mean nothing outside it.
    ids: np.ndarray
    offsets: np.ndarray  # Bounds [sentence + 1], int64: sentence `i` has the tokens `ids[offsets[i]:offsets[i + 1]]`
    # Every token that the tokenizer has met so far, by id; also tokens that do not occur in this table
    vocabulary: Sequence[str]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens of each sentence [sentence], int32."""
        return np.diff(self.offsets).astype(np.int32)

    def slice(self, start: int, stop: int) -> TokenTable:
        """Return the sentences from `start` up to, but without, `stop`."""
        offsets = self.offsets[start : stop + 1]
        return TokenTable(self.ids[offsets[0] : offsets[-1]], offsets - offsets[0], self.vocabulary)


class WordTokenizer:
    """Splits columns of sentences into word tokens, and remembers how chunks of text between blanks were split.

    The result depends on none of the arguments but `cut`. Not thread-safe.

    Args:
        capacity: Maximum number of chunks that are remembered. If there are more, all are forgotten at the start of
            the next call.
        cut: Function that splits a chunk of text without blanks into tokens.
        part_bytes: Approximate number of bytes of a column that are split at once.
        few: Fewer new chunks are split one by one, which is faster then.
    """

    def __init__(
        self,
        capacity: int = 1_000_000,
        cut: Callable[[str], list[str]] = cut_chunk,
        *,
        part_bytes: int = PART_BYTES,
        few: int = 32,
    ) -> None:
        self.capacity = capacity
        self._cut, self._part_bytes, self._few = cut, part_bytes, few
        self._forget()

    def _forget(self) -> None:
        """Forget all chunks, and begin a new vocabulary."""
        # The imports are here because they take time, and not all users of this file split text.
        from paranmt_hf.text.chunk_memory import ChunkMemory
        from paranmt_hf.text.plain_chunks import PlainChunkMemory

        # A lookup of a new token gives it the next number.
        self._token_ids: dict[str, int] = defaultdict(count().__next__)
        self._vocabulary: list[str] = []
        self._chunks = ChunkMemory() if available("numba") else PlainChunkMemory()

    def tables(self, *columns: pa.Array | pa.ChunkedArray | Sequence[str]) -> list[TokenTable]:
        """Split several columns of sentences; their tables share one vocabulary, so that ids are comparable."""
        if len(self._chunks) > self.capacity:
            self._forget()
        return [self._table(column) for column in columns]

    def _table(self, column: pa.Array | pa.ChunkedArray | Sequence[str]) -> TokenTable:
        """Split one column of sentences."""
        if not isinstance(column, pa.Array | pa.ChunkedArray):
            column = pa.array(column, pa.string())
        parts = [self._part(part) for part in _parts(column, self._part_bytes)]
        if len(parts) == 1:
            return TokenTable(*parts[0], self._vocabulary)
        ids = np.concatenate([ids for ids, _ in parts] or [np.empty(0, np.int32)])
        lengths = np.concatenate([np.zeros(1, np.int64), *(np.diff(bounds) for _, bounds in parts)])
        return TokenTable(ids, np.cumsum(lengths), self._vocabulary)

    def _part(self, column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """Return the token ids of a part of a column [token], and the bounds of its sentences [sentence + 1]."""
        known = len(self._chunks)
        try:
            numbers, bounds = self._chunks.numbers(*text_bytes(column))
            if len(self._chunks) > known:
                self._split_new_chunks()
        except BaseException:
            # After an error or Ctrl-C, some chunks have a number and no tokens.
            self._forget()
            raise
        return self._chunks.tokens(numbers, bounds)

    def _split_new_chunks(self) -> None:
        """Split the chunks that were met for the first time."""
        chunks = self._chunks.without_tokens()
        by_bytes = self._cut is cut_chunk and len(chunks) >= self._few
        pieces = cut_column(chunks) if by_bytes else uncut_pieces(chunks)
        tokens = [
            self._cut(piece) if uncut else [piece]
            for piece, uncut in zip(pieces.distinct.to_pylist(), pieces.uncut.tolist(), strict=True)
        ]
        ids = np.array([self._token_ids[token] for token in chain.from_iterable(tokens)], np.int32)
        counts = np.array([len(some) for some in tokens], np.int64)
        starts = np.cumsum(counts) - counts
        ids, bounds = expand(ids, starts[pieces.chosen], counts[pieces.chosen])
        self._chunks.add_tokens(ids, bounds[pieces.bounds[1:]])
        new = len(self._token_ids) - len(self._vocabulary)
        self._vocabulary.extend(reversed(list(islice(reversed(self._token_ids), new))))


def _parts(column: pa.Array | pa.ChunkedArray, size: int) -> Iterator[pa.Array]:
    """Split a column into parts of about `size` bytes, so that arrays over their bytes stay small."""
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        if chunk.nbytes <= size:
            yield chunk if chunk.type == pa.string() else chunk.cast(pa.string())
            continue
        lengths = pc.binary_length(chunk).fill_null(0).to_numpy(zero_copy_only=False)
        sizes = np.cumsum(lengths, dtype=np.int64) // size
        ends = [0, *(np.flatnonzero(np.diff(sizes)) + 1).tolist(), len(chunk)]
        for start, stop in pairwise(ends):
            yield chunk.slice(start, stop - start).cast(pa.string())


def text_bytes(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of texts [byte], uint8, none for nulls, and the bounds of each text in them [text + 1]."""
    column = column.cast(pa.large_binary())
    if column.null_count:
        # In Arrow, a null may have bytes.
        column = column.fill_null(b"")
    if not len(column):
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    offsets = np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]
    size = int(offsets[-1] - offsets[0])
    text = np.frombuffer(column.buffers()[2], np.uint8, size, int(offsets[0])) if size else np.empty(0, np.uint8)
    return text, offsets - offsets[0]


def rows_at(places: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Find the texts that hold the bytes at some positions, and return their positions, ascending [row].

    Args:
        places: Positions of bytes in the result of `text_bytes` [byte].
        bounds: Bounds of the texts, from `text_bytes` [text + 1].
    """
    holds = np.zeros(len(bounds) - 1, bool)
    holds[np.searchsorted(bounds, places, side="right") - 1] = True
    return np.flatnonzero(holds)


@dataclass(frozen=True)
class Bags:
    """The units (words, character n-grams) of a column of sentences, as rows of a table."""

    rows: np.ndarray  # Row of each unit [unit], int32, sentence after sentence
    offsets: np.ndarray  # Bounds [sentence + 1], int64: sentence `i` has `rows[offsets[i]:offsets[i + 1]]`

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def known(self) -> np.ndarray:
        """Number of units of each sentence that have their own row, not row 0 [sentence]."""
        return np.diff(np.concatenate([[0], np.cumsum(self.rows != 0)])[self.offsets])

    def take(self, sentences: np.ndarray) -> Bags:
        """Return some sentences, given by position [chosen], in that order."""
        starts = self.offsets[:-1][sentences]
        return Bags(*expand(self.rows, starts, self.offsets[1:][sentences] - starts))


def ngram_starts(table: TokenTable, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the word n-grams of every sentence; none crosses the end of a sentence.

    Args:
        table: The sentences.
        size: Number of words of an n-gram.

    Returns:
        The position of each n-gram's first token in `table.ids` [n-gram], and its sentence [n-gram], both int64.
    """
    sentences = np.repeat(np.arange(len(table)), np.diff(table.offsets))
    inside = sentences[: 1 - size] == sentences[size - 1 :]
    starts = np.flatnonzero(inside)
    return starts, sentences[starts]


class PerToken:
    """A number for each token of a tokenizer's vocabulary, computed once.

    Args:
        compute: Computes the numbers of some tokens [token].
        kind: Type of the numbers.
    """

    def __init__(self, compute: Callable[[Sequence[str]], ArrayLike], kind: type[np.generic]) -> None:
        self._compute, self._kind = compute, kind
        self._tokens: Sequence[str] = ()
        self._numbers = np.empty(0, kind)

    def of(self, table: TokenTable) -> np.ndarray:
        """Return the number of each token of a table's vocabulary [token]."""
        # Tokenizers append to their vocabulary, until they begin a new one.
        if table.vocabulary is not self._tokens:
            self._tokens, self._numbers = table.vocabulary, np.empty(0, self._kind)
        if new := table.vocabulary[len(self._numbers) :]:
            self._numbers = np.concatenate([self._numbers, np.asarray(self._compute(new), self._kind)])
        return self._numbers


class CorpusIds(PerToken):
    """Ids of the tokens of a whole corpus, int32, in the order of their first occurrence.

    Unlike those of a `TokenTable`, they stay the same when the tokenizer begins a new vocabulary. `id_of` holds the
    ids so far.
    """

    def __init__(self) -> None:
        self.id_of: dict[str, int] = {}
        super().__init__(lambda tokens: [self.id_of.setdefault(token, len(self.id_of)) for token in tokens], np.int32)
