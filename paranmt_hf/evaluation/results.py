"""What an evaluation found: numbers, and tables of them for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.sts_data import DEVELOPMENT

_SET_HEADER = ("Set", "Pairs", "Pearson", "95 %", "Spearman")
_YEAR_HEADER = ("Year", "Sets", "Pairs", "Mean", "Weighted", "All pairs", "All pairs, Spearman")


@dataclass(frozen=True)
class SetResult:
    """The result on one set of pairs.

    Attributes:
        name: Name of the set.
        year: The task it belongs to, such as `STS12`, or None.
        part_of: The set that this is a subset of, or None.
        pairs: Pairs with a gold score.
        skipped: Pairs without one.
        pearson: Pearson's r, in [-1, 1].
        interval: Its 95 % bootstrap interval, if asked for.
        spearman: Spearman's rho, in [-1, 1].
        zero_vectors: Sentences (sides of pairs) with a vector of zeros; the cosine of their pairs is 0.
        unknown_sentences: Sentences without a known token, if the encoder can tell.
        similarities: The model's similarities [pair].
        gold: The gold similarities [pair].
    """

    name: str
    year: str | None
    part_of: str | None
    pairs: int
    skipped: int
    pearson: float
    interval: tuple[float, float] | None
    spearman: float
    zero_vectors: int
    unknown_sentences: int | None
    similarities: np.ndarray = field(repr=False, compare=False)
    gold: np.ndarray = field(repr=False, compare=False)

    @property
    def title(self) -> str:
        """Year and name."""
        return f"{self.year} {self.name}" if self.year else self.name

    def to_json(self) -> dict[str, Any]:
        """Give the numbers, not the similarities, as plain values."""
        left_out = ("similarities", "gold", "interval")
        plain = {key: value for key, value in vars(self).items() if key not in left_out}
        return {**plain, "interval": list(self.interval) if self.interval else None}


@dataclass(frozen=True)
class YearResult:
    """The result on all sets of a year, in the ways that are in use; each in [-1, 1].

    Attributes:
        name: The task, such as `STS12`.
        sets: Number of sets.
        pairs: Pairs with a gold score in all of them.
        mean: Mean of the sets' Pearson's r: the papers' figure.
        weighted_mean: The same, each set weighted by its pairs.
        all_pearson: Pearson's r over all pairs of the year together.
        all_spearman: Spearman's rho over all pairs of the year together: MTEB's figure.
    """

    name: str
    sets: int
    pairs: int
    mean: float
    weighted_mean: float
    all_pearson: float
    all_spearman: float

    def to_json(self) -> dict[str, Any]:
        """Give the numbers as plain values."""
        return dict(vars(self))


@dataclass(frozen=True)
class StsResult:
    """The result of a model.

    Attributes:
        model: Name of the model.
        sets: The results on the sets, and on their subsets.
        years: The results on the years.
        notes: Sentences that a reader of the numbers must know.
    """

    model: str
    sets: list[SetResult]
    years: list[YearResult]
    notes: list[str]

    @property
    def mean(self) -> float | None:
        """Mean of the yearly means, in [-1, 1]; None without years."""
        return float(np.mean([year.mean for year in self.years])) if self.years else None

    @property
    def development(self) -> float | None:
        """Pearson's r on the development set, STS 2017 track 5; None if it was not there."""
        return next((one.pearson for one in self.sets if one.title == DEVELOPMENT), None)

    def to_json(self) -> dict[str, Any]:
        """Give everything but the single similarities as plain values, for JSON; figures are in [-1, 1]."""
        return {
            "model": self.model,
            "mean": self.mean,
            "development": self.development,
            "years": [year.to_json() for year in self.years],
            "sets": [one.to_json() for one in self.sets],
            "notes": list(self.notes),
        }

    def markdown(self) -> str:
        """Write the tables in Markdown, figures times 100 as in the papers."""
        return self._written(_markdown_table)

    def text(self) -> str:
        """Write the tables for a terminal, figures times 100 as in the papers."""
        return self._written(_text_table)

    def _written(self, table: Any) -> str:  # noqa: ANN401
        blocks = [table(_SET_HEADER, [_set_row(one) for one in self.sets])]
        if self.years:
            rows = [_year_row(year) for year in self.years]
            rows.append(("Mean", "", "", _percent(self.mean), "", "", ""))
            blocks.append(table(_YEAR_HEADER, rows))
        sentences = [*self.notes, *self._counts()]
        return "\n\n".join([*blocks, *(["\n".join(sentences)] if sentences else [])])

    def _counts(self) -> list[str]:
        """What was odd about sentences, if anything, in sentences."""
        whole = [one for one in self.sets if not one.part_of]
        found = []
        if skipped := sum(one.skipped for one in whole):
            found.append(f"{skipped:,} pairs without a gold score were skipped.")
        if zeros := sum(one.zero_vectors for one in whole):
            found.append(f"{zeros:,} sentences have a vector of zeros; the cosine of their pairs counts as 0.")
        if unknown := sum(one.unknown_sentences or 0 for one in whole):
            found.append(f"{unknown:,} sentences have no word that the model knows.")
        return found


