"""Makes the package see a system like Windows: first on PYTHONPATH, it is run by each Python process that starts.

Modules of the package get an `os`, `sys` and `signal` without what POSIX alone has; other packages get the real ones.
Below the folder PARANMT_TEST_ROOT no process renames or deletes what it has open, makes links, or writes a name that
Windows forbids.
"""

import builtins
import contextlib
import fcntl
import os
import re
import signal  # noqa: F401 - is cut
import sys
import types
import warnings
from pathlib import Path

POSIX_ONLY = {
    "os": "fork forkpty openpty register_at_fork sched_getaffinity sched_setaffinity getuid geteuid getgid getpgrp "
    "killpg setsid sysconf statvfs pread pwrite posix_fadvise sync mkfifo uname nice chown getloadavg",
    "signal": "SIGKILL SIGHUP SIGALRM SIGUSR1 SIGUSR2 SIGSTOP SIGCHLD alarm setitimer pause pthread_sigmask",
    "sys": "",
}
VALUES = {"os": {"name": "nt"}, "sys": {"platform": "win32"}}
MISSING = ("fcntl", "resource", "pwd", "grp", "termios", "pty", "tty", "readline", "curses")
FORBIDDEN = re.compile(r'[<>:"|?*\\]|[ .]$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)', re.IGNORECASE)
ROOT = os.environ.get("PARANMT_TEST_ROOT", "/nowhere")


class Cut(types.ModuleType):
    """A module without some of its names, and with other values of some."""

    def __init__(self, module):
        super().__init__(module.__name__)
        self._cut = (module, set(POSIX_ONLY[module.__name__].split()), VALUES.get(module.__name__, {}))

    def __getattr__(self, name):
        module, gone, values = self._cut
        if name in gone:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        return values[name] if name in values else getattr(module, name)


def opened(path, flags, *arguments, **options):
    """Open a file as `os.open` does; there are no descriptors of folders."""
    if Path(path).is_dir():
        raise PermissionError(13, "Permission denied", str(path))
    return os.open(path, flags, *arguments, **options)


def killed(process, number):
    """Kill as `os.kill` does; the signal 0 is Ctrl-C, for all processes of the console."""
    raise AssertionError("os.kill(..., 0) asks nothing on Windows") if number == 0 else NotImplementedError(number)


VALUES["os"] |= {"open": opened, "kill": killed}
CUT = {name: Cut(sys.modules[name]) for name in POSIX_ONLY}
imported = builtins.__import__


def imports(name, globals=None, locals=None, fromlist=(), level=0):
    """Import as Python does; modules of the package get the cut modules."""
    if level == 0 and str((globals or {}).get("__name__", "")).startswith("paranmt_hf"):
        if name in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        if name in CUT:
            return CUT[name]
    return imported(name, globals, locals, fromlist, level)


builtins.__import__ = imports


def is_below(path):
    """Whether a path of an event is below the folder of the test."""
    return isinstance(path, str | bytes | os.PathLike) and absolute(path).is_relative_to(ROOT)


def absolute(path):
    """The path of an event."""
    return Path.cwd() / os.fsdecode(path)


def is_open(path):
    """Whether this process has a file open or mapped that is, or lies below, a path."""
    maps = Path("/proc/self/maps").read_text(encoding="utf8").splitlines()
    found = [Path(line.split(maxsplit=5)[-1]) for line in maps]
    for number in list(Path("/proc/self/fd").iterdir()):
        with contextlib.suppress(OSError):
            found.append(number.readlink())
    return any(file.is_relative_to(absolute(path)) for file in found)


def watch(event, arguments):
    """Refuse what Windows refuses."""
    if event == "os.symlink":
        raise OSError(22, "A required privilege is not held by the client")
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        check_name(arguments[0])
    if event in ("os.rename", "os.mkdir"):
        check_name(arguments[event == "os.rename"])
    if event in ("os.rename", "os.remove"):
        for path in arguments[: 2 if event == "os.rename" else 1]:
            if is_below(path) and is_open(path):
                raise PermissionError(13, f"{event} of an open file", os.fsdecode(path))


def check_name(path):
    """Refuse a name that Windows forbids."""
    if is_below(path) and any(map(FORBIDDEN.search, absolute(path).relative_to(ROOT).parts)):
        raise OSError(22, "Invalid argument", os.fsdecode(path))


sys.addaudithook(watch)
flush = os.fsync


def fsync(file):
    """Flush a file as `os.fsync` does; it must be open for writing."""
    number = file if isinstance(file, int) else file.fileno()
    if fcntl.fcntl(number, fcntl.F_GETFL) & (os.O_WRONLY | os.O_RDWR) == 0:
        raise OSError(9, "Bad file descriptor")
    flush(number)


os.fsync = fsync
# A file that is opened without an encoding would be in that of the system.
warnings.filterwarnings("error", category=EncodingWarning, module=r"paranmt_hf\.")
