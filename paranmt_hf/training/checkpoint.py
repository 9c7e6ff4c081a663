"""Checkpoints with checksums, which are replaced atomically."""

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
# Files of a checkpoint that is a folder: the checksums of the other files, and the mark that all of them were written.
SEAL, COMPLETE = "files.json", "complete"


def write_checkpoint(path: Path, tensors: Mapping[str, torch.Tensor | np.ndarray], state: dict[str, Any]) -> None:
    """Replace a checkpoint.

    Args:
        path: The file.
        tensors: Tensors or arrays by name, which are written without a copy.
        state: Everything else, as JSON values.
    """
    if all(isinstance(tensor, np.ndarray) for tensor in tensors.values()):
        from safetensors.numpy import save_file
    else:
        from safetensors.torch import save_file
    with replacing(path, advice=f"{AGAIN}, which continues from the last checkpoint") as aside:
        path.parent.mkdir(parents=True, exist_ok=True)
        about = json.dumps(state)
        save_file(dict(tensors), aside, metadata={"state": about, "sha256": _checksum(tensors, about)})


def _checksum(tensors: Mapping[str, torch.Tensor | np.ndarray], about: str) -> str:
    """Compute the SHA-256 of names, values and state, because safetensors does not notice damaged values."""
    digest = hashlib.sha256(about.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(name.encode())
        if not isinstance(tensor, np.ndarray):
            import torch

            # As bytes, because numpy does not have all types of numbers that torch has.
            tensor = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        digest.update(tensor.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def read_checkpoint(path: Path, framework: Literal["pt", "np"] = "pt") -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Read a checkpoint.

    Args:
        path: The file.
        framework: `pt` to get tensors, `np` to get arrays.

    Returns:
        The tensors or arrays by name, and the state; None if there is no checkpoint.

    Raises:
        InputError: The file is damaged.
    """
    if not path.exists():
        return None
    try:
        with safe_open(path, framework=framework) as file:
            tensors, about = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
        if _checksum(tensors, about["state"]) == about["sha256"]:
            return tensors, json.loads(about["state"])
    except (OSError, SafetensorError, ValueError, KeyError, TypeError):
        pass
    raise InputError(f"{path} is damaged; remove it and run again, from the start", path=path)


class CheckpointFile:
    """The checkpoint file of a run, which is written every minute.

    Writing a large one takes long. Then it is written less often, so that writing takes at most a tenth of the time.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._written, self._took = time.monotonic(), 0.0

    @property
    def is_due(self) -> bool:
        """Whether it is time to write the next one."""
        wait = max(CHECKPOINT_SECONDS, 10 * self._took) if CHECKPOINT_SECONDS else 0
        return time.monotonic() - self._written >= wait

    def read(self, framework: Literal["pt", "np"] = "pt") -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Read the checkpoint; see `read_checkpoint`."""
        return read_checkpoint(self.path, framework)

    def write(self, tensors: Mapping[str, torch.Tensor | np.ndarray], state: dict[str, Any]) -> None:
        """Replace the checkpoint; see `write_checkpoint`."""
        started = time.monotonic()
        write_checkpoint(self.path, tensors, state)
        self._written = time.monotonic()
        self._took = self._written - started


def seal(folder: Path, state: dict[str, Any]) -> None:
    """Mark a checkpoint that consists of several files as complete, and write their checksums.

    Rank 0 does this. The random states of other processes may not be written yet, so they have no checksums.

    Args:
        folder: Folder of the checkpoint.
        state: JSON values that `read_sealed` will return.
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
    """Check the files of a checkpoint, and return the state that `seal` was given.

    Raises:
        InputError: A file is missing or was changed.
    """
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
    """Return the weights of a model by name, on the CPU; shared weights occur once."""
    return {name: value.detach().cpu().contiguous() for name, value in model.named_parameters()}


def set_weights(model: nn.Module, weights: dict[str, torch.Tensor]) -> None:
    """Load the weights that `weights_of` returned into a model.

    Raises:
        InputError: They are those of another model.
    """
    if sorted(weights) != sorted(name for name, _ in model.named_parameters()):
        raise InputError("a checkpoint is of another model; remove the work folder and start again")
    model.load_state_dict(weights, strict=False)
