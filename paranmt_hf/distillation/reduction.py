"""Word vectors from large encoders, reduced and weighted.

Of words alone, weighted by rank: the recipe of the model2vec library (Tulkens & van Dongen 2024), over a vocabulary of
whole words. Of words in context (`contexts.py`), weighted by frequency (SIF, Arora et al. 2017).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.text.word_vectors import WordVectors
from paranmt_hf.util.markers import Count, Group, Range
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.settings import Settings
from paranmt_hf.util.wording import counted

if TYPE_CHECKING:
    import torch

Encode = Callable[[list[str]], np.ndarray]
WORDS_AT_ONCE = 2_000  # Words that are encoded at once
# The a of SIF's weights a / (a + p).
SIF_A = 1e-3
FREQUENT = Group("most_frequent", "Which words get a vector.")
READING = Group("reading", "How words are read in sentences, instead of alone.")
REDUCTION = Group("reduction", "How vectors are weighted and reduced.")


class ResumeStore(Protocol):
    """Stores unfinished work, so that it continues after an interruption."""

    def read(self) -> dict[str, torch.Tensor] | None:
        """Return the last state; None if there is none."""
        ...

    def offer(self, state: Callable[[], dict[str, torch.Tensor]]) -> None:
        """Store a state if one is due; it is only computed then."""
        ...


@dataclass(frozen=True)
class VectorsConfig(Settings):
    """How word vectors are distilled.

    Attributes:
        words: Maximum number of words, the most frequent ones.
        min_count: Leave out words that occur less often in the data.
        dimension: Reduce to this number of dimensions by principal components; those of the model if not given.
        unweighted: Do not weight words by the logarithm of their rank (alone) or by a / (a + frequency) (in context).
        contexts: Take the mean of each word's states in this number of sentences of the text, instead of encoding
            each word alone.
        precision: Of the model with `contexts`; bf16 is twice as fast if the processor has it, else slower.
        remove: Leave out this number of first principal components.
    """

    words: Annotated[Count, FREQUENT] = 50_000
    min_count: Annotated[Count, FREQUENT] = 1
    dimension: Annotated[Count | None, REDUCTION] = None
    unweighted: Annotated[bool, REDUCTION] = False
    contexts: Annotated[Count | None, READING] = None
    precision: Annotated[Literal["float32", "bf16"], READING] = "float32"
    remove: Annotated[int, Range(at_least=0), REDUCTION] = 0


def distill_alone(
    words: Sequence[str], encoders: Sequence[Encode], config: VectorsConfig, kept: Sequence[ResumeStore] = ()
) -> WordVectors:
    """Distill vectors of words without context; the root mean square of their lengths is 1.

    `kept` has a store for the unfinished work of each encoder; without them an interrupted call starts again.
    """
    stores: Sequence[ResumeStore | None] = kept or [None] * len(encoders)
    matrix = _side_by_side([_alone(words, *part) for part in zip(encoders, stores, strict=True)])
    if config.dimension is not None or config.remove:
        matrix = matrix @ components(matrix, config.dimension, config.remove)
    if not config.unweighted:
        matrix *= np.log(1 + np.arange(1, len(words) + 1, dtype=np.float32))[:, None]
    return WordVectors(list(words), _scaled(matrix))


def distill_in_context(
    words: Sequence[str],
    states: Sequence[np.ndarray],
    counts: np.ndarray,
    average: Callable[[np.ndarray], np.ndarray],
    config: VectorsConfig,
) -> WordVectors:
    """Distill vectors from the mean states of words in sentences; the root mean square of their lengths is 1.

    Given are the states [word, dimension] under each encoder, how often each word occurs [word], and a function from
    word vectors to the means of some sentences of the text [sentence, dimension]. Principal components are those of
    sentences, not of words, so that they keep the differences between sentences.
    """
    matrix = _side_by_side(states)
    if not config.unweighted:
        matrix *= (SIF_A / (SIF_A + counts / max(counts.sum(), 1))).astype(np.float32)[:, None]
    if config.dimension is not None or config.remove:
        sentences = average(matrix)
        matrix = matrix @ components(sentences - sentences.mean(axis=0), config.dimension, config.remove)
    return WordVectors(list(words), _scaled(matrix))


def _alone(words: Sequence[str], encode: Encode, kept: ResumeStore | None) -> np.ndarray:
    import torch

    found = kept.read() if kept is not None else None
    parts = [] if found is None else [found["vectors"].numpy()]
    done = sum(map(len, parts))
    with Progress("distill", len(words), done=done, unit="words") as progress:
        for start in range(done, len(words), WORDS_AT_ONCE):
            parts.append(np.asarray(encode(list(words[start : start + WORDS_AT_ONCE])), np.float32))
            progress.advance_to(min(start + WORDS_AT_ONCE, len(words)))
            if kept is not None:
                kept.offer(lambda: {"vectors": torch.from_numpy(np.concatenate(parts))})
    return np.concatenate(parts)


def _side_by_side(matrices: Sequence[np.ndarray]) -> np.ndarray:
    """Centre each encoder's vectors [word, dimension], scale them to size 1, and concatenate them."""
    for matrix in matrices:
        if not np.isfinite(matrix).all():
            raise InputError("the model gave a vector that is not finite")
    # What all words share distinguishes nothing, and would be the larger part of every average.
    return np.hstack([_scaled(matrix - matrix.mean(axis=0)) for matrix in matrices])


def _scaled(matrix: np.ndarray) -> np.ndarray:
    """Scale vectors to a root mean square length of 1, so that learning rates do not depend on a model's scale."""
    size = np.sqrt(np.square(matrix).sum(axis=1).mean())
    if not size > 0:
        raise InputError(f"the model gives all {len(matrix)} words the same vector; name more words or another model")
    return np.asarray(matrix / size, np.float32)


def components(rows: np.ndarray, dimension: int | None, remove: int = 0) -> np.ndarray:
    """Find principal components of centred rows [row, width], by falling variance: [width, dimension], float32.

    `dimension` is their number, None for all that are left; the first `remove` ones are left out.
    """
    check_reduction(rows.shape[0], rows.shape[1], dimension, remove)
    last = remove + dimension if dimension is not None else min(rows.shape)
    _, vectors = np.linalg.eigh((rows.T @ rows).astype(np.float64))
    return np.asarray(vectors[:, ::-1][:, remove:last], np.float32)


def check_reduction(rows: int, width: int, dimension: int | None, remove: int) -> None:
    """Reject a reduction to more principal components than there are; arguments as in `components`."""
    most = min(rows, width)
    if remove + (dimension or 1) > most:
        wanted = f"{dimension} dimensions" if dimension is not None else "what is left of them"
        first = f" without the first {remove}" if remove else ""
        advice = (
            "give more text or a smaller `dimension`" if width > most else "give a smaller `dimension` or `remove`"
        )
        raise InputError(
            f"{counted(rows, 'vector')} of {counted(width, 'dimension')} cannot be reduced to {wanted}{first}; "
            f"{advice}"
        )
