"""Recipes: the settings of the encoders in `model_cards/`, which are made in one or two steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from paranmt_hf.corpus.reading.pairs import PairSelection
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import ASSETS
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.util.settings import values_for
from paranmt_hf.util.wording import perhaps
from paranmt_hf.util.yaml_files import read_yaml

RECIPES = ASSETS / "recipes"


@dataclass(frozen=True)
class Recipe:
    """How an encoder is made, and which inputs the user has to give.

    The first step learns a teacher's similarities. The second step, if there is one, continues with the margin loss,
    and the result is the mean of both.

    Attributes:
        needs: Names of the parameters that the user has to give.
        first: Settings of the first step.
        then: Settings of the second step; empty for a recipe of one step.
    """

    needs: Sequence[str]
    first: Mapping[str, Any]
    then: Mapping[str, Any] = field(default_factory=dict)

    def margin_step(
        self, first: Path, config: TrainConfig, selection: PairSelection | None = None
    ) -> tuple[EncoderConfig, TrainConfig, PairSelection]:
        """Return the settings of the second step: of the encoder, of training, and of the selection of pairs.

        If the selection does not limit the number of pairs, the recipe does.

        Args:
            first: Folder of the encoder that the first step made.
            config: How it was trained; seed, device and reports stay the same.
            selection: Which pairs were chosen; None for all.
        """
        values = values_for([TrainConfig, PairSelection], self.then, "recipe")
        shared = {name: getattr(config, name) for name in ("seed", "device", "report_to")}
        selection = selection or PairSelection()
        if not selection.max_pairs and not selection.first_pairs:
            selection = replace(selection, **values[1])
        return EncoderConfig(init_from=str(first)), TrainConfig(**{**values[0], **shared}), selection


def recipe_names() -> list[str]:
    """Return the names of all recipes."""
    return sorted(path.stem for path in RECIPES.glob("*.yaml"))


def read_recipe(name: str) -> Recipe:
    """Read a recipe by its name."""
    known = recipe_names()
    if name not in known:
        raise InputError(
            f"recipe must be one of {', '.join(known)}, was {name!r}{perhaps(name, known)}", option="recipe"
        )
    return Recipe(**read_yaml(RECIPES / f"{name}.yaml", "a recipe"))


def first_step(name: str) -> Mapping[str, Any]:
    """Return the settings of the first step of a recipe."""
    return read_recipe(name).first
