"""The trials of a search: each trains and evaluates an encoder on the same pairs; finished trials are kept."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.pairs import SIDES, Pairs, PairSelection
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import DivergedError, InputError, UnfitError
from paranmt_hf.evaluation.correlation import spearman
from paranmt_hf.evaluation.similarities import pair_similarities
from paranmt_hf.evaluation.sts_data import StsSet
from paranmt_hf.training.inputs import PairsAndText, TrainingRun, resolve_inputs
from paranmt_hf.training.overfitting import MarginPairs
from paranmt_hf.training.prepare import prepare_training
from paranmt_hf.training.train import Quiet, fit_encoder
from paranmt_hf.training.tuning.grid import Order, TuneTrial, apply, written
from paranmt_hf.util.files import replacing, write_bytes
from paranmt_hf.util.progress import duration
from paranmt_hf.util.records import as_json, from_json, read_json

logger = logging.getLogger(__name__)
# In the work folder: the pairs of all trials, the results, what a trial in progress keeps, encoders before step one.
SAMPLE, RUNS, RUNNING, PREPARED = "pairs.parquet", "runs", "running", "prepared"


def holds_trials(work: Path) -> bool:
    """Whether a trial has a score, or one has trained for a while; failed trials do not count."""
    scored = any(_read_trial(path).spearman is not None for path in (work / RUNS).glob("*.json"))
    return scored or any((work / RUNNING).glob("**/checkpoint*"))


def _read_trial(path: Path) -> TuneTrial:
    return from_json(TuneTrial, read_json(path, "the result of a trial"), path)


class Trials:
    """The trials of a search in a work folder; they vary the settings of a run, including `encoder`.

    Attributes:
        done: The results, in the order in which the trials ran.
        refused: Number of skipped combinations, whose settings are incompatible.
        refusal: Why the last of these was skipped.
        pairs: Pairs that each trial learns from.
    """

    def __init__(self, whole: TrainingRun, encoder: EncoderConfig, order: Order, work: Path) -> None:
        self._whole, self._encoder, self._order, self._work = whole, encoder, order, work
        self.done: list[TuneTrial] = []
        self.refused, self.pairs = 0, 0
        self.refusal: str | None = None
        self._closed: set[int] = set()

    def run(self) -> None:
        """Run all trials, or find them done."""
        wanted = min(self._order.config.trials, len(self._order.grid))
        sample = _write_sample(self._whole.pairs, self._work)
        self.pairs = pq.read_metadata(sample).num_rows
        margins = MarginPairs([sample], self._whole.development)
        while len(self.done) < wanted:
            known = [(trial.settings, trial.spearman) for trial in self.done]
            index = self._order.next(known, self._closed)
            if index is None:
                break
            self._closed.add(index)
            combination = self._order.grid.combination(index)
            try:
                encoder, config = apply(combination, self._encoder, self._whole.config)
                resolved = resolve_inputs([sample], encoder, config, PairSelection())
            except InputError as error:
                self._refuse(error)
                continue
            try:
                self._one(combination, resolved, margins)
            except UnfitError as error:
                # Such as a width that is not that of the vectors, which shows when the encoder is made.
                self._refuse(error)
        if not self.done:
            raise InputError(f"no combination of the grid fits together; the last one: {self.refusal}")

    def _refuse(self, reason: InputError) -> None:
        self.refused, self.refusal = self.refused + 1, str(reason)

    def _one(self, combination: dict[str, Any], run: TrainingRun, margins: MarginPairs) -> None:
        """Run a trial, or find it done, and record its result."""
        number = len(self.done) + 1
        path = self._work / RUNS / f"{number:06}.json"
        if path.exists():
            found = _read_trial(path)
            if found.settings == as_json(combination):
                self.done.append(found)
                return
        trial = self._train(number, combination, run, margins)
        path.parent.mkdir(exist_ok=True)
        write_bytes(path, f"{json.dumps(as_json(trial))}\n".encode())
        shutil.rmtree(self._work / RUNNING, ignore_errors=True)
        self.done.append(trial)
        outcome = trial.reason if trial.spearman is None else f"Spearman {100 * trial.spearman:.1f}"
        shown = ", ".join(f"{name.replace('_', '-')} {written(value)}" for name, value in combination.items())
        logger.info(f"trial {number}: {shown}: {outcome} ({duration(trial.seconds)})")

    def _train(self, number: int, combination: dict[str, Any], run: TrainingRun, margins: MarginPairs) -> TuneTrial:
        started = time.monotonic()
        # What goes before the first step depends on the encoder and the seed alone.
        prepared = self._work / PREPARED / _short([asdict(run.encoder), run.config.seed])
        # Named after its settings, so that no other trial continues from its checkpoint.
        running = self._work / RUNNING / _short(combination)
        model, store, teacher = prepare_training(run, prepared, self._work / "teacher")
        held_out = self._whole.development
        assert held_out is not None
        try:
            history = fit_encoder(model, store, run.config, running, teacher=teacher)
            model.eval()
            score = _spearman(Quiet(model), held_out)
        except (DivergedError, _NoScoreError) as error:
            return TuneTrial(number, combination, reason=str(error), seconds=time.monotonic() - started)
        measured: dict[str, float | None] = {}
        # The pairs of a small development set may have no negatives; it can be ranked all the same.
        with suppress(InputError):
            measured = {row.name: row.main for row in margins.measure(Quiet(model))}
        return TuneTrial(
            number,
            combination,
            spearman=score,
            train_margin=measured.get("train"),
            development_margin=measured.get("development"),
            loss=history.losses[-1][1] if history.losses else None,
            seconds=time.monotonic() - started,
        )


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
