"""Fast encoding for averaging encoders: columns of sentences to vectors, without a Python object per word.

Cutting text into tokens bounds the speed of an average, so it is done for whole columns at once (`tokens.py`).
TRIGRAM averages first inside the distinct words of a batch and then over the words of each sentence, which reads a
third of the rows.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from paranmt_hf.encoders.families import Kind
from paranmt_hf.encoders.gathering import gather
from paranmt_hf.encoders.ngrams import blank_tokens
from paranmt_hf.encoders.tables import Tables
from paranmt_hf.encoders.vocabulary import NgramLookup, TrigramLookup, Vocabulary, WordLookup
from paranmt_hf.text.tokens import Bags, TokenTable, WordTokenizer, cut_chunk

if TYPE_CHECKING:
    import torch
    from torch import nn

    from paranmt_hf.encoders.composition import Composition

# Pieces of text to remember; bounds the memory beside the weights.
CHUNKS = 120_000
# Sentences whose rows are gathered at once: their vectors stay in the processor's cache until they are copied.
STEP = 1024


class WordAverager:
    """WORD over a table of tokens."""

    def __init__(self, vocabulary: Vocabulary, weight: np.ndarray) -> None:
        self._weight = weight
        self.lookup = WordLookup(vocabulary)

    def encode(self, table: TokenTable, out: np.ndarray) -> None:
        """Encode sentences into `out` [sentence, dimension]."""
        bags = self.lookup.bags(table)
        for start in range(0, len(bags), STEP):
            stop = min(start + STEP, len(bags))
            out[start:stop] = gather(self._weight, bags, start, stop, "mean")


class NgramAverager(WordAverager):
    """Words and their n-grams over a table of tokens."""

    def __init__(self, vocabulary: Vocabulary, weight: np.ndarray) -> None:
        super().__init__(vocabulary, weight)
        self.lookup = NgramLookup(vocabulary)


class TrigramAverager:
    """TRIGRAM over a table of tokens."""

    def __init__(self, vocabulary: Vocabulary, weight: np.ndarray) -> None:
        self._weight = weight
        self.lookup = TrigramLookup(vocabulary)

    def encode(self, table: TokenTable, out: np.ndarray) -> None:
        """Encode sentences into `out` [sentence, dimension]."""
        crossings = self.lookup.crossings(table)
        lengths = np.diff(table.offsets)
        # A sentence of n words has n - 1 crossings, one of no words none: the bounds lag by the sentences before.
        between = Bags(crossings, table.offsets - np.concatenate([[0], np.cumsum(lengths > 0)]))
        used = np.zeros(len(table.vocabulary), bool)
        used[table.ids] = True
        inside = self.lookup.inside(np.flatnonzero(used))
        # The distinct words of the batch, numbered from 0 in the order of their ids, are rows of `word_vectors`.
        row_of = (np.cumsum(used) - 1).astype(np.int32)
        words = Bags(row_of[table.ids], table.offsets)
        word_vectors = np.empty((len(inside), self._weight.shape[1]), np.float32)
        for start in range(0, len(inside), STEP):
            stop = min(start + STEP, len(inside))
            word_vectors[start:stop] = gather(self._weight, inside, start, stop, "sum")
        # Trigrams of each sentence: those inside its words, which their lengths tell, and its crossings.
        characters = np.diff(inside.offsets)[words.rows]
        ends = np.concatenate([[0], np.cumsum(characters)])[table.offsets]
        counts = np.maximum(np.diff(ends) + np.diff(between.offsets), 1)
        divisors = counts.astype(np.float32)[:, None]
        for start in range(0, len(table), STEP):
            stop = min(start + STEP, len(table))
            summed = gather(word_vectors, words, start, stop, "sum")
            summed += gather(self._weight, between, start, stop, "sum")
            np.divide(summed, divisors[start:stop], out=out[start:stop])


Averager = WordAverager | TrigramAverager
AVERAGERS: dict[Kind, type[Averager]] = {
    "word": WordAverager,
    "trigram": TrigramAverager,
    "ngram": NgramAverager,
}


class FastAverage:
    """Encodes columns of sentences with the tables of averaging encoders. Not to be shared between threads.

    Args:
        encoder: An encoder whose parts all average, taken apart or read as plain arrays; with these nothing here
            needs torch.
        dtype: In which precision the rows of an encoder are read: torch.float16 is faster than torch.float32, which is
            the default, and less exact.
    """

    def __init__(self, encoder: Composition | Tables, dtype: torch.dtype | None = None) -> None:
        self.dimension = encoder.dimension
        # What comes after the average, such as the layer of a projection.
        self._heads: list[list[nn.Module]]
        self._tables: list[tuple[Vocabulary, np.ndarray]]
        if isinstance(encoder, Tables):
            self._tables = [(part.vocabulary, part.rows) for part in encoder.parts]
            self._heads, self._mode = [[] for _ in encoder.parts], encoder.mode or "concatenate"
        else:
            weights = [(part.vocabulary, part.table.weight.detach()) for part in encoder.parts]
            # In their own precision, float32, arrays are the same memory as the weights.
            self._tables = [(vocabulary, weight.to(dtype or weight.dtype).numpy()) for vocabulary, weight in weights]
            self._heads, self._mode = [part.modules[1:] for part in encoder.parts], encoder.mode
        self._cut = cut_chunk if encoder.cuts_words else blank_tokens
        self._forget()

    def _forget(self) -> None:
        self._tokenizer = WordTokenizer(CHUNKS, self._cut)
        self._averagers = [AVERAGERS[vocabulary.kind](vocabulary, weight) for vocabulary, weight in self._tables]

    def twin(self) -> FastAverage:
        """Make another one for another thread, over the same tables."""
        twin = copy.copy(self)
        twin._forget()
        return twin

    def encode(self, sentences: list[str], out: np.ndarray | None = None) -> np.ndarray:
        """Encode sentences into vectors [sentence, dimension], float32; into `out` if it is given."""
        return self.encode_tokens(self._tokenizer.tables(sentences)[0], out)

    def encode_tokens(self, table: TokenTable, out: np.ndarray | None = None) -> np.ndarray:
        """Encode tokenised sentences into vectors [sentence, dimension], float32; into `out` if it is given."""
        if out is None:
            out = np.empty((len(table), self.dimension), np.float32)
        begin = 0
        for index in range(len(self._averagers)):
            if self._mode == "add" and index:
                out += self._encode_part(index, table, np.empty_like(out))
                continue
            width = self.dimension if self._mode == "add" else self._width(index)
            # Side by side, each part fills the columns behind those of the parts before it.
            self._encode_part(index, table, out[:, begin : begin + width])
            begin += width
        return out

    def _width(self, index: int) -> int:
        head = self._heads[index]
        return head[-1].get_embedding_dimension() if head else self._tables[index][1].shape[1]  # type: ignore[operator]

    def _encode_part(self, index: int, table: TokenTable, out: np.ndarray) -> np.ndarray:
        """Encode with one of the parts into `out` [sentence, width]."""
        head = self._heads[index]
        if not head:
            self._averagers[index].encode(table, out)
            return out
        import torch

        vectors = np.empty((len(table), self._tables[index][1].shape[1]), np.float32)
        self._averagers[index].encode(table, vectors)
        features = {"sentence_embedding": torch.from_numpy(vectors)}
        with torch.no_grad():
            for module in head:
                features = module(features)
        out[:] = features["sentence_embedding"].numpy()
        return out

    def known_tokens(self, sentences: list[str]) -> np.ndarray:
        """Count the units of each sentence that have a row of their own [sentence]."""
        (table,) = self._tokenizer.tables(sentences)
        counts = (averager.lookup.bags(table).known for averager in self._averagers)
        return sum(counts, np.zeros(len(sentences), np.int64))


class FastPath:
    """The fast way of an averaging encoder, for any number of threads: lends each a `FastAverage` of its own.

    Float32 rows are the encoder's own, so that what training does to them shows here at once; others are copies.

    Args:
        composition: An encoder whose parts all average.
        dtype: In which precision the rows are read.
    """

    def __init__(self, composition: Composition, dtype: torch.dtype) -> None:
        self._first = FastAverage(composition, dtype)
        self._free: list[FastAverage] = []

    @contextmanager
    def lend(self) -> Iterator[FastAverage]:
        """Lend one that no other thread uses meanwhile."""
        try:
            worker = self._free.pop()
        except IndexError:
            worker = self._first.twin()
        yield worker
        # One that was interrupted may remember half of something, and is not lent again.
        self._free.append(worker)

    def encode(self, sentences: list[str], out: torch.Tensor, *, normalize: bool = False) -> None:
        """Encode sentences into `out` [sentence, width], which may be narrower than the encoder."""
        from torch.nn.functional import normalize as unit_length

        with self.lend() as worker:
            if out.shape[1] == worker.dimension:
                worker.encode(sentences, out.numpy())
            else:
                out.numpy()[:] = worker.encode(sentences)[:, : out.shape[1]]
            if normalize:
                unit_length(out, dim=1, out=out)
