"""The settings of an encoder."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from paranmt_hf.encoders.families import ALIASES, FAMILIES, OF_PAIRS, Family, Kind
from paranmt_hf.errors import InputError
from paranmt_hf.util.markers import Advanced, Count, Group, Range
from paranmt_hf.util.settings import Settings
from paranmt_hf.util.wording import perhaps

# Dimensions of the paper's vectors, and the maximum that is accepted.
DIMENSION, WIDEST = 300, 100_000
ARCHITECTURE = Group("architecture", "Sizes, vocabulary and layers of the encoder.")
Width = Annotated[int, Range(at_least=1, at_most=WIDEST)]


@dataclass(frozen=True)
class EncoderConfig(Settings):
    """Which encoder, how wide, and over which vocabulary (ParaNMT-50M, sections 4 and 5).

    Attributes:
        model: word, trigram, lstm, blstm, projection, dan, rnn, irnn or plstm; added with + or next to each other with
            a comma: word+trigram, word,trigram,lstm; word-trigram is word,trigram, paragram-phrase is word.
        dimension: Dimensions of each encoder's vector (section 5.2); 300 if not given, or those of `vectors`.
        word_dimension: Dimensions of the word embeddings of a model with other weights, such as an LSTM or a
            projection; `dimension` if not given.
        trigram_dimension: Dimensions of TRIGRAM next to a wider or narrower encoder; `dimension` if not given.
        words: Maximum number of words, the most frequent ones.
        pieces: Maximum number of pieces, such as ##ing, of which words without a row are made (not in the papers).
        trigrams: Maximum number of character trigrams, the most frequent ones.
        min_count: Leave out words and trigrams that occur less often.
        unknown: Unknown units: zeros; one trained vector for all of them; or, for words, the vector that `vectors` has
            for them (UUUNKKK, `<unk>`), shared by all words without their own.
        directions: How a BLSTM joins its directions (section 4: average; the 4096-d models of table 14: concatenate).
        pooling: LSTM: mean or maximum over the words.
        layers: DAN: layers over the average (arXiv:1511.08198, section 4.2).
        activation: DAN and RNN: activation (arXiv:1511.08198, section 4.2).
        output_gate: LSTM with peepholes: with or without its output gate (arXiv:1511.08198, section 3).
        init_std: Standard deviation of random embeddings; by default 0.05, of words that `vectors` lack a tenth of
            theirs.
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
            # Settings are frozen for everybody else.
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
        if "+" in self.model and re.search("[,-]", self.model):
            raise InputError(f"model must be joined by + or by commas, not both, was {self.model!r}")
        if self.pieces and "word" not in self.kinds:
            raise InputError(f"`pieces` are of words, and {self.model} has none", option="pieces")
        if self.init_from and self.vectors:
            raise InputError("give either vectors or an encoder to start from, not both")
        if self.unknown == "share" and self.vectors is None:
            raise InputError("`unknown` share is about the unknown words of `vectors`; give a file, or another value")

    @property
    def parts(self) -> list[str]:
        """Names of the encoders that are combined."""
        return re.split("[+,-]", self.model)

    @property
    def families(self) -> list[Family]:
        """Families of the encoders."""
        return [FAMILIES[name] for name in self.parts]

    @property
    def mode(self) -> str:
        """How they are combined."""
        return "add" if "+" in self.model else "concatenate"

    @property
    def kinds(self) -> list[Kind]:
        """Kinds of vocabulary that the encoders need, words first."""
        return sorted({family.units for family in self.families}, reverse=True)

    def resolved(self, width: int | None = None) -> EncoderConfig:
        """Fill in the dimension if it is not given, by that of the word vectors to start from, if there are any."""
        if self.dimension is not None:
            return self
        readers = [family for family in self.families if family.units == "word"]
        # Of no use for a model whose word vectors have a width of their own.
        own = all(getattr(self, family.table_dimension) is not None for family in readers)
        return replace(self, dimension=DIMENSION if width is None or own else width)

    def table_dimension(self, family: Family) -> int:
        """Width of the table of one of the encoders."""
        return int(getattr(self, family.table_dimension) or self.dimension or DIMENSION)
