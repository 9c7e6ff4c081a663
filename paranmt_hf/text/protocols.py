"""Interfaces of encoders, so that their users depend on an argument and not on an import."""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Encoder(Protocol):
    """An object that converts sentences to vectors: a `SentenceTransformer`, or one of our encoders.

    It may have further methods:

    - `known_tokens(sentences)` returns the number of tokens of each sentence that have vectors [sentence];
    - `encode_tokens(TokenTable)` encodes sentences that were split already;
    - `fitted(sentences)` returns the encoder for a dataset, if it depends on all distinct sentences of the dataset.
    """

    def encode(self, sentences: list[str]) -> np.ndarray:
        """Encode sentences into vectors [sentence, dimension]."""
        ...


def fitted(encoder: Encoder, sentences: list[str]) -> Encoder:
    """Return the encoder for a dataset of these distinct sentences: itself, unless it depends on them."""
    fit = getattr(encoder, "fitted", None)
    return encoder if fit is None else fit(sentences)
