"""Several processes that train one model, started by `torchrun` or `accelerate launch`.

Tensors on a GPU are sent by NCCL, those on the host by Gloo.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cache

import torch
from torch import distributed

from paranmt_hf.errors import InputError, LostProcessError
from paranmt_hf.training.config import TrainConfig

STEP_TIMEOUT = timedelta(minutes=10)  # How long processes wait for each other during training
# How long they wait for what rank 0 does alone, such as reading a corpus. If rank 0 ends, they end at once.
RANK_0_TIMEOUT = timedelta(days=7)


def started() -> int:
    """Number of processes that were started together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def own_device() -> torch.device:
    """Name the GPU of this process."""
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))


class Processes:
    """The processes of a training run, which all call the same methods in the same order."""

    def __init__(self, rank: int, count: int, patient: distributed.ProcessGroup | None = None) -> None:
        self.rank, self.count, self._patient = rank, count, patient

    @property
    def first(self) -> bool:
        """Whether this process is rank 0, which reads the data, writes and prints."""
        return self.rank == 0

    def gather(self, own: torch.Tensor) -> torch.Tensor:
        """Collect a tensor of the same shape from each process [process, ...], on a GPU without a synchronisation."""
        everyone = own.new_empty(self.count * own.numel())
        with _together(self.count):
            distributed.all_gather_single(everyone, own.contiguous().view(-1))
        return everyone.view(self.count, *own.shape)

    def broadcast(self, value: float = 0.0) -> float:
        """Wait for rank 0 and return the value it broadcasts."""
        received = torch.tensor([value], dtype=torch.float64)
        with _together(self.count):
            distributed.broadcast(received, 0, group=self._patient)
        return float(received)

    def check_same(self, what: str, *values: int) -> None:
        """Check that all processes have the same integers; `what` describes them, for the error."""
        own = torch.tensor(values, dtype=torch.int64)
        everyone = [torch.empty_like(own) for _ in range(self.count)]
        with _together(self.count):
            distributed.all_gather(everyone, own, group=self._patient)
        others = [rank for rank, other in enumerate(everyone) if not torch.equal(other, everyone[0])]
        if others:
            raise InputError(
                f"process {others[0]} of {self.count} does not have the same {what} as rank 0; all processes need the "
                "same versions of everything, on machines that see the folder of the result under the same path"
            )


@cache
def join(device: torch.device) -> Processes:
    """Create the process group of the processes that were started together, for the rest of this process.

    A GPU to train on becomes the current one.
    """
    backend = "gloo"
    if device.type == "cuda":
        torch.cuda.set_device(device)
        backend = "cpu:gloo,cuda:nccl"
    try:
        distributed.init_process_group(backend, timeout=STEP_TIMEOUT)
        patient = distributed.new_group(timeout=RANK_0_TIMEOUT, backend="gloo")
    except (RuntimeError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise InputError(
            f"the {started()} processes cannot connect: {reason}; start them by torchrun or accelerate launch"
        ) from None
    atexit.register(_leave)
    return Processes(distributed.get_rank(), distributed.get_world_size(), patient)


def join_started(device: str | None) -> Processes | None:
    """Create the process group of the processes that were started together; None if there is one process.

    Without a device they take a GPU if there is one.
    """
    if started() == 1:
        return None
    on_gpu = device != "cpu" and torch.cuda.is_available()
    return join(own_device() if on_gpu else torch.device("cpu"))


def barrier(device: str | None) -> None:
    """Wait for rank 0 if several processes were started."""
    if (processes := join_started(device)) is not None:
        processes.broadcast()


def check_processes(config: TrainConfig, count: int) -> None:
    """Reject several processes for averaging models if one of them has no GPU or no pair."""
    if config.device != "cuda":
        raise InputError(
            "averaging models are trained by one process on the CPU; choose `device` cuda, or start one process",
            option="device",
        )
    local, gpus = own_device().index, torch.cuda.device_count()
    if local >= gpus:
        raise InputError(
            f"process {local + 1} on this machine has no GPU of its own, for torch finds {gpus} here; start as many "
            "processes as there are GPUs"
        )
    if config.batch_size < count:
        raise InputError(
            f"`batch_size` {config.batch_size} leaves some of {count} processes without a pair, for they share each "
            f"mini-batch; give at least {count}, or start fewer processes",
            option="batch_size",
        )


def _leave() -> None:
    """Destroy the process group, unless a process is lost, for which that would wait."""
    if distributed.is_initialized() and not _lost:
        distributed.destroy_process_group()


# Not empty when another process is lost.
_lost: list[bool] = []


@contextmanager
def _together(count: int) -> Iterator[None]:
    """Convert torch's errors about a lost process to one sentence."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
            # A step that cannot be captured says nothing about the other processes.
            raise
        _lost.append(True)
        reason = "does not answer" if "timed out" in str(error).lower() else "ended"
        raise LostProcessError(
            f"another of the {count} processes {reason}, and says itself why if it can; if it was stopped, run the "
            "same command again, which continues from the last checkpoint"
        ) from None


def summed(
    processes: Processes, sent: Sequence[tuple[torch.Tensor, torch.Tensor]], totals: Sequence[torch.Tensor]
) -> None:
    """Sum gradients over all processes, in one exchange.

    A GPU adds numbers to a row in an order that changes. So each process adds up the gradients of its own pairs, and
    all processes add up these, in the order of their ranks. No row occurs twice in the list of one process, so the
    order of each sum is fixed, and tables stay equal in every bit.

    `sent` has for each table the distinct rows with a gradient from the pairs of this process (see `tables.distinct`)
    and their gradients, float32 [row] and [row, dimension], as many rows in each process; `totals` has for each table
    zeros [row of the table, dimension], which get the gradient from all pairs.
    """
    # Rows and gradients are sent as 32-bit integers.
    packed = [torch.cat([rows.int()[:, None], gradient.view(torch.int32)], dim=1) for rows, gradient in sent]
    everyone = processes.gather(torch.cat([part.flatten() for part in packed]))
    start = 0
    for total, part in zip(totals, packed, strict=True):
        stop = start + part.numel()
        for own in everyone[:, start:stop].view(-1, *part.shape):
            total.index_add_(0, own[:, 0].long(), own[:, 1:].view(torch.float32))
        start = stop


def with_others(processes: Processes, vectors: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """Concatenate vectors of this process [sentence, dimension] with those of the others, which are constants.

    `sizes` has the sentences of each process; the vectors are in the order of the ranks [sentence, dimension].
    """
    room = vectors.new_zeros(max(sizes), vectors.shape[1])
    room[: len(vectors)] = vectors.detach()
    parts = [part[:size] for part, size in zip(processes.gather(room), sizes, strict=True)]
    parts[processes.rank] = vectors
    return torch.cat(parts)
