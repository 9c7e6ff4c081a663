"""Weights of words in averages of word vectors, and word counts: the baselines of the papers.

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
# The names of the weightings in results.
WEIGHTINGS: Mapping[Weighting, str] = {
    "average": "average",
    "sif": "SIF",
    "blacklist": "blacklist",
    "inverse-frequency": "inverse frequency",
    "norms": "scaled by norms",
}
RANK = "rank"
SIF_A = 1e-3  # The a of SIF's weights a / (a + p(w)); Arora et al. take values from 1e-4 to 1e-3
_LINE = re.compile(rb"\S+[ \t]\d{1,18}")  # No corpus has more words than 18 digits count


@dataclass(frozen=True)
class WordWeighting(Settings):
    """Weighting of words in averages of word vectors.

    Attributes:
        weighting: Averages of `vectors`: average (each word alike), sif (Arora et al. 2017), blacklist (without the
            25 most frequent words), inverse-frequency, norms (by the L1 norms of `norms_of`).
        frequencies: How often words occur: rank (the order of the file of `vectors`, by Zipf's law), a list with a
            word and its count on each line, or what is counted: a text, a Parquet file, a corpus (both sides).
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
        """Whether word counts are needed."""
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
    """Compute the weight of each word [word], float64, at least 0, by one of `WEIGHTINGS`.

    `sif`: a / (a + p), so 1 for a word that was not seen. `inverse-frequency`: 1 over the count; a word that was not
    seen counts once (arXiv:1511.08198, section 6). `norms`: the L1 norm of the word's vector in another table; a word
    without one gets their mean. `sif`, `inverse-frequency` and `blacklist` need `counts`.
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
        found = counts.of(words)
        if weighting == "sif":
            return sif_a / (sif_a + found / counts.total)
        if weighting == "inverse-frequency":
            return 1 / np.maximum(found, 1)
        left_out = set(counts.most_frequent(config.blacklist))
        weights = np.array([word not in left_out for word in words], np.float64)
    if not weights.any():
        advice = "name other vectors with `norms_of`" if weighting == "norms" else "take a smaller `blacklist`"
        raise InputError(
            f"the weighting {weighting} leaves none of the {len(words):,} words; {advice}",
            option="norms_of" if weighting == "norms" else None,
        )
    return weights


def weighting_notes(weighting: Weighting, config: WordWeighting, counts: WordCounts | None) -> tuple[str, ...]:
    """Notes on the figures of a weighting."""
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
    """Number of occurrences of each word, and where they come from, for people; a missing word was not seen."""

    counts: Mapping[str, float]
    source: str

    def __post_init__(self) -> None:
        if not self.total:
            raise InputError(f"{self.source} holds no word, so no word has a frequency; name a text or another list")

    @cached_property
    def total(self) -> float:
        """Occurrences of all words together."""
        return float(sum(self.counts.values()))

    def of(self, words: Sequence[str]) -> np.ndarray:
        """Number of occurrences of words [word], float64; 0 for unseen ones."""
        return np.array([self.counts.get(word, 0) for word in words], np.float64)

    def most_frequent(self, number: int) -> list[str]:
        """The most frequent words; equally frequent ones in the order of their characters."""
        return sorted(self.counts, key=lambda word: (-self.counts[word], word))[:number]


def counts_by_rank(words: Sequence[str], source: str) -> WordCounts:
    """Estimate counts from the order of words by Zipf's law: the word at rank r of n counts n / r, the last one 1."""
    return WordCounts(
        {word: len(words) / rank for rank, word in enumerate(words, 1)}, f"order of words in {source} (Zipf's law)"
    )


def is_count_list(path: Path) -> bool:
    """Whether a file is a list for `read_counts`: most of its first lines are a word and an integer."""
    try:
        with open_lines(path) as lines:
            first = [line.strip() for line in islice(lines, 10)]
    except InputError:
        return False
    filled = [line for line in first if line]
    return 2 * sum(_LINE.fullmatch(line) is not None for line in filled) > len(filled)


def read_counts(path: Path) -> WordCounts:
    """Read a list of words and their counts, such as `enwiki_vocab_min200.txt` of Arora et al. (2017).

    A line is a word, a blank or tab, and a whole number; empty lines are passed over. Words are taken in lower case,
    and the counts of equal ones are added up.
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
