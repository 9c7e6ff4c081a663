"""Engines of shard jobs: worker processes of this machine, or a Ray cluster."""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from paranmt_hf.errors import InputError
from paranmt_hf.util.machine import visible_cores
from paranmt_hf.util.markers import Range, RunOnly
from paranmt_hf.util.settings import Settings

MAX_WORKERS = 10_000


@dataclass(frozen=True)
class EngineConfig(Settings):
    """Where a job runs, and with how many workers.

    Attributes:
        kind: Processes of this machine (local), or tasks of a Ray cluster (ray).
        workers: Number of worker processes; 0 is as many as there are GPUs for, or without GPUs one for each core, at
            most 8.
        threads: Number of cores for each worker; 0 shares the cores evenly among the workers.
        gpus: Number of GPUs for each worker; 0 is one if this machine has GPUs.
        shard_rows: Rows in one unit of work; 0 is what suits the command, such as 10,000 lines of a bitext.
    """

    kind: Annotated[Literal["local", "ray"], RunOnly] = "local"
    workers: Annotated[int, Range(at_least=0, at_most=MAX_WORKERS), RunOnly] = 0
    threads: Annotated[int, Range(at_least=0, at_most=MAX_WORKERS), RunOnly] = 0
    gpus: Annotated[int, Range(at_least=0, at_most=MAX_WORKERS), RunOnly] = 0
    shard_rows: Annotated[int, Range(at_least=0, at_most=10_000_000), RunOnly] = 0

    def resolved(self) -> EngineConfig:
        """Return these settings with 0 workers, threads and GPUs replaced by the defaults for this machine.

        `shard_rows` stays 0, because its default depends on the command.
        """
        gpus = count_gpus()
        cores = visible_cores()
        if self.kind == "local" and self.gpus > gpus:
            raise InputError(f"`gpus` is {self.gpus}, and torch sees {gpus} on this machine", option="gpus")
        gpus_each = self.gpus or min(1, gpus)
        workers = self.workers or (gpus // gpus_each if gpus_each and gpus else min(cores, 8))
        return replace(self, workers=workers, threads=self.threads or max(1, cores // workers), gpus=gpus_each)


def count_gpus() -> int:
    """Return the number of GPUs that torch can use; torch is not imported on machines without a GPU driver."""
    if "torch" not in sys.modules and not has_driver():
        return 0
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def has_driver() -> bool:
    """Whether this machine may have a GPU driver.

    If it has none, callers need not import torch, which takes over a second.
    """
    # Files that GPU drivers create on Linux: Nvidia's (two), AMD's, and that of Windows' own Linux (WSL).
    drivers = ("/proc/driver/nvidia", "/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
    if sys.platform != "linux" or any(map(os.path.exists, drivers)):
        return True
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True
