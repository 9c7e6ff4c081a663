"""Cores, threads and memory that this process may use, and compilation of inner loops."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from paranmt_hf.errors import InputError
from paranmt_hf.util.optional import available

Function = TypeVar("Function", bound=Callable[..., Any])
GPU_THREADS = 4  # Threads that prepare batches for a GPU


def visible_cores() -> int:
    """Return the number of cores that this process may run on, which can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def total_memory() -> int:
    """Return the size of this machine's memory in bytes."""
    import psutil

    return int(psutil.virtual_memory().total)


def is_running(process: int) -> bool:
    """Return whether a process with this id is running."""
    # The import is here because it takes a tenth of the time until a new process has its first vector.
    import psutil

    return bool(psutil.pid_exists(process))


def give_back_memory() -> None:
    """Give memory that this process has freed back to the operating system, of which glibc keeps some megabytes."""
    import ctypes

    if sys.platform == "linux":
        with suppress(AttributeError):  # Other C libraries have no such function
            ctypes.CDLL(None).malloc_trim(0)


def refuse_beyond_memory(needed: float, what: str, advice: str) -> None:
    """Reject work that needs more memory than this machine has, before the memory is allocated.

    Args:
        needed: Bytes that the work needs.
        what: Start of the error, up to the number of gigabytes: `the vectors take`.
        advice: End of the error: what the user can do.
    """
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
    """Give a pool of threads for batches in a `with` block; in each of them torch computes on one thread.

    On the CPU the pool has as many threads as torch uses. A batch on one core takes less processor time than on
    several cores, which wait for each other in every operation. For CUDA the pool has `GPU_THREADS` threads, so that
    some prepare batches while the GPU computes another one. For other devices it has one thread.
    """
    import torch

    # Apple's GPUs fail if several threads use them (pytorch/pytorch#197805).
    count = torch.get_num_threads() if device == "cpu" else GPU_THREADS if device == "cuda" else 1
    with one_thread():
        pool = ThreadPoolExecutor(count, initializer=partial(torch.set_num_threads, 1))
        try:
            yield pool
        finally:
            # After an error or Ctrl-C, batches that have not begun are not computed.
            pool.shutdown(cancel_futures=True)


@contextmanager
def threads_kept() -> Iterator[None]:
    """Restore the number of torch's threads after a `with` block; torch is not imported if it was not before."""
    before = sys.modules["torch"].get_num_threads() if "torch" in sys.modules else None
    try:
        yield
    finally:
        if before is not None:
            sys.modules["torch"].set_num_threads(before)


def _used_by(function: Function) -> Iterator[str]:
    """Yield what a function uses of its module: numbers with their values, and the names of compiled functions."""
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, int | float):
            yield f"{name}={value!r} "
        elif (compiled_from := getattr(value, "py_func", None)) is not None:
            yield f"{compiled_from.__qualname__} "


def compiled(
    *,
    fast: bool = False,
    plain: Callable[..., Any] | None = None,
    **options: Any,  # noqa: ANN401
) -> Callable[[Function], Function]:
    """Return a decorator that compiles a function with numba, cached on disk if possible.

    Where numba is not installed, the function itself is called, which is many times slower, or `plain`.

    Args:
        fast: Whether sums may be computed in another order, which makes them faster and rounds them differently.
        plain: Function with the same result that is fast enough without numba.
        options: Further options of `numba.njit`.
    """
    if not available("numba"):

        def uncompiled(function: Function) -> Function:
            return cast(Function, plain or function)

        return uncompiled
    from numba import njit

    # The flags `nnan` and `ninf` are left out of `fastmath`, so infinities and NaN are computed correctly.
    options |= {"nogil": True, "fastmath": {"reassoc", "contract", "arcp", "nsz"} if fast else False}

    def compile_(function: Function) -> Function:
        try:
            # The cache stores classes of named tuples by name, and fails if a later version has no class of that name.
            # It also keeps the values of constants, and the code of compiled functions of other files, and does not
            # notice when these change. Its files are named after the function, so the name gets a hash of all this.
            source = hashlib.sha256(Path(function.__code__.co_filename).read_bytes())
            source.update("".join(_used_by(function)).encode())
            function.__qualname__ += f"-{source.hexdigest()[:12]}"
            return njit(cache=True, **options)(function)
        except (OSError, RuntimeError):
            # The source file is missing, or numba can write its cache into none of its folders: that of the package,
            # that of the user, and NUMBA_CACHE_DIR.
            return njit(**options)(function)

    return compile_
