"""What a search varies: the training of an encoder on pairs, or that of a model for a supervised task."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from paranmt_hf.corpus.pairs import PairSelection
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import InputError
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.inputs import resolve_inputs
from paranmt_hf.training.supervised.config import SuperviseConfig
from paranmt_hf.training.supervised.supervise import Supervised, supervise
from paranmt_hf.training.train import Trained, train
from paranmt_hf.training.tuning.grid import SUPERVISE, TRAIN, Grid, Order, TuneConfig, apply
from paranmt_hf.util.records import Identity, as_json
from paranmt_hf.util.settings import is_given, values_for
from paranmt_hf.util.wording import counted
from paranmt_hf.util.yaml_files import as_yaml

if TYPE_CHECKING:
    from paranmt_hf.training.tuning.trials import Trials

logger = logging.getLogger(__name__)
OPTIONS = "best.yaml"
# Passes over the pairs of a trial (section 4.2).
TRIAL_EPOCHS = 5


class PairSearch:
    """A search for the settings of `paranmt train`; arguments as in `tune`, `fixed` as returned by `read_grid`."""

    command: Literal["train"] = "train"

    def __init__(
        self,
        data: str | Path | Sequence[str | Path],
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
        self._data = [data] if isinstance(data, str | Path) else list(data)
        self._tuning, self._selection, self._exclude = tuning, selection, exclude
        self._whole = resolve_inputs(
            self._data,
            self._encoder,
            self._config,
            _sample_of(selection, tuning),
            development=development,
            exclude=exclude,
        )

    @property
    def identity(self) -> Identity:
        """Everything that determines a trial except for what is varied."""
        return self._whole.identity

    def trials(self, order: Order, work: Path) -> Trials:
        """The trials, in an order."""
        # Imports torch.
        from paranmt_hf.training.tuning.trials import PairTrials

        return PairTrials(self._whole, self._encoder, order, work)

    def best(self, chosen: Mapping[str, Any]) -> tuple[EncoderConfig, TrainConfig]:
        """The settings with those of the best trial, and with the final number of epochs."""
        encoder, config = apply(chosen, self._encoder, self._config)
        return encoder, replace(config, epochs=self._tuning.final_epochs)

    def options(self, chosen: Mapping[str, Any]) -> str:
        """The same as a file for `paranmt train --config`."""
        encoder, config = self.best(chosen)
        own = {"data": [os.fspath(source) for source in self._data], **_given(self._selection)}
        if self._exclude is not None:
            own["exclude"] = os.fspath(self._exclude)
        return _as_options(self.command, {**own, "model": encoder.model, **_given(encoder), **_given(config)})

    def train(self, chosen: Mapping[str, Any], final: str | Path) -> Trained:
        """Train with the best settings on all pairs."""
        encoder, config = self.best(chosen)
        logger.info(f"training on all pairs for {counted(config.epochs, 'epoch')}")
        return train(
            self._data, final, encoder=encoder, config=config, selection=self._selection, exclude=self._exclude
        )


class TaskSearch:
    """A search for the settings of `paranmt supervise`; arguments as in `tune`, and the grid with its settings."""

    command: Literal["supervise"] = "supervise"

    def __init__(
        self,
        data: str | Path | Sequence[str | Path],
        task: str,
        grid: Grid,
        fixed: Mapping[str, Any],
        training: Mapping[str, Any] | None,
    ) -> None:
        places = [data] if isinstance(data, str | Path) else list(data)
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
        from paranmt_hf.training.supervised.task import resolve_task

        self._whole = resolve_task(self._data, self._config, self._encoder)

    @property
    def identity(self) -> Identity:
        """Everything that determines a trial except for what is varied."""
        return as_json(self._whole.settings)

    def trials(self, order: Order, work: Path) -> Trials:
        """The trials, in an order."""
        from paranmt_hf.training.tuning.trials import TaskTrials

        return TaskTrials(self._whole, self._config, order, work)

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
