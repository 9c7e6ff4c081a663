"""The results of evaluations of all kinds, with their tables and their JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.speed import Speed
from paranmt_hf.util.files import result_file, write_result
from paranmt_hf.util.records import as_json, from_json, read_json
from paranmt_hf.util.tables import escape, markdown_table

# Headings of measures whose heading is not their name in words.
TITLES = {
    "bleu": "BLEU",
    "meteor": "METEOR",
    "self_bleu": "Self-BLEU",
    "among_bleu": "BLEU among outputs",
    "all_pearson": "All pairs, Pearson",
    "all_spearman": "All pairs, Spearman",
    "cosine_spearman": "Cosine, Spearman",
    "f1": "F1",
    "mse": "MSE",
}
# Formats of measures that are not shown times 100.
FORMATS = {
    "mse": "{:.3f}",
    "margin": "{:+.3f}",
    "cosine_difference": "{:+.3f}",
    "length_ratio": "{:.2f}",
    "without": "{:,.0f}",
    **dict.fromkeys(("bleu", "self_bleu", "among_bleu", "outputs"), "{:.1f}"),
    **dict.fromkeys(("sentences_per_second", "character_edits", "word_edits"), "{:.1f}"),
}


@dataclass(frozen=True)
class Difference:
    """The difference of a model's main score to that of another model, on the same data.

    Attributes:
        model: Name of the other model.
        value: The score minus that of the other model.
        interval: 95 % confidence interval of `value`, by a bootstrap with the same resamples for both models.
    """

    model: str
    value: float
    interval: tuple[float, float]

    @property
    def is_separable(self) -> bool:
        """Whether the interval excludes 0."""
        low, high = self.interval
        return low > 0 or high < 0


@dataclass(frozen=True, kw_only=True)
class Row:
    """The scores of a model on a dataset, on a part of it, or on several datasets: a row of a table of results.

    Attributes:
        name: Name of the dataset or part, unique in its table, such as `STS12 MSRpar`, `MR` or `negation`.
        values: Scores by measure, the main score first: correlations in [-1, 1], shares in [0, 1], and others on the
            scale that `FORMATS` shows.
        items: Number of pairs, sentences or triples; None if that is not known.
        interval: 95 % confidence interval of the main score; None if it was not computed.
        group: Name of the row that summarises this one, such as the year of a dataset; comparisons of models show that
            row instead. None for a row that no other row summarises.
        difference: Difference to the first of several models; None for the first one, or if it was not computed.
        details: Counts and settings of this row.
    """

    name: str
    values: dict[str, float]
    items: int | None = None
    interval: tuple[float, float] | None = None
    group: str | None = None
    difference: Difference | None = None
    details: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, measure: str) -> float:
        """Return the score of a measure, such as `pearson`."""
        return self.values[measure]

    @property
    def main(self) -> float:
        """The main score, which is the first of `values`."""
        return next(iter(self.values.values()))


@dataclass(frozen=True, kw_only=True)
class Results:
    """The results of a model in one kind of evaluation, such as `sts` or `transfer`.

    Attributes:
        kind: Kind of the evaluation.
        model: Name of the model.
        tables: Rows of each table; the key says what a row of the table is, such as `Set` or `Year`.
        data: Checksum or revision of each dataset, by its name.
        settings: Settings that the scores depend on, such as seed and folds.
        notes: Sentences that a reader of the scores must know.
        examples: Inputs and outputs of a model that generates text.
        weights: Checksum of the weights; None for a model that was not loaded from files.
        speed: How fast the encoder is; None if that was not measured.
        versions: Versions of the libraries that the scores depend on.
        similarities: Similarity of each pair [pair], by the name of the row. They are not part of the JSON.
        golds: Gold score of each pair [pair], by the name of the row. They are not part of the JSON.
    """

    kind: str
    model: str
    tables: dict[str, list[Row]]
    data: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    examples: list[dict[str, Any]] = field(default_factory=list)
    weights: str | None = None
    speed: Speed | None = None
    versions: dict[str, str] = field(default_factory=dict)
    similarities: dict[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)
    golds: dict[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(rows)} {title}" for title, rows in self.tables.items())
        return f"Results({self.kind!r}, {self.model!r}, {counts})"

    @property
    def rows(self) -> Iterator[Row]:
        """The rows of all tables."""
        return chain.from_iterable(self.tables.values())

    def value(self, name: str, measure: str | None = None) -> float | None:
        """Return the main score of the row `name`, or that of a measure; None if there is no such row or measure."""
        for row in self.rows:
            if row.name == name:
                return row.main if measure is None else row.values.get(measure)
        return None

    @property
    def mean(self) -> float | None:
        """The main score of the row `Mean`, which summarises all others; None if there is no such row."""
        return self.value("Mean")

    def to_json(self) -> dict[str, Any]:
        """Return the results as JSON values."""
        return as_json({name: value for name, value in vars(self).items() if name not in ("similarities", "golds")})

    @classmethod
    def from_json(cls, values: Any, where: Path | str) -> Results:  # noqa: ANN401 - parsed JSON
        """Create results from the JSON values of `to_json`; `where` names their source in errors."""
        return from_json(cls, values, where)

    def text(self) -> str:
        """Return the tables and notes for a terminal; scores are shown times 100, as in papers."""
        return self._write(str)

    def markdown(self) -> str:
        """Return the tables and notes as Markdown for a card, with special characters of names escaped."""
        return self._write(escape)

    def _write(self, written: Callable[[str], str]) -> str:
        """Return the tables and notes; `written` escapes names and notes."""
        blocks = []
        for title, rows in self.tables.items():
            if rows:
                blocks.append(_table(title, rows, written))
        if self.notes:
            blocks.append(written(" ".join(self.notes)))
        return "\n\n".join(blocks)


@dataclass(frozen=True)
class Evaluation:
    """The results of models in one kind of evaluation.

    Attributes:
        results: Results of each model, in the order of the models.
        tables: Functions that make further tables from the results, for the summary.
        each: Whether the summary has the tables of each model, and a comparison of several models.
        folder: Folder with further files of the results; None if there are none.
    """

    results: list[Results]
    tables: tuple[Callable[[Sequence[Results]], str], ...] = ()
    each: bool = True
    folder: Path | None = None

    def __iter__(self) -> Iterator[Results]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, index: int) -> Results:
        return self.results[index]

    def to_json(self) -> list[dict[str, Any]]:
        """Return the results as JSON values."""
        return [each.to_json() for each in self.results]

    def write(self, path: str | Path) -> None:
        """Write the results into a JSON file, which `publish` takes; an older file is replaced atomically."""
        result_file(path, option="path")
        write_result(Path(path), f"{json.dumps(self.to_json(), indent=2, ensure_ascii=False)}\n")

    def summary(self) -> str:
        """Return the tables of each model, further tables, and a comparison of several models or the mean of one."""
        blocks = []
        if self.each:
            for each in self.results:
                blocks.append(f"{each.model}\n\n{each.text()}")
        for table in self.tables:
            blocks.append(table(self.results))
        if self.each and len(self.results) > 1:
            blocks.append(compare(self.results))
        elif self.each and (mean := self.results[0].mean) is not None:
            blocks.append(f"{self.results[0].model}: mean {write_figure('mean', mean)}")
        return "\n\n".join(blocks)

    def mean_absolute_differences(self) -> np.ndarray:
        """Compute how much the results of models on STS differ; ParaNMT-50M, Table 10.

        The difference of two models is the mean, over the sets of the yearly competitions, of the absolute difference
        of their Pearson's r, times 100. The STS benchmark does not count, because it is drawn from these sets.

        Returns:
            The difference of each two models [model, model].
        """
        check_same_data(self.results)
        years = {row.name for row in self.results[0].tables.get("Year", [])}
        lines = []
        for each in self.results:
            lines.append([row.main for row in each.rows if row.group in years])
        pearsons = np.array(lines)
        if not pearsons.size:
            raise InputError(
                "expected sets of the yearly competitions (STS 2012 to 2016), found none; name a folder with them"
            )
        return np.asarray(100 * np.abs(pearsons[:, None] - pearsons).mean(axis=2))


def read_results(path: str | Path) -> list[Results]:
    """Read the results in a JSON file that `Evaluation.write` wrote."""
    values = read_json(Path(path), "results of `paranmt evaluate` as JSON")
    return from_json(list[Results], values, path)


def all_results(given: Iterable[Any]) -> list[Results]:
    """Return all results of a mixed list: files are read, and results are taken as they are."""
    results: list[Results] = []
    for one in given:
        results += read_results(one) if isinstance(one, str | Path) else [one]
    return results


def _table(title: str, rows: Sequence[Row], written: Callable[[str], str]) -> str:
    """Return a Markdown table with a column for each measure; `written` escapes the names of rows."""
    measures = list(dict.fromkeys(measure for row in rows for measure in row.values))
    has_items = any(row.items is not None for row in rows)
    has_intervals = any(row.interval for row in rows)
    headings = [title, *(["Items"] if has_items else []), *map(heading, measures)]
    if has_intervals:
        headings.insert(headings.index(heading(measures[0])) + 1, "95 %")
    lines = []
    for row in rows:
        line = [written(row.name)]
        if has_items:
            line.append("" if row.items is None else f"{row.items:,}")
        for measure in measures:
            line.append(write_figure(measure, row.values.get(measure)))
            if measure == measures[0] and has_intervals:
                line.append(" to ".join(write_figure(measure, bound) for bound in row.interval or ()))
        lines.append(line)
    return markdown_table(headings, lines)


def heading(measure: str) -> str:
    """Return the heading of a measure in a table, such as `Self-BLEU` for `self_bleu`."""
    return TITLES.get(measure, measure.replace("_", " ").capitalize())


def write_figure(measure: str, value: float | None) -> str:
    """Format a score for a table: as `FORMATS` says, else times 100; None becomes empty text."""
    if value is None:
        return ""
    return FORMATS[measure].format(value) if measure in FORMATS else f"{100 * value:.1f}"


def compare(results: Sequence[Results]) -> str:
    """Return a table that compares the main scores of models, in the rows that no other row summarises.

    Raises `InputError` if the models were evaluated on different data.
    """
    check_same_data(results)
    lines = [["Model", *(model.model for model in results)]]
    for rows in zip(*(model.rows for model in results), strict=True):
        if rows[0].group is not None:
            continue
        line = [rows[0].name]
        for row in rows:
            measure = next(iter(row.values))
            figure = write_figure(measure, row.main)
            # An accuracy is shown with F1, as in table 14 of ParaNMT-50M.
            if measure == "accuracy" and "f1" in row.values:
                figure = f"{figure}/{write_figure('f1', row['f1'])}"
            line.append(figure)
        lines.append(line)
    # Up to 12 scores, a model is a row. For more scores the table is turned, so that a model is a column.
    if len(lines) > 13:
        lines[0][0] = ""
    else:
        lines = [list(column) for column in zip(*lines, strict=True)]
    return markdown_table(lines[0], lines[1:])


def check_same_data(results: Sequence[Results]) -> None:
    """Raise `InputError` if results are of different kinds of evaluation or data, or if there are none."""
    if not results:
        raise InputError("there are no results to compare")
    first = results[0]
    rows = [row.name for row in first.rows]
    for other in results[1:]:
        if (other.kind, other.data) != (first.kind, first.data) or [row.name for row in other.rows] != rows:
            raise InputError(
                f"{other.model} and {first.model} were evaluated on different data; evaluate both on the same"
            )


def difference_table(results: Sequence[Results]) -> str:
    """Return a table of the mean absolute differences of models on STS, see `Evaluation.mean_absolute_differences`."""
    names = [each.model for each in results]
    rows = []
    for name, line in zip(names, Evaluation(list(results)).mean_absolute_differences().tolist(), strict=True):
        rows.append([name, *map("{:.1f}".format, line)])
    return markdown_table(["Mean absolute difference", *names], rows)
