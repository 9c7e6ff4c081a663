"""Several processes that train one encoder through the trainer, started by `torchrun` or `accelerate launch`."""

from __future__ import annotations

import atexit
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING

from paranmt_hf.errors import InputError, LostProcessError
from paranmt_hf.util.processes import process_count

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


def wait_for_all(device: str | None) -> None:
    """Wait until every process calls this, however long the others take.

    Args:
        device: The device of the settings.
    """
    if process_count() > 1:
        from torch import distributed

        group = _patient_group(device)
        with _lost_process():
            distributed.barrier(group)


def check_same(value: str, device: str | None) -> None:
    """Check that all processes have the same settings and data.

    Args:
        value: The settings and data as text.
        device: The device of the settings.

    Raises:
        InputError: A process has others.
    """
    if process_count() == 1:
        return
    import torch
    from torch import distributed

    own = torch.tensor(zlib.crc32(value.encode()))
    group = _patient_group(device)
    everyone = [torch.empty_like(own) for _ in range(process_count())]
    with _lost_process():
        distributed.all_gather(everyone, own, group=group)
    for rank, other in enumerate(everyone):
        if other != everyone[0]:
            raise InputError(
                f"process {rank} of {process_count()} does not have the same settings and data as rank 0; all "
                "processes need the same versions of everything, on machines that see the folder of the result under "
                "the same path"
            )


@cache
def _patient_group(device: str | None) -> ProcessGroup:
    """Connect the processes, once, and return a group that waits up to a week for what rank 0 does alone."""
    import torch
    from torch import distributed

    backend = "gloo"
    if device != "cpu" and torch.cuda.is_available():
        rank, gpus = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
        if rank >= gpus:
            raise InputError(f"there are more processes than the {gpus} GPUs of this machine; start {gpus}")
        torch.cuda.set_device(rank)
        backend = "cpu:gloo,cuda:nccl"
    try:
        distributed.init_process_group(backend, timeout=timedelta(minutes=10))
        # The others wait while rank 0 reads the corpus, which may take days.
        group = distributed.new_group(timeout=timedelta(days=7), backend="gloo")
    except (RuntimeError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise InputError(
            f"the {process_count()} processes cannot connect: {reason}; start them by torchrun or accelerate launch"
        ) from None
    atexit.register(_leave)
    return group


def _leave() -> None:
    """Leave the group of processes, at the end of this one."""
    from torch import distributed

    if distributed.is_initialized():
        distributed.destroy_process_group()


@contextmanager
def _lost_process() -> Iterator[None]:
    """Convert torch's error about a process that ended to one sentence, inside a `with` block."""
    try:
        yield
    except RuntimeError as error:
        # Do not leave the group at exit: that would wait for the process that ended.
        atexit.unregister(_leave)
        raise LostProcessError(
            f"another of the {process_count()} processes ended, and says itself why if it can; if it was stopped, run "
            "the same command again, which continues from the last checkpoint"
        ) from error
