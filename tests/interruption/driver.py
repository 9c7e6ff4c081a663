"""Runs a command, stopped at every moment, and looks at what the same command makes of what was left.

Each run is a fork of one warm process that has imported everything and run nothing, so that a moment costs about as
much as the work itself.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal

from tests.interruption.shim import Shim

SECONDS = 30
KILLED = -signal.SIGKILL
# A folder, or a file of rows.
RESULT = r"out(\.jsonl|\.parquet|\.txt)?"
Tree = dict[str, bytes | None]


@dataclass(frozen=True)
class Case:
    """A command that is stopped.

    Attributes:
        name: Its name in the table.
        command: From the folder in which it works to the words after `paranmt`; what it makes is `out` there.
        before: Prepares the folder in which it works; called in a process of its own.
        changing: Patterns of files of which some values are never twice the same, and the keys of these; in Markdown
            the words behind them.
        grows: Whether the result is a folder to which file after file is added, each of them whole.
    """

    name: str
    command: Callable[[Path], list[str]]
    before: Callable[[Path], None] = lambda root: None
    changing: dict[str, tuple[str, ...]] = field(default_factory=dict)
    grows: bool = False


@dataclass(frozen=True)
class Ended:
    """How a run ended: its exit status, minus the signal where it was killed; its moments; what it printed last."""

    status: int
    moments: int
    said: str


def in_fork(work: Callable[[], int], log: Path) -> int:
    """Run a function in a process group of its own, its output in a file; returns the exit status."""
    child = os.fork()
    if not child:
        code = 70
        try:
            os.setpgid(0, 0)
            target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(target, 1)
            os.dup2(target, 2)
            code = work()
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    deadline = time.monotonic() + SECONDS
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return -signal.SIGALRM
        time.sleep(0.002)
    return os.waitstatus_to_exitcode(ended[1])


def run(
    case: Case, root: Path, log: Path, moment: int | None = None, fault: Literal["kill", "full"] = "kill"
) -> Ended:
    """Run a command once."""
    shim = Shim(root, moment, fault)

    def work() -> int:
        # Workers, too, are forks, so that they are counted and start at once.
        fork = multiprocessing.get_context("fork")
        multiprocessing.get_context = lambda method=None: fork  # type: ignore[assignment]
        from paranmt_hf.cli import main
        from paranmt_hf.training import checkpoint

        checkpoint.CHECKPOINT_SECONDS = 0
        words = case.command(root)
        shim.install()
        return main(words)

    status = in_fork(work, log)
    lines = log.read_text(encoding="utf8", errors="replace").replace(str(root), "ROOT").strip().split("\n")
    said = "traceback" if any(line.startswith("Traceback") for line in lines) else lines[-1]
    return Ended(status, shim.counted, said)


def tree(root: Path, case: Case) -> Tree:
    """Everything below a folder by its name: the bytes of files, None for folders."""
    found: Tree = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        found[name] = path.read_bytes() if path.is_file() else None
        for pattern, keys in case.changing.items():
            # A file that is still written aside has another name.
            if path.is_file() and fnmatch(name, pattern) and path.suffix != ".tmp":
                content = path.read_bytes()
                found[name] = (
                    _uncounted(content, keys) if path.suffix == ".md" else _without(json.loads(content), keys)
                )
    return found


def _uncounted(text: bytes, words: tuple[str, ...]) -> bytes:
    """A text without the numbers that stand before some words."""
    return re.sub(rb"[\d,.]+ (%s)\b" % "|".join(words).encode(), rb"\1", text)


def _without(values: object, keys: tuple[str, ...]) -> bytes:
    """A record without the values that never are the same twice."""
    if isinstance(values, dict):
        values = {name: json.loads(_without(part, keys)) for name, part in values.items() if name not in keys}
    elif isinstance(values, list):
        values = [json.loads(_without(part, keys)) for part in values]
    return json.dumps(values).encode()


@dataclass
class Outcomes:
    """What came of the moments of a command: how many of each outcome, and an example of each that is no good."""

    case: str
    moments: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def add(self, moments: str, wrong: str | None) -> None:
        """Note the outcome of one moment."""
        self.counts["same bytes" if wrong is None else wrong.split(":")[0]] += 1
        if wrong is not None:
            self.faults.append(f"{self.case} at {moments}: {wrong}")


class Trial:
    """Tries the moments of a command.

    Args:
        case: The command.
        folder: Where to work; made and removed.
    """

    def __init__(self, case: Case, folder: Path) -> None:
        self.case, self.folder = case, folder
        # One name, so that nothing that is recorded differs by it.
        self.root, self.log = folder / "root", folder / "log"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "start").mkdir(parents=True)
        self._prepare()
        self._afresh()
        self.start = tree(self.root, case)
        whole = run(case, self.root, self.log)
        if whole.status:
            raise RuntimeError(f"{case.name} fails by itself: {self.log.read_text()}")
        self.whole, self.moments = tree(self.root, case), whole.moments

    def _prepare(self) -> None:
        start = self.folder / "start"
        if in_fork(lambda: self.case.before(start) or 0, self.log):
            raise RuntimeError(f"{self.case.name} cannot be prepared: {self.log.read_text()}")

    def _afresh(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self.folder / "start", self.root)

    def killed(self, moments: Iterable[int]) -> str | None:
        """Kill the command at some moments, one run after the other, then run it to its end; says what is wrong."""
        self._afresh()
        for moment in moments:
            ended = run(self.case, self.root, self.log, moment)
            # A run that goes on has fewer moments and may end before the one that was drawn for it.
            if ended.status not in (KILLED, 0):
                return f"refused or failed: {ended.said}"
            if half := self._half_made():
                return half
        return self._again()

    def full(self, moment: int) -> str | None:
        """Let the disk be full from a moment on, then run the command with room; says what is wrong."""
        self._afresh()
        ended = run(self.case, self.root, self.log, moment, "full")
        if ended.status == 1 and not ("ROOT/" in ended.said and "No space left" in ended.said):
            return f"told badly: {ended.said}"
        if ended.status not in (0, 1):
            return f"ended otherwise: {ended.status}, {ended.said}"
        if half := self._half_made():
            return half
        return self._again()

    def _half_made(self) -> str | None:
        """A result under its name that is neither whole nor what was there before."""
        now, whole = _result(tree(self.root, self.case)), _result(self.whole)
        if not now or now in (_result(self.start), whole):
            return None
        if self.case.grows:
            # What is hidden is a lock, or a file that is written aside.
            now = {name: part for name, part in now.items() if not name.split("/")[-1].startswith(".")}
            if now.items() <= whole.items():
                return None
        return f"half a result: {', '.join(sorted(now))}"

    def _again(self) -> str | None:
        ended = run(self.case, self.root, self.log)
        if ended.status:
            return f"refused or failed: {ended.said}"
        found = tree(self.root, self.case)
        if left := sorted(found.keys() - self.whole.keys()):
            return f"left behind: {', '.join(left)}"
        if missing := sorted(self.whole.keys() - found.keys()):
            return f"missing: {', '.join(missing)}"
        if other := sorted(name for name in found if found[name] != self.whole[name]):
            return f"other bytes: {', '.join(other)}"
        return None


def _result(found: Tree) -> Tree:
    """The result alone, without the record next to a file."""
    return {name: content for name, content in found.items() if re.fullmatch(RESULT, name.split("/")[0])}
