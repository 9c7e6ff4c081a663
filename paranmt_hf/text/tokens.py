"""Word tokens of whole columns of sentences: the fast path of `definitions.py`, with equal results."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, count, islice, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from paranmt_hf.text.definitions import cut_chunk
from paranmt_hf.text.fast_split import Pieces, cut_at_blanks, cut_column

PART_BYTES = 2**22  # Bytes of text that are cut at once


@dataclass(frozen=True)
class TokenTable:
    """The word tokens of a column of sentences."""

    # Token ids [token], int32, sentence after sentence. They index `vocabulary` and mean nothing outside it.
    ids: np.ndarray
    offsets: np.ndarray  # Bounds [sentence + 1], int64: sentence `i` has the tokens `ids[offsets[i]:offsets[i + 1]]`
    # Every token the tokenizer has met so far; longer than the largest id of this table needs
    vocabulary: Sequence[str]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens of each sentence [sentence], int32."""
        return np.diff(self.offsets).astype(np.int32)

    def slice(self, start: int, stop: int) -> TokenTable:
        """Take the sentences from `start` up to `stop`."""
        offsets = self.offsets[start : stop + 1]
        return TokenTable(self.ids[offsets[0] : offsets[-1]], offsets - offsets[0], self.vocabulary)


class WordTokenizer:
    """Splits columns of sentences into word tokens, by `cut`, with a cache of pieces of text.

    At most `capacity` pieces are remembered: tokens, and chunks between blanks that are cut one by one. Past it
    everything is forgotten at the start of the next table. A column is cut in parts of about `part_bytes`; fewer than
    `few` sentences are cut sooner chunk by chunk. The result depends on none of these.
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
        # Numbers tokens in the order in which they are first asked for.
        self._token_ids: dict[str, int] = defaultdict(count().__next__)
        self._vocabulary: list[str] = []
        # What the chunks gave that are cut one by one: a token, or for none or several a negative number. Token ids of
        # the latter stand end to end; those of -1 - p are _flat[_bounds[p]:_bounds[p + 1]].
        self._chunks: dict[str, int] = {}
        self._flat = array("i")
        self._bounds = array("q", [0])

    def _number(self, pieces: Pieces) -> np.ndarray:
        """Token of each distinct piece [distinct piece], int64; negative for none or several."""
        distinct, uncut = pieces.distinct.to_pylist(), np.flatnonzero(pieces.uncut)
        if len(uncut) < len(distinct):
            chunks = [distinct[at] for at in uncut.tolist()]
            # Chunks must not become tokens of the vocabulary.
            tokens = compress(distinct, (~pieces.uncut).tolist()) if chunks else distinct
            found = list(map(self._token_ids.__getitem__, tokens))
        else:
            chunks, found = distinct, []
        for chunk in chunks:
            if chunk not in self._chunks:
                ids = list(map(self._token_ids.__getitem__, self._cut(chunk)))
                self._chunks[chunk] = ids[0] if len(ids) == 1 else -len(self._bounds)
                if len(ids) != 1:
                    self._flat.extend(ids)
                    self._bounds.append(len(self._flat))
        numbers = np.empty(len(distinct), np.int64)
        numbers[~pieces.uncut] = found
        numbers[uncut] = list(map(self._chunks.__getitem__, chunks))
        new = len(self._token_ids) - len(self._vocabulary)
        self._vocabulary.extend(reversed(list(islice(reversed(self._token_ids), new))))
        return numbers

    def tables(self, *columns: pa.Array | pa.ChunkedArray | Sequence[str]) -> list[TokenTable]:
        """Split several columns of sentences; their tables share one vocabulary, so that ids are comparable."""
        if len(self._token_ids) + len(self._chunks) > self.capacity:
            self._forget()
        return [self._table(column) for column in columns]

    def _table(self, column: pa.Array | pa.ChunkedArray | Sequence[str]) -> TokenTable:
        if not isinstance(column, pa.Array | pa.ChunkedArray):
            column = pa.array(column, pa.string())
        parts = [self._part(part) for part in _parts(column, self._part_bytes)]
        if len(parts) == 1:
            return TokenTable(*parts[0], self._vocabulary)
        ids = np.concatenate([ids for ids, _ in parts] or [np.empty(0, np.int32)])
        lengths = np.concatenate([np.zeros(1, np.int64), *(np.diff(bounds) for _, bounds in parts)])
        return TokenTable(ids, np.cumsum(lengths), self._vocabulary)

    def _part(self, column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """Token ids [token] of a part of a column, and their bounds [sentence + 1]."""
        by_bytes = self._cut is cut_chunk and len(column) >= self._few
        pieces = cut_column(column) if by_bytes else cut_at_blanks(column)
        numbers = self._number(pieces)
        ids = numbers.astype(np.int32)[pieces.chosen]
        if not (numbers < 0).any():
            return ids, pieces.bounds
        # Only few pieces are not one token, so the others are moved apart to make room for their tokens.
        several = np.flatnonzero(ids < 0)
        ranges = -1 - ids[several]
        flat, limits = np.array(self._flat, np.int32), np.array(self._bounds)
        tokens, inner = expand(flat, limits[ranges], np.diff(limits)[ranges])
        room = np.ones(len(ids), np.int64)
        room[several] = np.diff(inner)
        ids = np.repeat(ids, room)
        # Tokens of these pieces less the pieces themselves, before each of them.
        moved = inner - np.arange(len(inner))
        ids[np.arange(len(tokens)) + np.repeat(several - np.arange(len(several)), np.diff(inner))] = tokens
        return ids, pieces.bounds + moved[np.searchsorted(several, pieces.bounds)]


def _parts(column: pa.Array | pa.ChunkedArray, size: int) -> Iterator[pa.Array]:
    """Split a column into parts of about `size` bytes, which bounds the memory of arrays over them."""
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        if chunk.nbytes <= size:
            yield chunk if chunk.type == pa.string() else chunk.cast(pa.string())
            continue
        sizes = np.cumsum(pc.binary_length(chunk).to_numpy(), dtype=np.int64) // size
        ends = [0, *(np.flatnonzero(np.diff(sizes)) + 1).tolist(), len(chunk)]
        for start, stop in pairwise(ends):
            yield chunk.slice(start, stop - start).cast(pa.string())


def text_bytes(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of texts [byte], none for nulls, and the bounds of each text [text + 1]."""
    column = column.cast(pa.large_binary())
    if column.null_count:
        # Nulls may have bytes.
        column = column.fill_null(b"")
    if not len(column):
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    offsets = np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]
    size = int(offsets[-1] - offsets[0])
    text = np.frombuffer(column.buffers()[2], np.uint8, size, int(offsets[0])) if size else np.empty(0, np.uint8)
    return text, offsets - offsets[0]


