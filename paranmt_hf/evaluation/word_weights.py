"""Compute the weights of words in averages of word vectors, baselines of the papers, and the word counts they need.

PARAGRAM-PHRASE (Wieting et al. 2016, arXiv:1511.08198), section 6; Sent2Vec (arXiv:1703.02507), table 4; SIF
(Arora et al. 2017, "A simple but tough-to-beat baseline for sentence embeddings").
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.util.files import decode_line, open_lines
from paranmt_hf.util.markers import Count, PythonOnly
from paranmt_hf.util.settings import Settings

Weighting = Literal["average", "sif", "blacklist", "inverse-frequency", "norms"]
# Names of the weightings in results.
WEIGHTINGS: Mapping[Weighting, str] = {
    "average": "average",
    "sif": "SIF",
    "blacklist": "blacklist",
    "inverse-frequency": "inverse frequency",
    "norms": "scaled by norms",
}
RANK = "rank"  # Value of `frequencies` that estimates counts from the order of words
SIF_A = 1e-3  # The a of SIF's weights a / (a + p(w)); Arora et al. take values from 1e-4 to 1e-3
_LINE = re.compile(rb"\S+[ \t]\d{1,18}")  # A word and its count, which fits into 18 digits in any corpus


@dataclass(frozen=True)
class WordWeighting(Settings):
    """How words are weighted in averages of word vectors.

    Attributes:
        weighting: Averages of `vectors`: average (each word alike), sif (Arora et al. 2017), blacklist (without the
            25 most frequent words), inverse-frequency, norms (by the L1 norms of `norms_of`).
        frequencies: Where word counts come from: rank (estimated from the order of the file of `vectors`, by Zipf's
            law), a file with a word and its count on each line, or a text to count: a text file, a Parquet file, a
            corpus (both sides).
        blacklist: Number of the most frequent words that blacklist leaves out.
        norms_of: Encoder or file of word vectors whose norms weigh the words.
    """

    weighting: tuple[Weighting, ...] = ("average",)
    frequencies: str = RANK
    blacklist: Annotated[Count, PythonOnly] = 25
    norms_of: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if ("norms" in self.weighting) != (self.norms_of is not None):
            raise InputError("norms_of and the weighting norms must be given together", option="norms_of")

    @property
    def needs_counts(self) -> bool:
        """Whether one of the weightings needs word counts."""
        return bool({"sif", "blacklist", "inverse-frequency"} & set(self.weighting))


def word_weights(
    weighting: Weighting,
    words: Sequence[str],
    config: WordWeighting,
    *,
    counts: WordCounts | None = None,
    norms: Mapping[str, float] | None = None,
    sif_a: float = SIF_A,
) -> np.ndarray:
    """Compute the weight of each word.

    Args:
        weighting: How words are weighted:

            - `average`: 1 for each word.
            - `sif`: a / (a + p), where p is the count of the word over the count of all words; 1 for an unseen word.
            - `blacklist`: 0 for the most frequent words, 1 for all others.
            - `inverse-frequency`: 1 over the count of the word (arXiv:1511.08198, section 6); 1 for an unseen word.
            - `norms`: the norm of the word; a word without one gets the mean of the norms of the other words.
        words: The words.
        config: Number of words on the blacklist.
        counts: Word counts, for `sif`, `blacklist` and `inverse-frequency`.
        norms: L1 norms of word vectors, by word, for `norms`.
        sif_a: The a of `sif`.

    Returns:
        Weights [word], float64, at least 0.

    Raises:
        InputError: All weights are 0.
    """
    if weighting == "average":
        return np.ones(len(words))
    if weighting == "norms":
        assert norms is not None
        known = [norms[word] for word in words if word in norms]
        mean = np.mean(known) if known else 0
        weights = np.array([norms.get(word, mean) for word in words], np.float64)
    else:
        assert counts is not None
        occurrences = counts.of(words)
        if weighting == "sif":
            return sif_a / (sif_a + occurrences / counts.total)
        if weighting == "inverse-frequency":
            return 1 / np.maximum(occurrences, 1)
        left_out = set(counts.most_frequent(config.blacklist))
        weights = np.array([word not in left_out for word in words], np.float64)
    if not weights.any():
        option, advice = "blacklist", "take a smaller `blacklist`"
        if weighting == "norms":
            option, advice = "norms_of", "name other vectors with `norms_of`"
        raise InputError(
            f"the weighting {weighting} leaves none of the {len(words):,} words; {advice}",
            option=option,
        )
    return weights


def weighting_notes(weighting: Weighting, config: WordWeighting, counts: WordCounts | None) -> tuple[str, ...]:
    """Return the notes that results with a weighting carry, such as its formula and the source of the word counts."""
    if weighting == "average":
        return ()
    if weighting == "norms":
        return (f"Scaled by norms: each word weighs the L1 norm of its vector in {config.norms_of}.",)
    assert counts is not None
    formulas = {
        "sif": f"SIF: a = {SIF_A:g}; the first principal component of the sentences of each data set is removed.",
        "blacklist": f"Blacklist: without the {config.blacklist:,} most frequent words.",
        "inverse-frequency": "Inverse frequency: each word weighs 1 / count, an unseen one 1.",
    }
    return (f"{formulas[weighting]} Frequencies of words: {counts.source}.",)


@dataclass(frozen=True)
class WordCounts:
    """How often each word occurs in a corpus."""

    counts: Mapping[str, float]  # Number of occurrences of each word; unseen words are missing
    source: str  # Where the counts come from, for messages and notes

    def __post_init__(self) -> None:
        if not self.total:
            raise InputError(f"{self.source} holds no word, so no word has a frequency; name a text or another list")

    @cached_property
    def total(self) -> float:
        """Number of occurrences of all words together."""
        return float(sum(self.counts.values()))

    def of(self, words: Sequence[str]) -> np.ndarray:
        """Return the number of occurrences of each given word [word], float64; 0 for an unseen word."""
        return np.array([self.counts.get(word, 0) for word in words], np.float64)

    def most_frequent(self, number: int) -> list[str]:
        """Return the most frequent words, in this order; of equally frequent ones the first in order of characters."""
        return sorted(self.counts, key=lambda word: (-self.counts[word], word))[:number]


def counts_by_rank(words: Sequence[str], source: str) -> WordCounts:
    """Estimate word counts by Zipf's law from words in the order of their frequency, which `source` names.

    The word at rank r of n words gets the count n / r.
    """
    return WordCounts(
        {word: len(words) / rank for rank, word in enumerate(words, 1)}, f"order of words in {source} (Zipf's law)"
    )


def is_count_list(path: Path) -> bool:
    """Return whether a file is a list of word counts: most of its first ten lines are a word and a whole number."""
    try:
        with open_lines(path) as lines:
            first = [line.strip() for line in islice(lines, 10)]
    except InputError:
        return False
    filled = [line for line in first if line]
    return 2 * sum(_LINE.fullmatch(line) is not None for line in filled) > len(filled)


def read_counts(path: Path) -> WordCounts:
    """Read a list of words and their counts, such as `enwiki_vocab_min200.txt` of Arora et al. (2017).

    A line is a word, a blank or tab, and a whole number; empty lines are skipped. Words become lower case, and the
    counts of words that are equal then are added up.
    """
    counts: dict[str, float] = {}
    with open_lines(path) as lines:
        for number, line in enumerate(lines, 1):
            if not (stripped := line.strip()):
                continue
            if not _LINE.fullmatch(stripped):
                raise InputError(
                    f"{path}, line {number}: expected a word and how often it occurs, found "
                    f"{stripped[:40].decode('utf8', 'replace')!r}"
                )
            word, count = stripped.split()
            lowered = decode_line(word, path, number).lower()
            counts[lowered] = counts.get(lowered, 0) + int(count)
    return WordCounts(counts, str(path))
