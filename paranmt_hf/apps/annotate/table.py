"""Ratings for each range of the score, as in table 3 of ParaNMT-50M (Wieting & Gimpel 2018), and agreement.

How far people agree is Cohen's kappa with weights (Cohen 1968), for ordered labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np

from paranmt_hf.apps.annotate.answers import LABELS, STRENGTHS, Rating
from paranmt_hf.apps.annotate.sample import AnnotationSample, RangeSummary
from paranmt_hf.errors import InputError
from paranmt_hf.util.optional import require
from paranmt_hf.util.records import as_json
from paranmt_hf.util.tables import markdown_table

Weights = Literal["linear", "quadratic"]
POWERS: dict[Weights, int] = {"linear": 1, "quadratic": 2}
RESAMPLES = 1000
BLOCK = 50  # Resamples that are drawn at once


def weighted_kappa(counts: np.ndarray, weights: Weights) -> np.ndarray:
    """Compute weighted kappa [...] = 1 - sum(w O) / sum(w E) of counts [..., label, label]; NaN where it is undefined.

    O are the observed counts, E those expected of two people who label at random with the same frequencies, and w = |i
    - j| (linear) or (i - j)^2 (quadratic). It is undefined if both gave one and the same label throughout.
    """
    counts = np.asarray(counts, np.float64)
    labels = np.arange(counts.shape[-1])
    weight = np.abs(labels[:, None] - labels) ** POWERS[weights]
    total = counts.sum(axis=(-2, -1))
    rows, columns = counts.sum(axis=-1), counts.sum(axis=-2)
    observed = (counts * weight).sum(axis=(-2, -1)) * total
    expected = (rows[..., :, None] * columns[..., None, :] * weight).sum(axis=(-2, -1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(expected > 0, 1 - observed / expected, np.nan)


@dataclass(frozen=True)
class PairAgreement:
    """How far two people agree."""

    first: str  # The one
    second: str  # The other
    items: int  # Pairs of sentences that both labelled
    same: float | None  # Share of these with equal labels; None if there are no such pairs
    linear: float | None  # Kappa with linear weights; None if undefined
    quadratic: float | None  # Kappa with quadratic weights; None if undefined


@dataclass(frozen=True)
class Agreement:
    """How far several people agree: means over each two of them that labelled something in common."""

    items: int  # Pairs of sentences that at least two labelled
    same: float | None  # Mean share of equal labels; None if no two have anything in common
    linear: float | None  # Mean kappa with linear weights, of those where it is defined; None if it is for no two
    quadratic: float | None  # The same with quadratic weights
    # 95 % interval of `quadratic`, from resampled pairs of sentences (percentiles); None without it
    interval: tuple[float, float] | None
    pairs: list[PairAgreement]  # Each two people


def agreement(
    names: Sequence[str], given: np.ndarray, labels: Sequence[int], *, resamples: int = 0, seed: int = 0
) -> Agreement:
    """Compute how far people agree, from their labels `given` [person, item], -1 for none.

    `labels` are the possible labels, ascending, one apart; `resamples` of the items give the interval, 0 for none.
    """
    # What fewer than two labelled says nothing of agreement.
    given = given[:, (given >= 0).sum(axis=0) >= 2]
    couples = list(combinations(range(len(names)), 2))
    cells = [_cells(given[first], given[second], labels) for first, second in couples]
    pairs = [
        _of_two(names[first], names[second], _square(each.sum(axis=0), labels))
        for (first, second), each in zip(couples, cells, strict=True)
    ]
    return Agreement(
        items=given.shape[1],
        same=_mean([pair.same for pair in pairs]),
        linear=_mean([pair.linear for pair in pairs]),
        quadratic=_mean([pair.quadratic for pair in pairs]),
        interval=_interval(_resampled(cells, labels, resamples, seed)) if resamples and given.size else None,
        pairs=pairs,
    )


def _resampled(cells: Sequence[np.ndarray], labels: Sequence[int], resamples: int, seed: int) -> np.ndarray:
    """Quadratic kappa [resample, couple]; each resample draws, with replacement, as many items as there are."""
    generator, items = np.random.default_rng(seed), len(cells[0])
    found = np.empty((resamples, len(cells)))
    for start in range(0, resamples, BLOCK):
        block = found[start : start + BLOCK]
        draws = generator.multinomial(items, np.full(items, 1 / items), len(block))
        for couple, each in enumerate(cells):
            block[:, couple] = weighted_kappa(_square(draws @ each, labels), "quadratic")
    return found


def _square(counts: np.ndarray, labels: Sequence[int]) -> np.ndarray:
    """Counts [..., label * label] as a table [..., label, label]."""
    return counts.reshape(*counts.shape[:-1], len(labels), len(labels))


def _cells(first: np.ndarray, second: np.ndarray, labels: Sequence[int]) -> np.ndarray:
    """Index of the cell in the table of counts [item, label * label] for each item that both annotators labelled."""
    both = np.flatnonzero((first >= 0) & (second >= 0))
    cells = np.zeros((len(first), len(labels) ** 2))
    cells[both, (first[both] - labels[0]) * len(labels) + second[both] - labels[0]] = 1
    return cells


def _of_two(first: str, second: str, counts: np.ndarray) -> PairAgreement:
    items = int(counts.sum())
    kappas = [float(weighted_kappa(counts, weights)) for weights in POWERS]
    linear, quadratic = (None if np.isnan(kappa) else kappa for kappa in kappas)
    return PairAgreement(first, second, items, float(np.trace(counts) / items) if items else None, linear, quadratic)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _interval(kappas: np.ndarray) -> tuple[float, float] | None:
    """95 % interval of the means over couples; None if kappa is undefined in all resamples."""
    defined = kappas[~np.isnan(kappas).all(axis=1)]
    if not len(defined):
        return None
    low, high = np.percentile(np.nanmean(defined, axis=1), [2.5, 97.5])
    return float(low), float(high)


Question = Literal["paraphrase", "fluency"]
QUESTIONS: tuple[Question, ...] = ("paraphrase", "fluency")
# What agreement is measured on: the labels of the table, and the classes before they are folded.
MEASURED: dict[str, tuple[Callable[[Rating], int | None], tuple[int, ...]]] = {
    "paraphrase": (lambda answer: answer.paraphrase, LABELS),
    "fluency": (lambda answer: answer.fluency, LABELS),
    "strength": (lambda answer: answer.strength, STRENGTHS),
}
NAMES = {"paraphrase": "paraphrase, 3 labels", "fluency": "fluency, 3 labels", "strength": "paraphrase, 6 classes"}
AGREED = ("equal", "linear", "quadratic")
COLUMNS = (
    "pairs and overlap (of trigrams: mean ± standard deviation) are those of the whole corpus; the rest is how often\n"
    "each label was given, and its share in percent"
)
KAPPA = (
    "equal: share of equal labels; linear, quadratic: Cohen's kappa with such weights; - where it is undefined:\n"
    "both gave one and the same label throughout, or rated nothing in common"
)
NO_VALUE = "-"


@dataclass(frozen=True)
class LabelCounts:
    """How often the labels 1, 2 and 3 were given, by question."""

    paraphrase: tuple[int, int, int]
    fluency: tuple[int, int, int]


@dataclass(frozen=True)
class AnnotatorProgress:
    """Progress of an annotator: numbers of rated, skipped and all pairs of the sample."""

    rated: int
    skipped: int
    pairs: int


@dataclass(frozen=True)
class RangeAgreement:
    """Agreement over all pairs of the sample, and over those of each range."""

    all: Agreement
    ranges: list[Agreement]


@dataclass(frozen=True)
class AnnotationTable:
    """The table and the agreement."""

    corpus: str  # Name of the corpus
    ranges: list[RangeSummary]  # The ranges of the score over the whole corpus
    annotators: dict[str, AnnotatorProgress]  # How far each annotator is
    together: list[LabelCounts]  # Label counts of all annotators [range]
    each: dict[str, list[LabelCounts]]  # Label counts [range] of each annotator
    agreement: dict[str, RangeAgreement]  # By what it is measured on; empty with one annotator

    def to_json(self) -> dict[str, Any]:
        values = as_json(self)
        values["ranges"] = [
            {"range": part.label, **found} for part, found in zip(self.ranges, values["ranges"], strict=True)
        ]
        return values

    def summary(self) -> str:
        """Tables of the labels and of the agreement, in Markdown; shares of the labels in percent are in brackets."""
        said = [f"{name} ({_progress(progress)})" for name, progress in self.annotators.items()]
        parts = [f"{self.corpus}: rated by {', '.join(said)}"]
        if len(self.each) > 1:
            parts.append(f"### all annotators\n\n{markdown_table(*self._rows(self.together))}")
        for name, counts in self.each.items():
            parts.append(f"### {name}\n\n{markdown_table(*self._rows(counts))}")
        return "\n\n".join([*parts, COLUMNS, *self._agreement_parts()])

    def _rows(self, counts: Sequence[LabelCounts]) -> tuple[list[str], list[list[str]]]:
        header = ["range", "pairs", "overlap"]
        header += [f"{question} {label}" if label == 1 else str(label) for question in QUESTIONS for label in LABELS]
        rows = []
        for part, found in zip(self.ranges, counts, strict=True):
            cells = [part.label, f"{part.pairs:,}", _overlap(part)]
            for question in QUESTIONS:
                cells += _labels(getattr(found, question))
            rows.append(cells)
        return header, rows

    def _agreement_parts(self) -> list[str]:
        if not self.agreement:
            return ["agreement needs two annotators"]
        if not any(found.all.items for found in self.agreement.values()):
            who = f"{' and '.join(self.each)} have no" if len(self.each) == 2 else "no two annotators have any"
            return [f"agreement: {who} pair in common, so it cannot be measured"]
        rows = [["range", *(cell for question in QUESTIONS for cell in (f"{question}: pairs", *AGREED))]]
        for index, part in enumerate(self.ranges):
            found = [self.agreement[question].ranges[index] for question in QUESTIONS]
            rows.append([part.label, *(cell for each in found for cell in _agreement_cells(each))])
        found = [self.agreement[question].all for question in QUESTIONS]
        rows.append(["all", *(cell for each in found for cell in _agreement_cells(each))])
        people = "2 annotators" if len(self.each) == 2 else f"{len(self.each)} annotators, mean over each two"
        overall = "\n".join(_said(NAMES[measure], of.all) for measure, of in self.agreement.items())
        parts = [f"### agreement of {people}\n\n{markdown_table(rows[0], rows[1:])}", f"{KAPPA}\n{overall}"]
        return parts if len(self.each) == 2 else [*parts, markdown_table(*self._rows_of_two())]

    def _rows_of_two(self) -> tuple[list[str], list[list[str]]]:
        """A row for each two annotators, which reveals those who interpret the guidelines differently."""
        header = ["quadratic kappa of", *(cell for question in QUESTIONS for cell in ("pairs", question))]
        rows = []
        for both in zip(*(self.agreement[question].all.pairs for question in QUESTIONS), strict=True):
            cells = [cell for found in both for cell in (str(found.items), _figure(found.quadratic))]
            rows.append([f"{both[0].first}, {both[0].second}", *cells])
        return header, rows


def annotation_table(sample: AnnotationSample, answers: Mapping[str, Mapping[int, Rating]]) -> AnnotationTable:
    """Count labels per range and measure agreement, from the answers of each annotator by item."""
    given = {name: of_items for name, of_items in answers.items() if any(map(_has_labels, of_items.values()))}
    if not given:
        raise InputError("nobody has rated a pair of this sample yet; `paranmt annotate serve` shows it")
    ranges = np.array([item.range for item in sample.items])
    labels = {measure: _label_matrix(given, len(sample.items), read) for measure, (read, _) in MEASURED.items()}
    each = {
        name: [_counts(labels, [person], ranges == index) for index in range(len(sample.ranges))]
        for person, name in enumerate(given)
    }
    everybody = list(range(len(given)))
    return AnnotationTable(
        corpus=sample.corpus,
        ranges=sample.ranges,
        annotators={name: progress_of(of_items, len(sample.items)) for name, of_items in given.items()},
        together=[_counts(labels, everybody, ranges == index) for index in range(len(sample.ranges))],
        each=each,
        agreement=_agreements(list(given), labels, ranges, sample) if len(given) > 1 else {},
    )


def progress_of(answers: Mapping[int, Rating], pairs: int) -> AnnotatorProgress:
    """Progress of an annotator, from the answers by item."""
    skipped = sum(answer.skipped for answer in answers.values())
    return AnnotatorProgress(sum(answer.done for answer in answers.values()) - skipped, skipped, pairs)


def _has_labels(answer: Rating) -> bool:
    return answer.strength is not None or answer.fluency is not None


def _label_matrix(
    answers: Mapping[str, Mapping[int, Rating]], items: int, read: Callable[[Rating], int | None]
) -> np.ndarray:
    """Label [annotator, item] of each; -1 for none."""
    found = np.full((len(answers), items), -1)
    for person, of_items in enumerate(answers.values()):
        for item, answer in of_items.items():
            label = read(answer)
            found[person, item] = -1 if label is None else label
    return found


def _counts(labels: Mapping[str, np.ndarray], people: Sequence[int], inside: np.ndarray) -> LabelCounts:
    counts = {}
    for question in QUESTIONS:
        here = labels[question][people][:, inside]
        counts[question] = tuple(int(np.count_nonzero(here == label)) for label in LABELS)
    return LabelCounts(**counts)  # type: ignore[arg-type]


def _agreements(
    names: Sequence[str], labels: Mapping[str, np.ndarray], ranges: np.ndarray, sample: AnnotationSample
) -> dict[str, RangeAgreement]:
    found: dict[str, RangeAgreement] = {}
    for measure, (_, values) in MEASURED.items():
        given = labels[measure]
        found[measure] = RangeAgreement(
            all=agreement(names, given, values, resamples=RESAMPLES),
            ranges=[agreement(names, given[:, ranges == index], values) for index in range(len(sample.ranges))],
        )
    return found


def _progress(progress: AnnotatorProgress) -> str:
    skipped = f", {progress.skipped} skipped" if progress.skipped else ""
    return f"{progress.rated} of {progress.pairs}{skipped}"


def _overlap(part: RangeSummary) -> str:
    return NO_VALUE if part.mean_overlap is None else f"{part.mean_overlap:.2f} ± {part.std_overlap:.2f}"


def _labels(counts: Sequence[int]) -> list[str]:
    total = sum(counts)
    return [f"{count} ({100 * count / total:.1f})" if total else "0" for count in counts]


def _agreement_cells(found: Agreement) -> list[str]:
    return [str(found.items), *map(_figure, (found.same, found.linear, found.quadratic))]


def _figure(value: float | None) -> str:
    return NO_VALUE if value is None else f"{value:.2f}"


def _said(name: str, found: Agreement) -> str:
    """Describe the agreement over all ranges in one line."""
    if found.quadratic is None:
        return f"- {name}: kappa is undefined"
    interval = ""
    if found.interval:
        low, high = found.interval
        interval = f", 95 % interval {low:.2f} to {high:.2f}"
    return f"- {name}: quadratic kappa {found.quadratic:.2f}{interval}; linear {_figure(found.linear)}"


def plot_table(table: AnnotationTable, path: Path, kind: str = "png") -> None:
    """Draw the share of each label per range, all annotators together, as `png`, `svg` or `pdf`."""
    require("matplotlib", "plots")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 0.7 + 0.42 * len(table.ranges) + 0.8), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    names = [part.label for part in table.ranges]
    for axes, question in zip(panels, QUESTIONS, strict=True):
        counts = np.array([getattr(found, question) for found in table.together], float)
        totals = counts.sum(axis=1)
        shares = np.divide(100 * counts, totals[:, None], where=totals[:, None] > 0, out=np.zeros_like(counts))
        before = np.zeros(len(names))
        for label, color, ink in zip(
            LABELS, ("#c2553f", "#e3b34c", "#3f7fb5"), ("white", "black", "white"), strict=True
        ):
            share = shares[:, label - 1]
            axes.barh(names, share, left=before, color=color, label=str(label), height=0.72)
            for row, (width, left) in enumerate(zip(share, before, strict=True)):
                if width >= 6:
                    axes.text(left + width / 2, row, f"{width:.0f}", ha="center", va="center", color=ink, fontsize=9)
            before = before + share
        axes.set_title("strength of the paraphrase" if question == "paraphrase" else "fluency of the translation")
        axes.set_xlim(0, 100)
        axes.set_xlabel("% of the labels")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("paraphrase score")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", title="label", frameon=False)
    # No version of a library and no date: the same table gives the same bytes.
    about = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
    figure.savefig(path, format=kind, dpi=130, metadata=about)
