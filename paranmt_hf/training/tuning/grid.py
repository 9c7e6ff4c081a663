"""Grids of settings: which values of which settings are tried, and the grids of the papers by name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import ASSETS
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.util.settings import read_value
from paranmt_hf.util.yaml_files import read_yaml

PRESETS = ASSETS / "grids"
# Settings that the search decides itself, those about its course, and those that name files or the machine.
NOT_SEARCHED = {"epochs", "patience", "evaluations", "vectors", "init_from", "teacher", "second_teacher"} | {
    *(
        "device",
        "report_to",
        "gather_negatives",
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
MOST = 1_000_000


@dataclass(frozen=True)
class Grid:
    """Values of settings that are tried in all combinations.

    Attributes:
        values: The values of each setting of `EncoderConfig` or `TrainConfig`, by name.

    Raises:
        InputError: There is no setting of this name, a value is out of its range or there twice, or there are none.
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
                raise InputError(f"the grid names {given!r}, which is no setting that is searched; these are {known}")
            if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                raise InputError(f"the grid's {given} must be a list of values, was {values!r}")
            checked[name] = tuple(read_value(KIND_OF[name], name, value) for value in values)
            if len(set(checked[name])) < len(values):
                raise InputError(f"the grid's {given} has a value twice: {', '.join(map(str, checked[name]))}")
        object.__setattr__(self, "values", checked)
        # `len` itself takes no number beyond 64 bits.
        if (count := self.__len__()) > MOST:
            raise InputError(f"the grid has {count:,} combinations; the most is {MOST:,}, so leave out some values")

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
    """Put the settings of a combination into those of a run.

    Raises:
        InputError: They do not fit together.
    """
    parts: dict[type, dict[str, Any]] = {EncoderConfig: {}, TrainConfig: {}}
    for name, value in combination.items():
        parts[KIND_OF[name]][name] = value
    return replace(encoder, **parts[EncoderConfig]), replace(config, **parts[TrainConfig])


def parse_grid(words: Sequence[str]) -> dict[str, list[str]]:
    """Parse words such as `lambda-w=0,1e-5,1e-4`.

    Raises:
        InputError: A word is of another form, or a name is there twice.
    """
    values: dict[str, list[str]] = {}
    for word in words:
        name, equals, listed = word.partition("=")
        if not (name and equals and all(listed.split(","))):
            raise InputError(f"--grid {word}: expected a setting and its values, such as lambda-w=0,1e-5,1e-4")
        if name in values:
            raise InputError(f"--grid names {name} twice; put all its values behind one name")
        values[name] = listed.split(",")
    return values


def read_grid(path: Path) -> dict[str, Any]:
    """Read a grid from a YAML file: a setting and a list of its values on each line.

    Raises:
        InputError: It cannot be read, or holds something else.
    """
    return read_yaml(path.expanduser(), "a grid, names of settings and a list of values for each")


@dataclass(frozen=True)
class Preset:
    """A grid of a paper, for one family of encoders.

    Attributes:
        settings: Options of `paranmt tune` that the paper fixes.
        grid: What it searches.
    """

    settings: Mapping[str, Any]
    grid: Mapping[str, Any]


def preset_names() -> list[str]:
    """Names of the grids of the papers."""
    return sorted(path.stem for path in PRESETS.glob("*.yaml"))


def read_preset(name: str) -> Preset:
    """Read a grid of a paper.

    Raises:
        InputError: There is none of this name.
    """
    if name not in preset_names():
        raise InputError(f"--preset must be one of {', '.join(preset_names())}, not {name!r}")
    return Preset(**read_yaml(PRESETS / f"{name}.yaml", "a grid of a paper"))
