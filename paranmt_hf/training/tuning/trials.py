"""The trials of a search: each trains and evaluates an encoder on the same data; finished trials are kept."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import time
from contextlib import suppress
from copy import deepcopy
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.pairs import SIDES, Pairs, PairSelection
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.encoders.named_encoder import Quiet
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.errors import DivergedError, InputError, UnfitError
from paranmt_hf.evaluation.correlation import spearman
from paranmt_hf.evaluation.similarities import pair_similarities
from paranmt_hf.evaluation.sts_data import StsSet
from paranmt_hf.training.inputs import PairsAndText, TrainingRun, resolve_inputs
from paranmt_hf.training.overfitting import MarginPairs
from paranmt_hf.training.prepare import prepare_training
from paranmt_hf.training.supervised.config import SuperviseConfig
from paranmt_hf.training.supervised.data import measure_of
from paranmt_hf.training.supervised.task import TaskSetup, new_encoder, train_task
from paranmt_hf.training.train import fit_encoder
from paranmt_hf.training.tuning.grid import Order, TuneTrial, apply, written
from paranmt_hf.util.files import replacing, write_bytes
from paranmt_hf.util.progress import duration
from paranmt_hf.util.records import as_json, from_json, read_json

logger = logging.getLogger(__name__)
# In the work folder: the pairs of all trials, the results, what a trial in progress keeps, encoders before step one.
SAMPLE, RUNS, RUNNING, PREPARED = "pairs.parquet", "runs", "running", "prepared"


def holds_trials(work: Path) -> bool:
    """Whether a trial has a score, or one has trained for a while; failed trials do not count."""
    scored = any(_read_trial(path).score is not None for path in (work / RUNS).glob("*.json"))
    return scored or any((work / RUNNING).glob("**/checkpoint*"))


def _read_trial(path: Path) -> TuneTrial:
    return from_json(TuneTrial, read_json(path, "the result of a trial"), path)


class Trials:
    """The trials of a search in a work folder.

    Attributes:
        measure: Name of the score.
        items: Number of pairs, or of items of a task, that each trial learns from.
        done: The results, in the order in which the trials ran.
        refused: Number of skipped combinations, whose settings are incompatible.
        refusal: Why the last of these was skipped.
    """

    items: int
    measure: str

    def __init__(self, order: Order, work: Path) -> None:
        self._order, self._work = order, work
        self.done: list[TuneTrial] = []
        self.refused = 0
        self.refusal: str | None = None
        self._closed: set[int] = set()

    def resolve(self, combination: dict[str, Any]) -> Any:  # noqa: ANN401 - what `train` takes
        """Find the settings of a trial; raises an error if they do not fit together."""
        raise NotImplementedError

    def train(self, trial: TuneTrial, resolved: Any, running: Path) -> TuneTrial:  # noqa: ANN401
        """Train with resolved settings, with checkpoints in `running`, and fill in the figures of the trial."""
        raise NotImplementedError

    def run(self) -> None:
        """Run all trials, or find them done."""
        wanted = min(self._order.config.trials, len(self._order.grid))
        while len(self.done) < wanted:
            known = [(trial.settings, trial.score) for trial in self.done]
            index = self._order.next(known, self._closed)
            if index is None:
                break
            self._closed.add(index)
            combination = self._order.grid.combination(index)
            try:
                resolved = self.resolve(combination)
            except InputError as error:
                self._refuse(error)
                continue
            try:
                self._one(combination, resolved)
            except UnfitError as error:
                # Such as a width that is not that of the vectors, which shows when the encoder is made.
                self._refuse(error)
        if not self.done:
            raise InputError(f"no combination of the grid fits together; the last one: {self.refusal}")

    def _refuse(self, reason: InputError) -> None:
        self.refused, self.refusal = self.refused + 1, str(reason)

    def _one(self, combination: dict[str, Any], resolved: Any) -> None:  # noqa: ANN401
        """Run a trial, or find it done, and record its result."""
        number = len(self.done) + 1
        path = self._work / RUNS / f"{number:06}.json"
        if path.exists():
            found = _read_trial(path)
            if found.settings == as_json(combination):
                self.done.append(found)
                return
        started = time.monotonic()
        trial = TuneTrial(number, combination)
        try:
            # Named after its settings, so that no other trial continues from its checkpoint.
            trial = self.train(trial, resolved, self._work / RUNNING / _short(combination))
        except (DivergedError, _NoScoreError) as error:
            trial = replace(trial, reason=str(error))
        trial = replace(trial, seconds=time.monotonic() - started)
        path.parent.mkdir(exist_ok=True)
        write_bytes(path, f"{json.dumps(as_json(trial))}\n".encode())
        shutil.rmtree(self._work / RUNNING, ignore_errors=True)
        self.done.append(trial)
        outcome = trial.reason if trial.score is None else f"{self.measure} {100 * trial.score:.1f}"
        shown = ", ".join(f"{name.replace('_', '-')} {written(value)}" for name, value in combination.items())
        logger.info(f"trial {number}: {shown}: {outcome} ({duration(trial.seconds)})")


class PairTrials(Trials):
    """Trials on pairs; they vary the settings of a run, including `encoder`."""

    measure = "Spearman"

    def __init__(self, whole: TrainingRun, encoder: EncoderConfig, order: Order, work: Path) -> None:
        super().__init__(order, work)
        self._whole, self._encoder = whole, encoder
        self._sample = _write_sample(whole.pairs, work)
        self.items = pq.read_metadata(self._sample).num_rows
        self._margins = MarginPairs([self._sample], whole.development)

    def resolve(self, combination: dict[str, Any]) -> TrainingRun:
        """See `Trials`."""
        encoder, config = apply(combination, self._encoder, self._whole.config)
        return resolve_inputs([self._sample], encoder, config, PairSelection())

    def train(self, trial: TuneTrial, resolved: TrainingRun, running: Path) -> TuneTrial:
        """See `Trials`."""
        # What goes before the first step depends on the encoder and the seed alone.
        prepared = self._work / PREPARED / _short([asdict(resolved.encoder), resolved.config.seed])
        model, store, teacher = prepare_training(resolved, prepared, self._work / "teacher")
        held_out = self._whole.development
        assert held_out is not None
        history = fit_encoder(model, store, resolved.config, running, teacher=teacher)
        model.eval()
        score = _spearman(Quiet(model), held_out)
        measured: dict[str, float | None] = {}
        # The pairs of a small development set may have no negatives; it can be ranked all the same.
        with suppress(InputError):
            measured = {row.name: row.main for row in self._margins.measure(Quiet(model))}
        return replace(
            trial,
            score=score,
            train_margin=measured.get("train"),
            development_margin=measured.get("development"),
            loss=history.losses[-1][1] if history.losses else None,
        )


class TaskTrials(Trials):
    """Trials of a supervised task, measured on its development items; they vary the settings of a run."""

    def __init__(self, whole: TaskSetup, config: SuperviseConfig, order: Order, work: Path) -> None:
        super().__init__(order, work)
        # The defaults of some settings depend on others, so they are filled in for each trial.
        self._whole, self._config, self.items = whole, config, len(whole.task.parts["train"])
        self.measure = measure_of(whole.task.name).capitalize()
        self._built: tuple[EncoderConfig, int, SentenceEncoder] | None = None

    def resolve(self, combination: dict[str, Any]) -> TaskSetup:
        """See `Trials`."""
        encoder, config = apply(combination, self._whole.encoder, self._config)
        return replace(self._whole, config=config.resolved(start=self._whole.start is not None), encoder=encoder)

    def train(self, trial: TuneTrial, resolved: TaskSetup, running: Path) -> TuneTrial:
        """See `Trials`."""
        running.mkdir(parents=True, exist_ok=True)
        _, record = train_task(replace(resolved, start=self._encoder(resolved)), running)
        return replace(trial, score=record.epochs[record.best_epoch - 1].development, loss=record.epochs[-1].loss)

    def _encoder(self, resolved: TaskSetup) -> SentenceEncoder:
        """A copy of the encoder before training, which is made again if its settings change."""
        if self._built is None or self._built[:2] != (resolved.encoder, resolved.config.seed):
            encoder = resolved.start or new_encoder(resolved)
            self._built = (resolved.encoder, resolved.config.seed, encoder)
        return deepcopy(self._built[2])


def _short(values: object) -> str:
    """Short folder name from JSON values."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


class _NoScoreError(InputError):
    """The similarities of an encoder cannot be ranked."""


def _spearman(encoder: Quiet, held_out: StsSet) -> float:
    try:
        similarities = pair_similarities(encoder, held_out.left, held_out.right, held_out.name)
        return spearman(similarities.values, held_out.gold)
    except InputError as error:
        raise _NoScoreError(str(error)) from None


def _write_sample(pairs: Pairs | PairsAndText, work: Path) -> Path:
    """Write the training pairs of all trials, once."""
    path = work / SAMPLE
    if path.exists():
        return path
    schema = pa.schema([(side, pa.string()) for side in SIDES])
    with replacing(path) as aside:
        with pq.ParquetWriter(aside, schema, compression="zstd") as writer:
            rows = 0
            for table in pairs.batches():
                writer.write_table(table)
                rows += table.num_rows
        if not rows:
            raise InputError(f"nothing to train on: {pairs.left_out}; look at the data and the options that choose")
    return path
