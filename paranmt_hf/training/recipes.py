"""Recipes: the settings of the encoders in `model_cards/` by one name, for data that the user has."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from paranmt_hf.corpus.pairs import PairSelection
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import ASSETS
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.record import Trained, TrainingRecord
from paranmt_hf.util.run import is_free
from paranmt_hf.util.settings import values_for
from paranmt_hf.util.yaml_files import read_yaml

RECIPES = ASSETS / "recipes"
# Settings of the first step that hold for the second too.
SHARED = ("seed", "device")


@dataclass(frozen=True)
class Recipe:
    """How an encoder of `model_cards/` is made.

    Attributes:
        needs: Parameters that name what the user has to bring.
        first: Settings of the first step, which learns a teacher's similarities.
        then: Settings of the second step, which continues with the margin loss; the result is the mean of both. Empty
            for a recipe of one step.
    """

    needs: Sequence[str]
    first: Mapping[str, Any]
    then: Mapping[str, Any] = field(default_factory=dict)


def recipe_names() -> list[str]:
    """Names of the recipes."""
    return sorted(path.stem for path in RECIPES.glob("*.yaml"))


def read_recipe(name: str) -> Recipe:
    """Read a recipe."""
    if name not in recipe_names():
        raise InputError(f"recipe must be one of {', '.join(recipe_names())}, was {name!r}", option="recipe")
    return Recipe(**read_yaml(RECIPES / f"{name}.yaml", "a recipe"))


def first_step(name: str) -> Mapping[str, Any]:
    """Settings of the first step of a recipe."""
    return read_recipe(name).first


def train_recipe(
    name: str,
    train: Callable[..., Trained],
    data: Any,  # noqa: ANN401 - as `train` takes it
    out: Path,
    encoder: EncoderConfig | None,
    config: TrainConfig | None,
    selection: PairSelection | None,
    others: Mapping[str, Any],
) -> Trained:
    """Train an encoder as a recipe says; arguments as of `train`, and that function.

    Settings that are given replace those of the first step. The encoders of two steps stay in `<out>.steps`, and the
    result is their mean.
    """
    recipe = read_recipe(name)
    own = values_for([EncoderConfig, TrainConfig, PairSelection], recipe.first, "recipe")
    encoder, config = encoder or EncoderConfig(**own[0]), config or TrainConfig(**own[1])
    selection = selection or PairSelection(**own[2])
    given = {"data": data, "text": others["text"], "vectors": encoder.vectors, "teacher": config.teacher}
    if missing := [f"`{need}`" for need in recipe.needs if not given.get(need)]:
        raise InputError(f"recipe {name} needs {' and '.join(filter(None, [', '.join(missing[:-1]), missing[-1]]))}")
    if not recipe.then:
        return train(data, out, encoder=encoder, config=config, selection=selection, **others)
    first, second = (out.with_name(f"{out.name}.steps") / step for step in ("1-teacher", "2-margin"))
    fresh = is_free(out)
    # Checked before hours of work, as far as possible.
    if not fresh and [part.name for part in TrainingRecord.read(out).mean_of or []] != [first.name, second.name]:
        raise InputError(f"{out} is not an encoder of this recipe; choose another place", option="out", path=out)
    train(data, first, encoder=encoder, config=config, selection=selection, **others)
    then = values_for([TrainConfig, PairSelection], recipe.then, "recipe")
    margin = TrainConfig(**{option: getattr(config, option) for option in SHARED}, **then[0])
    further = selection if selection.max_pairs or selection.first_pairs else replace(selection, **then[1])
    start = EncoderConfig(init_from=str(first))
    # Text is for a teacher alone.
    train(data, second, encoder=start, config=margin, selection=further, **{**others, "text": None})
    # These import torch; mistakes in the first step are reported before.
    from paranmt_hf.training.average import average_encoders
    from paranmt_hf.training.distributed import barrier

    if os.environ.get("RANK", "0") == "0":
        # Finds a mean that is there, and refuses that of others.
        average_encoders([first, second], out)
    barrier(config.device)
    return Trained(out, TrainingRecord.read(out), fresh)
