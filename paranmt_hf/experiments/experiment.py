"""Experiments that train many small encoders: on samples of a corpus, each measured on the development set.

ParaNMT-50M (Wieting & Gimpel 2018), tables 4 and 5: what is compared are data, so each sample trains the same models.
A trained model's result is written down at once; a command that was stopped goes on with the next model.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.pairs import PairSelection
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.encoders.loading import load
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.pair_set import StsSet
from paranmt_hf.evaluation.paper_tables import mean_over_sets
from paranmt_hf.evaluation.scored_pairs import read_scored_pairs
from paranmt_hf.evaluation.sts import evaluate_sts
from paranmt_hf.evaluation.sts_data import read_several
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.inputs import existing, resolve
from paranmt_hf.training.train import train
from paranmt_hf.util.files import checksum, replacing, write_bytes, writing
from paranmt_hf.util.records import as_json, from_json, read_json, to_json
from paranmt_hf.util.work import (
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

logger = logging.getLogger(__name__)

RUNS, SAMPLES, MODELS = "runs", "samples", "models"
RECORD = "experiment.json"


@dataclass(frozen=True)
class Trial:
    """One model trained on one sample.

    Attributes:
        model: Kind of encoder.
        pairs: Pairs that it was trained on.
        pearson: Pearson's r on the development set, in [-1, 1].
        seconds: Time spent training.
        identity: What determined it: encoder, training, data, development set, STS sets.
        sts: Mean Pearson's r over STS sets, in [-1, 1], where it was measured.
    """

    model: str
    pairs: int
    pearson: float
    seconds: float
    identity: dict[str, Any]
    sts: float | None = None


@dataclass(frozen=True)
class Trials:
    """How models are trained on samples.

    Attributes:
        models: Kinds of encoders, such as `word`.
        encoder: Their other settings; word vectors count for the models that read words.
        config: How they are trained.
        development: The development set, see `read_scored_pairs`.
        sts: STS data that the models are measured on too, see `read_several`; nothing is chosen by them.
    """

    models: Sequence[str]
    encoder: EncoderConfig
    config: TrainConfig
    development: str
    sts: Sequence[str] = ()

    @property
    def identity(self) -> dict[str, Any]:
        """What determines their results beside the sample, as JSON values."""
        vectors = f"sha256:{checksum(existing(self.encoder.vectors))}" if self.encoder.vectors else None
        return {
            "models": list(self.models),
            "encoder": {**asdict(self.encoder), "model": None, "vectors": vectors},
            "training": as_json(self.config),
            "development": read_scored_pairs(self.development).checksum,
            **self._sts_identity,
        }

    @property
    def _sts_identity(self) -> dict[str, Any]:
        return {"sts": [sts_set.checksum for sts_set in self._sets]} if self.sts else {}

    @cached_property
    def _sets(self) -> list[StsSet]:
        return read_several(self.sts)

    def check(self) -> None:
        """Refuse models and a development set that are none, before the corpus is read."""
        read_scored_pairs(self.development)
        if self.sts:
            read_several(self.sts)
        if len(set(self.models)) != len(self.models):
            raise InputError(f"each model is trained once, but --models is {' '.join(self.models)}")
        for model in self.models:
            self._encoder(model)

    def _encoder(self, model: str) -> EncoderConfig:
        chosen = replace(self.encoder, model=model)
        if chosen.vectors and "word" not in chosen.kinds:
            return replace(chosen, vectors=None)
        return chosen

    def run(self, work: Path, name: str, sample: Path) -> list[Trial]:
        """Train each model on a sample, or find what an earlier run got with the same settings.

        Args:
            work: Folder of the work in progress.
            name: Name of the sample, for files and the log.
            sample: Parquet file of its pairs.
        """
        return [self._one(work, name, sample, model) for model in self.models]

    def _one(self, work: Path, name: str, sample: Path, model: str) -> Trial:
        encoder = self._encoder(model)
        resolved = resolve([sample], encoder, self.config, PairSelection(), development=self.development)
        wanted = {**resolved.identity, **self._sts_identity}
        path = work / RUNS / f"{_file_name(f'{name}-{model}')}.json"
        if path.exists():
            found = from_json(Trial, read_json(path, "the result of a training run"), path)
            if found.identity == wanted:
                return found
        out = work / MODELS / _file_name(f"{name}-{model}")
        # A model that was finished and not written down, or one of other settings.
        shutil.rmtree(out, ignore_errors=True)
        trained = train([sample], out, encoder=encoder, config=self.config, development=self.development)
        record = trained.record
        assert record.development is not None
        sts = self._measure(out) if self.sts else None
        trial = Trial(model, record.pairs, record.development, record.history.seconds, wanted, sts)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, f"{json.dumps(to_json(trial))}\n".encode())
        shutil.rmtree(out)
        logger.info(f"{name}, {model}: Pearson {100 * trial.pearson:.1f} after {trial.pairs:,} pairs")
        return trial

    def _measure(self, folder: Path) -> float:
        """Mean Pearson's r of a model over the STS sets."""
        return mean_over_sets(evaluate_sts(load(folder), self._sets, bootstrap=0))


