"""What a process may use of its machine: cores, memory, room on disks."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


def visible_cores() -> int:
    """Cores that the process may run on, as the scheduler says."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def core_limit(root: Path = CGROUP) -> float | None:
    """Cores' worth of time that the control group has, as containers and clusters set it; None without a limit.

    Args:
        root: Where the control groups are.
    """
    text = _read(root / "cpu.max")
    if text is None:
        # Version 1 has two files.
        parts = (_read(root / "cpu" / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
        text = " ".join(part or "" for part in parts)
    try:
        quota, period = map(float, text.split())
    except ValueError:
        return None
    return quota / period if quota > 0 and period > 0 else None


def memory_limit(root: Path = CGROUP) -> int | None:
    """Bytes of memory that the control group may use; None without a limit."""
    for path in (root / "memory.max", root / "memory" / "memory.limit_in_bytes"):
        text = _read(path)
        # Version 1 writes a huge number where there is no limit.
        if text is not None and text.isdigit() and int(text) < 1 << 60:
            return int(text)
    return None


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def free_space(path: Path) -> int | None:
    """Bytes that are free where a path is, or will be; None where the system does not tell."""
    for folder in (path, *path.parents):
        try:
            return shutil.disk_usage(folder).free
        except OSError:
            continue
    return None


def folder_size(folder: Path, seconds: float) -> tuple[int, bool]:
    """Add up the files of a folder, links not followed.

    Args:
        folder: The folder; one that is not there has no files.
        seconds: How long to look at most.

    Returns:
        Bytes, and whether all files were looked at.
    """
    total, end = 0, time.monotonic() + seconds
    for size in _sizes(folder):
        total += size
        if time.monotonic() > end:
            return total, False
    return total, True


def _sizes(folder: Path) -> Iterator[int]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from _sizes(Path(entry.path))
                elif entry.is_file(follow_symlinks=False):
                    yield entry.stat(follow_symlinks=False).st_size
    except OSError:
        return
