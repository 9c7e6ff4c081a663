"""The result of an evaluation: figures, and tables of them for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.record import ResultsRecord, SetRecord, YearResult
from paranmt_hf.evaluation.speed import Speed
from paranmt_hf.evaluation.sts_data import DEVELOPMENT
from paranmt_hf.util.tables import markdown_table, percent, text_table, write_table

_SET_HEADER = ("Set", "Pairs", "Pearson", "95 %", "Spearman")
_YEAR_HEADER = ("Year", "Sets", "Pairs", "Mean", "Weighted", "All pairs", "All pairs, Spearman")


@dataclass(frozen=True)
class SetResult(SetRecord):
    """The result on one set of pairs: its figures, and what they were computed from.

    Attributes:
        similarities: The model's similarities [pair].
        gold: The gold similarities [pair].
    """

    similarities: np.ndarray = field(repr=False, compare=False)
    gold: np.ndarray = field(repr=False, compare=False)

    def record(self) -> SetRecord:
        """Give the figures alone."""
        return SetRecord(**{entry.name: getattr(self, entry.name) for entry in fields(SetRecord)})


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
        return next((result.pearson for result in self.sets if result.title == DEVELOPMENT), None)

    def record(self, weights: str | None = None, speed: Speed | None = None) -> ResultsRecord:
        """Give the figures without the single similarities, to be written down.

        Args:
            weights: Checksum of the weights that were evaluated.
            speed: How fast the encoder is.
        """
        sets = [result.record() for result in self.sets]
        return ResultsRecord(
            self.model, self.mean, self.development, self.years, sets, list(self.notes), weights, speed
        )

    def to_json(self) -> dict[str, Any]:
        """Give everything but the single similarities as plain values, for JSON; figures are in [-1, 1]."""
        return self.record().to_json()

    def markdown(self) -> str:
        """Write the tables in Markdown, figures times 100 as in the papers."""
        return self._tables(markdown_table)

    def text(self) -> str:
        """Write the tables for a terminal, figures times 100 as in the papers."""
        return self._tables(text_table)

    def _tables(self, table: Callable[[Sequence[str], Sequence[Sequence[str]]], str]) -> str:
        blocks = [table(_SET_HEADER, [_set_row(result) for result in self.sets])]
        if self.years:
            rows = [_year_row(year) for year in self.years]
            rows.append(("Mean", "", "", percent(self.mean), "", "", ""))
            blocks.append(table(_YEAR_HEADER, rows))
        sentences = [*self.notes, *self._counts()]
        return "\n\n".join([*blocks, *(["\n".join(sentences)] if sentences else [])])

    def _counts(self) -> list[str]:
        """What was odd about sentences, if anything, in sentences."""
        whole = [result for result in self.sets if not result.part_of]
        counts = []
        if skipped := sum(result.skipped for result in whole):
            counts.append(f"{skipped:,} pairs without a gold score were skipped.")
        zeros = sum(result.zero_vectors for result in whole)
        unknown = sum(result.unknown_sentences or 0 for result in whole)
        cosine = "zeros; the cosine of their pairs counts as 0"
        # Words that are left out have a weight of 0, such as those of a blacklist.
        reason = f"{unknown:,} sentences have no word that the model knows and does not leave out"
        if zeros == unknown:
            return [*counts, f"{reason}, so their vectors are {cosine}."] if zeros else counts
        if zeros:
            counts.append(f"{zeros:,} sentences have a vector of {cosine}.")
        return [*counts, f"{reason}."] if unknown else counts


def compare(results: Sequence[StsResult], *, style: Literal["markdown", "text"] = "text") -> str:
    """Write one table of several models: yearly means, their mean, and the sets that stand alone; times 100.

    Raises:
        InputError: There is no result, or the models were evaluated on different data.
    """
    check_same_sets(results)
    years, alone = results[0].years, [each for each in results[0].sets if not each.year]
    header = ("Model", *(year.name for year in years), *(("Mean",) if years else ()), *(each.name for each in alone))
    rows = []
    for result in results:
        means = [year.mean for year in result.years] + ([result.mean] if years else [])
        figures = [*means, *(each.pearson for each in result.sets if not each.year)]
        rows.append((result.model, *map(percent, figures)))
    return write_table(header, rows, style)


def mean_absolute_differences(results: Sequence[StsResult]) -> np.ndarray:
    """How much the results of models differ; ParaNMT-50M, Table 10.

    Args:
        results: Results of the models on the same data.

    Returns:
        Mean over the sets of the yearly competitions of the absolute difference of Pearson's r, times 100
        [model, model]; 0 on the diagonal. The STS benchmark is drawn from these sets and does not count again.

    Raises:
        InputError: There is no result, the models were evaluated on different data, or no set is of a competition.
    """
    check_same_sets(results)
    pearsons = np.array([[each.pearson for each in result.sets if each.year] for result in results])
    if not pearsons.size:
        raise InputError(
            "expected sets of the yearly competitions (STS 2012 to 2016), found none; name a folder with them"
        )
    return 100 * np.abs(pearsons[:, None] - pearsons).mean(axis=2)


def differences(results: Sequence[StsResult], *, style: Literal["markdown", "text"] = "text") -> str:
    """Write a table of `mean_absolute_differences`; it raises what that raises."""
    rows = [
        (result.model, *(f"{value:.1f}" for value in line))
        for result, line in zip(results, mean_absolute_differences(results), strict=True)
    ]
    header = ("Mean absolute difference", *(result.model for result in results))
    return write_table(header, rows, style)


def check_same_sets(results: Sequence[StsResult]) -> None:
    """Refuse results on different data.

    Raises:
        InputError: There is no result, or two have other sets.
    """
    if not results:
        raise InputError("there are no results to compare")
    first = [(each.title, each.pairs) for each in results[0].sets]
    for result in results[1:]:
        if [(each.title, each.pairs) for each in result.sets] != first:
            raise InputError(
                f"{result.model} and {results[0].model} were evaluated on different data; evaluate both on the same"
            )


def _set_row(result: SetRecord) -> tuple[str, ...]:
    bounds = f"{percent(result.interval[0])} to {percent(result.interval[1])}" if result.interval else ""
    return result.title, f"{result.pairs:,}", percent(result.pearson), bounds, percent(result.spearman)


def _year_row(year: YearResult) -> tuple[str, ...]:
    figures = (year.mean, year.weighted_mean, year.all_pearson, year.all_spearman)
    return (year.name, str(year.sets), f"{year.pairs:,}", *map(percent, figures))
