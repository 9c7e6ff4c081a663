"""The cosines of unrelated texts, and the threshold that at most one in N pairs of them reaches.

Two texts that are drawn at random are nearly always unrelated, so no ratings are needed. Pairs share texts, and a text
that is near to many others is in many of the pairs with high cosines; so the interval comes from a bootstrap over
texts, in which a pair counts as often as both of its texts together (Owen 2007, "The pigeonhole bootstrap").
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paranmt_hf.corpus.reading.readers import Report
from paranmt_hf.corpus.reading.sentences import SENTENCE, open_sentences
from paranmt_hf.encoders.null_distribution import NullData, NullDistribution
from paranmt_hf.errors import refuse
from paranmt_hf.text.identity import distinct_texts, keys_of
from paranmt_hf.util.files import source_name
from paranmt_hf.util.wording import counted

logger = logging.getLogger(__name__)
MAX_TEXTS = 10_000  # Texts that are compared with each other: 50 million pairs
STEPS = 10_000  # Steps of cosines in 1, which are those of thresholds
# Steps count from a cosine of -2, so that they are never negative.
TOP = 3 * STEPS  # Step of a cosine of 1
NO_PAIR = 0  # Step of what is no pair; cosines begin at `STEPS`
DIGITS = 4  # Decimal places of cosines
TAIL = 4  # The bootstrap looks at this many times the pairs that reach the threshold
RESAMPLES = 200
ENOUGH = 10  # Number of pairs that must reach a threshold


@dataclass(frozen=True)
class NullTexts:
    """The drawn texts of a source, and what the record of a calibration says about them."""

    texts: list[str]
    stated: NullData


def read_null_texts(source: str | Path, column: str | None, rate: int, *, seed: int = 1) -> NullTexts:
    """Read a source of texts, and draw at most `MAX_TEXTS` distinct ones; texts with equal words are one.

    Args:
        source: A source of `open_sentences`.
        column: Its column with text; None if it has only one.
        rate: N of the wanted threshold.
        seed: Seed of the drawing.

    Raises:
        InputError: The texts are too few for a threshold that at most one in N pairs reaches.
    """
    report = Report()
    batches = open_sentences(source, column, option="null_column").batches(report, rows=100_000)
    _, distinct = distinct_texts((keys_of(batch[SENTENCE])[0], batch[SENTENCE]) for batch in batches)
    if report.dropped:
        logger.info(f"{source_name(source)}: {report.describe()}")
    rows = np.arange(len(distinct))
    if len(rows) > MAX_TEXTS:
        rows = np.sort(np.random.default_rng(seed).choice(rows, MAX_TEXTS, replace=False))
    texts = distinct.take(rows).to_pylist()
    pairs = len(texts) * (len(texts) - 1) // 2
    refuse(
        pairs < ENOUGH * rate,
        f"{source_name(source)} has {counted(len(texts), 'distinct text')} and {counted(pairs, 'pair')} of them, too "
        f"few for a threshold of one in {rate:,}; give more texts, or a smaller `null_rate`",
        option="null_rate",
    )
    checksum = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    return NullTexts(texts, NullData(source_name(source), checksum, len(distinct), len(texts), rate))


def null_distribution(
    vectors: np.ndarray, rate: int, *, resamples: int = RESAMPLES, seed: int = 1, block: int = 500
) -> NullDistribution:
    """Compute how the cosines of all pairs of vectors are distributed, and the threshold of at most one in N.

    Args:
        vectors: Unit vectors [text, dimension], float32.
        rate: N of the threshold.
        resamples: Number of resamples of the texts for the interval.
        seed: Seed of the resampling.
        block: Number of texts that are compared with all others at once.

    Raises:
        InputError: More than one in N pairs have the same vector.
    """
    texts = len(vectors)
    pairs = texts * (texts - 1) // 2
    counts = np.zeros(TOP + 1, np.int64)
    for _, steps in _steps_of_pairs(vectors, block):
        counts += np.bincount(steps.ravel(), minlength=len(counts))
    counts[NO_PAIR] = 0
    above = counts[::-1].cumsum()[::-1]
    threshold = _first(above, pairs / rate)
    refuse(
        threshold > TOP,
        f"more than one in {rate:,} pairs of the texts have the same vector, so no cosine is above them: remove "
        "repeated texts with `paranmt dedup`, or give a smaller `null_rate`",
        option="null_rate",
    )
    floor = _first(above, TAIL * pairs / rate)
    first, second, tail = _pairs_from(vectors, floor, block)
    near = np.union1d(first[tail >= threshold], second[tail >= threshold])
    resampled = _resampled_thresholds(first, second, tail - floor, texts, rate, resamples, seed)
    low, high = np.quantile(resampled, [0.025, 0.975], method="nearest") + floor
    # Ten rates in each power of ten, from most pairs down to `ENOUGH` pairs.
    wanted = pairs / 10 ** np.arange(0.1, np.log10(pairs / ENOUGH), 0.1)
    kept = {threshold} | {_first(above, each) for each in wanted}
    return NullDistribution(
        pairs=pairs,
        counts=[(_cosine(step), int(above[step])) for step in sorted(kept) if step <= TOP],
        threshold=_cosine(threshold),
        interval=(_cosine(low), _cosine(high)),
        near=len(near),
    )


def _steps_of_pairs(vectors: np.ndarray, block: int) -> Iterator[tuple[int, np.ndarray]]:
    """Compute the cosines of all pairs of vectors in blocks, rounded down to steps.

    Yields:
        The first text of the block, and the steps [text of the block, text from this one on], int32; `NO_PAIR` for a
        text with itself, and for pairs that stand in another place.
    """
    for start in range(0, len(vectors), block):
        cosines = vectors[start : start + block] @ vectors[start:].T
        steps = ((cosines + 2) * STEPS).astype(np.int32)
        steps[np.tril_indices(len(steps))] = NO_PAIR
        yield start, steps


def _pairs_from(vectors: np.ndarray, floor: int, block: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the pairs whose cosine is at least the step `floor`: first texts, second texts and steps [pair]."""
    found = []
    for start, steps in _steps_of_pairs(vectors, block):
        rows, columns = np.nonzero(steps >= floor)
        found.append((rows + start, columns + start, steps[rows, columns]))
    first, second, tail = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return first, second, tail