def compare(results: Sequence[StsResult], *, style: Literal["markdown", "text"] = "text") -> str:
    """Write one table of several models: yearly means, their mean, and the sets that stand alone; times 100.

    Raises:
        InputError: There is no result, or the models were evaluated on different data.
    """
    _check_same_sets(results)
    years, alone = results[0].years, [one for one in results[0].sets if not one.year]
    header = ("Model", *(year.name for year in years), *(("Mean",) if years else ()), *(one.name for one in alone))
    rows = []
    for result in results:
        means = [year.mean for year in result.years] + ([result.mean] if years else [])
        rows.append(
            (result.model, *map(_percent, means), *(_percent(one.pearson) for one in result.sets if not one.year))
        )
    return (_markdown_table if style == "markdown" else _text_table)(header, rows)


def mean_absolute_differences(
    results: Sequence[StsResult], of: Literal["similarities", "pearson"] = "similarities"
) -> np.ndarray:
    """How much models differ, after Table 10 of ParaNMT-50M.

    Args:
        results: Results of the models on the same data.
        of: What to compare: the similarities of the pairs, averaged over each set and then over the sets; or
            Pearson's r on the sets, averaged over them.

    Returns:
        Mean absolute differences [model, model], 0 on the diagonal. Subsets do not count again.

    Raises:
        InputError: There is no result, or the models were evaluated on different data.
    """
    _check_same_sets(results)
    chosen = [index for index, one in enumerate(results[0].sets) if not one.part_of]
    differences = np.zeros((len(results), len(results)))
    for row, left in enumerate(results):
        for column, right in enumerate(results[:row]):
            values = [_difference(left.sets[index], right.sets[index], of) for index in chosen]
            differences[row, column] = differences[column, row] = np.mean(values)
    return differences


def _difference(left: SetResult, right: SetResult, of: str) -> float:
    if of == "pearson":
        return abs(left.pearson - right.pearson)
    return float(np.abs(left.similarities - right.similarities).mean())


def _check_same_sets(results: Sequence[StsResult]) -> None:
    if not results:
        raise InputError("there are no results to compare")
    first = [(one.title, one.pairs) for one in results[0].sets]
    for result in results[1:]:
        if [(one.title, one.pairs) for one in result.sets] != first:
            raise InputError(
                f"{result.model} and {results[0].model} were evaluated on different data; evaluate both on the same"
            )


def _set_row(one: SetResult) -> tuple[str, ...]:
    bounds = f"{_percent(one.interval[0])} to {_percent(one.interval[1])}" if one.interval else ""
    return one.title, f"{one.pairs:,}", _percent(one.pearson), bounds, _percent(one.spearman)


def _year_row(year: YearResult) -> tuple[str, ...]:
    figures = (year.mean, year.weighted_mean, year.all_pearson, year.all_spearman)
    return (year.name, str(year.sets), f"{year.pairs:,}", *map(_percent, figures))


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


def _markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    escaped = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)


def _text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    written = []
    for first, *others in lines:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
        written.append("  ".join(cells).rstrip())
    return "\n".join(written)
