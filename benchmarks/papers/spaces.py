"""Word vectors of encoders and files, called spaces, and how often their words occur."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paranmt_hf.evaluation.word_averages import count_words, word_vectors, words_in_order
from paranmt_hf.evaluation.word_weights import WordCounts, counts_by_rank
from paranmt_hf.text.word_vectors import WordVectors

# Number of words that are read from a file: as many as GloVe 6B has, about a gigabyte with 300 dimensions.
FIRST_WORDS = 400_000
RANK = "rank"


@dataclass(frozen=True)
class Norms:
    """The words of a space, with their counts [word] and their L1 and L2 norms [word]; unseen words count 1."""

    name: str
    words: list[str]
    counts: np.ndarray
    total: float
    l1: np.ndarray
    l2: np.ndarray


def parser(description: str | None) -> argparse.ArgumentParser:
    """Create the parser of the options that all programs share which compare spaces."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("spaces", nargs="+", help="encoders (folders, Hub ids, `small`) or files of word vectors")
    made.add_argument(
        "--frequencies",
        default=RANK,
        help="how often words occur: rank (the order of the words of the first space, by Zipf's law), a list with a "
        "word and its count on each line, or what is counted: a text, a Parquet file, a corpus",
    )
    return made


def frequencies(spaces: Sequence[str], source: str) -> WordCounts:
    """Count how often the words of the spaces occur in `source`."""
    return counts_by_rank(words_in_order(spaces[0]), spaces[0]) if source == RANK else count_words(source)


def vectors(space: str, wanted: set[str] | None = None) -> WordVectors:
    """Read the vectors of a space, of the `wanted` words or by default of its first words."""
    return word_vectors(space, wanted) if wanted else word_vectors(space, limit=FIRST_WORDS)


def norms(space: str, source: str) -> Norms:
    """Measure the norms of the word vectors of a space."""
    found = vectors(space)
    counts = counts_by_rank(found.words, space) if source == RANK else count_words(source)
    wide = found.matrix.astype(np.float64)
    return Norms(
        name=space,
        words=found.words,
        counts=np.maximum(counts.of(found.words), 1),
        total=counts.total,
        l1=np.abs(wide).sum(axis=1),
        l2=np.linalg.norm(wide, axis=1),
    )
