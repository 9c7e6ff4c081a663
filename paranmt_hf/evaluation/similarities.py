"""Compute the similarities of sentence pairs, by an encoder's vectors or by a measure such as BLEU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.text.protocols import Encoder, fitted


@runtime_checkable
class PairSimilarity(Protocol):
    """A measure of sentence pairs that needs no vectors, such as BLEU."""

    def similarities(self, left: list[str], right: list[str]) -> np.ndarray:
        """Compute the similarity of `left[i]` and `right[i]` for each i [pair]; a higher number means more similar."""
        ...


@dataclass(frozen=True)
class Similarities:
    """The similarities of the sentence pairs of a set, and counts of unusual sentences."""

    values: np.ndarray  # Similarities [pair], float64; if an encoder gave them, cosines in [-1, 1]
    zeros: np.ndarray  # Number of sentences of each pair whose vector is zeros [pair]; the cosine of such a pair is 0
    unknown: np.ndarray  # Number of sentences of each pair without known tokens [pair]; 0 if the encoder cannot tell


def pair_similarities(encoder: Encoder | PairSimilarity, left: list[str], right: list[str], name: str) -> Similarities:
    """Compute the similarity of each pair of sentences.

    Args:
        encoder: An encoder, whose vectors are compared by their cosine, or a measure of pairs.
        left: First sentence of each pair.
        right: Second sentence of each pair.
        name: Name of the set, for errors.

    Raises:
        InputError: The encoder or measure returns arrays of a wrong shape or numbers that are not finite.
    """
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
    """Compute the cosine of each pair of sentences; each distinct sentence is encoded once."""
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
    """Encode sentences into vectors [sentence, dimension].

    Raises `InputError`, which begins with `name`, if the encoder returns an array of another shape.
    """
    vectors = np.asarray(encoder.encode(sentences))
    if vectors.ndim != 2 or len(vectors) != len(sentences):
        raise InputError(
            f"{name}: expected a vector for each of {len(sentences)} sentences, got the shape {vectors.shape} from "
            f"{type(encoder).__name__}.encode"
        )
    return vectors


def pair_cosines(vectors: np.ndarray, left: np.ndarray, right: np.ndarray, *, pairs: int = 1024) -> np.ndarray:
    """Compute the cosine of each pair of vectors, in double precision.

    Args:
        vectors: Vectors [vector, dimension].
        left: Index of the first vector of each pair [pair].
        right: Index of the second vector of each pair [pair].
        pairs: Number of pairs whose vectors are converted to double precision at once, which bounds the memory.

    Returns:
        Cosines [pair], float64; 0 if a vector is zeros, and not finite if a vector is not finite.
    """
    values = np.zeros(len(left))
    for start in range(0, len(left), pairs):
        block = slice(start, start + pairs)
        x, y = directions(vectors[left[block]]), directions(vectors[right[block]])
        values[block] = np.einsum("ij,ij->i", x, y)
    # Rounding may give numbers just above 1. Numbers that are not finite stay so, for an error with the sentences.
    return np.clip(values, -1, 1)


def directions(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors [vector, dimension] to length 1, in float64; vectors of zeros stay zeros."""
    wide = vectors.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        lengths = np.linalg.norm(wide, axis=1, keepdims=True)
        return np.divide(wide, lengths, out=np.zeros_like(wide), where=lengths != 0)
