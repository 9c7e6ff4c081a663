"""Which folders hold a syntactically controlled network; read without torch."""

from __future__ import annotations

import json

from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import Model

# What `config.json` says of it.
MODEL_TYPE = "paranmt-controlled"


def is_controlled(files: Model) -> bool:
    """Tell whether a folder says that it holds a syntactically controlled network."""
    try:
        values = json.loads((files.folder / "config.json").read_text(encoding="utf8"))
    except (OSError, ValueError):
        # What is wrong with it is said when it is read.
        return False
    return isinstance(values, dict) and values.get("model_type") == MODEL_TYPE


def check_control(files: Model, *, templates: bool) -> None:
    """Refuse templates for a model that knows none, and a model that needs templates without any.

    Args:
        files: The model.
        templates: Whether there are templates.

    Raises:
        InputError: They do not belong together.
    """
    if templates and not is_controlled(files):
        raise InputError(
            f"{files.folder} is not syntactically controlled, so it knows no templates; leave these out, or take "
            "what `paranmt train-controlled` made"
        )
    if not templates and is_controlled(files):
        raise InputError(
            f"{files.folder} is syntactically controlled, so it needs templates; name them with --template, or take "
            "the most frequent ones with --templates; in Python use load_paraphraser"
        )
