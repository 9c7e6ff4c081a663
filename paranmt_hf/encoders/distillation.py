"""Word vectors out of a large encoder: encode each word alone, reduce, weigh by rank.

The recipe of the model2vec library (Tulkens & van Dongen 2024), over a vocabulary of whole words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.settings import check, setting
from paranmt_hf.vectors import WordVectors

Encode = Callable[[list[str]], np.ndarray]
BATCH = 2_000


@dataclass(frozen=True)
class DistillConfig:
    """How word vectors are distilled."""

    words: int = setting(50_000, "most frequent words to encode", at_least=1)
    min_count: int = setting(1, "leave out words that occur less often in the data", at_least=1)
    dimension: int | None = setting(
        None, "reduce to so many dimensions by principal components (default: the model's own)", at_least=1
    )
    unweighted: bool = setting(False, "do not multiply each vector by the logarithm of the word's rank")

    def __post_init__(self) -> None:
        check(self)


def distill(words: Sequence[str], encode: Encode, config: DistillConfig) -> WordVectors:
    """Make word vectors.

    The root mean square of their lengths is 1.

    Args:
        words: The words, most frequent first.
        encode: From texts to vectors [text, dimension].
        config: The settings.

    Raises:
        InputError: There are fewer dimensions or words than asked for, or a vector is not finite.
    """
    parts = []
    with Progress("distill", len(words), unit="words") as progress:
        for start in range(0, len(words), BATCH):
            parts.append(np.asarray(encode(list(words[start : start + BATCH])), np.float32))
            progress.advance_to(min(start + BATCH, len(words)))
    matrix = np.concatenate(parts)
    if not np.isfinite(matrix).all():
        raise InputError("the model gave a vector that is not finite")
    # What all words share tells nothing apart, and it would be the larger part of every average.
    matrix -= matrix.mean(axis=0)
    if config.dimension is not None:
        matrix = principal_components(matrix, config.dimension)
    if not config.unweighted:
        matrix *= np.log(1 + np.arange(1, len(words) + 1, dtype=np.float32))[:, None]
    # Steps of a fixed size are to mean the same whatever the model's own scale.
    size = np.sqrt(np.square(matrix).sum(axis=1).mean())
    if not size > 0:
        raise InputError(f"the model gives all {len(words)} words the same vector; name more words or another model")
    matrix /= size
    return WordVectors(list(words), matrix)


def principal_components(matrix: np.ndarray, dimension: int) -> np.ndarray:
    """Project centred rows [row, width] onto their first principal components [row, dimension]."""
    if dimension > min(matrix.shape):
        raise InputError(
            f"{matrix.shape[0]} words of {matrix.shape[1]} dimensions cannot be reduced to {dimension} dimensions"
        )
    _, vectors = np.linalg.eigh((matrix.T @ matrix).astype(np.float64))
    return (matrix @ vectors[:, ::-1][:, :dimension]).astype(np.float32)
