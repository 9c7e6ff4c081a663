"""WORD: average of word embeddings. ParaNMT-50M (Wieting & Gimpel 2018), section 4."""

from __future__ import annotations

import torch
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from paranmt_hf.encoders.modules.average import AverageEmbedding
from paranmt_hf.text.definitions import vocabulary_of, word_tokenizer, words


class WordEmbedding(AverageEmbedding):
    """Average of word embeddings, as a part of a combination or with quantised rows.

    Alone and not quantised to int8 the same encoder is released as a stock module; see `stock`.
    """

    @staticmethod
    def split(text: str) -> list[str]:
        """Cut one text into word tokens."""
        return words(text)

    def stock(self) -> StaticEmbedding:
        """Make the stock module with the same vectors, which loads without this package."""
        weight = self.weight.half() if self.precision == "float16" else self.weight
        return StaticEmbedding(word_tokenizer(self.units), embedding_weights=weight)

    @classmethod
    def from_stock(cls, module: StaticEmbedding) -> WordEmbedding | None:
        """Read a stock module that `stock` made; None where it is another kind of model."""
        units = vocabulary_of(module.tokenizer)
        if units is None:
            return None
        weight = module.embedding.weight.data
        return cls(units, weight, "float16" if weight.dtype == torch.float16 else "float32")
