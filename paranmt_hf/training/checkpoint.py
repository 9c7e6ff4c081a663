"""Atomic checkpoints, with checksums."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from safetensors import SafetensorError, safe_open

from paranmt_hf.errors import InputError
from paranmt_hf.util.files import AGAIN, checksum, replacing, write_bytes
from paranmt_hf.util.records import from_json, read_json

if TYPE_CHECKING:
    import torch
    from torch import nn

CHECKPOINT_SECONDS = 60.0  # Time between two checkpoints
# In a folder of several files: the checksum of each, and the mark that all of them were written.
SEAL, COMPLETE = "files.json", "complete"


def write_checkpoint(path: Path, tensors: Mapping[str, torch.Tensor | np.ndarray], state: dict[str, Any]) -> None:
    """Replace a checkpoint: tensors or arrays by name, written without a copy, and everything else as JSON values."""
    if all(isinstance(tensor, np.ndarray) for tensor in tensors.values()):
        from safetensors.numpy import save_file
    else:
        from safetensors.torch import save_file
    with replacing(path, advice=f"{AGAIN}, which continues from the last checkpoint") as aside:
        path.parent.mkdir(parents=True, exist_ok=True)
        about = json.dumps(state)
        save_file(dict(tensors), aside, metadata={"state": about, "sha256": _checksum(tensors, about)})


def _checksum(tensors: Mapping[str, torch.Tensor | np.ndarray], about: str) -> str:
    """SHA-256 over names and values, because safetensors does not detect damaged values."""
    digest = hashlib.sha256(about.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(name.encode())
        if not isinstance(tensor, np.ndarray):
            import torch

            # numpy does not know all types of numbers that torch has.
            tensor = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        digest.update(tensor.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def read_checkpoint(path: Path, framework: Literal["pt", "np"] = "pt") -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Read a checkpoint: tensors, or arrays if the framework is `np`, and the state; None if there is none."""
    if not path.exists():
        return None
    try:
        with safe_open(path, framework=framework) as file:
            tensors, about = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
        if _checksum(tensors, about["state"]) == about["sha256"]:
            return tensors, json.loads(about["state"])
    except (OSError, SafetensorError, ValueError, KeyError, TypeError):
        pass
    raise InputError(f"{path} is damaged; remove it and run again, from the start")


class CheckpointFile:
    """The checkpoint of a run, a file that is written every minute.

    Large ones take long to write, which shall not take more than a tenth of the time.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._written, self._took = time.monotonic(), 0.0

    @property
    def is_due(self) -> bool:
        """Whether enough time has passed since the last one."""
        wait = max(CHECKPOINT_SECONDS, 10 * self._took) if CHECKPOINT_SECONDS else 0
        return time.monotonic() - self._written >= wait

    def read(self, framework: Literal["pt", "np"] = "pt") -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Read it; see `read_checkpoint`."""
        return read_checkpoint(self.path, framework)

    def write(self, tensors: Mapping[str, torch.Tensor | np.ndarray], state: dict[str, Any]) -> None:
        """Replace it; see `write_checkpoint`."""
        started = time.monotonic()
        write_checkpoint(self.path, tensors, state)
        self._written = time.monotonic()
        self._took = self._written - started


def seal(folder: Path, state: dict[str, Any]) -> None:
    """Mark a checkpoint that consists of several files as complete, with their checksums and a state of JSON values.

    Rank 0 does this; the random states of other processes may not be written yet.
    """
    mark = json.dumps(state).encode()
    files = {}
    for path in sorted(folder.iterdir()):
        of_others = path.name in (SEAL, COMPLETE) or re.fullmatch(r"rng_state_[1-9]\d*\.pth", path.name)
        if path.is_file() and not of_others:
            files[path.name] = checksum(path)
    write_bytes(folder / SEAL, json.dumps({**files, COMPLETE: hashlib.sha256(mark).hexdigest()}).encode())
    # The mark is written last: a checkpoint without it is incomplete and ignored.
    write_bytes(folder / COMPLETE, mark)


def read_sealed(folder: Path) -> Any:  # noqa: ANN401 - what `seal` was given
    """Read the mark of a checkpoint; one with a missing or changed file is rejected."""
    damaged = folder / SEAL
    try:
        known: dict[str, str] = from_json(dict[str, str], read_json(folder / SEAL, "a checkpoint"), folder / SEAL)
        for name in {COMPLETE: "", **known}:
            damaged = folder / name
            if checksum(damaged) != known[name]:
                raise ValueError(name)
    except (OSError, ValueError, KeyError):
        advice = f"remove {folder} and run again, which continues from the checkpoint before, or from the start"
        raise InputError(f"{damaged} is missing or damaged; {advice}", path=damaged) from None
    return json.loads((folder / COMPLETE).read_bytes())


def weights_of(model: nn.Module) -> dict[str, torch.Tensor]:
    """Weights by name, shared ones once."""
    return {name: value.detach().cpu().contiguous() for name, value in model.named_parameters()}


def set_weights(model: nn.Module, weights: dict[str, torch.Tensor]) -> None:
    """Load weights into a model."""
    if sorted(weights) != sorted(name for name, _ in model.named_parameters()):
        raise InputError("a checkpoint is of another model; remove the work folder and start again")
    model.load_state_dict(weights, strict=False)
