"""Grids of settings to search, given by a person or of the papers by name."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import InputError
from paranmt_hf.hub.client import perhaps_path
from paranmt_hf.hub.repository import ASSETS
from paranmt_hf.supervised.config import SuperviseConfig
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.util.settings import values_for
from paranmt_hf.util.wording import brief
from paranmt_hf.util.yaml_files import read_yaml

# The classes of settings that a search varies: those of `paranmt train`, or of `paranmt supervise`.
Kinds = tuple[type, type]
TRAIN: Kinds = (EncoderConfig, TrainConfig)
SUPERVISE: Kinds = (EncoderConfig, SuperviseConfig)
PAPER_GRIDS: Mapping[Kinds, Path] = {TRAIN: ASSETS / "grids", SUPERVISE: ASSETS / "grids" / "supervised"}
# Settings that a grid cannot vary: the search sets them itself, or they name files or the machine.
NOT_SEARCHED = (
    "task epochs patience evaluations vectors init_from teacher teacher_prompt device report_to "
    "teacher_cache mining_precision"
).split()
EXAMPLE = "a setting and its values, such as lambda-w=0,1e-5,1e-4"
Values = Mapping[str, Any]
Config = TypeVar("Config", TrainConfig, SuperviseConfig)


@dataclass(frozen=True)
class Grid:
    """Values of settings, which are tried in all combinations.

    Attributes:
        axes: By the name of a setting its values, each as a mapping from the name to the value, such as
            `{"margin": [{"margin": 0.4}, {"margin": 0.6}]}`. A name with commas stands for settings that change
            together; its values are mappings with all of them.
    """

    axes: Mapping[str, Sequence[Values]]

    @property
    def size(self) -> int:
        """Number of combinations."""
        return math.prod(len(values) for values in self.axes.values())

    @property
    def names(self) -> list[str]:
        """Names of all settings, one for each."""
        return ",".join(self.axes).split(",")

    def combination(self, positions: Mapping[str, int]) -> dict[str, Any]:
        """Return a combination of values, by the name of the setting.

        Args:
            positions: Position of the value on each axis.
        """
        chosen: dict[str, Any] = {}
        for name, values in self.axes.items():
            chosen |= values[positions[name]]
        return chosen


def paper_grids(kinds: Kinds = TRAIN) -> list[str]:
    """Return the names of the papers' grids for one of the two kinds of searches."""
    return sorted(path.stem for path in PAPER_GRIDS[kinds].glob("*.yaml"))


def read_grid(given: Values | Sequence[str], kinds: Kinds = TRAIN) -> tuple[dict[str, Any], Grid]:
    """Read a grid; later values of a setting replace earlier ones.

    Args:
        given: Settings and their values; or words: names of grids of the paper, YAML files with settings and lists of
            their values, and settings with their values, such as `lambda-w=0,1e-5`.
        kinds: The classes of the settings.

    Returns:
        The settings that the paper fixes for its grids, and the grid.
    """
    fixed: dict[str, Any] = {}
    if isinstance(given, Mapping):
        return fixed, _checked(given, kinds)
    values: dict[str, Any] = {}
    for word in given:
        settings, varied = _read_word(word, kinds)
        fixed |= settings
        for key, listed in varied.items():
            names = key.replace("_", "-")
            # The values replace those of the same names, and remove axes that share one of the names.
            for other in [*values]:
                if other != names and not set(other.split(",")).isdisjoint(names.split(",")):
                    del values[other]
            values[names] = listed
    return fixed, _checked(values, kinds)


def _read_word(word: str, kinds: Kinds) -> tuple[Values, Values]:
    """Read a word of `--grid`: return the settings that it fixes, and the values of those that it varies."""
    name, equals, listed = word.partition("=")
    if equals and name and all(listed.split(",")):
        return {}, {name: listed.split(",")}
    papers = paper_grids(kinds)
    if word in papers:
        preset = read_yaml(PAPER_GRIDS[kinds] / f"{word}.yaml", "a grid of the paper")
        return preset["settings"], preset["grid"]
    file = Path(word).expanduser()
    if not equals and file.exists():
        return {}, read_yaml(file, "a grid, names of settings and a list of values for each")
    expected = f"{EXAMPLE}, a YAML file, or a grid of the paper ({', '.join(papers)})"
    raise _refused(f"{word}: expected {expected}{perhaps_path(word, *papers)}")


def _checked(given: Values, kinds: Kinds) -> Grid:
    """Check the names and values of a grid, and read the values by the types of the settings."""
    if not given:
        raise _refused(f"has nothing to search: give {EXAMPLE}")
    axes: dict[str, list[Values]] = {}
    for key, values in given.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise _refused(f"needs a list of values for {key}, was {brief(values)}")
        names = [name.strip() for name in str(key).split(",")]
        axis: list[Values] = []
        for value in values:
            row = value if len(names) > 1 else [value]
            if not isinstance(row, list | tuple) or len(row) != len(names):
                raise _refused(f"needs a list of lists of {len(names)} values for {','.join(names)}")
            found = values_for(kinds, dict(zip(names, row, strict=True)), "grid", without=NOT_SEARCHED)
            read = found[0] | found[1]
            combined = {name: read[name] for name in (each.replace("-", "_") for each in names)}
            if combined not in axis:
                axis.append(combined)
        axes[",".join(axis[0])] = axis
    grid = Grid(axes)
    if len(set(grid.names)) < len(grid.names):
        raise _refused(f"names a setting twice: {', '.join(grid.names)}")
    # All combinations are held in memory.
    if grid.size > 1_000_000:
        raise _refused(f"has {grid.size:,} combinations, at most 1,000,000 are allowed; leave out some")
    return grid


def _refused(reason: str) -> InputError:
    """Make an error about the option `grid`, for the caller to raise."""
    return InputError(f"`grid` {reason}", option="grid")


def written(value: object) -> str:
    """Return a value as a user would write it."""
    if isinstance(value, float):
        return f"{value:g}"
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(value)


def short_name(values: object) -> str:
    """Return a short folder name for JSON values, a part of their checksum."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


def apply(combination: Values, encoder: EncoderConfig, config: Config) -> tuple[EncoderConfig, Config]:
    """Return the settings of a run, changed to the values of a combination."""
    of_encoder: dict[str, Any] = {}
    of_config = dict(combination)
    for entry in fields(EncoderConfig):
        if entry.name in combination:
            of_encoder[entry.name] = of_config.pop(entry.name)
    return replace(encoder, **of_encoder), replace(config, **of_config)
