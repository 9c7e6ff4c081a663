"""Which file of a saved module keeps it from being read: said once loading has failed."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer

from paranmt_hf.encoders.families import FILES
from paranmt_hf.errors import InputError

LISTS = ("vocabulary.json", "parts.json", "modules.json")


def fault(folder: Path, kind: str) -> str | None:
    """Find the file that keeps a module from being read.

    Args:
        folder: Where the module was saved.
        kind: Name of its class.

    Returns:
        What is wrong with which file, as a sentence can say it; None if every file by itself is as it should be.
    """
    for name in FILES.get(kind, ()):
        path = folder / name
        if not path.is_file():
            return f"{path} is missing"
        if path.suffix == ".json" and damage(path) is None and not json.loads(path.read_text(encoding="utf8")):
            return f"{path} is empty"
    for path in sorted(folder.glob("*")):
        if (reason := damage(path)) is not None:
            return f"{path} is damaged ({reason})"
    if kind == "Combination":
        return _fault_of_parts(folder)
    return None


def refuse_not_finite(folder: Path) -> None:
    """Refuse a model with a weight that is not finite, such as training that diverged leaves.

    Args:
        folder: The model.

    Raises:
        InputError: There is one; with file and tensor.
    """
    for path in sorted(folder.rglob("*.safetensors")):
        # What is wrong with one that is damaged is said when it is read.
        with suppress(SafetensorError, OSError), safe_open(path, "pt") as stored:
            for name in stored.keys():  # noqa: SIM118 - it is no dictionary
                tensor = stored.get_tensor(name)
                if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
                    raise InputError(
                        f"{path}: the tensor {name!r} holds a number that is not finite; train the model again"
                    )


def damage(path: Path) -> str | None:
    """Say in a few words why a file cannot be read; None if it can, or if it is of no known kind."""
    try:
        if path.name == "tokenizer.json":
            Tokenizer.from_file(str(path))
        elif path.suffix == ".json":
            _check_json(path)
        elif path.suffix == ".safetensors":
            with safe_open(path, "pt"):
                pass
    except Exception as error:  # noqa: BLE001 - the tokenizers' errors have no class of their own
        return str(error).strip().split("\n")[0]
    return None


def _check_json(path: Path) -> None:
    expected = list if path.name in LISTS else dict
    found = json.loads(path.read_text(encoding="utf8"))
    if not isinstance(found, expected):
        raise ValueError(f"expected a JSON {'list' if expected is list else 'object'}")


def _fault_of_parts(folder: Path) -> str | None:
    try:
        parts = json.loads((folder / "parts.json").read_text(encoding="utf8"))
        inside = [(str(entry["folder"]), str(entry["type"])) for part in parts for entry in part]
    except (KeyError, TypeError):
        return f"{folder / 'parts.json'} is damaged (expected lists of a folder and a type)"
    faults = (fault(folder / name, kind) for name, kind in inside if name.replace("_", "").isalnum())
    return next((found for found in faults if found is not None), None)
