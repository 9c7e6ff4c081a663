"""Counts of labels in each range of the score, as in table 3 of ParaNMT-50M (Wieting & Gimpel 2018), and agreement.

Agreement is measured by Cohen's weighted kappa (Cohen 1968), because the labels are ordered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from paranmt_hf.apps.annotate.answers import Rating
from paranmt_hf.apps.annotate.sample import AnnotationSample, RangeSummary
from paranmt_hf.errors import InputError
from paranmt_hf.util.records import as_json
from paranmt_hf.util.tables import markdown_table


def weighted_kappa(counts: np.ndarray, weights: Literal["linear", "quadratic"]) -> np.ndarray:
    """Compute weighted kappa, 1 - sum(w O) / sum(w E), from counts of the pairs of labels that two people gave.

    O are the observed counts, and E those expected of two people who label at random with the same frequencies. The
    weight w of the labels i and j is |i - j| (linear) or (i - j)^2 (quadratic).

    Args:
        counts: How often the first person gave label i and the second one label j [..., i, j].
        weights: Which weights.

    Returns:
        Kappa [...], float64; NaN where it is undefined because both people gave only one and the same label.
    """
    counts = np.asarray(counts, np.float64)
    labels = np.arange(counts.shape[-1])
    weight = np.abs(labels[:, None] - labels) ** (1 if weights == "linear" else 2)
    total = counts.sum(axis=(-2, -1))
    rows, columns = counts.sum(axis=-1), counts.sum(axis=-2)
    observed = (counts * weight).sum(axis=(-2, -1)) * total
    expected = (rows[..., :, None] * columns[..., None, :] * weight).sum(axis=(-2, -1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(expected > 0, 1 - observed / expected, np.nan)


@dataclass(frozen=True)
class PairAgreement:
    """The agreement of two people."""

    first: str  # Name of the one
    second: str  # Name of the other
    items: int  # Number of pairs of sentences that both labelled
    same: float | None  # Share of these pairs with equal labels, from 0 to 1; None if there are none
    linear: float | None  # Kappa with linear weights; None if undefined
    quadratic: float | None  # Kappa with quadratic weights; None if undefined


@dataclass(frozen=True)
class Agreement:
    """The agreement of several people: means over every two people who labelled pairs of sentences in common."""

    items: int  # Number of pairs of sentences that at least two people labelled
    same: float | None  # Mean share of equal labels, from 0 to 1; None if no two people have a pair in common
    linear: float | None  # Mean kappa with linear weights, where it is defined; None if it never is
    quadratic: float | None  # Mean kappa with quadratic weights, likewise
    # 95 % interval of `quadratic`: percentiles over resampled pairs of sentences; None if it was not computed
    interval: tuple[float, float] | None
    pairs: list[PairAgreement]  # The agreement of every two people


def agreement(
    names: Sequence[str], given: np.ndarray, labels: Sequence[int], *, resamples: int = 0, seed: int = 0
) -> Agreement:
    """Compute the agreement of people from their labels.

    Args:
        names: Names of the people.
        given: Label that each person gave to each item [person, item]; -1 for none.
        labels: The possible labels, successive whole numbers.
        resamples: Number of resamples of the items for the interval; 0 to compute none.
        seed: Seed of the resamples.
    """
    # An item that fewer than two people labelled shows no agreement.
    given = given[:, (given >= 0).sum(axis=0) >= 2]
    pairs = []
    cells = []
    for first, second in combinations(range(len(names)), 2):
        # Counts [item, label, label]: for each item that both people labelled, a 1 at their two labels.
        both = np.flatnonzero((given[first] >= 0) & (given[second] >= 0))
        of_items = np.zeros((given.shape[1], len(labels), len(labels)))
        of_items[both, given[first][both] - labels[0], given[second][both] - labels[0]] = 1
        cells.append(of_items)
        counts = of_items.sum(axis=0)
        pairs.append(
            PairAgreement(
                names[first],
                names[second],
                len(both),
                same=float(np.trace(counts) / len(both)) if len(both) else None,
                linear=_defined(weighted_kappa(counts, "linear")),
                quadratic=_defined(weighted_kappa(counts, "quadratic")),
            )
        )
    interval = None
    if resamples and given.size:
        kappas = _resampled(cells, resamples, seed)
        defined = kappas[~np.isnan(kappas).all(axis=1)]
        if len(defined):
            low, high = np.percentile(np.nanmean(defined, axis=1), [2.5, 97.5])
            interval = float(low), float(high)
    return Agreement(
        items=given.shape[1],
        same=_mean([pair.same for pair in pairs]),
        linear=_mean([pair.linear for pair in pairs]),
        quadratic=_mean([pair.quadratic for pair in pairs]),
        interval=interval,
        pairs=pairs,
    )


def _defined(value: np.ndarray) -> float | None:
    return None if np.isnan(value) else float(value)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _resampled(cells: Sequence[np.ndarray], resamples: int, seed: int) -> np.ndarray:
    """Compute quadratic kappa of every two people on resamples of the items.

    Each resample draws, with replacement, as many items as there are.

    Args:
        cells: For every two people, counts [item, label, label]: a 1 at their two labels of each item.
        resamples: Number of resamples.
        seed: Seed of the draws.

    Returns:
        Kappa [resample, two people]; NaN where it is undefined.
    """
    generator = np.random.default_rng(seed)
    items = len(cells[0])
    kappas = np.empty((resamples, len(cells)))
    # The resamples are drawn in blocks, because all draws together would take much memory.
    for start in range(0, resamples, 50):
        block = kappas[start : start + 50]
        draws = generator.multinomial(items, np.full(items, 1 / items), len(block))
        for couple, counts in enumerate(cells):
            block[:, couple] = weighted_kappa(np.tensordot(draws, counts, 1), "quadratic")
    return kappas


# What agreement is measured on: the labels of the table, and the six classes before they are folded to labels. Each
# has a name and its possible labels.
MEASURED = {
    "paraphrase": ("paraphrase, 3 labels", (1, 2, 3)),
    "fluency": ("fluency, 3 labels", (1, 2, 3)),
    "strength": ("paraphrase, 6 classes", (0, 1, 2, 3, 4, 5)),
}


@dataclass(frozen=True)
class LabelCounts:
    """How often the labels 1, 2 and 3 were given, by question."""

    paraphrase: tuple[int, int, int]
    fluency: tuple[int, int, int]


@dataclass(frozen=True)
class AnnotatorProgress:
    """The progress of an annotator: the numbers of rated, of skipped, and of all pairs of the sample."""

    rated: int
    skipped: int
    pairs: int


@dataclass(frozen=True)
class AnnotationTable:
    """Counts of the labels in each range of the score, and the agreement of the annotators."""

    corpus: str  # Name of the corpus
    ranges: list[RangeSummary]  # The ranges of the score, with statistics of the whole corpus
    annotators: dict[str, AnnotatorProgress]  # Progress of each annotator by name
    together: list[LabelCounts]  # Counts of the labels of all annotators, for each range
    each: dict[str, list[LabelCounts]]  # Counts of the labels of each annotator by name, for each range
    agreement: dict[str, Agreement]  # By the names in `MEASURED`; empty if there is one annotator

    def to_json(self) -> dict[str, Any]:
        values = as_json(self)
        values["ranges"] = [
            {"range": part.label, **found} for part, found in zip(self.ranges, values["ranges"], strict=True)
        ]
        return values

    def summary(self) -> str:
        """Return tables of the labels and of the agreement, in Markdown, with shares of the labels in percent."""
        people = []
        for name, progress in self.annotators.items():
            skipped = f", {progress.skipped} skipped" if progress.skipped else ""
            people.append(f"{name} ({progress.rated} of {progress.pairs}{skipped})")
        parts = [f"{self.corpus}: rated by {', '.join(people)}"]
        if len(self.each) > 1:
            parts.append(f"### all annotators\n\n{self._label_table(self.together)}")
        for name, counts in self.each.items():
            parts.append(f"### {name}\n\n{self._label_table(counts)}")
        parts.append(
            "pairs and overlap (of trigrams: mean ± standard deviation) are those of the whole corpus; the rest is "
            "how often\neach label was given, and its share in percent"
        )
        return "\n\n".join([*parts, *self._agreement_parts()])

    def _label_table(self, counts: Sequence[LabelCounts]) -> str:
        """Format a table of the counts of labels in each range."""
        header = ["range", "pairs", "overlap", "paraphrase 1", "2", "3", "fluency 1", "2", "3"]
        rows = []
        for part, found in zip(self.ranges, counts, strict=True):
            overlap = "-"
            if part.mean_overlap is not None:
                overlap = f"{part.mean_overlap:.2f} ± {part.std_overlap:.2f}"
            cells = [part.label, f"{part.pairs:,}", overlap]
            for of_question in (found.paraphrase, found.fluency):
                total = sum(of_question)
                for count in of_question:
                    cells.append(f"{count} ({100 * count / total:.1f})" if total else "0")
            rows.append(cells)
        return markdown_table(header, rows)

    def _agreement_parts(self) -> list[str]:
        """Return the paragraphs and tables about agreement."""
        names = list(self.each)
        if not self.agreement:
            return ["agreement needs two annotators"]
        if not any(found.items for found in self.agreement.values()):
            who = f"{names[0]} and {names[1]} have no" if len(names) == 2 else "no two annotators have any"
            return [f"agreement: {who} pair in common, so it cannot be measured"]
        rows = []
        for measure, (name, _) in MEASURED.items():
            found = self.agreement[measure]
            interval = "-"
            if found.interval is not None:
                interval = f"{found.interval[0]:.2f} to {found.interval[1]:.2f}"
            figures = [_figure(value) for value in (found.same, found.linear, found.quadratic)]
            rows.append([name, str(found.items), *figures, interval])
        table = markdown_table(["label", "pairs", "equal", "linear", "quadratic", "95 % interval"], rows)
        legend = (
            "pairs: rated by at least two; equal: share of equal labels; linear, quadratic: Cohen's kappa with such "
            "weights;\n- where it is undefined: both gave one and the same label throughout, or rated nothing in "
            "common"
        )
        if len(names) == 2:
            return [f"### agreement of 2 annotators\n\n{table}", legend]
        title = f"### agreement of {len(names)} annotators, mean over each two"
        # A row for each two annotators, which reveals those who interpret the guidelines differently.
        rows = []
        for paraphrase, fluency in zip(
            self.agreement["paraphrase"].pairs, self.agreement["fluency"].pairs, strict=True
        ):
            cells = [f"{paraphrase.first}, {paraphrase.second}"]
            for pair in (paraphrase, fluency):
                cells += [str(pair.items), _figure(pair.quadratic)]
            rows.append(cells)
        couples = markdown_table(["quadratic kappa of", "pairs", "paraphrase", "pairs", "fluency"], rows)
        return [f"{title}\n\n{table}", legend, couples]


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def annotation_table(sample: AnnotationSample, answers: Mapping[str, Mapping[int, Rating]]) -> AnnotationTable:
    """Count the labels in each range of the score, and measure agreement.

    Args:
        sample: The sample.
        answers: Ratings by the name of the annotator and the index of the pair.
    """
    names = []
    for name, ratings in answers.items():
        if any(rating.strength is not None or rating.fluency is not None for rating in ratings.values()):
            names.append(name)
    if not names:
        raise InputError("nobody has rated a pair of this sample yet; `paranmt annotate serve` shows it")
    # Labels [measure, person, item], -1 for none.
    labels = np.full((len(MEASURED), len(names), len(sample.items)), -1)
    for person, name in enumerate(names):
        for item, answer in answers[name].items():
            for row, label in enumerate((answer.paraphrase, answer.fluency, answer.strength)):
                labels[row, person, item] = -1 if label is None else label
    ranges = np.array([item.range for item in sample.items])
    by_range = [labels[:, :, ranges == index] for index in range(len(sample.ranges))]
    agreements = {}
    if len(names) > 1:
        for row, (measure, (_, possible)) in enumerate(MEASURED.items()):
            agreements[measure] = agreement(names, labels[row], possible, resamples=1000)
    each = {}
    for person, name in enumerate(names):
        each[name] = [_label_counts(inside[:, person]) for inside in by_range]
    return AnnotationTable(
        corpus=sample.corpus,
        ranges=sample.ranges,
        annotators={name: progress_of(answers[name], len(sample.items)) for name in names},
        together=[_label_counts(inside) for inside in by_range],
        each=each,
        agreement=agreements,
    )


def progress_of(answers: Mapping[int, Rating], pairs: int) -> AnnotatorProgress:
    """Return the progress of an annotator.

    Args:
        answers: Ratings by the index of the pair.
        pairs: Number of pairs in the sample.
    """
    skipped = sum(answer.skipped for answer in answers.values())
    return AnnotatorProgress(sum(answer.done for answer in answers.values()) - skipped, skipped, pairs)


def _label_counts(labels: np.ndarray) -> LabelCounts:
    """Count the labels of the two questions, which are the first two rows of `labels` [measure, ...]."""
    counts = []
    for row in labels[:2]:
        one, two, three = (int(np.count_nonzero(row == label)) for label in (1, 2, 3))
        counts.append((one, two, three))
    return LabelCounts(*counts)
