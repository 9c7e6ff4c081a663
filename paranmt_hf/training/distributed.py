"""Processes that train one model together: who is who, what they send each other, and what if one of them is gone.

They are started by `torchrun` or `accelerate launch`, which tell each its place in the environment. Tensors on a GPU
go by NCCL, those on the host by Gloo.
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

# How long processes wait for each other in the middle of training before they give up.
LONGEST = timedelta(minutes=10)
# What the first process does alone, such as reading a corpus, may take this long. If it ends meanwhile, that shows at
# once.
PATIENCE = timedelta(days=7)


def started() -> int:
    """Number of processes that were started together; 1 if this one is alone."""
    return int(os.environ.get("WORLD_SIZE", "1"))


class Processes:
    """The processes that train together, all of which call the same methods in the same order.

    Args:
        rank: Which of them this is, counted from 0.
        count: How many there are.
        patient: A group of torch's that waits for the first process as long as that takes.
    """

    def __init__(self, rank: int, count: int, patient: distributed.ProcessGroup | None = None) -> None:
        self.rank, self.count, self._patient = rank, count, patient

    @property
    def first(self) -> bool:
        """Whether this is the process that writes and tells."""
        return self.rank == 0

    def gather(self, own: torch.Tensor) -> torch.Tensor:
        """Collect a tensor of the same shape from each process [process, ...]; on a GPU without a look at it."""
        everyone = own.new_empty(self.count * own.numel())
        with _together(self.count):
            distributed.all_gather_single(everyone, own.contiguous().view(-1))
        return everyone.view(self.count, *own.shape)

    def first_tells(self, value: float = 0.0) -> float:
        """Wait for the first process, and learn its number."""
        told = torch.tensor([value], dtype=torch.float64)
        with _together(self.count):
            distributed.broadcast(told, 0, group=self._patient)
        return float(told)

    def check_same(self, what: str, *values: int) -> None:
        """Make sure that all processes have the same numbers.

        Args:
            what: What the numbers tell of, for the error.
            values: Whole numbers.

        Raises:
            InputError: They do not.
        """
        own = torch.tensor(values, dtype=torch.int64)
        everyone = [torch.empty_like(own) for _ in range(self.count)]
        with _together(self.count):
            distributed.all_gather(everyone, own, group=self._patient)
        others = [rank for rank, other in enumerate(everyone) if not torch.equal(other, everyone[0])]
        if others:
            raise InputError(
                f"process {others[0]} of {self.count} does not have the same {what} as the first one; all need the "
                "same versions of everything, on machines that see --out under the same path"
            )


@cache
def join(device: torch.device) -> Processes:
    """Join the processes that were started together; once, for the rest of the process.

    Args:
        device: Where this process trains; it is the current GPU from now on.

    Raises:
        InputError: They do not find each other.
    """
    backend = "gloo"
    if device.type == "cuda":
        torch.cuda.set_device(device)
        backend = "cpu:gloo,cuda:nccl"
    try:
        distributed.init_process_group(backend, timeout=LONGEST)
        patient = distributed.new_group(timeout=PATIENCE, backend="gloo")
    except (RuntimeError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise InputError(
            f"the {started()} processes do not find each other: {reason}; start them by torchrun or accelerate launch"
        ) from None
    atexit.register(_leave)
    return Processes(distributed.get_rank(), distributed.get_world_size(), patient)


def _leave() -> None:
    """Take leave of the others; not where one of them is gone, for whom that would wait."""
    if distributed.is_initialized() and not _lost:
        distributed.destroy_process_group()


# Holds something once another process is gone.
_lost: list[bool] = []


@contextmanager
def _together(count: int) -> Iterator[None]:
    """Say in one sentence that another process is gone, whatever torch says of it."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
            # That a step cannot be captured tells nothing of the others.
            raise
        _lost.append(True)
        reason = "does not answer" if "timed out" in str(error).lower() else "ended"
        raise LostProcessError(
            f"another of the {count} processes {reason}, and says itself why if it can; if it was stopped, run the "
            "same command again, which goes on from the last checkpoint"
        ) from None


def summed(
    processes: Processes, sent: Sequence[tuple[torch.Tensor, torch.Tensor]], totals: Sequence[torch.Tensor]
) -> None:
    """Add up gradients over all processes, in one exchange.

    Args:
        processes: Those that train together.
        sent: Of each table the rows that have a gradient under the pairs of this process, each once, as of `distinct`,
            and their gradients, float32 [row] and [row, dimension]; as many rows in each process.
        totals: Of each table zeros [row of the table, dimension]; they get the gradient under the pairs of all.
    """
    # Numbers of all kinds travel as 32 bits.
    packed = [torch.cat([rows.int()[:, None], gradient.view(torch.int32)], dim=1) for rows, gradient in sent]
    everyone = processes.gather(torch.cat([part.flatten() for part in packed]))
    start = 0
    for total, part in zip(totals, packed, strict=True):
        stop = start + part.numel()
        for own in everyone[:, start:stop].view(-1, *part.shape):
            total.index_add_(0, own[:, 0].long(), own[:, 1:].view(torch.float32))
        start = stop


def with_others(processes: Processes, vectors: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """Set vectors of this process among those of the others, which are constants.

    Args:
        processes: Those that train together.
        vectors: Vectors of this process [sentence, dimension].
        sizes: Sentences of each process.

    Returns:
        The vectors of all, one process after the other [sentence, dimension].
    """
    room = vectors.new_zeros(max(sizes), vectors.shape[1])
    room[: len(vectors)] = vectors.detach()
    parts = [part[:size] for part, size in zip(processes.gather(room), sizes, strict=True)]
    parts[processes.rank] = vectors
    return torch.cat(parts)
