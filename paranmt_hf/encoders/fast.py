"""Fast encoding for averaging encoders: columns of sentences to vectors, without a Python object per word.

Cutting text into tokens bounds the speed of an average, so it is done once per distinct chunk of a batch
(`tokens.py`). TRIGRAM averages first inside the distinct words of a batch and then over the words of each sentence,
which reads a third of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from paranmt_hf.encoders.average import AverageEmbedding
from paranmt_hf.encoders.combination import Combination
from paranmt_hf.encoders.trigram import TrigramEmbedding
from paranmt_hf.encoders.vocabulary import TrigramLookup, Vocabulary, WordLookup
from paranmt_hf.tokens import Bags, TokenTable, WordTokenizer

# Chunks of text to remember; bounds the memory beside the weights.
CHUNKS = 100_000


def bag_sum(weight: torch.Tensor, bags: Bags) -> torch.Tensor:
    """Sum the rows of every bag.

    Args:
        weight: Table [row, dimension].
        bags: Rows of each sentence.

    Returns:
        Sums [sentence, dimension], float32; zeros for an empty bag.
    """
    rows, offsets = torch.from_numpy(bags.rows), torch.from_numpy(bags.offsets).to(torch.int32)
    return nn.functional.embedding_bag(rows, weight, offsets, mode="sum", include_last_offset=True).float()


def bag_mean(weight: torch.Tensor, bags: Bags) -> torch.Tensor:
    """Average the rows of every bag: means [sentence, dimension], float32; zeros for an empty bag."""
    rows, offsets = torch.from_numpy(bags.rows), torch.from_numpy(bags.offsets).to(torch.int32)
    return nn.functional.embedding_bag(rows, weight, offsets, mode="mean", include_last_offset=True).float()


class WordAverager:
    """WORD over a table of tokens."""

    def __init__(self, units: list[str], weight: torch.Tensor) -> None:
        self._weight = weight
        self.lookup = WordLookup(Vocabulary("word", units))

    def encode(self, table: TokenTable) -> torch.Tensor:
        """Encode sentences into vectors [sentence, dimension], float32."""
        return bag_mean(self._weight, self.lookup.bags(table))

    def known(self, table: TokenTable) -> np.ndarray:
        """Count the known units of each sentence [sentence]."""
        return _known(self.lookup.bags(table))


class TrigramAverager:
    """TRIGRAM over a table of tokens."""

    def __init__(self, units: list[str], weight: torch.Tensor) -> None:
        self._weight = weight
        self.lookup = TrigramLookup(Vocabulary("trigram", units))

    def encode(self, table: TokenTable) -> torch.Tensor:
        """Encode sentences into vectors [sentence, dimension], float32."""
        crossings = self.lookup.crossings(table)
        lengths = np.diff(table.offsets)
        bounds = table.offsets - np.concatenate([[0], np.cumsum(lengths > 0)])
        used = np.zeros(len(table.vocabulary), bool)
        used[table.ids] = True
        distinct = np.flatnonzero(used)
        inside = self.lookup.inside(distinct)
        word_vectors = bag_sum(self._weight, inside)
        number_of = (np.cumsum(used) - 1).astype(np.int32)
        summed = bag_sum(word_vectors, Bags(number_of[table.ids], table.offsets))
        summed += bag_sum(self._weight, Bags(crossings, bounds))
        characters = np.diff(inside.offsets)[number_of[table.ids]]
        ends = np.concatenate([[0], np.cumsum(characters)])[table.offsets]
        counts = np.diff(ends) + np.diff(bounds)
        return summed.div_(torch.from_numpy(np.maximum(counts, 1)).to(torch.float32)[:, None])

    def known(self, table: TokenTable) -> np.ndarray:
        """Count the known units of each sentence [sentence]."""
        return _known(self.lookup.bags(table))


def _known(bags: Bags) -> np.ndarray:
    return np.diff(np.concatenate([[0], np.cumsum(bags.rows != 0)])[bags.offsets])


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
        self._tokenizer = WordTokenizer(CHUNKS)
        self._parts: list[Averager] = []
        for part in parts:
            kind = TrigramAverager if isinstance(part, TrigramEmbedding) else WordAverager
            self._parts.append(kind(part.units, part.weight.detach().to(dtype)))

    def encode(self, sentences: list[str]) -> torch.Tensor:
        """Encode sentences into vectors [sentence, dimension], float32."""
        return self.encode_tokens(self._tokenizer.tables(sentences)[0])

    def encode_tokens(self, table: TokenTable) -> torch.Tensor:
        """Encode tokenised sentences into vectors [sentence, dimension], float32."""
        vectors = [part.encode(table) for part in self._parts]
        if len(vectors) == 1:
            return vectors[0]
        return sum(vectors[1:], vectors[0]) if self._mode == "add" else torch.cat(vectors, dim=1)

    def known_tokens(self, sentences: list[str]) -> np.ndarray:
        """Count the units of each sentence that have a row of their own [sentence]."""
        (table,) = self._tokenizer.tables(sentences)
        return sum((part.known(table) for part in self._parts), np.zeros(len(sentences), np.int64))


def averaging_parts(modules: Sequence[nn.Module]) -> tuple[list[AverageEmbedding], str] | None:
    """Find the tables of an averaging encoder: its parts and how they are combined; None for any other model."""
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    from paranmt_hf.encoders.word import WordEmbedding

    if len(modules) != 1:
        return None
    (module,) = modules
    if isinstance(module, StaticEmbedding):
        word = WordEmbedding.from_stock(module)
        return ([word], "concatenate") if word is not None else None
    if isinstance(module, AverageEmbedding):
        return [module], "concatenate"
    if isinstance(module, Combination):
        parts = [part[0] for part in module.parts]  # type: ignore[index]
        if all(isinstance(part, AverageEmbedding) for part in parts):
            return parts, module.mode
    return None
