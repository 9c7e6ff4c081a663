"""The encoders: a record of each kind, which is all that the rest of the package knows of it.

To add one: add its record to the table below, its modules to `modules/` if it has any of its own, and a branch to
`building.modules_of`, `composition.family_of` and, if other libraries can hold it, `export/graph.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["word", "trigram", "ngram"]

BAG = "The order of words tells nothing apart: “dog bites man” is “man bites dog”."
NGRAMS = "Of the order of words it knows what neighbouring words tell: it averages n-grams and looks no further."
SEQUENCE = "It reads words in order, but was trained on sentences of at most some dozens of words."

PARANMT = "ParaNMT-50M (Wieting and Gimpel 2018, section 4)"
PARAGRAM = "PARAGRAM-PHRASE (Wieting et al. 2016, section 3)"
SENT2VEC = "Sent2Vec (Pagliardini, Gupta and Jaggi 2018, section 2)"

WEIGHTS = "model.safetensors"
STATIC = {"StaticEmbedding": ("tokenizer.json", WEIGHTS), "WordEmbedding": ("vocabulary.json", WEIGHTS)}
RECURRENT = {
    "WordEmbeddings": ("wordembedding_config.json", "tokenizer.json", WEIGHTS),
    "LSTM": ("lstm_config.json", WEIGHTS),
    "Pooling": ("config.json",),
    "MaxPooling": ("config.json",),
}
RECURRENCE = ("recurrent_config.json", WEIGHTS)
WORDS_IN_ORDER = {"WordEmbeddings": RECURRENT["WordEmbeddings"]}


@dataclass(frozen=True)
class Family:
    """What is known of one kind of encoder.

    Attributes:
        name: Its name in `--model`.
        title: Its name in the papers.
        units: What its table has rows for.
        files: The files that each of its modules is read from, by the name of the module's class.
        ordered: Whether it reads the units of a sentence in order; else as a bag.
        dense: Whether it has weights beside its table. Such models are trained through the trainer.
        gates: Number of products of a word and of the last state that a step of a recurrent one adds up.
        centre: What lambda_c pulls the weights beside its table towards.
        table_dimension: The setting that is the width of its table; where that is None, and for others, `dimension`.
        settings: Those of `EncoderConfig` that only some families read, and this one does.
        limits: What a card says of its limits.
        paper: Where it is described.
        trained_by: The command that trains it.
        exported: Whether other libraries can hold it.
    """

    name: str
    title: str
    units: Kind
    files: Mapping[str, tuple[str, ...]] = field(repr=False)
    ordered: bool = False
    dense: bool = False
    gates: int = 0
    centre: Literal["zero", "initial"] = "zero"
    table_dimension: str = "dimension"
    settings: tuple[str, ...] = ()
    limits: str = BAG
    paper: str = PARANMT
    trained_by: str = "train"
    exported: bool = True


_RECORDS = (
    Family("word", "WORD", "word", STATIC),
    Family(
        "trigram",
        "TRIGRAM",
        "trigram",
        {"TrigramEmbedding": ("vocabulary.json", WEIGHTS)},
        table_dimension="trigram_dimension",
        settings=("trigrams", "trigram_dimension"),
    ),
    Family(
        "lstm",
        "LSTM",
        "word",
        RECURRENT,
        ordered=True,
        dense=True,
        gates=4,
        table_dimension="word_dimension",
        settings=("pooling", "word_dimension"),
        limits=SEQUENCE,
    ),
    Family(
        "blstm",
        "BLSTM",
        "word",
        {**RECURRENT, "AverageDirections": ("directions_config.json",)},
        ordered=True,
        dense=True,
        gates=8,
        table_dimension="word_dimension",
        settings=("pooling", "word_dimension", "directions"),
        limits=SEQUENCE,
    ),
    Family(
        "projection",
        "projection",
        "word",
        {**STATIC, "Dense": ("config.json", WEIGHTS)},
        dense=True,
        table_dimension="word_dimension",
        settings=("word_dimension",),
        paper=PARAGRAM,
    ),
    Family(
        "dan",
        "DAN",
        "word",
        {**STATIC, "Dense": ("config.json", WEIGHTS)},
        dense=True,
        table_dimension="word_dimension",
        settings=("word_dimension", "layers", "activation"),
        paper=PARAGRAM,
    ),
    Family(
        "rnn",
        "RNN",
        "word",
        {**WORDS_IN_ORDER, "LastStateRNN": RECURRENCE},
        ordered=True,
        dense=True,
        gates=1,
        table_dimension="word_dimension",
        settings=("word_dimension", "activation"),
        limits=SEQUENCE,
        paper=PARAGRAM,
    ),
    Family(
        "irnn",
        "iRNN",
        "word",
        {**WORDS_IN_ORDER, "IdentityRNN": RECURRENCE},
        ordered=True,
        dense=True,
        gates=1,
        centre="initial",
        limits=SEQUENCE,
        paper=PARAGRAM,
    ),
    Family(
        "plstm",
        "peephole LSTM",
        "word",
        {**WORDS_IN_ORDER, "PeepholeLSTM": RECURRENCE},
        ordered=True,
        dense=True,
        gates=4,
        table_dimension="word_dimension",
        settings=("word_dimension", "output_gate"),
        limits=SEQUENCE,
        paper=PARAGRAM,
    ),
    Family(
        "sent2vec",
        "Sent2Vec",
        "ngram",
        {"NgramEmbedding": ("average_config.json", "vocabulary.json", WEIGHTS)},
        limits=NGRAMS,
        paper=SENT2VEC,
        trained_by="train-sent2vec",
        exported=False,
    ),
)
FAMILIES = {family.name: family for family in _RECORDS}
# Those that are trained on pairs, alone and combined.
OF_PAIRS = [family.name for family in _RECORDS if family.trained_by == "train"]
# Other names, which papers use.
ALIASES = {"paragram-phrase": "word"}
# What each module is read from, by the name of its class; the combination first reads which parts it has.
FILES: dict[str, tuple[str, ...]] = {
    "Combination": ("combination_config.json", "parts.json"),
    **{name: files for family in _RECORDS for name, files in family.files.items()},
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


def title_of(names: Iterable[str], mode: str) -> str:
    """Write a model as the papers do, such as `WORD,TRIGRAM`; `+` where the mode is `add`."""
    return ("+" if mode == "add" else ",").join(FAMILIES[name].title for name in names)


def users_of(setting: str) -> list[str]:
    """Name the families that read a setting of `EncoderConfig` which not all of them read."""
    return [family.name for family in _RECORDS if setting in family.settings]
