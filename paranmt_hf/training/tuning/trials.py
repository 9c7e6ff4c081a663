"""The trials of a search: each trains an encoder on the same pairs and measures it; finished trials are kept."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import logging
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.pairs import SIDES, Pairs, PairSelection
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import DivergedError, InputError, UnfitError
from paranmt_hf.evaluation.correlation import spearman
from paranmt_hf.evaluation.similarities import pair_similarities
from paranmt_hf.evaluation.sts_data import StsSet
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.inputs import PairsAndText, TrainingRun, resolve
from paranmt_hf.training.overfitting import MarginPairs
from paranmt_hf.training.train import Quiet, fit
from paranmt_hf.training.tuning.grid import KIND_OF, Order, apply
from paranmt_hf.util.files import replacing, write_bytes
from paranmt_hf.util.progress import duration
from paranmt_hf.util.records import Record, as_json, from_json, read_json, to_json
from paranmt_hf.util.settings import is_given
from paranmt_hf.util.tables import markdown_table, percent, text_table
from paranmt_hf.util.yaml_files import as_yaml

RECORD, TABLE, OPTIONS = "tune.json", "trials.tsv", "best.yaml"
# Rows that a terminal shows.
SHOWN = 20


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
    """The content of a search's `tune.json`.

    Attributes:
        settings: What determines it, as JSON values: the run that the trials vary, the grid, and how it is searched.
        pairs: Pairs that each trial learned from.
        combinations: Size of the grid.
        refused: Combinations that came up and were not tried, because their settings do not fit together.
        refusal: Why the last of these was refused.
        trials: The trials, in their order.
    """

    FILE: ClassVar[str] = RECORD
    KIND: ClassVar[str] = "a search for settings (`paranmt tune`)"

    settings: dict[str, Any]
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


def table_of(record: TuneRecord, style: Literal["markdown", "text"] = "text", most: int = SHOWN) -> str:
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


logger = logging.getLogger(__name__)
# In the work folder: the pairs of all trials, the results, what a trial in progress keeps, encoders before step one.
SAMPLE, RUNS, RUNNING, PREPARED = "pairs.parquet", "runs", "running", "prepared"


def holds_trials(work: Path) -> bool:
    """Tell whether a trial has a score, or one has trained for a while; those that failed did so at once."""
    scored = any(_read_trial(path).spearman is not None for path in (work / RUNS).glob("*.json"))
    return scored or any((work / RUNNING).glob("**/checkpoint*"))


def _read_trial(path: Path) -> TuneTrial:
    return from_json(TuneTrial, read_json(path, "the result of a trial"), path)


class Trials:
    """The trials of a search.

    Args:
        whole: The run that the trials vary: all but the settings of the grid.
        encoder: Its encoder settings as they were given.
        order: Which combinations are tried.
        work: The work folder.

    Attributes:
        done: The results, in the order in which the trials ran.
        refused: Combinations that came up and were not tried, because their settings do not fit together.
        refusal: Why the last of these was refused.
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
                resolved = self._resolve(combination, sample)
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

    def _resolve(self, combination: Mapping[str, Any], sample: Path) -> TrainingRun:
        """The run of a combination."""
        encoder, config = apply(combination, self._encoder, self._whole.config)
        return resolve([sample], encoder, config, PairSelection())

    def _one(self, combination: dict[str, Any], run: TrainingRun, margins: MarginPairs) -> None:
        """Run a trial, or find it done, and note its result."""
        number = len(self.done) + 1
        path = self._work / RUNS / f"{number:06}.json"
        if path.exists():
            found = _read_trial(path)
            if found.settings == as_json(combination):
                self.done.append(found)
                return
        trial = self._train(number, combination, run, margins)
        path.parent.mkdir(exist_ok=True)
        write_bytes(path, f"{json.dumps(to_json(trial))}\n".encode())
        shutil.rmtree(self._work / RUNNING, ignore_errors=True)
        self.done.append(trial)
        told = trial.reason if trial.spearman is None else f"Spearman {100 * trial.spearman:.1f}"
        shown = ", ".join(f"{name.replace('_', '-')} {value}" for name, value in combination.items())
        logger.info(f"trial {number}: {shown}: {told} ({duration(trial.seconds)})")

    def _train(self, number: int, combination: dict[str, Any], run: TrainingRun, margins: MarginPairs) -> TuneTrial:
        # Imports torch.
        from paranmt_hf.training.prepare import prepare

        started = time.monotonic()
        # What goes before the first step depends on the encoder and the seed alone.
        prepared = self._work / PREPARED / _short([asdict(run.encoder), run.config.seed])
        # Named after its settings, so that no other trial goes on from its checkpoint.
        running = self._work / RUNNING / _short(combination)
        model, store, teacher = prepare(run, prepared, self._work / "teacher")
        held_out = self._whole.development
        assert held_out is not None
        try:
            history = fit(model, store, run.config, running, teacher=teacher)
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
    """A name for a folder that is that of some JSON values alone."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


class _NoScoreError(InputError):
    """An encoder whose similarities cannot be ranked."""


def _spearman(encoder: Quiet, held_out: StsSet) -> float:
    try:
        similarities = pair_similarities(encoder, held_out.left, held_out.right, held_out.name)
        return spearman(similarities.values, held_out.gold)
    except InputError as error:
        raise _NoScoreError(str(error)) from None


def _write_sample(pairs: Pairs | PairsAndText, work: Path) -> Path:
    """Write the pairs that every trial learns from, once."""
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
