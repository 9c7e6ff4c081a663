"""Fast encoding for averaging encoders: columns of sentences to vectors, without a Python object per word.

Cutting text into tokens bounds the speed of an average, so it is done once per distinct chunk of a batch
(`tokens.py`). TRIGRAM averages first inside the distinct words of a batch and then over the words of each sentence,
which reads a third of the rows.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from paranmt_hf.encoders.modules.average import AverageEmbedding
from paranmt_hf.encoders.modules.combination import Combination
from paranmt_hf.encoders.modules.trigram import TrigramEmbedding
from paranmt_hf.encoders.vocabulary import UNKNOWN, Kind, TrigramLookup, Vocabulary, WordLookup
from paranmt_hf.tokens import Bags, TokenTable, WordTokenizer

# Chunks of text to remember; bounds the memory beside the weights.
CHUNKS = 120_000
# Sentences whose rows are gathered at once: their vectors stay in the processor's cache until they are copied.
STEP = 1024


def gather(weight: torch.Tensor, bags: Bags, start: int, stop: int, mode: str) -> torch.Tensor:
    """Sum or average the rows of some bags.

    Args:
        weight: Table [row, dimension].
        bags: Rows of each sentence.
        start: First sentence.
        stop: First sentence that is left out.
        mode: `sum` or `mean`.

    Returns:
        Vectors [sentence, dimension] in the table's precision; zeros for an empty bag.
    """
    bounds = bags.offsets[start : stop + 1]
    rows = torch.from_numpy(bags.rows[bounds[0] : bounds[-1]])
    offsets = torch.from_numpy((bounds - bounds[0]).astype(np.int32))
    return nn.functional.embedding_bag(rows, weight, offsets, mode=mode, include_last_offset=True)


class WordAverager:
    """WORD over a table of tokens."""

    def __init__(self, vocabulary: Vocabulary, weight: torch.Tensor) -> None:
        self._weight = weight
        self.lookup = WordLookup(vocabulary)

    def encode(self, table: TokenTable, out: torch.Tensor) -> None:
        """Encode sentences into `out` [sentence, dimension]."""
        bags = self.lookup.bags(table)
        for start in range(0, len(bags), STEP):
            stop = min(start + STEP, len(bags))
            out[start:stop] = gather(self._weight, bags, start, stop, "mean")


class TrigramAverager:
    """TRIGRAM over a table of tokens."""

    def __init__(self, vocabulary: Vocabulary, weight: torch.Tensor) -> None:
        self._weight = weight
        self.lookup = TrigramLookup(vocabulary)

    def encode(self, table: TokenTable, out: torch.Tensor) -> None:
        """Encode sentences into `out` [sentence, dimension]."""
        crossings = self.lookup.crossings(table)
        lengths = np.diff(table.offsets)
        between = Bags(crossings, table.offsets - np.concatenate([[0], np.cumsum(lengths > 0)]))
        used = np.zeros(len(table.vocabulary), bool)
        used[table.ids] = True
        inside = self.lookup.inside(np.flatnonzero(used))
        number_of = (np.cumsum(used) - 1).astype(np.int32)
        words = Bags(number_of[table.ids], table.offsets)
        word_vectors = torch.empty(len(inside), self._weight.shape[1])
        for start in range(0, len(inside), STEP):
            stop = min(start + STEP, len(inside))
            word_vectors[start:stop] = gather(self._weight, inside, start, stop, "sum")
        characters = np.diff(inside.offsets)[words.rows]
        ends = np.concatenate([[0], np.cumsum(characters)])[table.offsets]
        counts = np.maximum(np.diff(ends) + np.diff(between.offsets), 1)
        divisors = torch.from_numpy(counts).to(torch.float32)[:, None]
        for start in range(0, len(table), STEP):
            stop = min(start + STEP, len(table))
            summed = gather(word_vectors, words, start, stop, "sum")
            summed += gather(self._weight, between, start, stop, "sum")
            out[start:stop] = summed.div_(divisors[start:stop])


Averager = WordAverager | TrigramAverager


class FastAverage:
    """Encodes columns of sentences with the tables of averaging encoders. Not to be shared between threads.

    Args:
        parts: The encoders that are combined.
        mode: `add` or `concatenate`.
        dtype: In which precision the rows are read: torch.float32, or torch.float16, which is faster and less exact.
    """

    def __init__(self, parts: Sequence[AverageEmbedding], mode: str, dtype: torch.dtype = torch.float32) -> None:
        self._mode = mode
        self._tables: list[tuple[Vocabulary, torch.Tensor]] = []
        for part in parts:
            kind: Kind = "trigram" if isinstance(part, TrigramEmbedding) else "word"
            self._tables.append((Vocabulary(kind, part.units), part.weight.detach().to(dtype)))
        self._forget()

    def _forget(self) -> None:
        self._tokenizer = WordTokenizer(CHUNKS)
        self._parts: list[Averager] = [
            TrigramAverager(*table) if table[0].kind == "trigram" else WordAverager(*table) for table in self._tables
        ]

    def twin(self) -> FastAverage:
        """Make another one for another thread, over the same tables."""
        twin = copy.copy(self)
        twin._forget()
        return twin

    @property
    def dimension(self) -> int:
        """Number of dimensions of a sentence vector."""
        widths = [weight.shape[1] for _, weight in self._tables]
        return widths[0] if self._mode == "add" else sum(widths)

    def encode(self, sentences: list[str], out: torch.Tensor | None = None) -> torch.Tensor:
        """Encode sentences into vectors [sentence, dimension], float32; into `out` if it is given."""
        return self.encode_tokens(self._tokenizer.tables(sentences)[0], out)

    def encode_tokens(self, table: TokenTable, out: torch.Tensor | None = None) -> torch.Tensor:
        """Encode tokenised sentences into vectors [sentence, dimension], float32; into `out` if it is given."""
        if out is None:
            out = torch.empty(len(table), self.dimension)
        begin = 0
        for number, part in enumerate(self._parts):
            width = self._tables[number][1].shape[1]
            if self._mode == "concatenate":
                part.encode(table, out[:, begin : begin + width])
                begin += width
            elif number == 0:
                part.encode(table, out)
            else:
                other = torch.empty_like(out)
                part.encode(table, other)
                out += other
        return out

    def known_tokens(self, sentences: list[str]) -> np.ndarray:
        """Count the units of each sentence that have a row of their own [sentence]."""
        (table,) = self._tokenizer.tables(sentences)
        return sum((part.lookup.bags(table).known for part in self._parts), np.zeros(len(sentences), np.int64))


def averaging_parts(modules: Sequence[nn.Module]) -> tuple[list[AverageEmbedding], str] | None:
    """Find the tables of an averaging encoder: its parts and how they are combined; None for any other model."""
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    from paranmt_hf.encoders.modules.word import WordEmbedding

    if len(modules) != 1:
        return None
    (module,) = modules
    if isinstance(module, StaticEmbedding):
        word = WordEmbedding.from_stock(module)
        return ([word], "concatenate") if word is not None and word.units[0] == UNKNOWN else None
    if isinstance(module, AverageEmbedding):
        return [module], "concatenate"
    if isinstance(module, Combination):
        parts = [part[0] for part in module.parts]  # type: ignore[index]
        if all(isinstance(part, AverageEmbedding) for part in parts):
            return parts, module.mode
    return None
