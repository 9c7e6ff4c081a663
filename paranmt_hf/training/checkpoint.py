"""Checkpoints that a kill or a full disk cannot damage: written aside, then put into place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from paranmt_hf.errors import InputError
from paranmt_hf.util.files import AGAIN, replacing


def write_checkpoint(path: Path, tensors: dict[str, torch.Tensor], state: dict[str, Any]) -> None:
    """Replace a checkpoint.

    Args:
        path: The file.
        tensors: Weights and averages by name.
        state: Everything else, as JSON values.

    Raises:
        InputError: It cannot be written; the previous one stays.
    """
    with replacing(path, advice=f"{AGAIN}, which goes on from the last checkpoint") as aside:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(tensors, aside, metadata={"state": json.dumps(state)})


def read_checkpoint(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]] | None:
    """Read a checkpoint: tensors and state; None where there is none.

    Raises:
        InputError: It is damaged.
    """
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, json.loads(file.metadata()["state"])  # noqa: SIM118
    except (OSError, SafetensorError, ValueError, KeyError, TypeError):
        raise InputError(f"{path} is damaged; remove it and run again, from the start") from None
