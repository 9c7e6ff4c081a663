"""What the folder of an encoder says of itself: its modules and its settings. Read without torch."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from paranmt_hf.encoders.damage import damage
from paranmt_hf.errors import InputError

# Our modules as `modules.json` names them: by the file names under which their code lies beside the weights, or by
# where they are in this package.
PREFIX, MODULES = "paranmt_hf_", "paranmt_hf.encoders.modules"
# Settings of a whole model, beside those of its modules.
SETTINGS = ("prompts", "default_prompt_name", "similarity_fn_name", "truncate_dim")


def module_list(folder: Path, name: str) -> list[dict[str, str]]:
    """Read which modules an encoder has, in order, each with `name`, `path` and `type`.

    Args:
        folder: The encoder.
        name: Its name, for errors.

    Raises:
        InputError: There is no such list, or it names a path that is no plain folder name.
    """
    try:
        entries = json.loads((folder / "modules.json").read_text(encoding="utf8"))
        listed = [{key: str(entry[key]) for key in ("name", "path", "type")} for entry in entries]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        listed = []
    if not listed:
        raise InputError(
            f"{name} is no sentence encoder: expected a readable modules.json, as a SentenceTransformer saves it"
        )
    for entry in listed:
        if entry["path"] not in ("", ".") and not re.fullmatch(r"[\w-]+", entry["path"]):
            raise InputError(f"{name}: modules.json names the path {entry['path']!r}, which is no plain folder name")
    return listed


def model_settings(folder: Path, name: str) -> dict[str, Any]:
    """Read those settings of a whole encoder that stand in `config_sentence_transformers.json`; see `SETTINGS`.

    Args:
        folder: The encoder.
        name: Its name, for errors.

    Raises:
        InputError: The file is damaged, or `truncate_dim` is no whole number above 0.
    """
    path = folder / "config_sentence_transformers.json"
    if not path.is_file():
        return {}
    if (reason := damage(path)) is not None:
        raise InputError(f"{name}: {path} is damaged ({reason}); put a whole copy of the model in its place")
    settings = json.loads(path.read_text(encoding="utf8"))
    truncate = settings.get("truncate_dim")
    if truncate is not None and not (isinstance(truncate, int) and truncate > 0):
        raise InputError(f"{name}: truncate_dim in {path} must be a whole number above 0, was {truncate!r}")
    return {name: settings[name] for name in SETTINGS if name in settings}
