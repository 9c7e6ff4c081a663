"""What stages ask of what they are given, so that they meet through arguments and not through imports."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from paranmt_hf.text.tokens import TokenTable


class Encoder(Protocol):
    """Anything that turns sentences into vectors: a `SentenceTransformer`, or one of our encoders.

    It may also have `known_tokens(sentences) -> int array [sentence]`, the number of tokens it has vectors for, and
    `fitted(sentences) -> Encoder`, the encoder of a data set where that depends on all of its distinct sentences.
    """

    def encode(self, sentences: list[str]) -> np.ndarray:
        """Encode sentences into vectors [sentence, dimension]."""
        ...


def fitted(encoder: Encoder, sentences: list[str]) -> Encoder:
    """Give the encoder of a data set: itself, unless it depends on the distinct sentences of the set."""
    fit = getattr(encoder, "fitted", None)
    return encoder if fit is None else fit(sentences)


class Syntax(Protocol):
    """Something that gives the trees of sentences, without their words: `(S(NP(DT)(NN))(VP(VBZ)))`."""

    def trees(self, sentences: list[str]) -> list[str | None]:
        """Give the linearised trees of sentences; None for a sentence that has none."""
        ...

    def template(self, text: str) -> str:
        """Read a template that a person wrote, and write it as the top of a linearised tree is written."""
        ...


@runtime_checkable
class TokenEncoder(Protocol):
    """An encoder that can start from word tokens, which saves cutting the text a second time."""

    def encode_tokens(self, tokens: TokenTable) -> np.ndarray:
        """Encode sentences into vectors [sentence, dimension]."""
        ...
