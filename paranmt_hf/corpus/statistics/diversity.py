"""Figures of how diverse the sentences of a corpus are, as a table and a picture: ParaNMT-50M, section 3.2."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.special import entr

from paranmt_hf.corpus.parsing.trees import Reading
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.text.tokens import PerToken
from paranmt_hf.text.word_rules import word_tokenizer_for
from paranmt_hf.util.files import replacing

# Lower end, upper end and number of bins of each histogram; values outside count in the outermost bins.
BINS = {"length": (0.0, 80.0, 40), "idf": (0.0, 16.0, 64), "para_score": (-1.0, 1.0, 40)}
# What a token is, for English and for other languages.
TOKENS = "lower-cased words, clitics and punctuation marks apart, as in paranmt_hf/text/definitions.py"
OTHER_TOKENS = "lower-cased words of {}, punctuation marks apart, as in paranmt_hf/text/word_rules.py"
IDF = "ln(N / df): N sentences, df of them hold the token, at least 1; mean over the tokens of a sentence"


@dataclass(frozen=True)
class Spread:
    """How a measure is distributed over sentences.

    Attributes:
        mean: Mean of the values.
        deviation: Their standard deviation (divisor n).
        sentences: Number of sentences that have a value.
        histogram: Counts [bin], in the bins of `BINS`.
    """

    mean: float
    deviation: float
    sentences: int
    histogram: list[int]


@dataclass(frozen=True)
class ParseFigures:
    """How diverse the trees of a sample are."""

    parser: str  # Name of the parser
    reading: Reading  # Which levels of a tree count; see `trees.READINGS`
    sentences: int  # Number of sentences given to the parser
    parsed: int  # Number of sentences with a tree
    entropy: float | None  # Entropy of the top levels of the trees in nats; None without trees
    distinct: int  # Number of distinct top levels
    frequent: dict[str, int]  # The ten most frequent top levels, each with its number of sentences


@dataclass(frozen=True)
class CorpusFigures:
    """The figures of a corpus, or of one of its origins; a row of the table."""

    name: str  # Name in the table
    size: int  # Number of sentences in the corpus, for pairs those of one side
    measured: int  # Number of sentences in the sample
    distinct: int  # Number of distinct sentences in the sample
    tokens: int  # Number of word tokens in the sample
    types: int  # Number of distinct word tokens in the sample
    length: Spread  # Number of word tokens in a sentence
    idf: Spread | None  # Mean inverse document frequency of the tokens of a sentence; None without tokens
    para_score: Spread | None  # Paraphrase score of the pairs; None without scores
    vocabulary_entropy: float | None  # Entropy of the distribution of tokens in nats; None without tokens
    parses: ParseFigures | None = None  # Figures of the trees; None without a parser
    dropped: dict[str, int] = field(default_factory=dict)  # Number of unusable rows in the corpus, by reason


def entropy(counts: ArrayLike) -> float | None:
    """Return the entropy in nats, - sum of p ln p, of a distribution given by counts [outcome]; None if all are 0.

    The entropy grows with the total count, so only samples of about the same size should be compared.
    """
    # Sorting makes the last digit independent of the order of the outcomes.
    counts = np.sort(np.asarray(counts, np.float64))
    return abs(float(entr(counts[counts > 0] / counts.sum()).sum())) if counts.any() else None


def spread(values: np.ndarray, measure: str) -> Spread | None:
    """Summarise the values of a measure, a key of `BINS`, in sentences [sentence]; NaN is no value.

    Returns:
        The summary, or None if no sentence has a value.
    """
    values = values[~np.isnan(values)].astype(np.float64)
    if not len(values):
        return None
    low, high, bins = BINS[measure]
    histogram = np.histogram(values.clip(low, high), bins, (low, high))[0]
    return Spread(float(values.mean()), float(values.std()), len(values), histogram.tolist())


class WordCounter:
    """Counts the words of sentences in a language (ISO 639-1); `ids` gives each word its number."""

    def __init__(self, ids: PerToken, language: str = ENGLISH) -> None:
        self._tokenizer, self._ids = word_tokenizer_for(language), ids

    def count(self, sentences: pa.Array | pa.ChunkedArray, *, at_once: int = 20_000) -> csr_array:
        """Return the words of each sentence as a sparse matrix [sentence, word] of counts.

        A word that occurs several times in a sentence has several entries of 1, in the order of the sentence. Memory
        is bounded by working on `at_once` sentences at a time.
        """
        words, lengths = [np.empty(0, np.int32)], [np.zeros(1, np.int64)]
        for start in range(0, len(sentences), at_once):
            (table,) = self._tokenizer.tables(sentences.slice(start, at_once))
            words.append(self._ids.of(table)[table.ids])
            lengths.append(table.lengths)
        columns, bounds = np.concatenate(words), np.cumsum(np.concatenate(lengths))
        shape = (len(sentences), int(columns.max(initial=-1)) + 1)
        return csr_array((np.ones(len(columns), np.int32), columns, bounds), shape)


class DocumentFrequencies:
    """Counts the sentences with each word, for words with the ids 0 to `size` - 1; other words are not counted."""

    def __init__(self, size: int) -> None:
        self.sentences = 0
        self._frequencies = np.zeros(size, np.int64)

    def add(self, counts: csr_array) -> None:
        """Add sentences, given the counts [sentence, word] of their words."""
        self.sentences += counts.shape[0]
        size = len(self._frequencies)
        # A word counts once for each sentence.
        once = counts.copy()
        once.sum_duplicates()
        self._frequencies += np.bincount(once.indices, minlength=size)[:size]

    @property
    def idf(self) -> np.ndarray:
        """Inverse document frequency of each word [word] in nats: ln(N / df), where df is at least 1."""
        return np.log(max(1, self.sentences) / np.maximum(1, self._frequencies))


def mean_idf(counts: csr_array, idf: np.ndarray) -> np.ndarray:
    """Return the mean inverse document frequency of the words of each sentence [sentence]; NaN without words.

    Args:
        counts: Counts [sentence, word] of words.
        idf: Inverse document frequencies [word].
    """
    lengths = counts.sum(axis=1)
    sums = counts @ idf[: counts.shape[1]]
    return np.divide(sums, lengths, out=np.full(len(lengths), np.nan), where=lengths > 0)


def parse_figures(tops: Sequence[str | None], parser: str, reading: Reading) -> ParseFigures:
    """Compute the figures of the trees of a sample.

    Args:
        tops: Top levels of each tree [sentence], as `top_levels` gives them; None for a sentence without a tree.
        parser: Name of the parser.
        reading: Which levels of the trees these are.
    """
    templates = Counter(top for top in tops if top is not None)
    return ParseFigures(
        parser=parser,
        reading=reading,
        sentences=len(tops),
        parsed=templates.total(),
        entropy=entropy(list(templates.values())),
        distinct=len(templates),
        frequent=dict(sorted(templates.items(), key=lambda item: (-item[1], item[0]))[:10]),
    )


def corpus_figures(
    name: str, sample: pa.Table, counts: csr_array, size: int, *, parses: ParseFigures | None, dropped: dict[str, int]
) -> CorpusFigures:
    """Compute all figures of a sample except its IDF.

    Args:
        name: Name of the corpus in the table.
        sample: The sample: `sentence`, and `para_score` if the corpus has it.
        counts: Counts [sentence, word] of the words of the sample.
        size: Number of sentences in the whole corpus.
        parses: Figures of the trees; None without a parser.
        dropped: Number of unusable rows in the corpus, by reason.
    """
    words = counts.sum(axis=0)
    length = spread(counts.sum(axis=1).astype(np.float64), "length")
    assert length is not None
    scored = "para_score" in sample.column_names
    return CorpusFigures(
        name=name,
        size=size,
        measured=len(sample),
        distinct=pc.count_distinct(sample["sentence"]).as_py(),
        tokens=int(words.sum()),
        types=int(np.count_nonzero(words)),
        length=length,
        idf=None,
        para_score=spread(sample["para_score"].to_numpy(), "para_score") if scored else None,
        vocabulary_entropy=entropy(words),
        parses=parses,
        dropped=dropped,
    )


HEADER = ("Corpus", "Size", "Measured", "Length", "IDF", "Para. score", "Vocab. entropy", "Parse entropy")


def figures_row(each: CorpusFigures) -> tuple[str, ...]:
    """Return the row of a corpus in the table with the head `HEADER`."""
    parses = "no parser" if each.parses is None else _number(each.parses.entropy)
    return (
        each.name,
        f"{each.size:,}",
        f"{each.measured:,}",
        _spread(each.length, 1),
        _spread(each.idf, 1),
        _spread(each.para_score, 2),
        _number(each.vocabulary_entropy),
        parses,
    )


def notes_of(each: CorpusFigures) -> list[str]:
    """Return the notes below the table on one corpus."""
    notes = []
    if each.distinct < 0.9 * each.measured:
        notes.append(f"{each.name}: of the {each.measured:,} sentences measured {each.distinct:,} are distinct.")
    if each.para_score is not None and each.para_score.sentences < each.measured:
        notes.append(f"{each.name}: {each.para_score.sentences:,} of {each.measured:,} have a paraphrase score.")
    if each.parses is not None:
        notes.append(
            f"{each.name}: {each.parses.parsed:,} of {each.parses.sentences:,} sentences have a tree, by "
            f"{each.parses.parser}."
        )
    if each.dropped:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in each.dropped.items())
        notes.append(f"{each.name}: rows left out: {reasons}.")
    return notes


def plot_figures(corpora: Sequence[CorpusFigures], path: Path) -> None:
    """Draw the distributions of the figures, the corpora side by side, into a PNG file."""
    from matplotlib.figure import Figure

    panels = {
        "length": "tokens (the last: 80 and more)",
        "idf": "mean IDF of a sentence",
        "para_score": "paraphrase score",
    }
    shown = [name for name in panels if any(getattr(each, name) is not None for each in corpora)]
    count = len(shown) + 1
    figure = Figure(figsize=(1.6 + 2.7 * count, 1.3 + 0.62 * len(corpora)), layout="constrained")
    axes = figure.subplots(1, count, sharey=True, squeeze=False)[0]
    for axis, name in zip(axes, shown, strict=False):
        axis.set_xlabel(panels[name])
    axes[-1].set_xlabel("entropy of words, and of parses, in nats")
    axes[-1].set_xlim(left=0)
    colours = ("#4472c4", "#ed7d31", "#70ad47", "#7f6084", "#a5a5a5", "#c55a5a")
    for position, each in enumerate(corpora):
        colour = colours[position % len(colours)]
        for axis, name in zip(axes, shown, strict=False):
            _draw_spread(axis, getattr(each, name), BINS[name], position, colour)
        entropies = [each.vocabulary_entropy, each.parses.entropy if each.parses else None]
        for shift, value in zip((-0.18, 0.18), entropies, strict=True):
            if value is not None:
                axes[-1].barh(position + shift, value, height=0.32, color=colour, alpha=0.75 if shift < 0 else 0.4)
                axes[-1].text(value, position + shift, f" {value:.1f}", va="center", fontsize=8)
    for axis in axes:
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.tick_params(axis="y", length=0)
    axes[0].set_yticks(range(len(corpora)), [each.name for each in corpora])
    axes[0].set_ylim(len(corpora) - 0.4, -0.6)
    figure.supxlabel("dot and line: mean and standard deviation", fontsize=8, color="grey")
    with replacing(path) as aside:
        figure.savefig(aside, format="png", dpi=110, metadata={"Software": None})


def _draw_spread(axis: Any, found: Spread | None, bins: tuple[float, float, int], position: int, colour: str) -> None:  # noqa: ANN401
    """Draw the histogram of a measure as a violin, with mean and standard deviation, at a position of the y axis."""
    if found is None:
        return
    low, high, count = bins
    shares = np.array(found.histogram) / max(found.histogram)
    used = np.flatnonzero(shares)
    # Empty bins at both ends are left out.
    edges = np.linspace(low, high, count + 1)[used[0] : used[-1] + 2]
    half = 0.42 * np.append(shares[used[0] : used[-1] + 1], 0)
    axis.fill_between(edges, position - half, position + half, step="post", color=colour, alpha=0.45, linewidth=0)
    axis.errorbar(found.mean, position, xerr=found.deviation, fmt="o", color=colour, markersize=5, capsize=3)


def _spread(found: Spread | None, digits: int) -> str:
    """Format a mean and standard deviation for the table."""
    return "none" if found is None else f"{found.mean:.{digits}f} ± {found.deviation:.{digits}f}"


def _number(value: float | None) -> str:
    """Format a number for the table."""
    return "none" if value is None else f"{value:.1f}"
