"""Resources of this process: cores, threads, memory, disk space; and compiled inner loops."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from paranmt_hf.errors import InputError

Function = TypeVar("Function", bound=Callable[..., Any])
CGROUP = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")
# Of numba: sums may be rounded in another order; infinities and NaN are kept.
FAST_SUMS = {"reassoc", "contract", "arcp", "nsz"}

GPU_THREADS = 4  # Threads that prepare batches for a GPU


def visible_cores() -> int:
    """Number of cores that the scheduler gives this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def total_memory() -> float:
    """Bytes of memory of this machine; infinity if unknown."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (ValueError, OSError):
        return inf
    except AttributeError:
        # Windows has no `sysconf`.
        import psutil

        return float(psutil.virtual_memory().total)


def is_running(process: int) -> bool:
    """Whether a process with this id is running."""
    if sys.platform == "win32":
        # There the signal 0 is Ctrl-C.
        import psutil

        return bool(psutil.pid_exists(process))
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def refuse_beyond_memory(needed: float, what: str, advice: str) -> None:
    """Reject what takes more bytes than this machine has memory, before allocating it."""
    if needed > (memory := total_memory()):
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


def core_limit(root: Path = CGROUP, own: Path = OWN_GROUPS) -> float | None:
    """Limit of the control groups of this process (`own`, below `root`) in cores; None without one."""
    return min(filter(None, map(_core_limit, _groups("cpu", root, own))), default=None)


def memory_limit(root: Path = CGROUP, own: Path = OWN_GROUPS) -> int | None:
    """Bytes of memory that the control groups allow; None without a limit. Arguments as in `core_limit`."""
    return min(filter(None, map(_memory_limit, _groups("memory", root, own))), default=None)


def _groups(controller: str, root: Path, own: Path) -> Iterator[Path]:
    """Folders of a process's control groups and their parents, whose limits apply too.

    A line of the file is `number:controllers:/path`. Version 2 has one line, without controllers, and its paths begin
    at the root; version 1 has a folder for each controller. Within a container the root may be the group itself, while
    the file names the path outside; some of these folders are not there.
    """
    for line in (_read(own) or "").splitlines() + ["0::/", f"1:{controller}:/"]:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and controller not in controllers.split(","):
            continue
        top = root / controller if controllers else root
        # `..` stands in paths of groups outside the container's own.
        parts = [part for part in Path(path).parts if part not in ("/", "..")]
        for length in range(len(parts), -1, -1):
            yield top.joinpath(*parts[:length])


def _core_limit(group: Path) -> float | None:
    text = _read(group / "cpu.max")
    if text is None:
        # Version 1 has two files.
        parts = (_read(group / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
        text = " ".join(part or "" for part in parts)
    try:
        quota, period = map(float, text.split())
    except ValueError:
        return None
    return quota / period if quota > 0 and period > 0 else None


def _memory_limit(group: Path) -> int | None:
    for name in ("memory.max", "memory.limit_in_bytes"):
        text = _read(group / name)
        # Version 1 writes a huge number where there is no limit.
        if text is not None and text.isdigit() and int(text) < 1 << 60:
            return int(text)
    return None


def _read(path: Path) -> str | None:
    try:
        # Names of groups may be any bytes.
        return path.read_text(encoding="utf8", errors="surrogateescape").strip()
    except OSError:
        return None


def free_space(path: Path) -> int | None:
    """Free bytes on the disk of a path, which need not exist; None if unknown."""
    for folder in (path, *path.parents):
        try:
            return shutil.disk_usage(folder).free
        except OSError:
            continue
    return None


def folder_size(folder: Path, seconds: float) -> tuple[int, bool]:
    """Size of the files of a folder in bytes, without following links; and whether all were counted in time."""
    total, end = 0, time.monotonic() + seconds
    for parent, _, names in os.walk(folder):
        for path in (Path(parent, name) for name in names):
            with suppress(OSError):
                found = path.lstat()
                total += found.st_size if stat.S_ISREG(found.st_mode) else 0
        if time.monotonic() > end:
            return total, False
    return total, True


def compiled(*, fast: bool = False, **options: Any) -> Callable[[Function], Function]:  # noqa: ANN401
    """Compile a function with numba, cached on disk if possible; `fast` allows sums in another order."""
    from numba import njit

    options |= {"nogil": True, "fastmath": FAST_SUMS if fast else False}

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
