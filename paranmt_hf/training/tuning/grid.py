"""Grids of settings, those of the papers by name, and the order in which their combinations are tried."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import ASSETS
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.util.optional import require
from paranmt_hf.util.settings import Advanced, Count, Range, Seed, check, read_value
from paranmt_hf.util.yaml_files import read_yaml

PRESETS = ASSETS / "grids"
# Settings that the search decides itself, those about its course, and those that name files or the machine.
NOT_SEARCHED = {"epochs", "patience", "evaluations", "vectors", "init_from", "teacher", "second_teacher"} | {
    *(
        "device",
        "report_to",
        "mine_over",
        "error_negatives",
        "checkpoint_seconds",
        "mining_precision",
    ),
}
KIND_OF: dict[str, type] = {
    entry.name: kind
    for kind in (EncoderConfig, TrainConfig)
    for entry in fields(kind)
    if entry.name not in NOT_SEARCHED
}
# Every combination has a place in the order in which they are tried, which is kept in memory.
MAX_COMBINATIONS = 1_000_000


@dataclass(frozen=True)
class Grid:
    """Values of settings that are tried in all combinations.

    Attributes:
        values: The values of each setting of `EncoderConfig` or `TrainConfig`, by name.
    """

    values: Mapping[str, Sequence[Any]]

    def __post_init__(self) -> None:
        if not self.values:
            raise InputError(
                "there is nothing to search: name settings and their values, such as lambda-w=0,1e-5,1e-4"
            )
        checked: dict[str, tuple[Any, ...]] = {}
        for given, values in self.values.items():
            name = str(given).replace("-", "_")
            if name not in KIND_OF:
                known = ", ".join(sorted(option.replace("_", "-") for option in KIND_OF))
                raise InputError(f"the grid names {given!r}, which is not a setting to search; these are {known}")
            if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                raise InputError(f"the grid's {given} must be a list of values, was {values!r}")
            checked[name] = tuple(read_value(KIND_OF[name], name, value) for value in values)
            if len(set(checked[name])) < len(values):
                raise InputError(f"the grid's {given} has a value twice: {', '.join(map(str, checked[name]))}")
        object.__setattr__(self, "values", checked)
        # `len` itself takes no number beyond 64 bits.
        if (count := self.__len__()) > MAX_COMBINATIONS:
            raise InputError(
                f"the grid has {count:,} combinations, at most {MAX_COMBINATIONS:,} are allowed; leave out some"
            )

    def __len__(self) -> int:
        return math.prod(len(values) for values in self.values.values())

    @cached_property
    def names(self) -> list[str]:
        """Names of its settings."""
        return list(self.values)

    def combination(self, index: int) -> dict[str, Any]:
        """The combination of an index from 0 up; those of the last setting change fastest."""
        chosen: dict[str, Any] = {}
        for name in reversed(self.names):
            index, position = divmod(index, len(self.values[name]))
            chosen[name] = self.values[name][position]
        return {name: chosen[name] for name in self.names}

    def index(self, combination: Mapping[str, Any]) -> int:
        """The index of a combination."""
        index = 0
        for name in self.names:
            index = index * len(self.values[name]) + self.values[name].index(combination[name])
        return index


def apply(
    combination: Mapping[str, Any], encoder: EncoderConfig, config: TrainConfig
) -> tuple[EncoderConfig, TrainConfig]:
    """Put the settings of a combination into those of a run."""
    parts: dict[type, dict[str, Any]] = {EncoderConfig: {}, TrainConfig: {}}
    for name, value in combination.items():
        parts[KIND_OF[name]][name] = value
    return replace(encoder, **parts[EncoderConfig]), replace(config, **parts[TrainConfig])


def parse_grid(words: Sequence[str]) -> dict[str, list[str]]:
    """Parse words such as `lambda-w=0,1e-5,1e-4`."""
    values: dict[str, list[str]] = {}
    for word in words:
        name, equals, listed = word.partition("=")
        if not (name and equals and all(listed.split(","))):
            raise InputError(f"grid {word}: expected a setting and its values, such as lambda-w=0,1e-5,1e-4")
        if name in values:
            raise InputError(f"grid names {name} twice; put all its values behind one name")
        values[name] = listed.split(",")
    return values


def read_grid(path: Path) -> dict[str, Any]:
    """Read a grid from a YAML file: a setting and a list of its values on each line."""
    return read_yaml(path.expanduser(), "a grid, names of settings and a list of values for each")


@dataclass(frozen=True)
class PaperGrid:
    """A grid of a paper, for one family of encoders.

    Attributes:
        settings: Options of `paranmt tune` that the paper fixes.
        grid: What it searches.
    """

    settings: Mapping[str, Any]
    grid: Mapping[str, Any]


def grid_names() -> list[str]:
    """Names of the grids of the papers."""
    return sorted(path.stem for path in PRESETS.glob("*.yaml"))


def read_paper_grid(name: str) -> PaperGrid:
    """Read a grid of a paper."""
    if name not in grid_names():
        raise InputError(f"preset must be one of {', '.join(grid_names())}, not {name!r}")
    return PaperGrid(**read_yaml(PRESETS / f"{name}.yaml", "a grid of a paper"))


Sampler = Literal["tpe", "random", "grid"]


@dataclass(frozen=True)
class TuneConfig:
    """How settings are searched (arXiv:1511.08198, section 4.2).

    Attributes:
        sampler: Which combination comes next: `tpe`, what optuna finds promising (extra `tune`); `random`; or `grid`,
            in order.
        trials: Number of combinations that are tried, without those that do not fit together.
        tune_pairs: Number of pairs of each trial (section 4.2).
        search_seed: Seed of the order of combinations.
        final_epochs: Passes over all pairs with the best settings (section 4.2).
    """

    sampler: Sampler = "tpe"
    trials: Count = 20
    tune_pairs: Annotated[int, Range(at_least=2)] = 100_000
    search_seed: Annotated[Seed, Advanced] = 1
    final_epochs: Annotated[Count, Advanced] = 10

    def __post_init__(self) -> None:
        check(self)


class Order:
    """Chooses combinations that have not been tried, the same ones after every interruption.

    Args:
        grid: The grid.
        config: The way of choosing, and its seed.
    """

    def __init__(self, grid: Grid, config: TuneConfig) -> None:
        self.grid, self.config = grid, config
        generator = np.random.default_rng(config.search_seed)
        count = len(grid)
        self._order = np.arange(count) if config.sampler == "grid" else generator.permutation(count)
        self._optuna: Any = require("optuna", "tune") if config.sampler == "tpe" else None
        if self._optuna is not None:
            self._optuna.logging.set_verbosity(self._optuna.logging.WARNING)
        self._passed = 0

    def next(self, known: Sequence[tuple[Mapping[str, Any], float | None]], closed: set[int]) -> int | None:
        """Choose a combination.

        Args:
            known: Combinations that were tried, and their scores; None for those that failed.
            closed: Indices of combinations that are not to be chosen: tried, or of settings that do not fit together.

        Returns:
            Its index; None where all are closed.
        """
        while self._passed < len(self._order) and int(self._order[self._passed]) in closed:
            self._passed += 1
        if self._passed == len(self._order):
            return None
        proposed = self._propose(known, len(closed)) if self._optuna is not None else None
        return int(self._order[self._passed]) if proposed is None or proposed in closed else proposed

    def _propose(self, known: Sequence[tuple[Mapping[str, Any], float | None]], turn: int) -> int:
        """Let TPE choose; its generator starts anew in each turn, so that an interruption changes nothing."""
        optuna = self._optuna
        choices = {
            name: optuna.distributions.CategoricalDistribution(range(len(values)))
            for name, values in self.grid.values.items()
        }
        sampler = optuna.samplers.TPESampler(seed=(self.config.search_seed + 7919 * turn) % 2**32)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        for combination, score in known:
            positions = {name: values.index(combination[name]) for name, values in self.grid.values.items()}
            state = optuna.trial.TrialState.FAIL if score is None else optuna.trial.TrialState.COMPLETE
            study.add_trial(
                optuna.trial.create_trial(state=state, params=positions, distributions=choices, value=score)
            )
        chosen = study.ask(choices).params
        return self.grid.index({name: values[chosen[name]] for name, values in self.grid.values.items()})
