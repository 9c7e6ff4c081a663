"""Interfaces that stages share, so that they depend on arguments and not on imports."""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Encoder(Protocol):
    """Converts sentences to vectors: a `SentenceTransformer`, or one of our encoders.

    It may also have `known_tokens(sentences) -> int array [sentence]`, the number of tokens it has vectors for;
    `encode_tokens(TokenTable)`, which avoids splitting the text again; and `fitted(sentences) -> Encoder`, the encoder
    of a dataset if it depends on all its distinct sentences.
    """

    def encode(self, sentences: list[str]) -> np.ndarray:
        """Encode sentences into vectors [sentence, dimension]."""
        ...


def fitted(encoder: Encoder, sentences: list[str]) -> Encoder:
    """Return the encoder for a dataset: itself, unless it depends on the distinct sentences of the set."""
    fit = getattr(encoder, "fitted", None)
    return encoder if fit is None else fit(sentences)
