"""From settings to an encoder that is ready to be trained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from sentence_transformers.sentence_transformer.modules import LSTM, WordEmbeddings
from torch import nn

from paranmt_hf.encoders.config import PARTS, EncoderConfig
from paranmt_hf.encoders.loading import SETTINGS, SentenceEncoder
from paranmt_hf.encoders.modules.average import AverageEmbedding
from paranmt_hf.encoders.modules.combination import Combination
from paranmt_hf.encoders.modules.lstm import lstm_modules
from paranmt_hf.encoders.modules.trigram import TrigramEmbedding
from paranmt_hf.encoders.modules.word import WordEmbedding, vocabulary_of
from paranmt_hf.encoders.vocabulary import Kind, Vocabulary, most_frequent
from paranmt_hf.errors import InputError
from paranmt_hf.vectors import WordVectors


def choose_vocabularies(
    config: EncoderConfig, counts: Mapping[Kind, Counter[str]], vectors: WordVectors | None = None
) -> dict[Kind, Vocabulary]:
    """Choose the units that get a row.

    Args:
        config: The settings.
        counts: How often each unit occurs in the training text, by kind.
        vectors: Pretrained vectors; of their words those of the training text come first, then the others, in order.

    Raises:
        InputError: A vocabulary is empty.
    """
    found: dict[Kind, Vocabulary] = {}
    for kind in config.kinds:
        size = config.words if kind == "word" else config.trigrams
        chosen = most_frequent(kind, counts[kind], size, minimum=config.minimum)
        if kind == "word" and vectors is not None:
            seen = set(chosen.units)
            others = [word for word in vectors.words if word not in seen]
            chosen = Vocabulary("word", [*chosen.units, *others][: size + 1])
        found[kind] = chosen
    return found


def build_encoder(
    config: EncoderConfig,
    vocabularies: Mapping[Kind, Vocabulary],
    *,
    vectors: WordVectors | None = None,
    seed: int = 1,
) -> SentenceEncoder:
    """Make an encoder with initial weights.

    Args:
        config: The settings.
        vocabularies: Units with a row, by kind.
        vectors: Pretrained vectors of words; other words start at random, as spread out as these are.
        seed: Decides the random weights.

    Raises:
        InputError: The vectors' width is not the encoder's.
    """
    generator = np.random.default_rng(seed)
    parts: list[list[nn.Module]] = []
    for name in config.parts:
        vocabulary = vocabularies[PARTS[name]]
        own = {"trigram": config.trigram_dimension, "lstm": config.word_dimension, "blstm": config.word_dimension}
        width = own.get(name) or config.dimension
        weight = _initial(vocabulary, width, vectors if vocabulary.kind == "word" else None, config.spread, generator)
        if config.unknown == "drop":
            weight[0] = 0
        if "lstm" not in name:
            kind = WordEmbedding if name == "word" else TrigramEmbedding
            parts.append([kind(vocabulary.units, weight)])
            continue
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(generator.integers(2**31)))
            chain = lstm_modules(
                vocabulary.units,
                weight,
                dimension=config.dimension,
                bidirectional=name == "blstm",
                average_directions=config.directions == "average",
                pooling=config.pooling,
            )
        parts.append(chain)
    modules = parts[0] if len(parts) == 1 else [_combine(parts, config)]
    return SentenceEncoder(modules=modules, device="cpu", similarity_fn_name="cosine")


def _combine(parts: list[list[nn.Module]], config: EncoderConfig) -> Combination:
    try:
        return Combination(parts, config.mode)
    except ValueError as error:
        raise InputError(f"{config.model}: {error}; use commas, or --directions average") from None


def _initial(
    vocabulary: Vocabulary, width: int, vectors: WordVectors | None, spread: float, generator: np.random.Generator
) -> np.ndarray:
    weight = generator.standard_normal((len(vocabulary), width), np.float32) * np.float32(spread)
    if vectors is not None:
        if vectors.matrix.shape[1] != width:
            raise InputError(
                f"the vectors have {vectors.matrix.shape[1]} dimensions, the encoder {width}; set --dimension "
                f"{vectors.matrix.shape[1]} (or --word-dimension for an LSTM)"
            )
        weight *= float(vectors.matrix.std()) / spread
        row_of = {word: row for row, word in enumerate(vectors.words)}
        rows = np.array([row_of.get(unit, -1) for unit in vocabulary.units])
        weight[rows >= 0] = vectors.matrix[rows[rows >= 0]]
    return weight


@dataclass(frozen=True)
class Part:
    """One of the encoders that are combined, ready for training.

    Attributes:
        modules: Its modules, the first of which looks up rows.
        vocabulary: The units of its rows.
        sequence: Whether it reads words in order (LSTM) and not as a bag.
    """

    modules: list[nn.Module]
    vocabulary: Vocabulary
    sequence: bool

    @property
    def reader(self) -> str:
        """Name of what looks up its rows; encoders over the same vocabulary share one."""
        return self.vocabulary.kind

    @property
    def table(self) -> nn.Embedding | nn.EmbeddingBag:
        """Its embeddings."""
        first = self.modules[0]
        return first.emb_layer if self.sequence else first.embedding  # type: ignore[return-value]


def trainable(encoder: SentenceEncoder) -> SentenceEncoder:
    """Make an encoder fit for training.

    Its WORD module, stock or not, is one of ours, so that all averages are trained alike; and it is stored in full
    precision, whatever it was read from.
    """
    averages = encoder.averages
    if averages is not None and len(averages[0]) == 1:
        settings = {name: getattr(encoder, name) for name in SETTINGS}
        encoder = SentenceEncoder(modules=[averages[0][0]], device="cpu", **settings)
    for module in encoder.modules():
        if isinstance(module, AverageEmbedding):
            module.precision = "float32"
    return encoder


def name_of(encoder: SentenceEncoder) -> str:
    """Name an encoder as `EncoderConfig.model` does.

    Raises:
        InputError: It is none of ours.
    """
    parts, mode = parts_of(encoder)
    names = []
    for part in parts:
        lstm = next((module for module in part.modules if isinstance(module, LSTM)), None)
        names.append(part.vocabulary.kind if lstm is None else "blstm" if lstm.bidirectional else "lstm")
    return ("+" if mode == "add" else ",").join(names)


def parts_of(encoder: SentenceEncoder) -> tuple[list[Part], str]:
    """Take an encoder apart.

    Returns:
        The encoders that are combined, and how: `add` or `concatenate`.

    Raises:
        InputError: It is none of ours.
    """
    first = encoder[0]
    if isinstance(first, Combination):
        return [_part(list(part.children())) for part in first.parts], first.mode
    return [_part(list(encoder))], "concatenate"


def _part(chain: list[nn.Module]) -> Part:
    first = chain[0]
    lstm = chain[1] if len(chain) > 1 else None
    if isinstance(first, AverageEmbedding) and len(chain) == 1:
        return Part(
            chain, Vocabulary("trigram" if isinstance(first, TrigramEmbedding) else "word", first.units), False
        )
    if isinstance(first, WordEmbeddings) and isinstance(lstm, LSTM) and lstm.num_layers == 1 and not lstm.dropout:
        units = vocabulary_of(first.tokenizer.tokenizer._tokenizer)
        if units is not None:
            return Part(chain, Vocabulary("word", units), True)
    found = ", ".join(type(module).__name__ for module in chain)
    raise InputError(f"training goes on from WORD, TRIGRAM, (B)LSTM and their combinations, not from {found}")