def rows_at(places: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Find the texts that hold some bytes, given positions in `text_bytes` [byte]; returns rows, ascending [row]."""
    holds = np.zeros(len(bounds) - 1, bool)
    holds[np.searchsorted(bounds, places, side="right") - 1] = True
    return np.flatnonzero(holds)


def ranges(starts: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions in concatenated ranges, given the first position and the length of each range [range].

    Returns the positions [sum of counts], and the bounds [range + 1] of each range in them.
    """
    bounds = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=bounds[1:])
    if not len(counts):
        return np.empty(0, np.int64), bounds
    return np.repeat(starts - bounds[:-1], counts) + np.arange(bounds[-1]), bounds


def expand(flat: np.ndarray, starts: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Concatenate `ranges` of `flat`: the values [sum of counts], and the bounds [range + 1] of each range in them."""
    positions, bounds = ranges(starts, counts)
    return flat[positions], bounds


@dataclass(frozen=True)
class Bags:
    """The units (words, character n-grams) of a column of sentences as rows of a table."""

    rows: np.ndarray  # Row of each unit [unit], int32, sentence after sentence
    offsets: np.ndarray  # Bounds [sentence + 1], int64: sentence `i` has `rows[offsets[i]:offsets[i + 1]]`

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def known(self) -> np.ndarray:
        """Number of units of each sentence with their own row [sentence]; row 0 is for the others."""
        return np.diff(np.concatenate([[0], np.cumsum(self.rows != 0)])[self.offsets])

    def take(self, sentences: np.ndarray) -> Bags:
        """Select sentences by position [chosen], in that order."""
        starts = self.offsets[:-1][sentences]
        return Bags(*expand(self.rows, starts, self.offsets[1:][sentences] - starts))


def ngram_starts(table: TokenTable, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the word n-grams of every sentence; none crosses the end of a sentence.

    Returns the position of each n-gram's first token in `table.ids` [n-gram], and its sentence [n-gram], both int64.
    """
    sentences = np.repeat(np.arange(len(table)), np.diff(table.offsets))
    inside = sentences[: 1 - size] == sentences[size - 1 :]
    starts = np.flatnonzero(inside)
    return starts, sentences[starts]


class PerToken:
    """A number for each token of a tokenizer's vocabulary, computed once by a function of some tokens [token]."""

    def __init__(self, compute: Callable[[Sequence[str]], ArrayLike], kind: type[np.generic]) -> None:
        self._compute, self._kind = compute, kind
        self._tokens: Sequence[str] = ()
        self._numbers = np.empty(0, kind)

    def of(self, table: TokenTable) -> np.ndarray:
        """Number of each token of a table's vocabulary [token]."""
        # A tokenizer's vocabulary only grows, until the tokenizer starts a new one.
        if table.vocabulary is not self._tokens:
            self._tokens, self._numbers = table.vocabulary, np.empty(0, self._kind)
        if new := table.vocabulary[len(self._numbers) :]:
            self._numbers = np.concatenate([self._numbers, np.asarray(self._compute(new), self._kind)])
        return self._numbers


class CorpusIds(PerToken):
    """Ids of the tokens of a whole corpus, int32, in the order of their first occurrence; `id_of` has those so far."""

    def __init__(self) -> None:
        self.id_of: dict[str, int] = {}
        super().__init__(lambda tokens: [self.id_of.setdefault(token, len(self.id_of)) for token in tokens], np.int32)
