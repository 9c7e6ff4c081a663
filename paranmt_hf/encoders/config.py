"""The settings of an encoder."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from paranmt_hf.encoders.families import ALIASES, FAMILIES, OF_PAIRS, Family, Kind
from paranmt_hf.errors import InputError
from paranmt_hf.util.settings import check, setting

# Dimensions of the paper's vectors, and the most that are taken for meant.
DIMENSION, WIDEST = 300, 100_000


@dataclass(frozen=True)
class EncoderConfig:
    """Which encoder, how wide, and over which vocabulary (ParaNMT-50M, sections 4 and 5)."""

    model: str = setting(
        "word",
        f"{', '.join(OF_PAIRS)}; added with + or side by side with a comma: word+trigram, word,trigram,lstm; "
        "word-trigram is word,trigram, paragram-phrase is word (default: word)",
    )
    dimension: int | None = setting(
        None,
        f"dimensions of each encoder's vector (section 5.2; default: {DIMENSION}, with --vectors those of the file)",
        at_least=1,
        at_most=WIDEST,
    )
    word_dimension: int | None = setting(
        None,
        "dimensions of the word embeddings of a model with weights beside them, such as an LSTM or a projection "
        "(default: as --dimension)",
        at_least=1,
        at_most=WIDEST,
    )
    trigram_dimension: int | None = setting(
        None,
        "dimensions of TRIGRAM beside a wider or narrower encoder (default: as --dimension)",
        at_least=1,
        at_most=WIDEST,
    )
    words: int = setting(100_000, "most frequent words to keep", at_least=1)
    trigrams: int = setting(100_000, "most frequent character trigrams to keep", at_least=1)
    min_count: int = setting(1, "leave out words and trigrams that occur less often", at_least=1)
    unknown: Literal["drop", "train", "share"] = setting(
        "drop",
        "unknown units: zeros; one trained vector for all of them; or, for words, the vector that --vectors has for "
        "them (UUUNKKK, <unk>), shared by all words without one of their own",
    )
    directions: Literal["average", "concatenate"] = setting(
        "average", "how a BLSTM joins its directions (section 4: average; the 4096-d models of table 14: concatenate)"
    )
    pooling: Literal["mean", "max"] = setting("mean", "LSTM: mean or maximum over the words")
    layers: int = setting(1, "DAN: layers over the average (arXiv:1511.08198, section 4.2)", at_least=1, at_most=2)
    activation: Literal["tanh", "relu"] = setting("tanh", "DAN and RNN: activation (arXiv:1511.08198, section 4.2)")
    output_gate: Literal["with", "without"] = setting(
        "with", "LSTM with peepholes: with or without its output gate (arXiv:1511.08198, section 3)"
    )
    init_std: float = setting(
        0.05, "standard deviation of random embeddings; beside given vectors that of the vectors", above=0, at_most=10
    )
    vectors: str | None = setting(None, "word-vector text file to start from; its words join the vocabulary")
    init_from: str | None = setting(
        None, "encoder folder or Hub id to go on from, instead of --vectors and random weights"
    )

    def __post_init__(self) -> None:
        check(self)
        for other, name in ALIASES.items():
            # Settings are frozen for everybody else.
            object.__setattr__(self, "model", re.sub(rf"(?<!\w){other}(?!\w)", name, self.model))
        names = self.parts
        if elsewhere := next((FAMILIES[name] for name in names if name in FAMILIES and name not in OF_PAIRS), None):
            raise InputError(
                f"{elsewhere.name} is trained on text by `paranmt {elsewhere.trained_by}`, and not on pairs; model "
                f"must be made of {', '.join(OF_PAIRS)}"
            )
        if not 1 <= len(names) <= 3 or len(set(names)) != len(names) or any(name not in FAMILIES for name in names):
            raise InputError(
                f"model must be one to three different ones of {', '.join(OF_PAIRS)}, joined by + or by commas, "
                f"was {self.model!r}"
            )
        if "+" in self.model and re.search("[,-]", self.model):
            raise InputError(f"model must be joined by + or by commas, not both, was {self.model!r}")
        if self.init_from and self.vectors:
            raise InputError("give either vectors or an encoder to start from, not both")
        if self.unknown == "share" and self.vectors is None:
            raise InputError("unknown 'share' is about the unknown words of --vectors; name a file, or choose another")

    @property
    def parts(self) -> list[str]:
        """Names of the encoders that are combined."""
        return re.split("[+,-]", self.model)

    @property
    def families(self) -> list[Family]:
        """What is known of them."""
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
        """Fill in the dimension where it was left open.

        Args:
            width: Dimensions of the word vectors to start from, if there are any.
        """
        if self.dimension is not None:
            return self
        readers = [family for family in self.families if family.units == "word"]
        # Of no use for a model whose word vectors have a width of their own.
        own = all(getattr(self, family.table_dimension) is not None for family in readers)
        return replace(self, dimension=DIMENSION if width is None or own else width)

    def table_dimension(self, family: Family) -> int:
        """Width of the table of one of the encoders."""
        return int(getattr(self, family.table_dimension) or self.dimension or DIMENSION)