def _resampled_thresholds(
    first: np.ndarray, second: np.ndarray, tail: np.ndarray, texts: int, rate: int, resamples: int, seed: int
) -> np.ndarray:
    """Draw texts with replacement, and find the step that at most one in N of their pairs reaches.

    Copies of one text are no pair.

    Args:
        first: First text of each pair in the tail of the distribution [pair].
        second: Second text of each of these pairs [pair].
        tail: Step of each of these pairs, from 0 [pair].
        texts: Number of texts.
        rate: N of the threshold.
        resamples: Number of resamples.
        seed: Seed of the drawing.

    Returns:
        Steps [resample], from 0.
    """
    generator = np.random.default_rng(seed)
    found = np.empty(resamples, np.int64)
    for resample in range(resamples):
        copies = np.bincount(generator.integers(texts, size=texts), minlength=texts).astype(np.float64)
        above = np.bincount(tail, copies[first] * copies[second])[::-1].cumsum()[::-1]
        pairs = float(texts * texts - copies @ copies) / 2
        found[resample] = _first(above, pairs / rate)
    return found


def _first(above: np.ndarray, allowed: float) -> int:
    """Return the first step that at most `allowed` pairs reach; the number of steps if there is none."""
    # The numbers of pairs descend.
    return int(np.searchsorted(-above, -allowed))


def _cosine(step: int) -> float:
    """Return the cosine of a step."""
    return round(min(int(step), TOP) / STEPS - 2, DIGITS)
