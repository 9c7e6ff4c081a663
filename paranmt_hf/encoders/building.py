"""From settings to an encoder that is ready to be trained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import torch
from sentence_transformers.base.modules import Dense
from torch import nn

from paranmt_hf.encoders.composition import combined
from paranmt_hf.encoders.config import DIMENSION, EncoderConfig
from paranmt_hf.encoders.families import Family, Kind
from paranmt_hf.encoders.modules.paranmt_averages import AverageEmbedding, TrigramEmbedding, WordEmbedding
from paranmt_hf.encoders.modules.paranmt_recurrent import IdentityRNN, LastStateRNN, PeepholeLSTM
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.encoders.sequences import lstm_modules, word_sequence
from paranmt_hf.encoders.vocabulary import Vocabulary, most_frequent, pieces_of
from paranmt_hf.errors import InputError
from paranmt_hf.text.definitions import LONGEST_CUT, is_piece
from paranmt_hf.text.word_vectors import UNKNOWN_WORDS, WordVectors
from paranmt_hf.util.machine import refuse_beyond_memory
from paranmt_hf.util.wording import counted

BYTES_TO_TRAIN = 12  # A weight of 32 bits and the two moments of Adam
# Standard deviation of random rows; of words that the given vectors lack it is a share of that of the vectors.
INIT_STD, MISSING_STD = 0.05, 0.1
SMALLEST_SPREAD = 1e-7  # Lengths of rows that are much smaller count as zero where cosines are trained


def choose_vocabularies(
    config: EncoderConfig, counts: Mapping[Kind, Counter[str]], vectors: WordVectors | None = None
) -> dict[Kind, Vocabulary]:
    """Choose the units that get a row: the most frequent ones of the training text, then words of `vectors`."""
    found: dict[Kind, Vocabulary] = {}
    for kind in config.kinds:
        size = config.words if kind == "word" else config.trigrams
        chosen = most_frequent(kind, counts[kind], size, min_count=config.min_count)
        if kind == "word" and vectors is not None:
            units, seen = chosen.units, set(chosen.units)
            if config.unknown == "share":
                known = {units[0], *vectors.words}
                units = [unit for unit in units if unit in known]
            others = [word for word in vectors.words if word not in seen and not is_piece(word)]
            chosen = Vocabulary("word", [*units, *others][: size + 1])
        if kind == "word" and config.pieces:
            # Longer words are unknown to tokenizers that cut words.
            units = [unit for unit in chosen.units if len(unit) <= LONGEST_CUT]
            chosen = Vocabulary("word", list(dict.fromkeys([*units, *pieces_of(counts[kind], config.pieces)])))
        found[kind] = chosen
    return found


def build_encoder(
    config: EncoderConfig,
    vocabularies: Mapping[Kind, Vocabulary],
    *,
    vectors: WordVectors | None = None,
    seed: int = 1,
) -> SentenceEncoder:
    """Build an encoder with random weights or pretrained word vectors; `seed` determines the random ones."""
    config = config.resolved(vectors.matrix.shape[1] if vectors is not None else None)
    _refuse_too_large(config, vocabularies)
    generator = np.random.default_rng(seed)
    chains: list[list[nn.Module]] = []
    for family in config.families:
        vocabulary = vocabularies[family.units]
        weight = _initial(vocabulary, config, family, vectors if vocabulary.kind == "word" else None, generator)
        with torch.random.fork_rng(devices=[]):
            if family.dense:
                torch.manual_seed(int(generator.integers(2**31)))
            chains.append(modules_of(family, vocabulary.units, weight, config))
    try:
        modules = combined(chains, config.mode)
    except ValueError as error:
        raise InputError(f"{config.model}: {error}; use commas, or `directions` average") from None
    return SentenceEncoder(modules=modules, device="cpu", similarity_fn_name="cosine")


def modules_of(family: Family, units: list[str], weight: np.ndarray, config: EncoderConfig) -> list[nn.Module]:
    """Build the modules of one encoder that is trained on pairs, from the vectors of its units [row, dimension]."""
    width, dimension = weight.shape[1], config.dimension or DIMENSION
    if family.name == "trigram":
        return [TrigramEmbedding(units, weight)]
    if not family.ordered:
        return [WordEmbedding(units, weight), *_layers(family, width, dimension, config)]
    if family.name in ("lstm", "blstm"):
        return lstm_modules(
            units,
            weight,
            dimension=dimension,
            bidirectional=family.name == "blstm",
            average_directions=config.directions == "average",
            pooling=config.pooling,
        )
    words = word_sequence(units, weight)
    if family.name == "rnn":
        return [words, LastStateRNN(width, dimension, config.activation)]
    if family.name == "irnn":
        return [words, IdentityRNN(width)]
    return [words, PeepholeLSTM(width, dimension, config.output_gate == "with")]


def _layers(family: Family, width: int, dimension: int, config: EncoderConfig) -> list[nn.Module]:
    """Layers over the average: none (WORD), a linear one (projection), one or two with an activation (DAN)."""
    if family.name == "word":
        return []
    if family.name == "projection":
        return [Dense(width, dimension, activation_function=nn.Identity())]
    widths = [width, *[dimension] * config.layers]
    activation = {"tanh": nn.Tanh, "relu": nn.ReLU}[config.activation]
    return [Dense(before, after, activation_function=activation()) for before, after in pairwise(widths)]


def _refuse_too_large(config: EncoderConfig, vocabularies: Mapping[Kind, Vocabulary]) -> None:
    """Reject an encoder that is too large to be trained on this machine, before allocating it."""
    numbers = 0
    for family in config.families:
        width, out = config.table_dimension(family), config.dimension or 0
        numbers += len(vocabularies[family.units]) * width
        if family.gates:
            numbers += family.gates * out * (width + out)
        elif family.dense:
            numbers += width * out + (config.layers - 1) * out * out
    refuse_beyond_memory(
        numbers * BYTES_TO_TRAIN,
        f"{config.model} of {config.dimension:,} dimensions has {numbers:,} weights here, whose training takes",
        "lower `dimension`, `words` or `trigrams`, or raise `min_count`",
    )


def _initial(
    vocabulary: Vocabulary,
    config: EncoderConfig,
    family: Family,
    vectors: WordVectors | None,
    generator: np.random.Generator,
) -> np.ndarray:
    """Initial table of one encoder [row, dimension]: given vectors if there are any, random rows elsewhere."""
    width, std = config.table_dimension(family), INIT_STD
    if vectors is not None:
        if vectors.matrix.shape[1] != width:
            raise InputError(
                f"the vectors have {counted(vectors.matrix.shape[1], 'dimension')}, the encoder {width}; set "
                f"`dimension` {vectors.matrix.shape[1]} (or `word_dimension` for an LSTM)"
            )
        spread = float(vectors.matrix.std(dtype=np.float64))
        if not spread > SMALLEST_SPREAD:
            raise InputError(
                f"the vectors are too near zero to be distinguished in 32 bits (standard deviation {spread:.0e}); "
                "multiply the numbers of their file"
            )
        std = MISSING_STD * spread
    weight = generator.standard_normal((len(vocabulary), width), np.float32) * np.float32(config.init_std or std)
    if vectors is not None:
        row_of = {word: row for row, word in enumerate(vectors.words)}
        rows = np.array([row_of.get(unit, -1) for unit in vocabulary.units])
        weight[rows >= 0] = vectors.matrix[rows[rows >= 0]]
    if config.unknown == "share" and vectors is not None:
        if vectors.unknown is None:
            raise InputError(
                f"`unknown` share needs a row for unknown words ({', '.join(UNKNOWN_WORDS)}) in the file of "
                "`vectors`; it has none, so choose drop or train"
            )
        weight[0] = vectors.unknown
    elif config.unknown != "train":
        weight[0] = 0
    return weight


def trainable(encoder: SentenceEncoder) -> SentenceEncoder:
    """Convert an encoder to full precision for training."""
    for module in encoder.modules():
        if isinstance(module, AverageEmbedding):
            module.precision = "float32"
    return encoder
