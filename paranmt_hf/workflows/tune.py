"""Search for settings: combinations of a grid are trained on a sample, and measured on scored pairs of phrases.

arXiv:1511.08198, section 4.2: every model is trained for 5 epochs on 100,000 pairs; the settings of the highest
Spearman's rho on similarities of phrases are then trained on all pairs for 10 epochs.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.pairs import SIDES, Pairs, SelectionConfig
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import DivergedError, InputError
from paranmt_hf.evaluation.correlation import spearman
from paranmt_hf.evaluation.similarities import pair_similarities
from paranmt_hf.evaluation.sts_data import StsSet
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.util.files import replacing, write_bytes, writing
from paranmt_hf.util.progress import duration
from paranmt_hf.util.records import from_json, read_json, to_json
from paranmt_hf.util.work import (
    as_json,
    finished,
    keep_identity,
    locked,
    put_in_place,
    remove,
    remove_leftover,
    result_folder,
    work_folder,
)
from paranmt_hf.version import __version__
from paranmt_hf.workflows.support.grid import Grid, apply
from paranmt_hf.workflows.support.grid_order import Order, TuneConfig
from paranmt_hf.workflows.support.pair_margins import MarginPairs
from paranmt_hf.workflows.support.prepare_training import prepare
from paranmt_hf.workflows.support.training_run import TrainingRun, resolve
from paranmt_hf.workflows.support.tune_record import (
    OPTIONS,
    RECORD,
    TABLE,
    TuneRecord,
    TuneTrial,
    as_options,
    as_tsv,
    read_tune,
)
from paranmt_hf.workflows.support.unused_options import refuse_unused
from paranmt_hf.workflows.train import Quiet, Trained, fit, train

logger = logging.getLogger(__name__)
COMMAND = "tune"
# In the work folder: the pairs of all trials, the results, what a trial in progress keeps, encoders before step one.
SAMPLE, RUNS, RUNNING, PREPARED = "pairs.parquet", "runs", "running", "prepared"


@dataclass(frozen=True)
class Tuned:
    """The outcome of a search.

    Attributes:
        folder: Where it is.
        record: The trials.
        encoder: The best encoder settings.
        config: The best training settings, with the final number of epochs.
        fresh: Whether this call searched; the outcome may have been there already.
        final: The encoder that was trained with them, if that was asked for.
    """

    folder: Path
    record: TuneRecord
    encoder: EncoderConfig
    config: TrainConfig
    fresh: bool
    final: Trained | None = None


def tune(
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    grid: Grid | Mapping[str, Sequence[Any]],
    *,
    development: str | Path,
    encoder: EncoderConfig | None = None,
    config: TrainConfig | None = None,
    selection: SelectionConfig | None = None,
    tuning: TuneConfig | None = None,
    exclude: str | Path | None = None,
    final: str | Path | None = None,
) -> Tuned:
    """Search for the best settings, as arXiv:1511.08198, section 4.2, does.

    Killed at any moment and called again it goes on with the trial that was cut off.

    Args:
        data: As of `train`.
        out: Folder for the outcome: `tune.json`, a table, and `best.yaml` for `paranmt train --config`.
        grid: Settings and their values.
        development: Scored pairs whose similarities decide, by Spearman's rho; see `read_scored_pairs`.
        encoder: Settings of the encoder that are not searched.
        config: Settings of training that are not searched.
        selection: Which pairs there are; trials get a sample of these.
        tuning: How the search goes.
        exclude: Folder with STS sets; pairs with one of their sentences are left out.
        final: Folder of an encoder that is trained with the best settings on all pairs.

    Raises:
        InputError: Something in the data, the grid, the settings or the folders has to be put right first, or every
            trial failed.
    """
    grid = grid if isinstance(grid, Grid) else Grid(grid)
    encoder, config, selection = encoder or EncoderConfig(), config or TrainConfig(), selection or SelectionConfig()
    tuning, out = tuning or TuneConfig(), result_folder(out)
    final = result_folder(final) if final is not None else None
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError("a search runs as one process; start it without accelerate launch or torchrun")
    order = Order(grid, tuning)
    sources = [data] if isinstance(data, str | Path) else list(data)
    run = resolve(sources, encoder, config, _sample_of(selection, tuning), development=development, exclude=exclude)
    identity = _identity(run, grid, tuning)
    record = finished(out, identity, read_tune, lambda record: record.identity, made="found")
    fresh = record is None
    if record is None:
        record = _search(run, encoder, grid, order, out, identity, sources, selection, exclude)
    else:
        remove_leftover(out, COMMAND)
    best_encoder, best_config = apply(record.best.settings, encoder, config)
    best_config = replace(best_config, epochs=tuning.final_epochs)
    trained = None
    if final is not None:
        logger.info(f"training on all pairs for {best_config.epochs} epochs")
        trained = train(sources, final, encoder=best_encoder, config=best_config, selection=selection, exclude=exclude)
    return Tuned(out, record, best_encoder, best_config, fresh, trained)


def _sample_of(selection: SelectionConfig, tuning: TuneConfig) -> SelectionConfig:
    """Take fewer of the chosen pairs: the first ones where they are the first, else some by chance."""
    most = tuning.tune_pairs
    if selection.first_pairs is not None:
        return replace(selection, first_pairs=min(most, selection.first_pairs))
    return replace(selection, max_pairs=min(most, selection.max_pairs or most))


def _identity(run: TrainingRun, grid: Grid, tuning: TuneConfig) -> dict[str, Any]:
    searched = {name: list(values) for name, values in grid.values.items()}
    return as_json({**run.identity, "grid": searched, "search": asdict(tuning)})


def _search(
    run: TrainingRun,
    encoder: EncoderConfig,
    grid: Grid,
    order: Order,
    out: Path,
    identity: dict[str, Any],
    sources: Sequence[str | Path],
    selection: SelectionConfig,
    exclude: str | Path | None,
) -> TuneRecord:
    """Run the trials and put the outcome into place."""
    work = work_folder(out)
    with writing(out.parent):
        out.parent.mkdir(parents=True, exist_ok=True)
    with locked(work, COMMAND, worth=_holds_trials):
        keep_identity(work, identity, worth=_holds_trials, doing="search")
        search = _Search(run, encoder, grid, order, work)
        search.run()
        record = TuneRecord(
            identity, search.pairs, len(grid), search.refused, search.refusal, search.trials, __version__
        )
        best_encoder, best_config = apply(record.best.settings, encoder, run.config)
        best_config = replace(best_config, epochs=order.config.final_epochs)
        chosen = {
            name: value for name, value in asdict(selection).items() if value != getattr(SelectionConfig(), name)
        }
        others = {**chosen, **({"exclude": os.fspath(exclude)} if exclude is not None else {})}
        folder = work / "result"
        shutil.rmtree(folder, ignore_errors=True)
        with writing(out):
            folder.mkdir()
            options = as_options(best_encoder, best_config, [os.fspath(source) for source in sources], others)
            write_bytes(folder / OPTIONS, options.encode())
            write_bytes(folder / TABLE, as_tsv(record).encode())
            write_bytes(folder / RECORD, f"{json.dumps(to_json(record), indent=1)}\n".encode())
            put_in_place(folder, out)
        remove(work)
    return record


def _holds_trials(work: Path) -> bool:
    """Tell whether a trial has a score, or one has trained for a while; those that failed did so at once."""
    scored = any(_read_trial(path).spearman is not None for path in (work / RUNS).glob("*.json"))
    return scored or any((work / RUNNING).glob("**/checkpoint*"))


def _read_trial(path: Path) -> TuneTrial:
    return from_json(TuneTrial, read_json(path, "the result of a trial"), path)


class _Search:
    """The trials of a search, in a work folder."""

    def __init__(self, run: TrainingRun, encoder: EncoderConfig, grid: Grid, order: Order, work: Path) -> None:
        self.run_of, self.encoder, self.grid, self.order, self.work = run, encoder, grid, order, work
        self.trials: list[TuneTrial] = []
        self.refused, self.pairs = 0, 0
        self.refusal: str | None = None
        self._closed: set[int] = set()

    def run(self) -> None:
        """Run all trials, or find them done.

        Raises:
            InputError: No combination fits together, or there are no pairs.
        """
        wanted = min(self.order.config.trials, len(self.grid))
        sample = _write_sample(self.run_of.pairs, self.work)
        self.pairs = pq.read_metadata(sample).num_rows
        margins = MarginPairs([sample], self.run_of.development)
        while len(self.trials) < wanted:
            known = [(trial.settings, trial.spearman) for trial in self.trials]
            index = self.order.next(known, self._closed)
            if index is None:
                break
            self._closed.add(index)
            combination = self.grid.combination(index)
            try:
                resolved = self._resolve(combination, sample)
            except InputError as error:
                self.refused, self.refusal = self.refused + 1, str(error)
                continue
            self._one(combination, resolved, margins)
        if not self.trials:
            raise InputError(f"no combination of the grid fits together; the last one: {self.refusal}")

    def _resolve(self, combination: Mapping[str, Any], sample: Path) -> TrainingRun:
        """The run of a combination.

        Raises:
            InputError: Its settings do not fit together, or one of them would change nothing.
        """
        encoder, config = apply(combination, self.encoder, self.run_of.config)
        run = resolve([sample], encoder, config, SelectionConfig())
        given = replace(run.encoder, dimension=encoder.dimension)
        refuse_unused(given, config, development=False, teacher_cache=False, processes=1)
        return run

    def _one(self, combination: dict[str, Any], run: TrainingRun, margins: MarginPairs) -> None:
        """Run a trial, or find it done, and note its result."""
        number = len(self.trials) + 1
        path = self.work / RUNS / f"{number:06}.json"
        if path.exists():
            found = _read_trial(path)
            if found.settings == as_json(combination):
                self.trials.append(found)
                return
        trial = self._train(number, combination, run, margins)
        path.parent.mkdir(exist_ok=True)
        write_bytes(path, f"{json.dumps(to_json(trial))}\n".encode())
        shutil.rmtree(self.work / RUNNING, ignore_errors=True)
        self.trials.append(trial)
        told = trial.reason if trial.spearman is None else f"Spearman {100 * trial.spearman:.1f}"
        shown = ", ".join(f"{name.replace('_', '-')} {value}" for name, value in combination.items())
        logger.info(f"trial {number}: {shown}: {told} ({duration(trial.seconds)})")

    def _train(self, number: int, combination: dict[str, Any], run: TrainingRun, margins: MarginPairs) -> TuneTrial:
        started = time.monotonic()
        # What goes before the first step depends on the encoder and the seed alone.
        key = json.dumps([asdict(run.encoder), run.config.seed], sort_keys=True)
        prepared = self.work / PREPARED / hashlib.sha256(key.encode()).hexdigest()[:16]
        model, store, teacher = prepare(run, prepared, self.work / "teacher")
        held_out = self.run_of.development
        assert held_out is not None
        try:
            history = fit(model, store, run.config, self.work / RUNNING / f"{number:06}", teacher=teacher)
            model.eval()
            score = _spearman(Quiet(model), held_out)
        except (DivergedError, _NoScoreError) as error:
            return TuneTrial(number, combination, reason=str(error), seconds=time.monotonic() - started)
        measured = margins.measure(Quiet(model))
        return TuneTrial(
            number,
            combination,
            spearman=score,
            train_margin=measured.train,
            development_margin=measured.development,
            loss=history.losses[-1][1] if history.losses else None,
            seconds=time.monotonic() - started,
        )


class _NoScoreError(InputError):
    """An encoder whose similarities cannot be ranked."""


def _spearman(encoder: Quiet, held_out: StsSet) -> float:
    try:
        similarities = pair_similarities(encoder, held_out.left, held_out.right, held_out.name)
        return spearman(similarities.values, held_out.gold)
    except InputError as error:
        raise _NoScoreError(str(error)) from None


def _write_sample(pairs: Pairs, work: Path) -> Path:
    """Write the pairs that every trial learns from, once."""
    path = work / SAMPLE
    if path.exists():
        return path
    schema = pa.schema([(side, pa.string()) for side in SIDES])
    with replacing(path) as aside:
        with pq.ParquetWriter(aside, schema, compression="zstd") as writer:
            rows = sum(_written(writer, table) for table in pairs.batches())
        if not rows:
            raise InputError(f"nothing to train on: {pairs.left_out}; look at the data and the options that choose")
    return path


def _written(writer: pq.ParquetWriter, table: pa.Table) -> int:
    writer.write_table(table)
    return int(table.num_rows)
