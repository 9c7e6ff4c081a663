"""The kinds of encoders: one record each, which is all that the rest of the package needs to know.

How to add one: docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Literal

Kind = Literal["word", "trigram", "ngram"]

BAG = "The order of words tells nothing apart: “dog bites man” is “man bites dog”."
NGRAMS = "Of the order of words it knows what neighbouring words tell: it averages n-grams and looks no further."
SEQUENCE = "It reads words in order, but was trained on sentences of at most some dozens of words."

PARANMT = "ParaNMT-50M (Wieting and Gimpel 2018, section 4)"
PARAGRAM = "PARAGRAM-PHRASE (Wieting et al. 2016, section 3)"
SENT2VEC = "Sent2Vec (Pagliardini, Gupta and Jaggi 2018, section 2)"

WEIGHTS = "model.safetensors"
# What each module is read from, by the name of its class; a combination lists its parts.
FILES: dict[str, tuple[str, ...]] = {
    "Combination": ("combination_config.json", "parts.json"),
    "StaticEmbedding": ("tokenizer.json", WEIGHTS),
    "WordEmbedding": ("vocabulary.json", WEIGHTS),
    "TrigramEmbedding": ("vocabulary.json", WEIGHTS),
    "NgramEmbedding": ("average_config.json", "vocabulary.json", WEIGHTS),
    "WordEmbeddings": ("wordembedding_config.json", "tokenizer.json", WEIGHTS),
    "Dense": ("config.json", WEIGHTS),
    "LSTM": ("lstm_config.json", WEIGHTS),
    "AverageDirections": ("directions_config.json",),
    "Pooling": ("config.json",),
    "MaxPooling": ("config.json",),
    "LastStateRNN": ("recurrent_config.json", WEIGHTS),
    "IdentityRNN": ("recurrent_config.json", WEIGHTS),
    "PeepholeLSTM": ("recurrent_config.json", WEIGHTS),
}
# Files that modules write too, and that reading does not need.
FURTHER_FILES = (
    "average_config.json",
    "config.json",
    "pooling_config.json",
    "sentence_bert_config.json",
    "special_tokens_map.json",
    "tokenizer_config.json",
    "vocab.txt",
)


@dataclass(frozen=True)
class Family:
    """The properties of one kind of encoder."""

    name: str  # Its name in `EncoderConfig.model`
    title: str  # Its name in the papers
    units: Kind  # What its table has rows for
    ordered: bool = False  # Whether it reads the units of a sentence in order; else as a bag
    # Whether it does more than average its table: it has other weights, or combines rows in another way. Such models
    # are trained by the trainer.
    dense: bool = False
    gates: int = 0  # Number of products of a word and of the last state that a step of a recurrent one adds up
    centre: Literal["zero", "initial"] = "zero"  # What lambda_c pulls its other weights towards
    # The setting that is the width of its table; where that is None, and for others, `dimension`
    table_dimension: str = "dimension"
    limits: str = BAG  # Text about its limits for the card
    paper: str = PARANMT  # Citation of its paper
    trained_by: str = "train"  # The command that trains it
    # Classes of the modules that read its words in order, where these alone tell it from all others
    modules: tuple[str, ...] = ()
    not_exported: str = ""  # Why no other library can hold it; empty if one can


# Encoders with weights other than word embeddings: layers over an average, and recurrences over words in order.
_layered = partial(Family, units="word", dense=True, table_dimension="word_dimension", paper=PARAGRAM)
_ordered = partial(Family, units="word", dense=True, table_dimension="word_dimension", ordered=True, limits=SEQUENCE)
_RECORDS = (
    Family("word", "WORD", "word"),
    Family("trigram", "TRIGRAM", "trigram", table_dimension="trigram_dimension"),
    _ordered("lstm", "LSTM", gates=4),
    _ordered("blstm", "BLSTM", gates=8),
    _layered("projection", "projection"),
    _layered("dan", "DAN"),
    _ordered("rnn", "RNN", gates=1, paper=PARAGRAM, modules=("LastStateRNN",)),
    # Its state is as wide as its words.
    _ordered(
        "irnn",
        "iRNN",
        gates=1,
        table_dimension="dimension",
        centre="initial",
        paper=PARAGRAM,
        modules=("IdentityRNN",),
    ),
    _ordered("plstm", "peephole LSTM", gates=4, paper=PARAGRAM, modules=("PeepholeLSTM",)),
    Family(
        "sent2vec",
        "Sent2Vec",
        "ngram",
        limits=NGRAMS,
        paper=SENT2VEC,
        trained_by="train-sent2vec",
        not_exported="none hashes word n-grams",
    ),
)
FAMILIES = {family.name: family for family in _RECORDS}
# Those that are trained on pairs, alone and combined.
OF_PAIRS = [family.name for family in _RECORDS if family.trained_by == "train"]
ALIASES = {"paragram-phrase": "word"}  # Other names, which papers use


def title_of(names: Iterable[str], mode: str) -> str:
    """Name a model as the papers do, such as `WORD,TRIGRAM`; `+` if the mode is `add`."""
    return ("+" if mode == "add" else ",").join(FAMILIES[name].title for name in names)
