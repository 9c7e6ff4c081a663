"""Grids of settings, those of the papers by name, and the order of their combinations."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np

from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import InputError
from paranmt_hf.hub.client import perhaps_path
from paranmt_hf.hub.repository import ASSETS
from paranmt_hf.supervised.config import SuperviseConfig
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.util.markers import Count, PythonOnly, Range, Seed
from paranmt_hf.util.optional import require
from paranmt_hf.util.settings import Settings, read_value
from paranmt_hf.util.wording import brief, perhaps
from paranmt_hf.util.yaml_files import read_yaml

# The settings that a search varies: those of `paranmt train`, or of `paranmt supervise`.
Kinds = tuple[type, type]
TRAIN: Kinds = (EncoderConfig, TrainConfig)
SUPERVISE: Kinds = (EncoderConfig, SuperviseConfig)
PAPER_GRIDS: Mapping[Kinds, Path] = {TRAIN: ASSETS / "grids", SUPERVISE: ASSETS / "grids" / "supervised"}
Config = TypeVar("Config", TrainConfig, SuperviseConfig)
EXAMPLE = "a setting and its values, such as lambda-w=0,1e-5,1e-4"
# Settings that the search decides itself, those about its course, and those that name files or the machine.
NOT_SEARCHED = set(
    "task epochs patience evaluations vectors init_from teacher second_teacher device report_to mine_over "
    "error_negatives teacher_cache mining_precision".split()
)
# Every combination has a place in the order in which they are tried, which is kept in memory.
MAX_COMBINATIONS = 1_000_000


@dataclass(frozen=True)
class Grid:
    """Values of settings, tried in all combinations.

    Attributes:
        values: The values of each setting, by name. Names with commas are settings that change together, and each of
            their values is a list of one for each.
        kinds: The classes of the settings.
    """

    values: Mapping[str, Sequence[Any]]
    kinds: Kinds = TRAIN

    def __post_init__(self) -> None:
        if not self.values:
            raise InputError(f"there is nothing to search: give {EXAMPLE}", option="grid")
        checked = dict(_axis(given, values, self.kinds) for given, values in self.values.items())
        object.__setattr__(self, "values", checked)
        if len(set(self.names)) < len(self.names):
            raise InputError(f"`grid` names a setting twice: {', '.join(self.names)}", option="grid")
        # `len` itself takes no number beyond 64 bits.
        if (count := self.__len__()) > MAX_COMBINATIONS:
            raise InputError(
                f"`grid` has {count:,} combinations, at most {MAX_COMBINATIONS:,} are allowed; leave out some",
                option="grid",
            )

    def __len__(self) -> int:
        return math.prod(len(values) for values in self.values.values())

    @cached_property
    def names(self) -> list[str]:
        """Names of its settings."""
        return [name for names in self.values for name in names.split(",")]

    def combination(self, index: int) -> dict[str, Any]:
        """The combination at an index, from 0; the last setting changes fastest."""
        chosen: dict[str, Any] = {}
        for names, position in self.positions(index).items():
            value = self.values[names][position]
            chosen |= zip(names.split(","), value if "," in names else [value], strict=True)
        return chosen

    def positions(self, index: int) -> dict[str, int]:
        """The positions of a combination among the values of each setting, or of those that change together."""
        positions: dict[str, int] = {}
        for names, values in reversed([*self.values.items()]):
            index, positions[names] = divmod(index, len(values))
        return {names: positions[names] for names in self.values}

    def index(self, positions: Mapping[str, int]) -> int:
        """The index of the combination at the given positions."""
        index = 0
        for names, values in self.values.items():
            index = index * len(values) + positions[names]
        return index


def _axis(given: str, values: Any, kinds: Kinds) -> tuple[str, tuple[Any, ...]]:  # noqa: ANN401 - what a file may hold
    """Check a setting of a grid, or settings that change together, and their values."""
    kind_of = {entry.name: kind for kind in kinds for entry in fields(kind) if entry.name not in NOT_SEARCHED}
    names = [name.strip().replace("-", "_") for name in str(given).split(",")]
    for name in names:
        if name not in kind_of:
            typed, known = name.replace("_", "-"), sorted(option.replace("_", "-") for option in kind_of)
            raise InputError(
                f"`grid` names {typed!r}, which is not one of {', '.join(known)}{perhaps(typed, known)}", option="grid"
            )
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise InputError(f"{given} of `grid` must be a list of values, was {brief(values)}", option="grid")
    if len(names) == 1:
        checked = tuple(read_value(kind_of[names[0]], names[0], value) for value in values)
    else:
        if any(not isinstance(row, list | tuple) or len(row) != len(names) for row in values):
            raise InputError(f"{given} of `grid` must be a list of lists of {len(names)} values", option="grid")
        checked = tuple(
            tuple(read_value(kind_of[name], name, value) for name, value in zip(names, row, strict=True))
            for row in values
        )
    if len(set(checked)) < len(values):
        twice = ", ".join(map(str, checked))
        raise InputError(f"{given} of `grid` has a value twice: {twice}", option="grid")
    return ",".join(names), checked


def written(value: object) -> str:
    """A value as a user writes it."""
    if isinstance(value, float):
        return f"{value:g}"
    return str(value).lower() if isinstance(value, bool | None) else str(value)


def apply(combination: Mapping[str, Any], encoder: EncoderConfig, config: Config) -> tuple[EncoderConfig, Config]:
    """Apply a combination to the settings of a run."""
    of_encoder = {entry.name for entry in fields(EncoderConfig)} & combination.keys()
    of_config = combination.keys() - of_encoder
    return (
        replace(encoder, **{name: combination[name] for name in of_encoder}),
        replace(config, **{name: combination[name] for name in of_config}),
    )


def paper_grids(kinds: Kinds = TRAIN) -> list[str]:
    """Names of the grids of the paper."""
    return sorted(path.stem for path in PAPER_GRIDS[kinds].glob("*.yaml"))


def read_grid(given: Mapping[str, Sequence[Any]] | Sequence[str], kinds: Kinds = TRAIN) -> tuple[dict[str, Any], Grid]:
    """Read a grid; later values of a setting replace earlier ones.

    Args:
        given: Settings and their values; or words: names of grids of the paper, YAML files with settings and lists of
            their values, and settings with their values, such as `lambda-w=0,1e-5`.
        kinds: The classes of the settings.

    Returns:
        The settings that the paper fixes for its grids, and the grid.
    """
    if isinstance(given, Mapping):
        return {}, Grid(given, kinds)
    fixed: dict[str, Any] = {}
    values: dict[str, Any] = {}
    named, papers = set(), paper_grids(kinds)
    for word in given:
        name, equals, listed = word.partition("=")
        if equals and name and all(listed.split(",")):
            if name in named:
                raise InputError(f"`grid` names {name} twice; put all its values behind one name", option="grid")
            named.add(name)
            found: dict[str, Any] = {name: listed.split(",")}
        elif word in papers:
            preset = read_yaml(PAPER_GRIDS[kinds] / f"{word}.yaml", "a grid of the paper")
            fixed |= preset["settings"]
            found = preset["grid"]
        elif not equals and Path(word).expanduser().exists():
            found = read_yaml(Path(word).expanduser(), "a grid, names of settings and a list of values for each")
        else:
            expected = f"{EXAMPLE}, a YAML file, or a grid of the paper ({', '.join(papers)})"
            near = perhaps_path(word, *papers)
            raise InputError(f"`grid` {word}: expected {expected}{near}", option="grid")
        own = {key.replace("_", "-"): value for key, value in found.items()}
        replaced = {name for key in own for name in key.split(",")}
        for key in [key for key in values if key not in own and not replaced.isdisjoint(key.split(","))]:
            del values[key]
        values |= own
    return fixed, Grid(values, kinds)


# All that versions of optuna have changed: with these, 4.5, 4.9 and 5.0 choose the same combinations.
TPE = {"multivariate": True, "group": False, "constant_liar": False, "n_startup_trials": 10, "n_ei_candidates": 24}


@dataclass(frozen=True)
class TuneConfig(Settings):
    """The search for settings (arXiv:1511.08198, section 4.2).

    Attributes:
        sampler: Which combination comes next: `random`; `tpe`, what optuna finds promising (extra `tune`); or `grid`,
            in order.
        trials: Number of combinations that are tried, without those that do not fit together.
        tune_pairs: Number of pairs of each trial (section 4.2).
        search_seed: Seed of the order of combinations.
        final_epochs: Passes over all pairs with the best settings (section 4.2).
    """

    sampler: Literal["random", "tpe", "grid"] = "random"
    trials: Count = 20
    tune_pairs: Annotated[int, Range(at_least=2)] = 100_000
    search_seed: Annotated[Seed, PythonOnly] = 1
    final_epochs: Annotated[Count, PythonOnly] = 10


class Order:
    """Chooses untried combinations, the same ones after every interruption."""

    def __init__(self, grid: Grid, config: TuneConfig) -> None:
        self.grid, self.config = grid, config
        generator = np.random.default_rng(config.search_seed)
        count = len(grid)
        self._order = np.arange(count) if config.sampler == "grid" else generator.permutation(count)
        self._optuna: Any = require("optuna", "tune") if config.sampler == "tpe" else None
        if self._optuna is not None:
            self._optuna.logging.set_verbosity(self._optuna.logging.WARNING)
        self._passed = 0

    def next(self, scores: Mapping[int, float | None], closed: set[int]) -> int | None:
        """Choose a combination.

        Args:
            scores: Score of each combination that was tried, by its index; None for those that failed.
            closed: Indices of combinations that are not to be chosen: tried, or of settings that do not fit together.

        Returns:
            Its index; None if all are closed.
        """
        while self._passed < len(self._order) and int(self._order[self._passed]) in closed:
            self._passed += 1
        if self._passed == len(self._order):
            return None
        proposed = self._propose(scores, len(closed)) if self._optuna is not None else None
        return int(self._order[self._passed]) if proposed is None or proposed in closed else proposed

    def _propose(self, scores: Mapping[int, float | None], turn: int) -> int:
        """Choose with TPE, seeded again for each trial, so that an interruption changes nothing."""
        optuna = self._optuna
        choices = {
            name: optuna.distributions.CategoricalDistribution(range(len(values)))
            for name, values in self.grid.values.items()
        }
        with warnings.catch_warnings():
            # Optuna 4 calls `multivariate` experimental.
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.TPESampler(seed=(self.config.search_seed + 7919 * turn) % 2**32, **TPE)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        for index, score in scores.items():
            state = optuna.trial.TrialState.FAIL if score is None else optuna.trial.TrialState.COMPLETE
            study.add_trial(
                optuna.trial.create_trial(
                    state=state, params=self.grid.positions(index), distributions=choices, value=score
                )
            )
        return self.grid.index(study.ask(choices).params)
