"""Similarities of pairs of sentences, from an encoder's vectors or from a measure of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.text.protocols import Encoder, fitted


@runtime_checkable
class PairSimilarity(Protocol):
    """A measure that needs no vectors, such as BLEU."""

    def similarities(self, left: list[str], right: list[str]) -> np.ndarray:
        """Compute the similarity of each pair of sentences with the same index [pair]; higher is more alike."""
        ...


@dataclass(frozen=True)
class Similarities:
    """The similarities of the pairs of a set."""

    values: np.ndarray  # Similarities [pair], float64; cosines in [-1, 1] where an encoder made them
    zeros: np.ndarray  # Sides that the encoder gave a vector of zeros [pair], 0 to 2; their cosine is 0
    unknown: np.ndarray  # Sides without any known token [pair], 0 to 2; 0 if the encoder cannot tell


def pair_similarities(encoder: Encoder | PairSimilarity, left: list[str], right: list[str], name: str) -> Similarities:
    """Compute the similarity of every pair; each distinct sentence is encoded once. `name` is for errors."""
    if isinstance(encoder, PairSimilarity):
        values = np.asarray(encoder.similarities(left, right), dtype=np.float64)
        if values.shape != (len(left),):
            raise InputError(f"{name}: expected {len(left)} similarities, one a pair, got the shape {values.shape}")
        none = np.zeros(len(left), np.int64)
        similarities = Similarities(values, zeros=none, unknown=none)
    else:
        similarities = _from_vectors(encoder, left, right, name)
    if not np.isfinite(similarities.values).all():
        pair = int(np.flatnonzero(~np.isfinite(similarities.values))[0])
        raise InputError(
            f"{name}, pair {pair + 1}: the similarity of {left[pair]!r} and {right[pair]!r} is "
            f"{similarities.values[pair]}; a vector of the model is not finite, so it cannot be evaluated"
        )
    return similarities


def _from_vectors(encoder: Encoder, left: list[str], right: list[str], name: str) -> Similarities:
    rows: dict[str, int] = {}
    places = np.array([rows.setdefault(text, len(rows)) for text in [*left, *right]], np.int64)
    left_rows, right_rows = np.split(places, 2)
    sentences = list(rows)
    encoder = fitted(encoder, sentences)
    vectors = vectors_of(encoder, sentences, name)
    zero = (~np.any(vectors != 0, axis=1)).astype(np.int64)
    unknown = np.zeros_like(zero)
    if hasattr(encoder, "known_tokens"):
        unknown += np.asarray(encoder.known_tokens(sentences)) == 0
    return Similarities(
        values=pair_cosines(vectors, left_rows, right_rows),
        zeros=zero[left_rows] + zero[right_rows],
        unknown=unknown[left_rows] + unknown[right_rows],
    )


def vectors_of(encoder: Encoder, sentences: list[str], name: str) -> np.ndarray:
    """Encode sentences into vectors [sentence, dimension], whose shape is checked; `name` is for errors."""
    vectors = np.asarray(encoder.encode(sentences))
    if vectors.ndim != 2 or len(vectors) != len(sentences):
        raise InputError(
            f"{name}: expected a vector for each of {len(sentences)} sentences, got the shape {vectors.shape} from "
            f"{type(encoder).__name__}.encode"
        )
    return vectors


def pair_cosines(vectors: np.ndarray, left: np.ndarray, right: np.ndarray, *, pairs: int = 1024) -> np.ndarray:
    """Cosines [pair] of the rows at indices `left` and `right`, in float64; 0 if a row is all zeros.

    Vectors of `pairs` pairs are widened at once, which bounds the memory and never changes the result.
    """
    values = np.zeros(len(left))
    for start in range(0, len(left), pairs):
        block = slice(start, start + pairs)
        x, y = directions(vectors[left[block]]), directions(vectors[right[block]])
        values[block] = np.einsum("ij,ij->i", x, y)
    # Rounding may step over 1; what is not finite stays so.
    return np.clip(values, -1, 1)


def directions(vectors: np.ndarray) -> np.ndarray:
    """Divide vectors [vector, dimension] by their lengths, in float64; zeros stay zeros."""
    wide = vectors.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        lengths = np.linalg.norm(wide, axis=1, keepdims=True)
        return np.divide(wide, lengths, out=np.zeros_like(wide), where=lengths != 0)
