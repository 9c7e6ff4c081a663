"""Section 6 of PARAGRAM-PHRASE (arXiv:1511.08198): norms of word vectors and the frequency of the words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.correlation import pearson, spearman
from paranmt_hf.evaluation.results import Evaluation, Results, Row
from paranmt_hf.evaluation.word_averages import count_words, word_vectors
from paranmt_hf.evaluation.word_weights import RANK, WordCounts, counts_by_rank
from paranmt_hf.experiments.paragram_table8 import COMMON_WORDS, check_spaces
from paranmt_hf.text.word_vectors import WordVectors

# Words of a file whose norms are measured: those of GloVe 6B, about a gigabyte of vectors of 300 dimensions.
FIRST_WORDS = 400_000
# Words with the largest and the smallest norms that are named.
NAMED_WORDS = 10
ORDERS = {"l1": 1, "l2": 2}


@dataclass(frozen=True)
class WordNorms:
    """Words of an encoder or file: their relative frequencies [word], and the norms of their vectors [word]."""

    name: str
    frequencies: np.ndarray
    norms: dict[str, np.ndarray]


def paragram_section6(spaces: Sequence[str | Path], *, frequencies: str = RANK) -> Evaluation:
    """Measure how the norms of word vectors correlate with the frequency of the words.

    Of a file the first 400,000 words are read.

    Args:
        spaces: Encoders (folders, Hub ids, `small`) or files of word vectors.
        frequencies: How often words occur: rank (the order of each space, by Zipf's law), a list with a word and its
            count on each line, or what is counted: a text, a Parquet file, a corpus (both sides).
    """
    return Evaluation([found for found, _ in norms_of_words(spaces, frequencies)])


def norms_of_words(spaces: Sequence[str | Path], frequencies: str) -> list[tuple[Results, WordNorms]]:
    """Measure the norms of the word vectors of each space; arguments as in `paragram_section6`."""
    check_spaces(spaces)
    counted = None if frequencies == RANK else count_words(frequencies)
    found = []
    for space in spaces:
        vectors = word_vectors(space, limit=FIRST_WORDS)
        counts = counted or counts_by_rank(vectors.words, str(space))
        found.append(measure_norms(str(space), vectors, counts))
    return found


def measure_norms(
    name: str, vectors: WordVectors, counts: WordCounts, common: int = COMMON_WORDS, top: int = NAMED_WORDS
) -> tuple[Results, WordNorms]:
    """Correlate the norms of word vectors with frequency; an unseen word counts 1.

    The `top` words with the largest and the smallest norms are taken from the `common` most common words. Returns the
    figures, and the norms and relative frequencies of the words.
    """
    seen = counts.of(vectors.words)
    if not seen.any():
        raise InputError(
            f"none of the {len(vectors.words):,} words of {name} occurs in {counts.source}; is it of that language?"
        )
    occurrences = np.maximum(seen, 1)
    wide = vectors.matrix.astype(np.float64)
    norms = {label: np.linalg.norm(wide, ord=order, axis=1) for label, order in ORDERS.items()}
    # The most common words; equally common ones in the order of the vectors.
    frequent = np.argsort(-occurrences, kind="stable")[:common]
    rows, notes = [], []
    for label, values in norms.items():
        correlations = {
            "spearman_with_inverse_frequency": _correlation(spearman, values, 1 / occurrences),
            "pearson_with_inverse_frequency": _correlation(pearson, values, 1 / occurrences),
            "pearson_with_minus_log_frequency": _correlation(pearson, values, -np.log(occurrences)),
        }
        order = frequent[np.argsort(-values[frequent], kind="stable")]
        words = [vectors.words[row] for row in order.tolist()]
        largest, smallest = words[:top], words[::-1][:top]
        found = {measure: value for measure, value in correlations.items() if value is not None}
        details = {"unseen": int((seen == 0).sum()), "largest": largest, "smallest": smallest}
        rows.append(Row(name=label, values=found, items=len(vectors.words), details=details))
        notes.append(f"{label.upper()}, largest: {', '.join(largest)}; smallest: {', '.join(smallest)}.")
    notes.append(
        f"Frequencies: {counts.source}; a word that was not seen counts 1. Largest and smallest are among the "
        f"{common:,} most common words."
    )
    result = Results(kind="norms", model=name, tables={"Norm": rows}, notes=notes)
    return result, WordNorms(name, occurrences / counts.total, norms)


def _correlation(
    measure: Callable[[np.ndarray, np.ndarray], float], left: np.ndarray, right: np.ndarray
) -> float | None:
    if len(left) < 2 or np.ptp(left) == 0 or np.ptp(right) == 0:
        return None
    return float(measure(left, right))
