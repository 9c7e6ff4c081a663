"""The trials of a search: each trains and evaluates an encoder on the same data; finished trials are kept."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from paranmt_hf.errors import DivergedError, InputError, UnfitError
from paranmt_hf.tuning.grid import Order, written
from paranmt_hf.util.files import write_bytes
from paranmt_hf.util.progress import duration
from paranmt_hf.util.records import as_json, from_json, read_json

logger = logging.getLogger(__name__)
# In the work folder: the results, and what a trial in progress keeps.
RUNS, RUNNING = "runs", "running"


class NoScoreError(InputError):
    """The similarities of an encoder cannot be ranked."""


@dataclass(frozen=True)
class TuneTrial:
    """A combination of settings that was tried.

    Attributes:
        number: When, from 1.
        settings: The settings of the grid, by name.
        score: Spearman's rho on the development set, of a task its main figure on the development items; None if
            training failed.
        loss: Loss at the end.
        seconds: Time spent on it.
        reason: Why training failed.
    """

    number: int
    settings: dict[str, Any]
    score: float | None = None
    loss: float | None = None
    seconds: float = 0.0
    reason: str | None = None


def holds_trials(work: Path) -> bool:
    """Whether a trial has a score, or one has trained for a while; failed trials do not count."""
    scored = any(_read_trial(path).score is not None for path in (work / RUNS).glob("*.json"))
    return scored or any((work / RUNNING).glob("**/checkpoint*"))


def _read_trial(path: Path) -> TuneTrial:
    return from_json(TuneTrial, read_json(path, "the result of a trial"), path)


def short_name(values: object) -> str:
    """Short folder name from JSON values."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


class Search:
    """What a search varies, and how a trial of it is trained.

    Attributes:
        measure: Name of the score.
        items: Number of pairs, or of items of a task, that each trial learns from.
    """

    measure: str
    items: int

    def begin(self, work: Path) -> None:
        """Make in the work folder what all trials need."""

    def resolve(self, combination: Mapping[str, Any]) -> Any:  # noqa: ANN401 - what `train_trial` takes
        """Find the settings of a trial; raises an error if they do not fit together."""
        raise NotImplementedError

    def train_trial(self, trial: TuneTrial, resolved: Any, running: Path) -> TuneTrial:  # noqa: ANN401
        """Train with resolved settings, with checkpoints in `running`, and fill in the figures of the trial."""
        raise NotImplementedError


class Trials:
    """The trials of a search in a work folder.

    Attributes:
        done: The results, in the order in which the trials ran.
        refused: Number of skipped combinations, whose settings are incompatible.
        refusal: Why the last of these was skipped.
    """

    def __init__(self, search: Search, order: Order, work: Path) -> None:
        self._search, self._order, self._work = search, order, work
        self.done: list[TuneTrial] = []
        self.refused = 0
        self.refusal: str | None = None
        self._scores: dict[int, float | None] = {}
        self._closed: set[int] = set()

    def run(self) -> None:
        """Run all trials, or find them done."""
        wanted = min(self._order.config.trials, len(self._order.grid))
        while len(self.done) < wanted and (index := self._order.next(self._scores, self._closed)) is not None:
            self._closed.add(index)
            combination = self._order.grid.combination(index)
            try:
                resolved = self._search.resolve(combination)
            except InputError as error:
                self._refuse(error)
                continue
            try:
                trial = self._one(combination, resolved)
            except UnfitError as error:
                # Such as a width that is not that of the vectors, which shows when the encoder is made.
                self._refuse(error)
                continue
            self.done.append(trial)
            self._scores[index] = trial.score
        if not self.done:
            raise InputError(f"no combination of the grid fits together; the last one: {self.refusal}")

    def _refuse(self, reason: InputError) -> None:
        self.refused, self.refusal = self.refused + 1, str(reason)

    def _one(self, combination: dict[str, Any], resolved: Any) -> TuneTrial:  # noqa: ANN401
        """Run a trial and record its result, or find it done."""
        number = len(self.done) + 1
        path = self._work / RUNS / f"{number:06}.json"
        if path.exists():
            found = _read_trial(path)
            if found.settings == as_json(combination):
                return found
        started = time.monotonic()
        trial = TuneTrial(number, combination)
        try:
            # Named after its settings, so that no other trial continues from its checkpoint.
            trial = self._search.train_trial(trial, resolved, self._work / RUNNING / short_name(combination))
        except (DivergedError, NoScoreError) as error:
            trial = replace(trial, reason=str(error))
        trial = replace(trial, seconds=time.monotonic() - started)
        path.parent.mkdir(exist_ok=True)
        write_bytes(path, f"{json.dumps(as_json(trial))}\n".encode())
        shutil.rmtree(self._work / RUNNING, ignore_errors=True)
        outcome = trial.reason if trial.score is None else f"{self._search.measure} {100 * trial.score:.1f}"
        shown = ", ".join(f"{name.replace('_', '-')} {written(value)}" for name, value in combination.items())
        logger.info(f"trial {number}: {shown}: {outcome} ({duration(trial.seconds)})")
        return trial
