"""Build an encoder that is ready to be trained, from its settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import torch
from sentence_transformers.sentence_transformer.modules import WordEmbeddings
from torch import nn
from transformers import PreTrainedTokenizerFast

from paranmt_hf.encoders.composition import combined
from paranmt_hf.encoders.config import DIMENSION, EncoderConfig, Family, UnitKind
from paranmt_hf.encoders.modules.paranmt_averages import AverageEmbedding, TrigramEmbedding, WordEmbedding
from paranmt_hf.encoders.prefixes import use_prefixes
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.encoders.vocabulary import Vocabulary, most_frequent, pieces_of
from paranmt_hf.errors import InputError, refuse
from paranmt_hf.text.definitions import LONGEST_CUT, is_piece, word_tokenizer
from paranmt_hf.text.word_vectors import UNKNOWN_WORDS, WordVectors
from paranmt_hf.util.machine import refuse_beyond_memory
from paranmt_hf.util.wording import counted


def choose_vocabularies(
    config: EncoderConfig, counts: Mapping[UnitKind, Counter[str]], vectors: WordVectors | None = None
) -> dict[UnitKind, Vocabulary]:
    """Choose the units that get a row in the table of an encoder, by their kind.

    These are the most frequent units of the training text, then further words of `vectors`, and then pieces of words
    if the settings ask for some.

    Args:
        config: Settings of the encoder: which kinds of units, and how many of each.
        counts: How often each unit occurs in the training text, by the kind of unit.
        vectors: Word vectors to start from; None if there are none.
    """
    sizes = {"word": config.words, "trigram": config.trigrams}
    picked = {
        kind: most_frequent(kind, counts[kind], sizes[kind], min_count=config.min_count) for kind in config.kinds
    }
    if "word" not in picked:
        return picked
    units = picked["word"].units
    if vectors is not None:
        seen = set(units)
        if config.unknown == "share":
            known = {units[0], *vectors.words}
            units = [unit for unit in units if unit in known]
        others = [word for word in vectors.words if word not in seen and not is_piece(word)]
        units = [*units, *others][: config.words + 1]
    if config.pieces:
        # A tokenizer that cuts words into pieces takes every longer word as unknown.
        units = [unit for unit in units if len(unit) <= LONGEST_CUT]
        units = list(dict.fromkeys([*units, *pieces_of(counts["word"], config.pieces)]))
    picked["word"] = Vocabulary("word", units)
    return picked


def build_encoder(
    config: EncoderConfig,
    vocabularies: Mapping[UnitKind, Vocabulary],
    *,
    vectors: WordVectors | None = None,
    seed: int = 1,
) -> SentenceEncoder:
    """Build an encoder with random weights or pretrained word vectors.

    Args:
        config: Settings of the encoder.
        vocabularies: Units that get a row, by their kind.
        vectors: Word vectors to start from; None for random ones.
        seed: Determines all random weights.

    Raises:
        InputError: The encoder is too large for this machine, its parts cannot be added, or the vectors do not fit.
    """
    config = config.resolved(vectors.matrix.shape[1] if vectors is not None else None)
    _refuse_too_large(config, vocabularies)
    generator = np.random.default_rng(seed)
    chains: list[list[nn.Module]] = []
    for family in config.families:
        vocabulary = vocabularies[family.units]
        width = config.table_dimension(family)
        if vectors is not None and vocabulary.kind == "word":
            rows = _pretrained_rows(vocabulary, config, width, vectors, generator)
        else:
            rows = _random_rows(len(vocabulary), width, config.init_std or 0.05, generator)
            if config.unknown != "train":
                rows[0] = 0
        with torch.random.fork_rng(devices=[]):
            if family.layers is not None:
                torch.manual_seed(int(generator.integers(2**31)))
            chains.append(modules_of(family, list(vocabulary.units), rows, config))
    try:
        modules = combined(chains, config.mode)
    except ValueError as error:
        raise InputError(f"{config.model}: {error}; use commas, or `directions` average") from None
    return SentenceEncoder(modules=modules, device="cpu", similarity_fn_name="cosine")


def modules_of(family: Family, units: list[str], rows: np.ndarray, config: EncoderConfig) -> list[nn.Module]:
    """Build the modules of one encoder that is trained on pairs.

    Args:
        family: Kind of the encoder.
        units: Unit of each row of its table.
        rows: Initial vectors of these units [row, dimension].
        config: Settings of the layers behind the table.
    """
    table: nn.Module
    if family.units == "trigram":
        table = TrigramEmbedding(units, rows)
    elif family.ordered:
        table = word_sequence(units, rows)
    else:
        table = WordEmbedding(units, rows)
    return [table, *_layers(family, config)]


def word_sequence(units: list[str], rows: np.ndarray) -> WordEmbeddings:
    """Build the stock module that looks up the words of a sentence in order.

    Args:
        units: Word of each row; the first is the unknown word.
        rows: Vectors of these words [row, dimension].
    """
    # `unk_token` is not given: with it, the tokenizer would cut a literal `[UNK]` out of a text before it finds words.
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=word_tokenizer(units))
    return WordEmbeddings(tokenizer, torch.as_tensor(rows).float(), update_embeddings=True)


def _layers(family: Family, config: EncoderConfig) -> list[nn.Module]:
    """Build the modules behind the table of one encoder; none if its vector is the mean of rows."""
    if family.layers is None:
        return []
    return family.layers(config.table_dimension(family), config.dimension or DIMENSION, config)


def _refuse_too_large(config: EncoderConfig, vocabularies: Mapping[UnitKind, Vocabulary]) -> None:
    """Reject an encoder that is too large to be trained on this machine, before its memory is allocated."""
    weights = 0
    for family in config.families:
        weights += len(vocabularies[family.units]) * config.table_dimension(family)
        # Tensors on the device `meta` have a shape and take no memory.
        with torch.device("meta"):
            for layer in _layers(family, config):
                weights += sum(weight.numel() for weight in layer.parameters())
    refuse_beyond_memory(
        # Each weight takes 4 bytes, and so does each of its two moments under Adam.
        weights * 12,
        f"{config.model} of {config.dimension:,} dimensions has {weights:,} weights here, whose training takes",
        "lower `dimension`, `words` or `trigrams`, or raise `min_count`",
    )


def _random_rows(count: int, width: int, std: float, generator: np.random.Generator) -> np.ndarray:
    """Draw normally distributed rows [row, dimension], float32, with a mean of 0."""
    return generator.standard_normal((count, width), np.float32) * np.float32(std)


def _pretrained_rows(
    vocabulary: Vocabulary, config: EncoderConfig, width: int, vectors: WordVectors, generator: np.random.Generator
) -> np.ndarray:
    """Return the initial table [row, dimension] of an encoder of words: the given vectors, and random rows for others.

    Args:
        vocabulary: The words that have a row.
        config: Settings of the encoder.
        width: Dimensions of a row, which must be those of the vectors.
        vectors: The pretrained word vectors.
        generator: Draws the random rows.

    Raises:
        InputError: The vectors have other dimensions or nearly no length, or `unknown` is share and they have no row
            for unknown words.
    """
    refuse(
        vectors.matrix.shape[1] != width,
        f"the vectors have {counted(vectors.matrix.shape[1], 'dimension')}, the encoder {width}; set `dimension` "
        f"{vectors.matrix.shape[1]} (or `word_dimension` for an LSTM)",
    )
    spread = float(vectors.matrix.std(dtype=np.float64))
    # Training divides by the lengths of vectors, and treats lengths far below this as zero.
    refuse(
        not spread > 1e-7,
        f"the vectors are too near zero to be distinguished in 32 bits (standard deviation {spread:.0e}); multiply "
        "the numbers of their file",
    )
    rows = _random_rows(len(vocabulary), width, config.init_std or 0.1 * spread, generator)
    row_of = {word: row for row, word in enumerate(vectors.words)}
    pretrained = np.array([row_of.get(unit, -1) for unit in vocabulary.units])
    rows[pretrained >= 0] = vectors.matrix[pretrained[pretrained >= 0]]
    if config.unknown == "drop":
        rows[0] = 0
    elif config.unknown == "share":
        if vectors.unknown is None:
            raise InputError(
                f"`unknown` share needs a row for unknown words ({', '.join(UNKNOWN_WORDS)}) in the file of "
                "`vectors`; it has none, so choose drop or train"
            )
        rows[0] = vectors.unknown
    return rows


def trainable(encoder: SentenceEncoder) -> SentenceEncoder:
    """Prepare an encoder for training, in place: tables are saved as float32, and LSTMs can read prefixes."""
    for module in encoder.modules():
        if isinstance(module, AverageEmbedding):
            module.precision = "float32"
    use_prefixes(encoder)
    return encoder
