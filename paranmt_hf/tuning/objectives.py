"""The two kinds of trials of a search: training an encoder on pairs, or a model for a supervised task."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.reading.pairs import SIDES, PairSelection
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import DivergedError, InputError
from paranmt_hf.evaluation.correlation import spearman
from paranmt_hf.supervised.config import SuperviseConfig
from paranmt_hf.supervised.data import measure_of
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.inputs import TrainingInputs, find_inputs
from paranmt_hf.training.text import log_left_out
from paranmt_hf.tuning.grid import SUPERVISE, TRAIN, Grid, Values, apply, short_name
from paranmt_hf.util.files import listed, replacing
from paranmt_hf.util.records import Identity, as_json
from paranmt_hf.util.settings import is_given, values_for

if TYPE_CHECKING:
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
    from paranmt_hf.supervised.task import TaskSetup

TRIAL_PAIRS = 100_000  # Number of pairs of a trial (section 4.2)
Figures = tuple[float, float | None]  # The score of a trial, and its loss at the end
Train = Callable[[Path], Figures]  # Runs a trial with checkpoints in a folder


class PairObjective:
    """Trials that train encoders on a sample of pairs; their score is Spearman's rho on a development set.

    Args:
        data: Pairs, as in `tune`.
        columns: Names of their columns, as in `tune`.
        fixed: Settings that a grid of the paper fixes.
        training: Other settings, as in `tune`.
        development: Scored pairs, as in `tune`.
        exclude: Folder with STS sets, as in `tune`.
        most: Maximum number of pairs of the sample.
    """

    command: Literal["train"] = "train"
    measure = "Spearman"

    def __init__(
        self,
        data: str | Path | Sequence[str | Path],
        columns: Mapping[str, str] | None,
        fixed: Values,
        training: Values | None,
        development: str | Path | None,
        exclude: str | Path | None,
        most: int,
    ) -> None:
        given = values_for(TRAIN, {"epochs": 5, **fixed, **(training or {})}, "training")
        self._encoder, self._config = EncoderConfig(**given[0]), TrainConfig(**given[1])
        if development is None:
            raise InputError("`development` decides which settings are best; give scored pairs", option="development")
        if self._config.patience is not None:
            raise InputError("`patience` is for training with a development set; leave it out", option="training")
        self._data: dict[str, Any] = {"data": [os.fspath(source) for source in listed(data)]}
        if columns:
            self._data["columns"] = dict(columns)
        if exclude is not None:
            self._data["exclude"] = os.fspath(exclude)
        sample = PairSelection(max_pairs=most)
        self._whole = find_inputs(
            encoder=self._encoder, config=self._config, selection=sample, development=development, **self._data
        )

    @property
    def identity(self) -> Identity:
        """Everything that determines a trial, except the settings that are varied."""
        return as_json(self._whole.settings)

    def begin(self, work: Path) -> int:
        """Write the sample of pairs into the work folder, unless it is there, and return its number of pairs."""
        self._work, self._sample = work, work / "pairs.parquet"
        if not self._sample.exists():
            pairs, schema, rows = self._whole.pairs, pa.schema([(side, pa.string()) for side in SIDES]), 0
            with replacing(self._sample) as aside:
                with pq.ParquetWriter(aside, schema, compression="zstd") as writer:
                    for table in pairs.batches():
                        writer.write_table(table)
                        rows += table.num_rows
                if not rows:
                    reason = f"{pairs.left_out}; look at the data and the options that choose"
                    raise InputError(f"nothing to train on: {reason}")
            log_left_out(pairs.left_out_by)
        return int(pq.read_metadata(self._sample).num_rows)

    def trial(self, combination: Values) -> Train:
        """Return the function that runs the trial of a combination.

        Raises:
            InputError: The settings of the combination do not fit together.
        """
        encoder, config = apply(combination, self._encoder, self._config)
        return partial(self._train, find_inputs([self._sample], encoder, config, PairSelection()))

    def _train(self, resolved: TrainingInputs, running: Path) -> Figures:
        """Train an encoder, and compute its score.

        Args:
            resolved: The inputs of training.
            running: Folder for checkpoints.
        """
        # Imports torch.
        from paranmt_hf.training.fit import development_score, fit_encoder
        from paranmt_hf.training.prepare import prepare_training

        # The prepared pairs and the initial encoder depend on nothing else, so other trials use them too.
        prepared = self._work / "prepared" / short_name([asdict(resolved.encoder), resolved.config.seed])
        model, store, teacher = prepare_training(resolved, prepared, self._work / "teacher")
        history = fit_encoder(model, store, resolved.config, running, teacher=teacher)
        loss = history.losses[-1][1] if history.losses else None
        held_out = self._whole.development
        assert held_out is not None
        try:
            return development_score(model, held_out, spearman), loss
        except InputError as error:
            raise DivergedError(str(error)) from None

    def options(self, chosen: Values) -> dict[str, Any]:
        """Return the options of `paranmt train` with the best settings, for 10 passes over all pairs (section 4.2)."""
        encoder, config = apply(chosen, self._encoder, replace(self._config, epochs=10))
        return {**self._data, "model": encoder.model, **_given(encoder), **_given(config)}


class TaskObjective:
    """Trials that train models for a supervised task; their score is the main figure on the development items.

    Args:
        data: Folder of the task, as in `tune`.
        task: Name of the task.
        grid: Grid of the search.
        fixed: Settings that a grid of the paper fixes.
        training: Other settings, as in `tune`.
    """

    command: Literal["supervise"] = "supervise"

    def __init__(
        self,
        data: str | Path | Sequence[str | Path],
        task: str,
        grid: Grid,
        fixed: Values,
        training: Values | None,
    ) -> None:
        places = listed(data)
        if len(places) != 1:
            raise InputError(f"a task has one folder, got {len(places)}", option="data")
        given = values_for(SUPERVISE, {**fixed, **(training or {})}, "training", without=["task"])
        self._data, self._encoder = places[0], EncoderConfig(**given[0])
        self._config = SuperviseConfig(**{"task": task, **given[1]})
        clash = [entry.name for entry in fields(EncoderConfig) if entry.name in grid.names]
        if self._encoder.init_from and clash:
            raise InputError(
                f"`grid` varies {clash[0].replace('_', '-')}, which the encoder of `init_from` has already; leave out "
                "one of them",
                option="grid",
            )
        # Imports torch.
        from paranmt_hf.supervised.task import resolve_task

        self._whole = resolve_task(self._data, self._config, self._encoder)
        self.measure = measure_of(task).capitalize()
        self._built: dict[str, SentenceEncoder] = {}

    @property
    def identity(self) -> Identity:
        """Everything that determines a trial, except the settings that are varied."""
        return as_json(self._whole.settings)

    def begin(self, work: Path) -> int:
        """Return the number of training items."""
        return len(self._whole.task.parts["train"])

    def trial(self, combination: Values) -> Train:
        """Return the function that runs the trial of a combination.

        Raises:
            InputError: The settings of the combination do not fit together.
        """
        encoder, config = apply(combination, self._whole.encoder, self._config)
        # The defaults of some settings depend on others, so they are filled in for each trial.
        config = config.resolved(start=self._whole.start is not None)
        return partial(self._train, replace(self._whole, config=config, encoder=encoder))

    def _train(self, resolved: TaskSetup, running: Path) -> Figures:
        """Train a model for the task, and return its best score on the development items.

        Args:
            resolved: The inputs of training.
            running: Folder for checkpoints.
        """
        from paranmt_hf.supervised.task import new_encoder, train_task

        running.mkdir(parents=True, exist_ok=True)
        start = resolved.start
        if start is None:
            # Reading word vectors is slow, so the initial encoder is kept for trials with equal settings of it.
            name = short_name([asdict(resolved.encoder), resolved.config.seed])
            start = self._built.get(name) or new_encoder(resolved)
            self._built = {name: start}
        _, record = train_task(replace(resolved, start=deepcopy(start)), running)
        return record.epochs[record.best_epoch - 1].development, record.epochs[-1].loss

    def options(self, chosen: Values) -> dict[str, Any]:
        """Return the options of `paranmt supervise` with the best settings."""
        encoder, config = apply(chosen, self._encoder, self._config)
        options = {"data": os.fspath(self._data), "task": config.task, **_given(config)}
        of_encoder = _given(encoder)
        if encoder.init_from:
            options["init_from"] = encoder.init_from
        elif of_encoder:
            # In the form that is typed on the command line.
            options["encoder"] = ",".join(f"{name}={value}" for name, value in of_encoder.items())
        return options


def _given(settings: Any) -> dict[str, Any]:  # noqa: ANN401 - settings
    """Return the settings that differ from their defaults, by name."""
    names = [entry.name for entry in fields(settings)]
    return {name: getattr(settings, name) for name in names if is_given(settings, name)}
