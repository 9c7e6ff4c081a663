"""Recipes: the settings of the encoders in `model_cards/` by one name, for data that the user has."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from paranmt_hf.corpus.pairs import PairSelection
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import ASSETS
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.record import TrainingRecord
from paranmt_hf.util.run import is_free
from paranmt_hf.util.yaml_files import read_yaml

FOLDER = ASSETS / "recipes"
# Settings of the first step that hold for the second too.
SHARED = ("seed", "device", "checkpoint_seconds")


@dataclass(frozen=True)
class Recipe:
    """How an encoder of `model_cards/` is made.

    Attributes:
        name: Its name.
        needs: Options that name what the user has to bring.
        first: Options of the first step, which learns a teacher's similarities.
        then: Options of the second step, which continues with the margin loss; the result is the mean of both. Empty
            for a recipe of one step.
    """

    name: str
    needs: Sequence[str]
    first: Mapping[str, Any]
    then: Mapping[str, Any] = field(default_factory=dict)


def recipe_names() -> list[str]:
    """Names of the recipes."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def read_recipe(name: str) -> Recipe:
    """Read a recipe."""
    if name not in recipe_names():
        raise InputError(f"recipe must be one of {', '.join(recipe_names())}, was {name!r}", option="recipe")
    return Recipe(name, **read_yaml(FOLDER / f"{name}.yaml", "a recipe"))


def first_step(name: str) -> Mapping[str, Any]:
    """Options of the first step of a recipe."""
    return read_recipe(name).first


def check_needs(recipe: Recipe, given: Mapping[str, Any]) -> None:
    """Raise an `InputError` that names what the recipe needs and is not given."""
    missing = [f"`{name}`" for name in recipe.needs if not given.get(name)]
    if missing:
        *others, last = missing
        names = f"{', '.join(others)} and {last}" if others else last
        raise InputError(f"recipe {recipe.name} needs {names}")


def train_steps(
    recipe: Recipe,
    step: Callable[..., Any],
    out: Path,
    *,
    encoder: EncoderConfig,
    config: TrainConfig,
    selection: PairSelection,
    **options: Any,
) -> None:
    """Train an encoder in the two steps of a recipe, which stay in `<out>.steps`; the result is the mean of both.

    Args:
        recipe: The recipe.
        step: `train`, with the data.
        out: Folder of the encoder.
        encoder: The encoder of the first step.
        config: How that is trained.
        selection: Which pairs both use.
        options: `development`, `exclude`, `teacher_cache` and `text`, as of `train`; text is for the first step alone.
    """
    steps = out.with_name(f"{out.name}.steps")
    first, second = steps / "1-teacher", steps / "2-margin"
    # Checked before hours of work, as far as possible.
    if not is_free(out) and [part.name for part in TrainingRecord.read(out).mean_of or []] != [
        first.name,
        second.name,
    ]:
        raise InputError(f"{out} is not an encoder of this recipe; choose another place", option="out", path=out)
    step(out=first, encoder=encoder, config=config, selection=selection, **options)
    then = {name.replace("-", "_"): value for name, value in recipe.then.items()}
    chosen = {entry.name for entry in fields(PairSelection)} & then.keys()
    fewer = {name: then.pop(name) for name in chosen}
    further = selection if selection.max_pairs or selection.first_pairs else replace(selection, **fewer)
    margin = TrainConfig(**{name: getattr(config, name) for name in SHARED}, **then)
    options = {**options, "teacher_cache": None, "text": None}
    step(out=second, encoder=EncoderConfig(init_from=str(first)), config=margin, selection=further, **options)
    # These import torch; mistakes in the first step are reported before.
    from paranmt_hf.training.average import average_encoders
    from paranmt_hf.training.distributed import barrier

    if os.environ.get("RANK", "0") == "0":
        # Finds a mean that is there, and refuses that of others.
        average_encoders([first, second], out)
    barrier(config.device)
