"""Run the trials of a search: optuna chooses combinations, and keeps them in a journal to continue from."""

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
# Names in the work folder: the journal of all trials, and the folder of the trial in progress.
JOURNAL, RUNNING = "trials.jsonl", "running"
# Attributes of a trial of optuna: its outcome, or why its settings do not fit together.
RESULT, REFUSAL = "result", "refusal"


class _WorkFolderLock(JournalFileOpenLock):
    """A lock that locks nothing.

    One process at a time has the work folder anyway, and optuna's own lock would remain after a kill.
    """

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


class _ShuffledGrid(GridSampler):
    """Draws every combination once, in an order that the seed determines."""

    def after_trial(self, *_: Any) -> None:  # noqa: ANN401
        """Do nothing; in optuna this ends a loop that is not used here."""


@dataclass(frozen=True)
class Search:
    """A search in a work folder.

    Attributes:
        objective: The kind of trials.
        grid: The combinations.
        config: Settings of the search.
        work: The work folder.
    """

    objective: PairObjective | TaskObjective
    grid: Grid
    config: TuneConfig
    work: Path

    def run(self) -> tuple[list[TuneTrial], list[str]]:
        """Run all trials that were not run before; an interruption changes no choice.

        Returns:
            The trials, and error messages about combinations whose settings do not fit together.
        """
        study = open_study(self.work)
        drawn: list[dict[str, int]] = []
        number, repeated = 0, False
        while len(drawn) < min(self.config.trials, self.grid.size):
            if number == len(study.trials) or not study.trials[number].state.is_finished():
                study.sampler = self._sampler(number, repeated=repeated)
                # The journal has a single study, so the number of a trial is its id too.
                trial = study.ask() if number == len(study.trials) else optuna.trial.Trial(study, number)
                self._run(trial, drawn)
            positions = study.trials[number].params
            repeated = positions in drawn
            if not repeated:
                drawn.append(positions)
            number += 1
        results, refusals = [], []
        for trial in study.trials:
            if RESULT in trial.user_attrs:
                results.append(from_json(TuneTrial, trial.user_attrs[RESULT], self.work / JOURNAL))
            if REFUSAL in trial.user_attrs:
                refusals.append(trial.user_attrs[REFUSAL])
        return results, refusals

    def _sampler(self, number: int, *, repeated: bool) -> BaseSampler:
        """Make the sampler of one trial, from its number alone, so that an interruption changes nothing.

        Args:
            number: Number of the trial.
            repeated: Whether the trial before repeated a combination; if so, TPE is replaced by a random choice.
        """
        if self.config.sampler == "random":
            axes = {name: [*range(len(values))] for name, values in self.grid.axes.items()}
            return _ShuffledGrid(axes, self.config.search_seed)
        seed = (self.config.search_seed + 7919 * number) % 2**32
        if repeated:
            return RandomSampler(seed)
        with warnings.catch_warnings():
            # Optuna 4 calls `multivariate` experimental.
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            # All defaults that differ among versions are set: with these values, optuna 4.5, 4.9 and 5.0 choose the
            # same combinations.
            return TPESampler(
                seed=seed,
                multivariate=True,
                group=False,
                constant_liar=False,
                n_startup_trials=10,
                n_ei_candidates=24,
            )

    def _run(self, trial: optuna.Trial, drawn: list[dict[str, int]]) -> None:
        """Run a trial, unless its combination was drawn before, and write its outcome into the journal.

        Args:
            trial: The trial of optuna.
            drawn: Positions of the combinations before it, on each axis.
        """
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
        """Train a trial, and return it with its outcome.

        Raises:
            UnfitError: Its settings do not fit together.
        """
        try:
            train = self.objective.trial(trial.settings)
        except InputError as error:
            raise UnfitError(str(error)) from None
        started = time.monotonic()
        try:
            # The folder is named after the settings, so that no other trial continues from this checkpoint.
            score, loss = train(self.work / RUNNING / short_name(trial.settings))
            trial = replace(trial, score=score, loss=loss)
        except DivergedError as error:
            trial = replace(trial, reason=str(error))
        return replace(trial, seconds=time.monotonic() - started)


def open_study(work: Path) -> optuna.Study:
    """Open the study in the journal of a work folder, or begin one."""
    path = work / JOURNAL
    if path.exists():
        # Remove an incomplete last line, which a kill or a full disk may have left.
        os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = JournalStorage(JournalFileBackend(str(path), _WorkFolderLock(str(path))))
    return optuna.create_study(storage=storage, study_name="trials", direction="maximize", load_if_exists=True)
