"""The encoders, a record for each: what the rest of the package knows of a kind of encoder stands here.

To add one: write its file in this folder (functions as in `FamilyCode`; modules of its own, if it has any, in
`modules/`), and add its record to the table below.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

if TYPE_CHECKING:
    import numpy as np
    from torch import nn

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


class FamilyCode(Protocol):
    """What the file of a family holds."""

    def build(self, units: list[str], weight: np.ndarray, config: Any, family: Family) -> list[nn.Module]:  # noqa: ANN401
        """Make the modules of an encoder.

        Args:
            units: Unit of each row; the first is the unknown unit.
            weight: Vectors of the units [row, dimension].
            config: An `EncoderConfig`.
            family: The record, where a file serves several families.
        """
        ...

    def recognise(self, modules: Sequence[nn.Module]) -> str | None:
        """Name the family of an encoder's modules; None where it is another's."""
        ...

    def add_to_graph(self, graph: Any, modules: Sequence[nn.Module], ids: str, mask: str) -> str:  # noqa: ANN401
        """Add the encoder to an ONNX graph.

        Args:
            graph: A `graph.Graph`.
            modules: The modules.
            ids: Name of the rows of the units [batch, length].
            mask: Name of the mask, 1 where there is a unit [batch, length].

        Returns:
            Name of the sentence vectors [batch, dimension].
        """
        ...


@dataclass(frozen=True)
class Family:
    """What is known of one kind of encoder.

    Attributes:
        name: Its name in `--model`.
        title: Its name in the papers.
        units: What its table has rows for.
        code: Its file in this folder; see `FamilyCode`.
        files: The files that each of its modules is read from, by the name of the module's class.
        ordered: Whether it reads the units of a sentence in order; else as a bag.
        dense: Whether it has weights beside its table. Such models are trained through the trainer.
        gates: Products of a word and of the state before it that each step of a recurrent one adds up.
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
    code: str
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

    def load_code(self) -> FamilyCode:
        """Import the family's file, which imports torch."""
        return cast(FamilyCode, import_module(f"paranmt_hf.encoders.{self.code}"))


_RECORDS = (
    Family("word", "WORD", "word", "word", STATIC),
    Family(
        "trigram",
        "TRIGRAM",
        "trigram",
        "trigram",
        {"TrigramEmbedding": ("vocabulary.json", WEIGHTS)},
        table_dimension="trigram_dimension",
        settings=("trigrams", "trigram_dimension"),
    ),
    Family(
        "lstm",
        "LSTM",
        "word",
        "lstm",
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
        "lstm",
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
        "projection",
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
        "dan",
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
        "rnn",
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
        "irnn",
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
        "plstm",
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
        "sent2vec",
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
# Files that modules write too and can be read without.
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
