"""Whether two sentences mean the same: the probability by their vectors, and differences that vectors do not see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from threading import Lock

import numpy as np
import pyarrow as pa

from paranmt_hf.meaning.differences import ADDRESSES, CLAIMS, NUMBERS, REASONS, MeaningReader
from paranmt_hf.meaning.mismatch_columns import MismatchReader
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.text.normal_form import normal_form

# What a difference multiplies the odds by: about the share of paraphrases with one, 3 %, divided by that of near
# sentences that mean something else, 90 % (benchmarks/meaning.py).
ODDS_WITH_DIFFERENCE = 1 / 30
PAIRS_AT_ONCE = 2**13
REMEMBERED = 100_000  # Number of distinct words after which a process that compares sentences forgets them
_reading = Lock()


@dataclass(frozen=True)
class Meaning:
    """Whether two sentences mean the same, and why not.

    Attributes:
        same: Whether they mean the same: their probability is at least the threshold.
        probability: Probability that they are paraphrases, from 0 to 1.
        reasons: How they differ, in words; empty if no difference was found.
    """

    same: bool
    probability: float
    reasons: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.same


@cache
def _readers() -> tuple[MeaningReader, MismatchReader]:
    """Return the readers of English sentences, and of sentences in other languages, which this process shares."""
    # Digits, units by their signs, and addresses are the same in every language.
    others = ["number_mismatch", "address_mismatch"]
    return MeaningReader(REMEMBERED), MismatchReader(others, REMEMBERED)


def reasons_between(first: Sequence[str], second: Sequence[str], language: str = ENGLISH) -> list[tuple[str, ...]]:
    """Say for each pair of sentences how they differ, in words; nothing if they do not.

    Args:
        first: First sentence of each pair.
        second: Second sentence of each pair.
        language: Language of the sentences (ISO 639-1). In others than English only numbers in digits and addresses
            count.
    """
    found: list[tuple[str, ...]] = []
    for start in range(0, len(first), PAIRS_AT_ONCE):
        part = slice(start, start + PAIRS_AT_ONCE)
        with _reading:
            try:
                found += _reasons(first[part], second[part], language)
            except BaseException:
                # What an interrupted call has read is incomplete.
                _readers.cache_clear()
                raise
    return found


def _reasons(first: Sequence[str], second: Sequence[str], language: str) -> list[tuple[str, ...]]:
    """Say for each pair of some sentences how they differ."""
    english, other = _readers()
    sentences = pa.array([*first, *second], pa.string())
    one = np.arange(len(first))
    two = one + len(first)
    if language == ENGLISH:
        differences = english.compare(sentences, one, two)
        return [tuple(differences.reasons(pair)) if differences.bits[pair] else () for pair in one.tolist()]
    chunks = other.cut(normal_form(sentences))
    reasons: list[list[str]] = [[] for _ in first]
    for name, kind in CLAIMS.items():
        if kind in (NUMBERS, ADDRESSES):
            claimed, claimed_back = other.unconfirmed(name, chunks, one, two)
            for pair in np.flatnonzero(claimed & claimed_back).tolist():
                reasons[pair].append(REASONS[kind])
    return [tuple(some) for some in reasons]


def judged(
    probabilities: np.ndarray, first: Sequence[str], second: Sequence[str], threshold: float, language: str
) -> list[Meaning]:
    """Judge pairs of sentences by their probabilities and their differences.

    Args:
        probabilities: Probability that each pair is one of paraphrases, by the vectors alone [pair].
        first: First sentence of each pair.
        second: Second sentence of each pair.
        threshold: Smallest probability of sentences that mean the same.
        language: Language of the sentences (ISO 639-1).
    """
    found = []
    for probability, reasons in zip(probabilities.tolist(), reasons_between(first, second, language), strict=True):
        if reasons:
            odds = ODDS_WITH_DIFFERENCE * probability
            probability = odds / (odds + 1 - probability)  # noqa: PLW2901 - the same by another name would not help
        found.append(Meaning(probability >= threshold, probability, reasons))
    return found
