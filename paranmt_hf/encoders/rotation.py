"""Rotate the tables of an averaging encoder: cosines are unchanged, and the first dimensions hold what is chosen.

The mean of rotated rows is the rotated mean of the rows, so a table times an orthogonal matrix gives rotated sentence
vectors. Their cosines change only by rounding. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import nn

from paranmt_hf.encoders.composition import Composition, take_apart
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.errors import InputError


def even_rotation(dimension: int, seed: int) -> np.ndarray:
    """Sample an orthogonal matrix [dimension, dimension] uniformly; all dimensions hold equally much on average."""
    drawn = np.random.default_rng(seed).standard_normal((dimension, dimension))
    orthogonal, upper = np.linalg.qr(drawn)
    # Otherwise the distribution would not be uniform (Mezzadri 2007, arXiv:math-ph/0609050).
    return orthogonal * np.where(np.diag(upper) < 0, -1.0, 1.0)


def second_moment(vectors: Iterable[np.ndarray]) -> np.ndarray:
    """Average the outer product of each normalised vector with itself: [dimension, dimension], float64."""
    total, count = np.zeros((1, 1)), 0
    for batch in vectors:
        wide = batch.astype(np.float64)
        lengths = np.linalg.norm(wide, axis=1, keepdims=True)
        unit = (wide / np.where(lengths > 0, lengths, 1))[lengths[:, 0] > 0]
        total, count = total + unit.T @ unit, count + len(unit)
    if not count:
        raise InputError(
            "the encoder knows none of the words of this text, so there are no principal components; give other text"
        )
    return total / count


def principal_rotation(moment: np.ndarray) -> np.ndarray:
    """Principal components of vectors [dimension, component], those of the largest variance first.

    They are orthogonal, and the largest value of each is positive. The mean is not subtracted, as cosines do not
    either.
    """
    _, components = np.linalg.eigh(moment)
    components = components[:, ::-1]
    largest = components[np.abs(components).argmax(axis=0), np.arange(len(components))]
    return components * np.where(largest < 0, -1.0, 1.0)


def blocks(matrix: np.ndarray, widths: Iterable[int]) -> list[np.ndarray]:
    """Take square blocks of the given widths on the diagonal of a matrix [dimension, dimension]."""
    ends = np.cumsum([0, *widths])
    return [matrix[low:high, low:high] for low, high in zip(ends[:-1], ends[1:], strict=True)]


def refuse_other_weights(encoder: SentenceEncoder, name: str) -> Composition:
    """Decompose an encoder, and reject one with weights other than its tables; `name` is for the error."""
    composition = take_apart(encoder)
    if not composition.only_tables:
        raise InputError(
            f"{name} is a {composition.title}; only averaging encoders (WORD, TRIGRAM and their combinations) are "
            "rotated, because others have weights behind their tables"
        )
    return composition


def rotate_together(encoder: SentenceEncoder, rotation: np.ndarray) -> SentenceEncoder:
    """Rotate all dimensions of an averaging encoder together, by an orthogonal matrix or the first columns of one.

    Concatenated tables become tables as wide as both, whose means are added: [w, t] times a matrix is w R + t S, where
    R and S are the matrix's rows for w and for t. The tables are stored in full precision, and may be changed.
    """
    composition = take_apart(encoder)
    low = 0
    for part in composition.parts:
        high = low + part.dimension
        _multiply(part.modules[0], rotation[low:high])
        low = low if composition.mode == "add" else high
    return encoder.with_parts([part.modules for part in composition.parts], "add")


def rotate_parts(encoder: SentenceEncoder, rotations: list[np.ndarray]) -> SentenceEncoder:
    """Rotate each table of a concatenation, stored in full precision, by its own orthogonal matrix."""
    composition = take_apart(encoder)
    for part, rotation in zip(composition.parts, rotations, strict=True):
        _multiply(part.modules[0], rotation)
    return encoder.with_parts([part.modules for part in composition.parts], "concatenate")


def _multiply(module: nn.Module, matrix: np.ndarray) -> None:
    """Multiply a table by a matrix in place; rows of zeros stay zeros."""
    weight = module.embedding.weight.data.double() @ torch.from_numpy(np.ascontiguousarray(matrix))  # type: ignore[union-attr, operator]
    module.embedding = nn.EmbeddingBag.from_pretrained(weight.float(), freeze=False, mode="mean")
