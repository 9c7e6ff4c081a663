"""WORD: average of word embeddings. ParaNMT-50M (Wieting & Gimpel 2018), section 4."""

from __future__ import annotations

import torch
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models

from paranmt_hf.encoders.modules.average import AverageEmbedding
from paranmt_hf.text import word_normalizer, word_pre_tokenizer, words


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


def word_tokenizer(units: list[str]) -> Tokenizer:
    """Make the tokenizer of a word vocabulary: the definition of `text.py`, then one id for each word.

    Args:
        units: Word of each id; the first is the unknown word.
    """
    vocabulary = {unit: row for row, unit in enumerate(units)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=units[0]))
    tokenizer.normalizer = word_normalizer()
    tokenizer.pre_tokenizer = word_pre_tokenizer()
    return tokenizer


def vocabulary_of(tokenizer: Tokenizer) -> list[str] | None:
    """Read the words of a tokenizer that `word_tokenizer` made; None where it cuts text in another way."""
    ids = tokenizer.get_vocab()
    units = sorted(ids, key=ids.__getitem__)
    if not units or [ids[unit] for unit in units] != list(range(len(units))):
        return None
    if not isinstance(tokenizer.model, models.WordLevel) or tokenizer.get_added_tokens_decoder():
        return None
    if (
        tokenizer.truncation is not None
        or _rules(tokenizer) != _rules(word_tokenizer(units[:1]))
        or tokenizer.model.unk_token != units[0]
    ):
        return None
    return units


def _rules(tokenizer: Tokenizer) -> tuple[bytes, bytes]:
    normalizer, pre_tokenizer = tokenizer.normalizer, tokenizer.pre_tokenizer
    if normalizer is None or pre_tokenizer is None:
        return b"", b""
    return normalizer.__getstate__(), pre_tokenizer.__getstate__()
