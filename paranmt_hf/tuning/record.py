"""The settings of a search, and its outcome: the record `tune.json`, and its tables."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from paranmt_hf.errors import InputError
from paranmt_hf.tuning.grid import written
from paranmt_hf.util.files import shown_path
from paranmt_hf.util.markers import Count, PythonOnly, Range, Seed
from paranmt_hf.util.records import Record
from paranmt_hf.util.run import Result
from paranmt_hf.util.settings import Settings
from paranmt_hf.util.tables import percent, text_table
from paranmt_hf.util.wording import counted

# Files of the outcome: the best settings, for `--config`, and the table of all trials.
OPTIONS, TABLE = "best.yaml", "trials.tsv"
SHOWN_TRIALS = 20  # Maximum number of trials that a terminal shows


@dataclass(frozen=True)
class TuneConfig(Settings):
    """The search for settings (arXiv:1511.08198, section 4.2).

    Attributes:
        sampler: Which combination comes next: `random`, or `tpe`, what optuna finds promising.
        trials: Number of combinations that are tried, with those that do not fit together.
        tune_pairs: Number of pairs of each trial; 100,000 if left out (section 4.2).
        search_seed: Seed of the order of combinations.
    """

    sampler: Literal["random", "tpe"] = "random"
    trials: Count = 20
    tune_pairs: Annotated[int | None, Range(at_least=2)] = None
    search_seed: Annotated[Seed, PythonOnly] = 1


@dataclass(frozen=True)
class TuneTrial:
    """A combination of settings that was tried.

    Attributes:
        number: Its number in the order of drawn combinations, from 1.
        settings: The settings of the grid, by name.
        score: Spearman's rho on the development set, or for a task its main figure on the development items; None if
            training failed.
        loss: Loss at the end; None if training failed, or no step was made.
        seconds: Time spent on it, in seconds.
        reason: Why training failed; None if it did not.
    """

    number: int
    settings: dict[str, Any]
    score: float | None = None
    loss: float | None = None
    seconds: float = 0.0
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class TuneRecord(Record):
    """The content of `tune.json`.

    Attributes:
        command: The command that trains with the best settings.
        measure: Name of the trials' score.
        items: Number of pairs, or of items of a task, that each trial learned from.
        combinations: Number of combinations of the grid.
        refusals: Why combinations were skipped: error messages about settings that do not fit together.
        trials: The trials, in their order.
    """

    FILE: ClassVar[str] = "tune.json"
    KIND: ClassVar[str] = "a search for settings (`paranmt tune`)"

    command: Literal["train", "supervise"]
    measure: str
    items: int
    combinations: int
    refusals: list[str]
    trials: list[TuneTrial]

    @property
    def ranked(self) -> list[TuneTrial]:
        """The trials, the best first, and those that failed last."""
        return sorted(self.trials, key=lambda trial: (trial.score is None, -(trial.score or 0.0), trial.number))

    @property
    def best(self) -> TuneTrial:
        """The trial with the highest score, the first of equals.

        Raises:
            InputError: No trial has a score.
        """
        if not self.trials:
            raise InputError(f"no combination of the grid fits together; the last one: {self.refusals[-1]}")
        best = self.ranked[0]
        if best.score is None:
            raise InputError(f"all {len(self.trials)} trials failed; the last one: {self.trials[-1].reason}")
        return best

    def table(self) -> str:
        """Return the best trials as a table for a terminal."""
        names = [name.replace("_", "-") for name in self.trials[0].settings]
        rows = []
        for trial in self.ranked[:SHOWN_TRIALS]:
            score = "failed" if trial.score is None else percent(trial.score)
            loss = "" if trial.loss is None else f"{trial.loss:.4f}"
            rows.append([str(trial.number), *map(written, trial.settings.values()), score, loss])
        return text_table(["trial", *names, self.measure, "loss"], rows)

    def as_tsv(self) -> str:
        """Return all trials as tab-separated values, in the order of the trials."""
        text = io.StringIO()
        writer = csv.writer(text, delimiter="\t", lineterminator="\n")
        writer.writerow(["trial", *self.trials[0].settings, "score", "loss", "reason"])
        for trial in self.trials:
            chosen = map(written, trial.settings.values())
            writer.writerow([trial.number, *chosen, trial.score, trial.loss, trial.reason])
        return text.getvalue()


class TuneResult(Result[TuneRecord]):
    """The result of `paranmt tune`: the outcome of a search."""

    def summary(self) -> str:
        """Return a table of the best trials, and the command that trains with the best settings."""
        record, folder = self.record, shown_path(self.folder)
        lines = [record.table()]
        if len(record.trials) > SHOWN_TRIALS:
            lines.append(f"... and {len(record.trials) - SHOWN_TRIALS} more in {folder}/{TABLE}")
        lines.append(f"{record.measure} x 100 on the development data")
        seconds = sum(trial.seconds for trial in record.trials)
        tried = f"{len(record.trials)} of {counted(record.combinations, 'combination')}"
        unit = "pair" if record.command == "train" else "item"
        lines.append(f"{tried}, {counted(record.items, unit)}, {seconds:,.0f} s")
        if record.refusals:
            lines.append(f"{len(record.refusals):,} do not fit together, such as: {record.refusals[-1]}")
        best = f"paranmt {record.command} --config {folder}/{OPTIONS} --out FOLDER"
        return "\n".join([*lines, f"the best is trial {record.best.number}: {best}"])
