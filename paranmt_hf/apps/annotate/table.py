"""Ratings for each range of the score, as in table 3 of ParaNMT-50M (Wieting & Gimpel 2018), and agreement.

How far people agree is Cohen's kappa with weights (Cohen 1968), for ordered labels.
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
    """Compute weighted kappa [...] = 1 - sum(w O) / sum(w E) of counts [..., label, label]; NaN where it is undefined.

    O are the observed counts, E those expected of two people who label at random with the same frequencies, and w = |i
    - j| (linear) or (i - j)^2 (quadratic). It is undefined if both gave one and the same label throughout.
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
    # An item that fewer than two people labelled shows no agreement.
    given = given[:, (given >= 0).sum(axis=0) >= 2]
    pairs = []
    cells = []
    for first, second in combinations(range(len(names)), 2):
        # Counts [item, label, label]: a 1 in the cell of their labels for each item that both labelled.
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
    """Quadratic kappa [resample, couple]; each resample draws, with replacement, as many items as there are."""
    generator = np.random.default_rng(seed)
    items = len(cells[0])
    found = np.empty((resamples, len(cells)))
    # In blocks, because the draws of all resamples would take much memory.
    for start in range(0, resamples, 50):
        block = found[start : start + 50]
        draws = generator.multinomial(items, np.full(items, 1 / items), len(block))
        for couple, each in enumerate(cells):
            block[:, couple] = weighted_kappa(np.tensordot(draws, each, 1), "quadratic")
    return found


# Agreement is measured on the labels of the table, and on the classes before they are folded: name, possible labels.
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
    """Progress of an annotator: numbers of rated, skipped and all pairs of the sample."""

    rated: int
    skipped: int
    pairs: int


@dataclass(frozen=True)
class AnnotationTable:
    """The table and the agreement."""

    corpus: str  # Name of the corpus
    ranges: list[RangeSummary]  # The ranges of the score over the whole corpus
    annotators: dict[str, AnnotatorProgress]  # How far each annotator is
    together: list[LabelCounts]  # Label counts of all annotators [range]
    each: dict[str, list[LabelCounts]]  # Label counts [range] of each annotator
    agreement: dict[str, Agreement]  # By what it is measured on; empty with one annotator

    def to_json(self) -> dict[str, Any]:
        values = as_json(self)
        values["ranges"] = [
            {"range": part.label, **found} for part, found in zip(self.ranges, values["ranges"], strict=True)
        ]
        return values

    def summary(self) -> str:
        """Tables of the labels and of the agreement, in Markdown; shares of the labels in percent are in brackets."""
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
    """Count labels per range and measure agreement, from the answers of each annotator by item."""
    names = []
    for name, own in answers.items():
        if any(answer.strength is not None or answer.fluency is not None for answer in own.values()):
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
    """Progress of an annotator, from the answers by item."""
    skipped = sum(answer.skipped for answer in answers.values())
    return AnnotatorProgress(sum(answer.done for answer in answers.values()) - skipped, skipped, pairs)


def _label_counts(labels: np.ndarray) -> LabelCounts:
    """Count the labels [measure, ...] of each question."""
    counts = []
    for row in labels[:2]:
        one, two, three = (int(np.count_nonzero(row == label)) for label in (1, 2, 3))
        counts.append((one, two, three))
    return LabelCounts(*counts)
