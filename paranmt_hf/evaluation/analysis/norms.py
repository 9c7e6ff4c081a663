"""How long the vectors of words are, which is how much they count in an average, beside how rare the words are.

PARAGRAM-PHRASE (arXiv:1511.08198), section 6: L1 norms and inverse frequency. Sent2Vec (arXiv:1703.02507), figure 1:
L2 norms and the logarithm of the frequency, beside the weights of SIF.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.correlation import pearson, spearman
from paranmt_hf.evaluation.word_counts import WordCounts
from paranmt_hf.text.word_vectors import WordVectors
from paranmt_hf.util.records import to_json
from paranmt_hf.util.tables import percent, write_table

# Words of a file whose norms are measured: those of GloVe 6B, about a gigabyte of vectors of 300 dimensions.
FIRST_WORDS = 400_000
NORMS = {"l1": 1, "l2": 2}
_HEADER = (
    "Vectors",
    "Norm",
    "Words",
    "Unseen",
    "Spearman, 1/frequency",
    "Pearson, 1/frequency",
    "Pearson, -log frequency",
)


@dataclass(frozen=True)
class NormFigures:
    """How the norms of the vectors of one encoder or file go with frequency; correlations are in [-1, 1].

    Attributes:
        norm: `l1` or `l2`.
        spearman: Spearman's rho of norm and inverse frequency; None where all norms, or all frequencies, are equal.
        pearson: Pearson's r of norm and inverse frequency.
        pearson_log: Pearson's r of norm and the negative logarithm of the frequency.
        largest: Words with the largest norms among the most common ones, largest first.
        smallest: Those with the smallest, smallest first.
    """

    norm: str
    spearman: float | None
    pearson: float | None
    pearson_log: float | None
    largest: list[str]
    smallest: list[str]


@dataclass(frozen=True)
class WordNorms:
    """The norms of the word vectors of one encoder or file.

    Attributes:
        name: Its name.
        words: Number of its words.
        unseen: Those among them that were not seen where frequencies come from; they count 1.
        figures: By norm.
        frequencies: Relative frequency of each word [word].
        norms: The norms [word], by name.
    """

    name: str
    words: int
    unseen: int
    figures: list[NormFigures]
    frequencies: np.ndarray = field(repr=False, compare=False)
    norms: dict[str, np.ndarray] = field(repr=False, compare=False)


@dataclass(frozen=True)
class NormTable:
    """Norms of the word vectors of several encoders or files.

    Attributes:
        source: Where the frequencies come from.
        common: How many of the most common words the lists are chosen from.
        vectors: The encoders and files.
    """

    source: str
    common: int
    vectors: list[WordNorms]

    def to_json(self) -> dict[str, Any]:
        """Give the figures as JSON values, without the single words' norms."""
        return {
            "source": self.source,
            "common": self.common,
            "vectors": [
                {
                    "name": each.name,
                    "words": each.words,
                    "unseen": each.unseen,
                    "figures": [to_json(figures) for figures in each.figures],
                }
                for each in self.vectors
            ],
        }

    def write(self, style: Literal["markdown", "text"] = "text") -> str:
        """Write correlations times 100, and the words with the largest and smallest norms."""
        rows = []
        for each in self.vectors:
            for figures in each.figures:
                found = (figures.spearman, figures.pearson, figures.pearson_log)
                counts = (f"{each.words:,}", f"{each.unseen:,}")
                rows.append((each.name, figures.norm.upper(), *counts, *map(percent, found)))
        blocks = [write_table(_HEADER, rows, style)]
        for each in self.vectors:
            for figures in each.figures:
                name = f"{each.name}, {figures.norm.upper()}"
                blocks.append(
                    f"{name}, largest: {', '.join(figures.largest)}\n{name}, smallest: {', '.join(figures.smallest)}"
                )
        blocks.append(
            f"Correlations x 100. Frequencies: {self.source}; a word that was not seen counts 1. Largest and smallest "
            f"among the {self.common:,} most common words of each."
        )
        return "\n\n".join(blocks)


def measure_norms(
    vectors: Sequence[tuple[str, WordVectors, WordCounts]], source: str, *, common: int, top: int
) -> NormTable:
    """Measure how norms go with frequency.

    Args:
        vectors: Names, word vectors, and how often words occur; one that was not seen counts 1.
        source: Where these counts come from.
        common: How many of the most common words of each the lists are chosen from.
        top: Words of each list.

    Raises:
        InputError: None of the words of an encoder or file was seen.
    """
    found = [_measure(name, each, counts, common, top) for name, each, counts in vectors]
    return NormTable(source, common, found)


def _measure(name: str, vectors: WordVectors, counts: WordCounts, common: int, top: int) -> WordNorms:
    seen = counts.of(vectors.words)
    if not seen.any():
        raise InputError(
            f"none of the {len(vectors.words):,} words of {name} occurs in {counts.source}; is it of that language?"
        )
    occurrences = np.maximum(seen, 1)
    wide = vectors.matrix.astype(np.float64)
    norms = {label: np.linalg.norm(wide, ord=order, axis=1) for label, order in NORMS.items()}
    # The most common words; equally common ones in the order of the vectors.
    frequent = np.argsort(-occurrences, kind="stable")[:common]
    figures = []
    for label, values in norms.items():
        order = frequent[np.argsort(-values[frequent], kind="stable")]
        names = [vectors.words[row] for row in order.tolist()]
        figures.append(
            NormFigures(
                label,
                _correlation(spearman, values, 1 / occurrences),
                _correlation(pearson, values, 1 / occurrences),
                _correlation(pearson, values, -np.log(occurrences)),
                names[:top],
                names[::-1][:top],
            )
        )
    frequencies = occurrences / counts.total
    return WordNorms(name, len(vectors.words), int((seen == 0).sum()), figures, frequencies, norms)


def _correlation(measure: Any, left: np.ndarray, right: np.ndarray) -> float | None:  # noqa: ANN401
    if len(left) < 2 or np.ptp(left) == 0 or np.ptp(right) == 0:
        return None
    return float(measure(left, right))
