"""Which folders hold a syntactically controlled network; read without torch."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import Model
from paranmt_hf.training.record import TRAINING_FILE

logger = logging.getLogger(__name__)

# What `config.json` says of it.
MODEL_TYPE = "paranmt-controlled"
# Parsers whose trees are known by their names.
NAMED = ("link-grammar", "stanza")


def is_controlled(files: Model) -> bool:
    """Tell whether a folder says that it holds a syntactically controlled network."""
    return _values(files.folder / "config.json").get("model_type") == MODEL_TYPE


def _values(path: Path) -> dict[str, Any]:
    """Read an object; empty where there is none, for what is wrong with a file is said when it is read."""
    try:
        values = json.loads(path.read_text(encoding="utf8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def warn_of_other_trees(files: Model, parser: str) -> None:
    """Warn where the trees of sentences come from another parser than those that a network learned from.

    Files of trees do not say what made them, so there is no warning about these.

    Args:
        files: The network.
        parser: What the parser of the sentences calls itself.
    """
    inputs = _values(files.folder / TRAINING_FILE).get("inputs")
    learned = str(inputs.get("parser", "")) if isinstance(inputs, dict) else ""
    former, own = (next((name for name in NAMED if each.startswith(name)), None) for each in (learned, parser))
    if former and own and former != own:
        logger.warning(
            f"{files.name} learned from trees of {learned} and gets those of {parser}, which look different; give "
            f"the parser {former}"
        )


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
            f"{files.folder} is syntactically controlled, so it needs templates; `paranmt paraphrase` takes them, "
            "with --template or --templates, and in Python load_paraphraser; other commands want another paraphraser"
        )
