"""Make word vectors from the vectors or states that large encoders give words, by reducing and weighting them.

Vectors of words alone are weighted by rank: the recipe of the model2vec library (Tulkens & van Dongen 2024), over a
vocabulary of whole words. States of words in context (`contexts.py`) are weighted by frequency (SIF, Arora et al.
2017).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from paranmt_hf.errors import refuse
from paranmt_hf.text.word_vectors import WordVectors
from paranmt_hf.training.checkpoint import CheckpointFile
from paranmt_hf.util.markers import Count, Group
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.settings import Settings
from paranmt_hf.util.wording import counted

Encode = Callable[[list[str]], np.ndarray]
FREQUENT = Group("most_frequent", "Which words get a vector.")
READING = Group("reading", "How words are read in sentences, instead of alone.")


@dataclass(frozen=True)
class VectorsConfig(Settings):
    """How word vectors are distilled.

    Attributes:
        words: Maximum number of words, the most frequent ones.
        min_count: Leave out words that occur less often in the data.
        dimension: Reduce to this number of dimensions by principal components; those of the model if not given.
        contexts: Take the mean of each word's states in this number of sentences of the text, instead of encoding
            each word alone.
        precision: Precision in which the model computes with `contexts`; bf16 is twice as fast if the processor
            supports it, and slower otherwise.
    """

    words: Annotated[Count, FREQUENT] = 50_000
    min_count: Annotated[Count, FREQUENT] = 1
    dimension: Annotated[Count | None, Group("reduction", "How vectors are reduced.")] = None
    contexts: Annotated[Count | None, READING] = None
    precision: Annotated[Literal["float32", "bf16"], READING] = "float32"


def encode_words(words: Sequence[str], encode: Encode, kept: CheckpointFile) -> np.ndarray:
    """Encode words without context into vectors [word, dimension], float32.

    Args:
        words: The words.
        encode: Function that encodes texts into vectors [text, dimension].
        kept: Checkpoint of an earlier call with the same words, from which this call continues.
    """
    found = kept.read("np")
    parts = [] if found is None else [found[0]["vectors"]]
    done = sum(map(len, parts))
    with Progress("distill", len(words), done=done, unit="words") as progress:
        for start in range(done, len(words), 2000):
            parts.append(np.asarray(encode(list(words[start : start + 2000])), np.float32))
            progress.advance_to(start + len(parts[-1]))
            if kept.is_due:
                kept.write({"vectors": np.concatenate(parts)}, {})
    return np.concatenate(parts)


def reduce_alone(words: Sequence[str], encoded: Sequence[np.ndarray], dimension: int | None) -> WordVectors:
    """Make word vectors from vectors of words without context; the root mean square of their lengths is 1.

    Args:
        words: The words, by falling frequency.
        encoded: Vectors of the words [word, dimension] under each encoder.
        dimension: Number of dimensions to reduce to by principal components; None to keep all.
    """
    matrix = _side_by_side(encoded)
    if dimension is not None:
        matrix = matrix @ components(matrix, dimension)
    matrix *= np.log(1 + np.arange(1, len(words) + 1, dtype=np.float32))[:, None]
    return WordVectors(list(words), _scaled(matrix))


def reduce_in_context(
    words: Sequence[str],
    states: Sequence[np.ndarray],
    counts: np.ndarray,
    average: Callable[[np.ndarray], np.ndarray],
    dimension: int | None,
) -> WordVectors:
    """Make word vectors from the mean states of words in sentences; the root mean square of their lengths is 1.

    The principal components are those of sentences, not of words, so that they keep the differences between sentences.

    Args:
        words: The words.
        states: Mean states of the words [word, dimension] under each encoder.
        counts: How often each word occurs [word].
        average: Function from word vectors [word, dimension] to the means of some sentences [sentence, dimension].
        dimension: Number of dimensions to reduce to; None to keep all.
    """
    matrix = _side_by_side(states)
    # Multiply by the weights of SIF, a / (a + p), where p is the frequency of a word and a is 1e-3.
    matrix *= (1e-3 / (1e-3 + counts / max(counts.sum(), 1))).astype(np.float32)[:, None]
    if dimension is not None:
        sentences = average(matrix)
        matrix = matrix @ components(sentences - sentences.mean(axis=0), dimension)
    return WordVectors(list(words), _scaled(matrix))


def _side_by_side(matrices: Sequence[np.ndarray]) -> np.ndarray:
    """Centre each encoder's vectors [word, dimension], scale them to a size of 1, and concatenate them."""
    for matrix in matrices:
        refuse(not np.isfinite(matrix).all(), "the model gave a vector that is not finite")
    # Centre them, because a part that all words share distinguishes nothing, and would dominate every average.
    return np.hstack([_scaled(matrix - matrix.mean(axis=0)) for matrix in matrices])


def _scaled(matrix: np.ndarray) -> np.ndarray:
    """Scale vectors [word, dimension] to a root mean square length of 1, so that learning rates fit every model."""
    size = np.sqrt(np.square(matrix).sum(axis=1).mean())
    same = f"the model gives all {len(matrix)} words the same vector; name more words or another model"
    refuse(not size > 0, same)
    return np.asarray(matrix / size, np.float32)


def components(rows: np.ndarray, dimension: int) -> np.ndarray:
    """Return the first principal components [width, dimension], float32, of centred rows [row, width]."""
    check_reduction(rows.shape[0], rows.shape[1], dimension)
    _, vectors = np.linalg.eigh((rows.T @ rows).astype(np.float64))
    return np.asarray(vectors[:, ::-1][:, :dimension], np.float32)


def check_reduction(rows: int, width: int, dimension: int | None) -> None:
    """Reject a reduction to more dimensions than there are, or than there are rows; None stands for no reduction."""
    refuse(
        (dimension or 1) > min(rows, width),
        f"{counted(rows, 'vector')} of {counted(width, 'dimension')} cannot be reduced to {dimension} dimensions; "
        "give more text or a smaller `dimension`",
        option="dimension",
    )
