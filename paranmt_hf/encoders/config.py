"""The families of encoders, and the settings of one encoder.

Everything in which families differ is here, except their modules, which are in `modules/`. How to add a family:
docs/architecture.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from paranmt_hf.errors import InputError, refuse
from paranmt_hf.util.markers import Advanced, Count, Group, Range
from paranmt_hf.util.settings import Settings
from paranmt_hf.util.wording import perhaps

if TYPE_CHECKING:
    from torch import nn

UnitKind = Literal["word", "trigram", "ngram"]

PARANMT = "ParaNMT-50M (Wieting and Gimpel 2018, section 4)"
PARAGRAM = "PARAGRAM-PHRASE (Wieting et al. 2016, section 3)"
DIMENSION = 300  # Dimensions of the paper's vectors
WIDEST = 100_000  # Maximum number of dimensions of a vector
ARCHITECTURE = Group("architecture", "Sizes, vocabulary and layers of the encoder.")
Width = Annotated[int, Range(at_least=1, at_most=WIDEST)]


@dataclass(frozen=True)
class Family:
    """A kind of encoder: a table with a row for each unit, and layers behind it."""

    name: str  # Its name in `EncoderConfig.model`
    title: str  # Its name in the papers
    units: UnitKind  # Kind of the units that its table has rows for
    modules: str  # Regular expression of its modules, each as `composition.described` describes it
    # Function that builds the modules behind the table, given the width of the table, the dimension of the sentence
    # vector and all settings; None if the sentence vector is the mean of rows. Encoders with layers are trained by the
    # trainer.
    layers: Callable[[int, int, EncoderConfig], list[nn.Module]] | None = None
    ordered: bool = False  # Whether the order of the units of a sentence matters
    centre: Literal["zero", "initial"] = "zero"  # The values that lambda_c pulls the weights of its layers towards
    # Name of the setting that holds the width of its table; if that setting is None, the width is `dimension`
    table_dimension: str = "dimension"
    # Sentence for the card about what it cannot do
    limits: str = "The order of words tells nothing apart: “dog bites man” is “man bites dog”."
    paper: str = ""  # Citation of its paper, if it has one
    trained_by: str = "train"  # Name of the command that trains it


# Torch is imported in the functions below, so that the settings can be read without it.


def _dense(width: int, dimension: int, config: EncoderConfig, projection: bool = False) -> list[nn.Module]:
    """Build the layers over an average (PARAGRAM-PHRASE, section 4.2).

    These are one or two layers with an activation, or, if `projection`, a single one without.
    """
    from sentence_transformers.base.modules import Dense
    from torch import nn

    activations = {"tanh": nn.Tanh, "relu": nn.ReLU, "none": nn.Identity}
    activation = activations["none" if projection else config.activation]
    layers: list[nn.Module] = []
    for _ in range(1 if projection else config.layers):
        layers.append(Dense(width, dimension, activation_function=activation()))
        width = dimension
    return layers


def _lstm(width: int, dimension: int, config: EncoderConfig, bidirectional: bool = False) -> list[nn.Module]:
    """Build a (B)LSTM and pooling over the words (ParaNMT-50M, sections 4 and 5, table 14).

    Section 4 averages the directions, each of which has `dimension` dimensions; table 14 concatenates them. The LSTM
    is torch's, without the peepholes that the paper's has.
    """
    from sentence_transformers.sentence_transformer.modules import LSTM, Pooling

    from paranmt_hf.encoders.modules.paranmt_recurrent import AverageDirections, MaxPooling

    layers: list[nn.Module] = [LSTM(width, dimension, bidirectional=bidirectional)]
    if bidirectional and config.directions == "average":
        layers.append(AverageDirections(dimension))
    elif bidirectional:
        dimension *= 2
    pooling = MaxPooling if config.pooling == "max" else Pooling
    return [*layers, pooling(dimension, pooling_mode=config.pooling)]


def _last_state(width: int, dimension: int, config: EncoderConfig, name: str) -> list[nn.Module]:
    """Build a recurrent network whose last state gives the sentence vector (PARAGRAM-PHRASE, section 3).

    Args:
        width: Dimensions of the words' vectors.
        dimension: Dimensions of the sentence vector.
        config: Settings of the encoder.
        name: The family: `rnn`, `irnn` or `plstm`.
    """
    from paranmt_hf.encoders.modules.paranmt_recurrent import IdentityRNN, LastStateRNN, PeepholeLSTM

    if name == "rnn":
        return [LastStateRNN(width, dimension, config.activation)]
    if name == "irnn":
        return [IdentityRNN(width)]
    return [PeepholeLSTM(width, dimension, config.output_gate == "with")]


_layered = partial(Family, units="word", table_dimension="word_dimension", paper=PARAGRAM)
_ordered = partial(
    Family,
    units="word",
    table_dimension="word_dimension",
    ordered=True,
    limits="It reads words in order, but was trained on sentences of at most some dozens of words.",
)
FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family("word", "WORD", "word", modules="WordEmbedding", paper=PARANMT),
        Family(
            "trigram",
            "TRIGRAM",
            "trigram",
            modules="TrigramEmbedding",
            table_dimension="trigram_dimension",
            paper=PARANMT,
        ),
        _ordered(
            "lstm",
            "LSTM",
            modules="WordEmbeddings LSTM-1 (Max)?Pooling-(mean|max)",
            layers=_lstm,
            paper=PARANMT,
        ),
        _ordered(
            "blstm",
            "BLSTM",
            modules="WordEmbeddings LSTM-2( AverageDirections)? (Max)?Pooling-(mean|max)",
            layers=partial(_lstm, bidirectional=True),
            paper=PARANMT,
        ),
        _layered(
            "projection",
            "projection",
            modules="WordEmbedding Dense-Identity",
            layers=partial(_dense, projection=True),
        ),
        _layered("dan", "DAN", modules="WordEmbedding( Dense-(Tanh|ReLU)){1,2}", layers=_dense),
        _ordered(
            "rnn",
            "RNN",
            modules="WordEmbeddings LastStateRNN",
            layers=partial(_last_state, name="rnn"),
            paper=PARAGRAM,
        ),
        _ordered(
            "irnn",
            "iRNN",
            modules="WordEmbeddings IdentityRNN",
            layers=partial(_last_state, name="irnn"),
            # Its state has the width of the words' vectors, so there is one dimension for both.
            table_dimension="dimension",
            centre="initial",
            paper=PARAGRAM,
        ),
        _ordered(
            "plstm",
            "peephole LSTM",
            modules="WordEmbeddings PeepholeLSTM",
            layers=partial(_last_state, name="plstm"),
            paper=PARAGRAM,
        ),
        Family(
            "sent2vec",
            "Sent2Vec",
            "ngram",
            modules="NgramEmbedding",
            limits="Of the order of words it knows what neighbouring words tell: it averages n-grams and looks no "
            "further.",
            paper="Sent2Vec (Pagliardini, Gupta and Jaggi 2018, section 2)",
            trained_by="train-sent2vec",
        ),
    )
}
# Names of the families that are trained on pairs, which can also be combined.
OF_PAIRS = [family.name for family in FAMILIES.values() if family.trained_by == "train"]
ALIASES = {"paragram-phrase": "word"}  # Names of the papers for a family of another name


def title_of(names: Iterable[str], mode: str) -> str:
    """Return the name of a model in the papers, such as `WORD,TRIGRAM`; the mode `add` joins parts by `+`."""
    return ("+" if mode == "add" else ",").join(FAMILIES[name].title for name in names)


@dataclass(frozen=True)
class EncoderConfig(Settings):
    """Which encoder, how wide, and over which vocabulary (ParaNMT-50M, sections 4 and 5).

    Attributes:
        model: word, trigram, lstm, blstm, projection, dan, rnn, irnn or plstm; several are added with +
            (word+trigram) or concatenated with a comma (word,trigram,lstm). word-trigram is word,trigram, and
            paragram-phrase is word.
        dimension: Dimensions of each encoder's vector (section 5.2); 300 if not given, or those of `vectors`.
        word_dimension: Dimensions of the word embeddings of a model with other weights, such as an LSTM or a
            projection; `dimension` if not given.
        trigram_dimension: Dimensions of TRIGRAM next to a wider or narrower encoder; `dimension` if not given.
        words: Maximum number of words, the most frequent ones.
        pieces: Maximum number of pieces, such as ##ing, of which words without a row are made (not in the papers).
        trigrams: Maximum number of character trigrams, the most frequent ones.
        min_count: Leave out words and trigrams that occur less often.
        unknown: Vector of unknown units: zeros (drop); one that is trained for all of them (train); or, for words, the
            one that `vectors` has for them, called UUUNKKK or `<unk>` (share).
        directions: How a BLSTM joins its directions (section 4: average; the 4096-d models of table 14: concatenate).
        pooling: How an LSTM pools its states over the words: by their mean or their maximum.
        layers: Number of layers of a DAN over the average (arXiv:1511.08198, section 4.2).
        activation: Activation of a DAN or an RNN (arXiv:1511.08198, section 4.2).
        output_gate: Whether an LSTM with peepholes is with or without its output gate (arXiv:1511.08198, section 3).
        init_std: Standard deviation of random embeddings; by default 0.05. With `vectors`, the words that these lack
            get a tenth of the standard deviation of `vectors` by default.
        vectors: Text file of word vectors to start from; its words are added to the vocabulary.
        init_from: Encoder folder or Hub id to continue from, instead of `vectors` and random weights.
    """

    model: str = "word"
    dimension: Width | None = None
    word_dimension: Annotated[Width | None, ARCHITECTURE, Advanced] = None
    trigram_dimension: Annotated[Width | None, ARCHITECTURE, Advanced] = None
    words: Annotated[Count, ARCHITECTURE, Advanced] = 100_000
    pieces: Annotated[int, Range(at_least=0), ARCHITECTURE, Advanced] = 0
    trigrams: Annotated[Count, ARCHITECTURE, Advanced] = 100_000
    min_count: Annotated[Count, ARCHITECTURE, Advanced] = 1
    unknown: Annotated[Literal["drop", "train", "share"], ARCHITECTURE, Advanced] = "drop"
    directions: Annotated[Literal["average", "concatenate"], ARCHITECTURE, Advanced] = "average"
    pooling: Annotated[Literal["mean", "max"], ARCHITECTURE, Advanced] = "mean"
    layers: Annotated[int, Range(at_least=1, at_most=2), ARCHITECTURE, Advanced] = 1
    activation: Annotated[Literal["tanh", "relu"], ARCHITECTURE, Advanced] = "tanh"
    output_gate: Annotated[Literal["with", "without"], ARCHITECTURE, Advanced] = "with"
    init_std: Annotated[float | None, Range(above=0, at_most=10), ARCHITECTURE, Advanced] = None
    vectors: str | None = None
    init_from: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for other, name in ALIASES.items():
            # The class is frozen, so a plain assignment would be refused.
            object.__setattr__(self, "model", re.sub(rf"(?<!\w){other}(?!\w)", name, self.model))
        names = self.parts
        if elsewhere := next((FAMILIES[name] for name in names if name in FAMILIES and name not in OF_PAIRS), None):
            raise InputError(
                f"{elsewhere.name} is trained on text by `paranmt {elsewhere.trained_by}`, and not on pairs; model "
                f"must be made of {', '.join(OF_PAIRS)}"
            )
        unknown = [name for name in names if name not in FAMILIES]
        if not 1 <= len(names) <= 3 or len(set(names)) != len(names) or unknown:
            raise InputError(
                f"model must be one to three different ones of {', '.join(OF_PAIRS)}, joined by + or by commas, "
                f"was {self.model!r}{perhaps(unknown[0], [*OF_PAIRS, *ALIASES]) if unknown else ''}",
                option="model",
            )
        both = "+" in self.model and re.search("[,-]", self.model)
        refuse(both, f"model must be joined by + or by commas, not both, was {self.model!r}")
        without = self.pieces and "word" not in self.kinds
        refuse(without, f"`pieces` are of words, and {self.model} has none", option="pieces")
        refuse(self.init_from and self.vectors, "give either vectors or an encoder to start from, not both")
        refuse(
            self.unknown == "share" and self.vectors is None,
            "`unknown` share is about the unknown words of `vectors`; give a file, or another value",
        )

    @property
    def parts(self) -> list[str]:
        """Names of the families of the combined encoders, in order."""
        return re.split("[+,-]", self.model)

    @property
    def families(self) -> list[Family]:
        """Families of the combined encoders, in order."""
        return [FAMILIES[name] for name in self.parts]

    @property
    def mode(self) -> str:
        """How the vectors of the encoders are combined: `add` or `concatenate`."""
        return "add" if "+" in self.model else "concatenate"

    @property
    def kinds(self) -> list[UnitKind]:
        """Kinds of units that the encoders need a vocabulary of, words first."""
        return sorted({family.units for family in self.families}, reverse=True)

    def resolved(self, width: int | None = None) -> EncoderConfig:
        """Return these settings with `dimension` filled in if it is not given.

        Args:
            width: Dimensions of the word vectors to start from; None if there are none.
        """
        if self.dimension is not None:
            return self
        readers = [family for family in self.families if family.units == "word"]
        # If every table of words has a width of its own, the width of `vectors` says nothing about `dimension`.
        separate = all(getattr(self, family.table_dimension) is not None for family in readers)
        return replace(self, dimension=DIMENSION if width is None or separate else width)

    def table_dimension(self, family: Family) -> int:
        """Return the width of the table of a family under these settings."""
        return int(getattr(self, family.table_dimension) or self.dimension or DIMENSION)