def _file_name(text: str) -> str:
    """Make a file name of a name from data: its letters and digits, and a checksum where that is not all of it."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:60]
    return plain if plain == text else f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def write_sample(table: pa.Table, work: Path, name: str) -> Path:
    """Write the pairs of a sample into the work folder, in order of their ids; training shuffles them by its own seed.

    Args:
        table: The pairs, with `id`, `reference` and `translation`.
        work: The work folder.
        name: Name of the sample.
    """
    path = work / SAMPLES / f"{_file_name(name)}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as aside:
        pq.write_table(table.sort_by("id").select(["id", "reference", "translation"]), aside, compression="zstd")
    return path


@dataclass(frozen=True)
class Part:
    """A part of a corpus, and what a sample of it gave.

    Attributes:
        group: What it is a part by, such as `para_score`; empty for a source.
        name: Its name, such as the number of a fold.
        rows: Number of its rows.
        left: Those that the length limit leaves.
        low: Lowest score in it, of all its rows; None without a score.
        high: Highest.
        trials: The models trained on a sample of what is left.
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
        """Pairs of the sample."""
        return self.trials[0].pairs

    @property
    def mean(self) -> float:
        """Mean Pearson's r of the models."""
        return float(np.mean([trial.pearson for trial in self.trials]))

    @property
    def sts(self) -> float | None:
        """Mean over the models of the mean over STS sets; None where it was not measured."""
        found = [trial.sts for trial in self.trials if trial.sts is not None]
        return float(np.mean(found)) if found else None


@dataclass(frozen=True)
class Outcome:
    """The outcome of an experiment, as `experiment.json` has it.

    Attributes:
        identity: What determined it, as JSON values.
        parts: What was compared.
        version: Version of this package.
    """

    identity: dict[str, Any]
    parts: list[Part]
    version: str

    def __post_init__(self) -> None:
        # What tables have columns for.
        kinds = [[(trial.model, trial.sts is None) for trial in part.trials] for part in self.parts]
        if not kinds or not kinds[0] or any(kind != kinds[0] for kind in kinds):
            raise InputError("its 'parts' are none, have no 'trials', or those of other models than the first part")


def run_experiment(
    out: str | Path,
    command: str,
    identity: dict[str, Any],
    compare: Callable[[Path], list[Part]],
    write: Callable[[Outcome, Path], None],
) -> tuple[Outcome, bool]:
    """Run an experiment whose result is a folder, go on with one that was stopped, or find the finished one.

    Args:
        out: The folder.
        command: Name of the command.
        identity: What determines the outcome, as JSON values.
        compare: Trains the models, given the work folder.
        write: Writes tables and pictures of the outcome into a folder.

    Returns:
        The outcome, and whether this call got it.
    """
    out, wanted = result_folder(out), as_json({"experiment": command, **identity})
    work = work_folder(out)
    found = finished(out, wanted, _read_outcome, lambda outcome: outcome.identity, made="measured")
    if found is not None:
        remove_leftover(out, command)
        return found, False
    with locked(work, command, worth=_holds_trials):
        keep_identity(work, wanted, worth=_holds_trials, doing="training")
        outcome = Outcome(wanted, compare(work), __version__)
        folder = work / "result"
        shutil.rmtree(folder, ignore_errors=True)
        with writing(out):
            folder.mkdir()
            write(outcome, folder)
            write_bytes(folder / RECORD, f"{json.dumps(to_json(outcome), indent=1)}\n".encode())
            put_in_place(folder, out)
        remove(work)
    return outcome, True


def _holds_trials(work: Path) -> bool:
    return any((work / RUNS).glob("*.json")) or any(work.glob(f"{MODELS}/**/checkpoint*"))


def _read_outcome(folder: Path) -> Outcome:
    path = folder / RECORD
    if not path.is_file():
        raise InputError(f"{folder} exists and is no experiment of this program; choose another --out or move it away")
    return from_json(Outcome, read_json(path, "the outcome of an experiment"), path)
