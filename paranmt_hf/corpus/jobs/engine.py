"""Where shard jobs run: worker processes of this machine, or a Ray cluster."""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import dataclass
from typing import Literal

from paranmt_hf.errors import InputError
from paranmt_hf.util.settings import check, setting

# More than any cluster of today has; each worker is a process.
MOST = 10_000
# What drivers for GPUs show on Linux: Nvidia's, AMD's, and those of Windows below it.
DRIVERS = ("/proc/driver/nvidia", "/dev/nvidiactl", "/dev/kfd", "/dev/dxg")


@dataclass(frozen=True)
class EngineConfig:
    """Where and with how many workers a job runs.

    Attributes:
        engine: `local`, processes of this machine; `ray`, tasks of a Ray cluster.
        workers: Worker processes; with 1 the work is done in this process. 0 is for `resolved` to say.
        threads: Cores that one worker uses, likewise.
        gpus: GPUs that one worker uses, likewise.
    """

    engine: Literal["local", "ray"] = setting("local", "local processes, or a Ray cluster")
    workers: int = setting(0, "worker processes (default: one per GPU, else up to 8 cores)", at_least=0, at_most=MOST)
    threads: int = setting(0, "cores of one worker (default: an even share)", at_least=0, at_most=MOST)
    gpus: int = setting(0, "GPUs of one worker (default: 1 where there are GPUs)", at_least=0, at_most=MOST)

    def __post_init__(self) -> None:
        check(self)

    def resolved(self) -> EngineConfig:
        """The same with every 0 replaced by what suits this machine."""
        gpus = count_gpus()
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if self.engine == "local" and self.gpus > gpus:
            raise InputError(f"{self.gpus} GPUs for each worker are asked for, and torch sees {gpus} on this machine")
        each = self.gpus or min(1, gpus)
        workers = self.workers or (gpus // each if each and gpus else min(cores, 8))
        return EngineConfig(self.engine, workers, self.threads or max(1, cores // workers), each)


def count_gpus() -> int:
    """Number of GPUs that torch sees."""
    if "torch" not in sys.modules and not has_driver():
        return 0
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def has_driver() -> bool:
    """Whether there may be a driver for GPUs: without one torch sees none, and its import takes over a second."""
    if sys.platform != "linux" or any(map(os.path.exists, DRIVERS)):
        return True
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True
