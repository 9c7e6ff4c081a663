"""The settings of an encoder."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, get_args, get_type_hints

from paranmt_hf.errors import InputError

Kind = Literal["word", "trigram"]
# The encoders by the names of the paper, and the units that each one reads.
PARTS: dict[str, Kind] = {"word": "word", "trigram": "trigram", "lstm": "word", "blstm": "word"}


@dataclass(frozen=True)
class EncoderConfig:
    """Which encoder, how wide, and over which vocabulary (ParaNMT-50M, sections 4 and 5)."""

    model: str = field(
        default="word",
        metadata={"help": "word, trigram, lstm, blstm; added with + or side by side with a comma: word+trigram, "
                  "word,trigram,lstm; word-trigram is word,trigram (default: word)"},
    )  # fmt: skip
    dimension: int = field(default=300, metadata={"help": "dimensions of each encoder's vector (section 5.1)"})
    word_dimension: int | None = field(
        default=None, metadata={"help": "dimensions of an LSTM's word embeddings (as --dimension)"}
    )
    trigram_dimension: int | None = field(
        default=None, metadata={"help": "dimensions of TRIGRAM beside a wider or narrower encoder (as --dimension)"}
    )
    words: int = field(default=100_000, metadata={"help": "most frequent words to keep"})
    trigrams: int = field(default=100_000, metadata={"help": "most frequent character trigrams to keep"})
    minimum: int = field(default=1, metadata={"help": "leave out words and trigrams that occur less often"})
    unknown: Literal["drop", "train"] = field(
        default="drop", metadata={"help": "unknown units: zeros, or one trained vector for all of them"}
    )
    directions: Literal["concatenate", "average"] = field(
        default="concatenate", metadata={"help": "how a BLSTM joins its directions (table 14: concatenate)"}
    )
    pooling: Literal["mean", "max"] = field(default="mean", metadata={"help": "LSTM: mean or maximum over the words"})
    spread: float = field(
        default=0.05, metadata={"help": "standard deviation of random embeddings; beside given vectors as theirs"}
    )
    vectors: str | None = field(
        default=None, metadata={"help": "word-vector text file to start from; its words join the vocabulary"}
    )
    start: str | None = field(
        default=None, metadata={"help": "encoder folder or Hub id to go on from, instead of --vectors and random"}
    )

    def __post_init__(self) -> None:
        names = self.parts
        if not 1 <= len(names) <= 3 or len(set(names)) != len(names) or any(name not in PARTS for name in names):
            raise InputError(
                f"model must be one to three different ones of {', '.join(PARTS)}, joined by + or by commas, "
                f"was {self.model!r}"
            )
        if "+" in self.model and re.search("[,-]", self.model):
            raise InputError(f"model must be joined by + or by commas, not both, was {self.model!r}")
        for name in ("dimension", "words", "trigrams", "minimum"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, was {getattr(self, name)}")
        for name in ("unknown", "directions", "pooling"):
            allowed = get_args(get_type_hints(EncoderConfig)[name])
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} must be one of {', '.join(allowed)}, was {getattr(self, name)!r}")
        for name in ("word_dimension", "trigram_dimension"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, was {getattr(self, name)}")
        if not 0 < self.spread < float("inf"):
            raise InputError(f"spread must be above 0, was {self.spread}")
        if self.start and self.vectors:
            raise InputError("give either vectors or an encoder to start from, not both")

    @property
    def parts(self) -> list[str]:
        """Names of the encoders that are combined."""
        return re.split("[+,-]", self.model)

    @property
    def mode(self) -> str:
        """How they are combined."""
        return "add" if "+" in self.model else "concatenate"

    @property
    def kinds(self) -> list[Kind]:
        """Kinds of vocabulary that the encoders need."""
        return sorted({PARTS[name] for name in self.parts}, reverse=True)
