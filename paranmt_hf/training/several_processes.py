"""Training by several processes, as `torchrun` and `accelerate launch` start them: who may, where, and who waits."""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch

from paranmt_hf.errors import InputError
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.distributed import Processes


def own_device() -> torch.device:
    """Name the GPU of this process, one for each that was started on this machine."""
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))


def check_processes(config: TrainConfig, count: int) -> None:
    """Refuse several processes in the loop of averaging models where one of them would have no GPU, or no pair.

    Args:
        config: How the model is trained.
        count: Number of processes.

    Raises:
        InputError: They cannot train together.
    """
    if config.device != "cuda":
        raise InputError("averaging models are trained by one process on the CPU; give --device cuda, or start one")
    local, gpus = own_device().index, torch.cuda.device_count()
    if local >= gpus:
        raise InputError(
            f"process {local + 1} on this machine has no GPU of its own, for torch can use {gpus} here; start as many "
            "processes as there are GPUs"
        )
    if config.batch_size < count:
        raise InputError(
            f"--batch-size {config.batch_size} leaves some of {count} processes without a pair, for they share each "
            f"mini-batch; give at least {count}, or start fewer processes"
        )


def wait_until_prepared(ready: Path, processes: Processes | None) -> None:
    """Wait until the first process has everything prepared.

    Args:
        ready: What it writes then.
        processes: Those that train together; None where the trainer will bring them together.
    """
    if processes is not None:
        processes.first_tells()
    else:
        wait_for(ready)


def wait_for(path: Path) -> None:
    """Wait until the first process has written something."""
    while not path.exists():
        time.sleep(0.1)
