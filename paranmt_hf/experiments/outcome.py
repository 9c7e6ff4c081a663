"""The outcome of an experiment that compares samples of a corpus: a record, a table and a figure in a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.release import read_record, release_files
from paranmt_hf.corpus.sampling import Sample, numbered_pairs
from paranmt_hf.corpus.selection.filters import LengthLimit
from paranmt_hf.corpus.selection.run_filters import ReleaseRows
from paranmt_hf.errors import InputError
from paranmt_hf.experiments.trials import Trial
from paranmt_hf.util.optional import available
from paranmt_hf.util.records import Record, as_json, made_with
from paranmt_hf.util.run import Result, run
from paranmt_hf.util.tables import markdown_table, percent

TABLE, FIGURE = "table.md", "figure.png"
SENTENCES = ["reference", "translation", "reference_length", "translation_length"]
# Pairs of all samples that are in memory together, about a gigabyte of text.
MAX_SAMPLED = 3_000_000
SAMPLE_SEED = 0


@dataclass(frozen=True)
class ComparedSample:
    """A part of a corpus, and the encoders trained on a sample of it.

    Attributes:
        group: What it is a part by, such as `para_score`; empty for a source.
        name: Its name, such as the number of a fold.
        rows: Number of its rows.
        left: Rows within the length limit.
        low: Lowest score of all its rows, if it is a part by a score.
        high: Highest score.
        trials: The encoders trained on a sample of the rows that are left.
    """

    group: str
    name: str
    rows: int
    left: int
    low: float | None
    high: float | None
    trials: list[Trial]

    @property
    def pairs(self) -> int:
        """Number of pairs in the sample."""
        return self.trials[0].pairs

    @property
    def mean(self) -> float:
        """Mean Pearson's r of the encoders on the development set."""
        return float(np.mean([trial.pearson for trial in self.trials]))

    @property
    def sts(self) -> float | None:
        """Mean over the encoders of the mean over the STS sets; None if these were not measured."""
        found = [trial.sts for trial in self.trials if trial.sts is not None]
        return float(np.mean(found)) if found else None

    @property
    def cells(self) -> list[str]:
        """Pearson's r of each encoder and their mean, times 100."""
        return [*(percent(trial.pearson) for trial in self.trials), percent(self.mean)]


@dataclass(frozen=True, kw_only=True)
class ComparisonRecord(Record):
    """The content of `experiment.json`.

    Attributes:
        samples: What was compared.
    """

    FILE: ClassVar[str] = "experiment.json"
    KIND: ClassVar[str] = "an experiment (`paranmt experiment`)"

    samples: list[ComparedSample]

    def __post_init__(self) -> None:
        # What the table has columns for.
        kinds = [[(trial.model, trial.sts is None) for trial in sample.trials] for sample in self.samples]
        if not kinds or not kinds[0] or any(kind != kinds[0] for kind in kinds):
            raise InputError("its 'samples' or their 'trials' are missing, or differ in their models")

    @property
    def models(self) -> list[str]:
        """Kinds of the encoders."""
        return [trial.model for trial in self.samples[0].trials]


class Comparison(Result[ComparisonRecord]):
    """An experiment that compares samples, in a folder with a table and a figure."""

    def summary(self) -> str:
        """The table, in Markdown."""
        return f"{(self.folder / TABLE).read_text(encoding='utf8')}\n{self.folder}: figures and settings"


@dataclass(frozen=True)
class Line:
    """A line of a figure: its label, values of both axes, and the style of matplotlib."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    style: str = "-"


def compare(
    out: str | Path,
    identity: Mapping[str, Any],
    samples: Callable[[Path], Iterable[ComparedSample]],
    write: Callable[[ComparisonRecord], Sequence[str]],
    lines: Callable[[ComparisonRecord], Sequence[Line]] | None = None,
    **axes: Any,  # noqa: ANN401
) -> Comparison:
    """Run an experiment, continue an interrupted one, or find the finished one.

    Args:
        out: Folder of the outcome.
        identity: What determines it.
        samples: Trains the encoders on each sample, given the folder of the work in progress.
        write: Writes the paragraphs of the table.
        lines: Gives the lines of the figure, which is drawn if matplotlib (extra `plots`) is installed.
        axes: Labels and scales of the axes of the figure.
    """

    def make(work: Path, folder: Path) -> ComparisonRecord:
        record = ComparisonRecord(settings=as_json(identity), samples=list(samples(work)), **made_with("torch"))
        (folder / TABLE).write_text("\n\n".join(write(record)) + "\n", encoding="utf8")
        if lines is not None and available("matplotlib"):
            draw(lines(record), folder / FIGURE, **axes)
        return record

    return run(out, identity, ComparisonRecord, make, result=Comparison, command="experiment", holds=_holds_trial)


def _holds_trial(work: Path) -> bool:
    return any(work.glob("trials/*"))


def draw(lines: Sequence[Line], path: Path, **axes: Any) -> None:  # noqa: ANN401
    """Draw lines into a PNG; `axes` are properties of matplotlib's axes, such as `xlabel` and `xscale`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    plot = figure.add_subplot()
    for line in lines:
        plot.plot(line.x, line.y, line.style, marker="o", label=line.label)
    plot.set(**axes)
    ticks = sorted({value for line in lines for value in line.x})
    plot.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks], minor=False)
    plot.minorticks_off()
    plot.spines[["top", "right"]].set_visible(False)
    plot.legend(frameon=False)
    # Without the version of the library: the same lines give the same bytes.
    figure.savefig(path, dpi=120, metadata={"Software": None})


class SampledPart:
    """A part of a corpus, counted and sampled while its rows are read.

    Args:
        count: Number of pairs of the sample.
        max_length: Maximum number of word tokens on either side of a pair of the sample, if there is one.
    """

    def __init__(self, count: int, max_length: int | None) -> None:
        self.rows, self.sample, self.low, self.high = 0, Sample(count, SAMPLE_SEED), np.inf, -np.inf
        self._limit = LengthLimit(None, max_length) if max_length is not None else None

    def add(self, table: pa.Table, scores: np.ndarray | None = None) -> pa.Table:
        """Add rows with the columns of `SENTENCES`, and their scores [row], if any; returns the pairs left."""
        self.rows += table.num_rows
        if scores is not None and len(scores):
            self.low, self.high = min(self.low, float(scores.min())), max(self.high, float(scores.max()))
        if self._limit is not None and table.num_rows:
            table = table.filter(pa.array(self._limit.judge(table).kept))
        pairs = numbered_pairs(table)
        self.sample.add(pairs)
        return pairs

    def check(self, what: str) -> None:
        """Refuse a part of fewer than two pairs."""
        if self.sample.seen < 2:
            raise InputError(
                f"{what} has {self.sample.seen} pairs left of {self.rows:,}, too few to train on; allow a larger "
                "`max_length`, or leave it out"
            )

    def compared(self, group: str, name: str, trials: list[Trial]) -> ComparedSample:
        """The part with the encoders trained on its sample."""
        low, high = (self.low, self.high) if self.low <= self.high else (None, None)
        return ComparedSample(group, name, self.rows, self.sample.seen, low, high, trials)


def files_of(release: str | Path) -> dict[str, Any]:
    """Checksums of the files of a release."""
    return dict(read_record(Path(release), ["default"]).configs["default"].files)


def rows_of(release: str | Path) -> ReleaseRows:
    """The rows of a release."""
    return ReleaseRows(release_files(Path(release)))


def model_table(record: ComparisonRecord, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown whose last columns are the encoders and their mean."""
    return markdown_table([*header, *record.models, "mean"], rows)
