"""The word tokens of this package, and WORD models of any table, by the tokenizer that every WORD model carries."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from paranmt_hf import EncoderConfig, TrainConfig, train


def word_tokenizer() -> Tokenizer:
    """Train a WORD model on two pairs, and take its tokenizer."""
    with tempfile.TemporaryDirectory() as name:
        pairs, model = Path(name) / "pairs.parquet", Path(name) / "model"
        pq.write_table(pa.table({"reference": ["a", "b"], "translation": ["c", "d"]}), pairs)
        train(pairs, model, encoder=EncoderConfig(model="word", dimension=2), config=TrainConfig(epochs=1))
        return SentenceTransformer(str(model), device="cpu")[0].tokenizer


def words_of(tokenizer: Tokenizer, text: str) -> list[str]:
    """Cut text into words, in lower case."""
    return [word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(text))]


def static_embedding(tokenizer: Tokenizer, words: list[str], weight: np.ndarray) -> SentenceTransformer:
    """Build a WORD model of a table [word, dimension], the first row of which is that of unknown words."""
    own = Tokenizer.from_str(tokenizer.to_str())
    own.model = WordLevel({word: row for row, word in enumerate(words)}, unk_token=words[0])
    return SentenceTransformer(modules=[StaticEmbedding(own, embedding_weights=weight)], device="cpu")
