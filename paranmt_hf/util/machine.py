"""Resources of this process: cores, threads, memory; and compiled inner loops."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from paranmt_hf.errors import InputError

Function = TypeVar("Function", bound=Callable[..., Any])
GPU_THREADS = 4  # Threads that prepare batches for a GPU


def visible_cores() -> int:
    """Number of cores that the scheduler gives this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def total_memory() -> int:
    """Bytes of memory of this machine."""
    import psutil

    return int(psutil.virtual_memory().total)


def is_running(process: int) -> bool:
    """Whether a process with this id is running."""
    # Importing it takes a tenth of the time to the first vector of a new process.
    import psutil

    return bool(psutil.pid_exists(process))


def refuse_beyond_memory(needed: float, what: str, advice: str) -> None:
    """Reject what takes more bytes than this machine has memory, before allocating it."""
    memory = total_memory()
    if needed > memory:
        raise InputError(f"{what} {needed / 1e9:,.0f} GB, and this machine has {memory / 1e9:,.0f} GB; {advice}")


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread in a `with` block, so that results do not depend on the number of threads."""
    import torch

    with threads_kept():
        torch.set_num_threads(1)
        yield


@contextmanager
def torch_threads(device: str = "cpu") -> Iterator[ThreadPoolExecutor]:
    """A pool of as many threads as torch uses, on each of which torch runs on one thread; of `GPU_THREADS` for CUDA.

    A batch on one core takes less processor time than on several, which wait for each other in every operation. A GPU
    computes a batch while other threads prepare the next ones.
    """
    import torch

    # Apple's GPUs fail if several threads use them (pytorch/pytorch#197805).
    count = torch.get_num_threads() if device == "cpu" else GPU_THREADS if device == "cuda" else 1
    with one_thread():
        pool = ThreadPoolExecutor(count, initializer=partial(torch.set_num_threads, 1))
        try:
            yield pool
        finally:
            # After an error or Ctrl-C the batches that wait are not computed.
            pool.shutdown(cancel_futures=True)


@contextmanager
def threads_kept() -> Iterator[None]:
    """Restore the number of torch threads after a `with` block, without importing torch."""
    before = sys.modules["torch"].get_num_threads() if "torch" in sys.modules else None
    try:
        yield
    finally:
        if before is not None:
            sys.modules["torch"].set_num_threads(before)


def compiled(*, fast: bool = False, **options: Any) -> Callable[[Function], Function]:  # noqa: ANN401
    """Compile a function with numba, cached on disk if possible; `fast` allows sums in another order."""
    from numba import njit

    # Of fast sums, infinities and NaN are kept.
    options |= {"nogil": True, "fastmath": {"reassoc", "contract", "arcp", "nsz"} if fast else False}

    def compile_(function: Function) -> Function:
        try:
            # The cache stores classes of named tuples by name, and fails where a later version has none of that name.
            # Its files are called after the function, so each version of the source file gets files of its own.
            source = Path(function.__code__.co_filename).read_bytes()
            function.__qualname__ += f"-{hashlib.sha256(source).hexdigest()[:12]}"
            return njit(cache=True, **options)(function)
        except (OSError, RuntimeError):
            # There is no source, or neither the package's folder, the user's nor NUMBA_CACHE_DIR can be written.
            return njit(**options)(function)

    return compile_
