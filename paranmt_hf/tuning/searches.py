"""What a search varies: the training of an encoder on pairs, or that of a model for a supervised task."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.reading.pairs import SIDES, Pairs, PairSelection
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.encoders.named_encoder import WithoutProgressBar
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.correlation import spearman
from paranmt_hf.evaluation.similarities import pair_similarities
from paranmt_hf.evaluation.sts_data import StsSet
from paranmt_hf.supervised.config import SuperviseConfig
from paranmt_hf.supervised.data import measure_of
from paranmt_hf.supervised.supervise import Supervised, supervise
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.inputs import TrainingInputs, find_inputs
from paranmt_hf.training.text import PairsAndText, log_left_out
from paranmt_hf.training.train import Trained, train
from paranmt_hf.tuning.grid import SUPERVISE, TRAIN, Grid, TuneConfig, apply
from paranmt_hf.tuning.trials import NoScoreError, Search, TuneTrial, short_name
from paranmt_hf.util.files import listed, replacing
from paranmt_hf.util.records import Identity, as_json
from paranmt_hf.util.settings import is_given, values_for
from paranmt_hf.util.wording import counted
from paranmt_hf.util.yaml_files import as_yaml

if TYPE_CHECKING:
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
    from paranmt_hf.supervised.task import TaskSetup

logger = logging.getLogger(__name__)
OPTIONS = "best.yaml"
# In the work folder: the pairs of all trials, encoders before the first step, the vectors of the teacher.
SAMPLE, PREPARED, TEACHER = "pairs.parquet", "prepared", "teacher"
# Passes over the pairs of a trial (section 4.2).
TRIAL_EPOCHS = 5


class PairSearch(Search):
    """A search for the settings of `paranmt train`; arguments as in `tune`, `fixed` as returned by `read_grid`."""

    command: Literal["train"] = "train"
    measure = "Spearman"

    def __init__(
        self,
        data: str | Path | Sequence[str | Path],
        columns: Mapping[str, str] | None,
        fixed: Mapping[str, Any],
        training: Mapping[str, Any] | None,
        tuning: TuneConfig,
        selection: PairSelection,
        development: str | Path | None,
        exclude: str | Path | None,
    ) -> None:
        given = values_for(TRAIN, {"epochs": TRIAL_EPOCHS, **fixed, **(training or {})}, "training")
        self._encoder, self._config = EncoderConfig(**given[0]), TrainConfig(**given[1])
        if development is None:
            raise InputError("`development` decides which settings are best; give scored pairs", option="development")
        if self._config.patience is not None:
            raise InputError("patience counts evaluations on a development set, and a search makes none; leave it out")
        self._data = listed(data)
        self._columns = columns
        self._tuning, self._selection, self._exclude = tuning, selection, exclude
        self._whole = find_inputs(
            self._data,
            self._encoder,
            self._config,
            _sample_of(selection, tuning),
            columns=columns,
            development=development,
            exclude=exclude,
        )

    @property
    def identity(self) -> Identity:
        """Everything that determines a trial except for what is varied."""
        return as_json(self._whole.settings)

    def begin(self, work: Path) -> None:
        """See `Search`: the sample of the pairs."""
        self._work, self._sample = work, _write_sample(self._whole.pairs, work)
        self.items = pq.read_metadata(self._sample).num_rows

    def resolve(self, combination: Mapping[str, Any]) -> TrainingInputs:
        """See `Search`."""
        encoder, config = apply(combination, self._encoder, self._config)
        return find_inputs([self._sample], encoder, config, PairSelection())

    def train_trial(self, trial: TuneTrial, resolved: TrainingInputs, running: Path) -> TuneTrial:
        """See `Search`."""
        # Imports torch.
        from paranmt_hf.training.fit import fit_encoder
        from paranmt_hf.training.prepare import prepare_training

        # What goes before the first step depends on the encoder and the seed alone.
        prepared = self._work / PREPARED / short_name([asdict(resolved.encoder), resolved.config.seed])
        model, store, teacher = prepare_training(resolved, prepared, self._work / TEACHER)
        held_out = self._whole.development
        assert held_out is not None
        history = fit_encoder(model, store, resolved.config, running, teacher=teacher)
        model.eval()
        score = _spearman(WithoutProgressBar(model), held_out)
        loss = history.losses[-1][1] if history.losses else None
        return replace(trial, score=score, loss=loss)

    def best(self, chosen: Mapping[str, Any]) -> tuple[EncoderConfig, TrainConfig]:
        """The settings with those of the best trial, and with the final number of epochs."""
        encoder, config = apply(chosen, self._encoder, self._config)
        return encoder, replace(config, epochs=self._tuning.final_epochs)

    def options(self, chosen: Mapping[str, Any]) -> str:
        """The same as a file for `paranmt train --config`."""
        encoder, config = self.best(chosen)
        own = {"data": [os.fspath(source) for source in self._data], **_given(self._selection)}
        if self._columns:
            own["columns"] = dict(self._columns)
        if self._exclude is not None:
            own["exclude"] = os.fspath(self._exclude)
        return _as_options(self.command, {**own, "model": encoder.model, **_given(encoder), **_given(config)})

    def train(self, chosen: Mapping[str, Any], final: str | Path) -> Trained:
        """Train with the best settings on all pairs."""
        encoder, config = self.best(chosen)
        logger.info(f"training on all pairs for {counted(config.epochs, 'epoch')}")
        return train(
            self._data,
            final,
            columns=self._columns,
            encoder=encoder,
            config=config,
            selection=self._selection,
            exclude=self._exclude,
        )


class TaskSearch(Search):
    """A search for the settings of `paranmt supervise`; arguments as in `tune`, and the grid with its settings.

    The score is that of the development items.
    """

    command: Literal["supervise"] = "supervise"

    def __init__(
        self,
        data: str | Path | Sequence[str | Path],
        task: str,
        grid: Grid,
        fixed: Mapping[str, Any],
        training: Mapping[str, Any] | None,
    ) -> None:
        places = listed(data)
        if len(places) != 1:
            raise InputError(f"a task has one folder, got {len(places)}", option="data")
        given = values_for(SUPERVISE, {**fixed, **(training or {})}, "training", without=["task"])
        self._data, self._encoder = places[0], EncoderConfig(**given[0])
        self._config = SuperviseConfig(**{"task": task, **given[1]})
        own = [name for name in grid.names if name in {entry.name for entry in fields(EncoderConfig)}]
        if self._encoder.init_from and own:
            raise InputError(
                f"`grid` varies {own[0].replace('_', '-')}, which the encoder of `init_from` has already; leave out "
                "one of them",
                option="grid",
            )
        # Imports torch.
        from paranmt_hf.supervised.task import resolve_task

        self._whole = resolve_task(self._data, self._config, self._encoder)
        self.measure, self.items = measure_of(task).capitalize(), len(self._whole.task.parts["train"])
        self._built: tuple[EncoderConfig, int, SentenceEncoder] | None = None

    @property
    def identity(self) -> Identity:
        """Everything that determines a trial except for what is varied."""
        return as_json(self._whole.settings)

    def resolve(self, combination: Mapping[str, Any]) -> TaskSetup:
        """See `Search`."""
        encoder, config = apply(combination, self._whole.encoder, self._config)
        # The defaults of some settings depend on others, so they are filled in for each trial.
        return replace(self._whole, config=config.resolved(start=self._whole.start is not None), encoder=encoder)

    def train_trial(self, trial: TuneTrial, resolved: TaskSetup, running: Path) -> TuneTrial:
        """See `Search`."""
        from paranmt_hf.supervised.task import train_task

        running.mkdir(parents=True, exist_ok=True)
        _, record = train_task(replace(resolved, start=self._encoder_of(resolved)), running)
        return replace(trial, score=record.epochs[record.best_epoch - 1].development, loss=record.epochs[-1].loss)

    def _encoder_of(self, resolved: TaskSetup) -> SentenceEncoder:
        """A copy of the encoder before training, which is made again if its settings change."""
        from paranmt_hf.supervised.task import new_encoder

        if self._built is None or self._built[:2] != (resolved.encoder, resolved.config.seed):
            encoder = resolved.start or new_encoder(resolved)
            self._built = (resolved.encoder, resolved.config.seed, encoder)
        return deepcopy(self._built[2])

    def best(self, chosen: Mapping[str, Any]) -> tuple[EncoderConfig, SuperviseConfig]:
        """The settings with those of the best trial."""
        return apply(chosen, self._encoder, self._config)

    def options(self, chosen: Mapping[str, Any]) -> str:
        """The same as a file for `paranmt supervise --config`."""
        encoder, config = self.best(chosen)
        of_encoder = _given(encoder)
        start = of_encoder.pop("init_from", None)
        own = {"data": os.fspath(self._data), "task": config.task, **_given(config)}
        if start or of_encoder:
            # As it is typed.
            words = ",".join(f"{name}={value}" for name, value in of_encoder.items())
            own |= {"init_from": start} if start else {"encoder": words}
        return _as_options(self.command, own)

    def train(self, chosen: Mapping[str, Any], final: str | Path) -> Supervised:
        """Train with the best settings."""
        encoder, config = self.best(chosen)
        return supervise(self._data, final, config=config, encoder=encoder)


def _given(settings: Any) -> dict[str, Any]:  # noqa: ANN401 - settings
    """The settings that differ from their defaults."""
    names = [entry.name for entry in fields(settings)]
    return {name: getattr(settings, name) for name in names if is_given(settings, name)}


def _as_options(command: str, values: Mapping[str, Any]) -> str:
    options = {name.replace("_", "-"): value for name, value in values.items()}
    return f"# paranmt {command} --config {OPTIONS} --out FOLDER\n{as_yaml(options)}"


def _sample_of(selection: PairSelection, tuning: TuneConfig) -> PairSelection:
    """Select a sample of the chosen pairs: the first ones if `first_pairs` is given, otherwise random ones."""
    most = tuning.tune_pairs
    if selection.first_pairs is not None:
        return replace(selection, first_pairs=min(most, selection.first_pairs))
    return replace(selection, max_pairs=min(most, selection.max_pairs or most))


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
        log_left_out(pairs.left_out_by)
    return path


def _spearman(encoder: WithoutProgressBar, held_out: StsSet) -> float:
    try:
        similarities = pair_similarities(encoder, held_out.left, held_out.right, held_out.name)
        return spearman(similarities.values, held_out.gold)
    except InputError as error:
        raise NoScoreError(str(error)) from None
