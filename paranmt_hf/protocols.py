"""What stages ask of what they are given, so that they meet through arguments and not through imports."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from paranmt_hf.tokens import TokenTable


class Encoder(Protocol):
    """Anything that turns sentences into vectors: a `SentenceTransformer`, or one of our encoders.

    It may also have `known_tokens(sentences) -> int array [sentence]`, the number of tokens it has vectors for.
    """

    def encode(self, sentences: list[str]) -> np.ndarray:
        """Encode sentences into vectors [sentence, dimension]."""
        ...


@runtime_checkable
class TokenEncoder(Protocol):
    """An encoder that can start from word tokens, which saves cutting the text a second time."""

    def encode_tokens(self, tokens: TokenTable) -> np.ndarray:
        """Encode sentences into vectors [sentence, dimension]."""
        ...
