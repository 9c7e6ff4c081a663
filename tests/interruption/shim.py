"""Stops a command, or fills its disk, at its n-th change of the file system.

Counted is what Python does below one folder: opening for writing (before, and again when the empty file is there),
`fsync`, and making, renaming and removing files and folders. What libraries write by themselves (safetensors, a
checkpoint of torch, Arrow into a path) is not seen while it is written; the moments before and after it are.
"""

from __future__ import annotations

import builtins
import errno
import io
import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
# These free room, so that they work on a full disk.
FREEING = ("unlink", "remove", "rmdir", "rename", "replace")


class Shim:
    """Counts the moments of a command in all of its processes that are forks of this one.

    Args:
        root: Only what happens below this folder counts.
        moment: The moment, from 1; None only counts.
        fault: `kill`, the whole process group gets SIGKILL; `full`, from then on nothing can be written.
    """

    def __init__(self, root: Path, moment: int | None, fault: Literal["kill", "full"] = "kill") -> None:
        self.root, self.moment, self.fault = str(root), moment, fault
        self.count = multiprocessing.get_context("fork").Value("l", 0)
        self._open, self._os_open = io.open, os.open

    @property
    def counted(self) -> int:
        """Moments so far; without the lock, which a killed process never gives back."""
        return int(self.count.get_obj().value)

    def install(self) -> None:
        """Put the counting functions into the place of Python's."""
        for name in (*FREEING, "mkdir"):
            setattr(os, name, self._watched(name, getattr(os, name)))
        os.fsync = self._watched("fsync", os.fsync)
        io.open = builtins.open = self._file  # type: ignore[assignment]
        os.open = self._descriptor  # type: ignore[assignment]

    def _watched(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def watched(path: Any, *arguments: Any, **options: Any) -> Any:
            # A name below an open folder, or an open file, is taken for one below the root.
            if options.get("dir_fd") is not None or isinstance(path, int) or self._is_below(path):
                self._happens(name, str(path))
            return function(path, *arguments, **options)

        return watched

    def _file(self, path: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if isinstance(path, int) or not set(mode) & set("wax+") or not self._is_below(path):
            return self._open(path, mode, *arguments, **options)
        self._happens("open", str(path))
        file = self._open(path, mode, *arguments, **options)
        try:
            self._happens("opened", str(path))
        except OSError:
            # The file is there, but nothing can be written into it.
            full = self._os_open("/dev/full", os.O_RDWR)
            os.dup2(full, file.fileno())
            os.close(full)
        return file

    def _descriptor(self, path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        if flags & WRITE_FLAGS and (options.get("dir_fd") is not None or self._is_below(path)):
            self._happens("open", str(path))
            found = self._os_open(path, flags, *arguments, **options)
            if self.fault == "kill":
                self._happens("opened", str(path))
            return found
        return self._os_open(path, flags, *arguments, **options)

    def _is_below(self, path: Any) -> bool:
        try:
            return os.path.abspath(os.fsdecode(path)).startswith(self.root)  # noqa: PTH100 - without Path's calls
        except TypeError:
            return False

    def _happens(self, name: str, path: str) -> None:
        with self.count.get_lock():
            self.count.value += 1
            now = self.count.value
            if now == self.moment and self.fault == "kill":
                os.killpg(os.getpgrp(), signal.SIGKILL)
                signal.pause()
        if self.fault == "full" and self.moment is not None and now >= self.moment and name not in FREEING:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
