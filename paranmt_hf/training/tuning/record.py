"""The outcome of a search for settings: its record, its tables, and the options that train with the best ones."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import InputError
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.tuning.grid import KIND_OF
from paranmt_hf.util.records import Record
from paranmt_hf.util.settings import is_given
from paranmt_hf.util.tables import markdown_table, percent, text_table
from paranmt_hf.util.yaml_files import as_yaml

TABLE, OPTIONS = "trials.tsv", "best.yaml"
# Rows that a terminal shows.
SHOWN_TRIALS = 20


@dataclass(frozen=True)
class TuneTrial:
    """A combination of settings that was tried.

    Attributes:
        number: When, from 1.
        settings: The settings of the grid, by name.
        spearman: Spearman's rho on the development set, in [-1, 1]; None where training failed.
        train_margin: Mean of 2 cos(g1, g2) - cos(n1, g1) - cos(n2, g2) over training pairs, in [-4, 4] (section 5).
        development_margin: The same over the pairs of the development set.
        loss: Loss at the end.
        seconds: Time spent on it.
        reason: Why training failed.
    """

    number: int
    settings: dict[str, Any]
    spearman: float | None = None
    train_margin: float | None = None
    development_margin: float | None = None
    loss: float | None = None
    seconds: float = 0.0
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class TuneRecord(Record):
    """The content of `tune.json`.

    Attributes:
        pairs: Pairs that each trial learned from.
        combinations: Size of the grid.
        refused: Combinations that came up and were not tried, because their settings do not fit together.
        refusal: Why the last of these was refused.
        trials: The trials, in their order.
    """

    FILE: ClassVar[str] = "tune.json"
    KIND: ClassVar[str] = "a search for settings (`paranmt tune`)"

    pairs: int
    combinations: int
    refused: int
    refusal: str | None
    trials: list[TuneTrial]

    def __post_init__(self) -> None:
        names = {frozenset(trial.settings) for trial in self.trials}
        if len(names) != 1 or not next(iter(names)) <= KIND_OF.keys():
            raise InputError("its 'trials' are none, or have settings that differ or that training does not have")

    @property
    def best(self) -> TuneTrial:
        """The trial of the highest Spearman's rho, the first of several."""
        done = [trial for trial in self.trials if trial.spearman is not None]
        if not done:
            raise InputError(f"all {len(self.trials)} trials failed; the last one: {self.trials[-1].reason}")
        return max(done, key=lambda trial: trial.spearman or 0.0)

    @property
    def ranked(self) -> list[TuneTrial]:
        """The trials, the best first and those that failed last."""
        return sorted(self.trials, key=lambda trial: (trial.spearman is None, -(trial.spearman or 0.0), trial.number))


def _cells(trial: TuneTrial, names: Sequence[str]) -> list[str]:
    margins = [trial.train_margin, trial.development_margin]
    return [
        str(trial.number),
        *(_written(trial.settings[name]) for name in names),
        "failed" if trial.spearman is None else percent(trial.spearman),
        *("" if margin is None else f"{margin:.3f}" for margin in margins),
        "" if trial.loss is None else f"{trial.loss:.4f}",
    ]


def _written(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def table_of(record: TuneRecord, style: Literal["markdown", "text"] = "text", most: int = SHOWN_TRIALS) -> str:
    """Write the trials as a table, the best first.

    Args:
        record: The search.
        style: For a terminal, or Markdown.
        most: Rows that are shown.
    """
    names = list(record.trials[0].settings)
    header = ["trial", *(name.replace("_", "-") for name in names), "Spearman", "train", "dev", "loss"]
    rows = [_cells(trial, names) for trial in record.ranked[:most]]
    return markdown_table(header, rows) if style == "markdown" else text_table(header, rows)


def as_tsv(record: TuneRecord) -> str:
    """Write the trials with tabs between the columns, in the order in which they ran."""
    names = list(record.trials[0].settings)
    figures = [entry.name for entry in fields(TuneTrial) if entry.name not in ("number", "settings", "seconds")]
    written = io.StringIO()
    writer = csv.writer(written, delimiter="\t", lineterminator="\n")
    writer.writerow(["trial", *names, *figures])
    for trial in record.trials:
        values = [getattr(trial, name) for name in figures]
        settings = [_written(trial.settings[name]) for name in names]
        writer.writerow([trial.number, *settings, *("" if value is None else value for value in values)])
    return written.getvalue()


def as_options(encoder: EncoderConfig, config: TrainConfig, others: Mapping[str, Any]) -> str:
    """Write settings as a file for `paranmt train --config`.

    Args:
        encoder: The encoder.
        config: How it is trained.
        others: More options, by their names.
    """
    values: dict[str, Any] = {}
    for settings in (encoder, config):
        for entry in fields(settings):
            if entry.name == "model" or is_given(settings, entry.name):
                values[entry.name] = getattr(settings, entry.name)
    options = {name.replace("_", "-"): value for name, value in {**others, **values}.items()}
    return f"# paranmt train --config {OPTIONS} --out FOLDER\n{as_yaml(options)}"
