"""The trials of a search: optuna chooses combinations, and its journal keeps them, so that a search can continue."""

from __future__ import annotations

import logging
import os
import shutil
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import optuna
from optuna.samplers import BaseSampler, GridSampler, RandomSampler, TPESampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import TrialState

from paranmt_hf.errors import DivergedError, InputError, UnfitError
from paranmt_hf.tuning.grid import Grid, short_name, written
from paranmt_hf.tuning.objectives import PairObjective, TaskObjective
from paranmt_hf.tuning.record import TuneConfig, TuneTrial
from paranmt_hf.util.progress import duration
from paranmt_hf.util.records import as_json, from_json

logger = logging.getLogger(__name__)
# In the work folder: what is known of the trials, and what the one in progress keeps.
JOURNAL, RUNNING = "trials.jsonl", "running"
# Attributes of a trial of optuna: what came out of it, or why its settings do not fit together.
RESULT, REFUSAL = "result", "refusal"


class _WorkFolderLock(JournalFileOpenLock):
    """Locks nothing, because one process at a time has the work folder; a kill would leave a lock of optuna's."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


class _ShuffledGrid(GridSampler):
    """Draws every combination once, in an order by the seed."""

    def after_trial(self, *_: Any) -> None:  # noqa: ANN401
        """Do nothing, where optuna ends a loop that is not used here."""


@dataclass(frozen=True)
class Search:
    """A search in a work folder."""

    objective: PairObjective | TaskObjective
    grid: Grid
    config: TuneConfig
    work: Path

    def run(self) -> tuple[list[TuneTrial], list[str]]:
        """Run all trials, or find them done; an interruption changes no choice.

        Returns:
            The trials, and why combinations were refused that do not fit together.
        """
        study = open_study(self.work)
        drawn: list[dict[str, int]] = []
        number, repeated = 0, False
        while len(drawn) < min(self.config.trials, self.grid.size):
            if number == len(study.trials) or not study.trials[number].state.is_finished():
                study.sampler = self._sampler(number, repeated=repeated)
                # The journal has one study, so a number is an id.
                trial = study.ask() if number == len(study.trials) else optuna.trial.Trial(study, number)
                self._run(trial, drawn)
            found = study.trials[number].params
            repeated = found in drawn
            if not repeated:
                drawn.append(found)
            number += 1
        results, refusals = [], []
        for trial in study.trials:
            if RESULT in trial.user_attrs:
                results.append(from_json(TuneTrial, trial.user_attrs[RESULT], self.work / JOURNAL))
            if REFUSAL in trial.user_attrs:
                refusals.append(trial.user_attrs[REFUSAL])
        return results, refusals

    def _sampler(self, number: int, *, repeated: bool) -> BaseSampler:
        """Make the sampler of a trial, at random after a repetition by TPE; an interruption must change nothing."""
        if self.config.sampler == "random":
            axes = {name: [*range(len(values))] for name, values in self.grid.axes.items()}
            return _ShuffledGrid(axes, self.config.search_seed)
        seed = (self.config.search_seed + 7919 * number) % 2**32
        if repeated:
            return RandomSampler(seed)
        with warnings.catch_warnings():
            # Optuna 4 calls `multivariate` experimental.
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            # All that versions of optuna have changed: with these, 4.5, 4.9 and 5.0 choose the same combinations.
            return TPESampler(
                seed=seed,
                multivariate=True,
                group=False,
                constant_liar=False,
                n_startup_trials=10,
                n_ei_candidates=24,
            )

    def _run(self, trial: optuna.Trial, drawn: list[dict[str, int]]) -> None:
        """Run a trial, unless its combination was drawn before; the journal gets what came out."""
        for name, values in self.grid.axes.items():
            trial.suggest_categorical(name, range(len(values)))
        if trial.params in drawn:
            trial.study.tell(trial, state=TrialState.FAIL)
            return
        combination = self.grid.combination(trial.params)
        try:
            done = self._train(TuneTrial(len(drawn) + 1, combination))
        except UnfitError as error:
            trial.set_user_attr(REFUSAL, str(error))
            trial.study.tell(trial, state=TrialState.PRUNED)
            return
        trial.set_user_attr(RESULT, as_json(done))
        trial.study.tell(trial, done.score, TrialState.FAIL if done.score is None else TrialState.COMPLETE)
        shutil.rmtree(self.work / RUNNING, ignore_errors=True)
        shown = ", ".join(f"{name.replace('_', '-')} {written(value)}" for name, value in combination.items())
        outcome = done.reason or f"{self.objective.measure} {100 * (done.score or 0):.1f}"
        logger.info(f"trial {done.number}: {shown}: {outcome} ({duration(done.seconds)})")

    def _train(self, trial: TuneTrial) -> TuneTrial:
        """Train, and fill in what came out; settings that do not fit together raise an `UnfitError`."""
        try:
            train = self.objective.trial(trial.settings)
        except InputError as error:
            raise UnfitError(str(error)) from None
        started = time.monotonic()
        try:
            # Named after its settings, so that no other trial continues from its checkpoint.
            score, loss = train(self.work / RUNNING / short_name(trial.settings))
            trial = replace(trial, score=score, loss=loss)
        except DivergedError as error:
            trial = replace(trial, reason=str(error))
        return replace(trial, seconds=time.monotonic() - started)


def open_study(work: Path) -> optuna.Study:
    """Open the study in a journal, or begin one."""
    path = work / JOURNAL
    if path.exists():
        # A kill or a full disk may have cut off the last line.
        os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = JournalStorage(JournalFileBackend(str(path), _WorkFolderLock(str(path))))
    return optuna.create_study(storage=storage, study_name="trials", direction="maximize", load_if_exists=True)
