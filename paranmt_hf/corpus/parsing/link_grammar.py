"""The link grammar parser (Sleator & Temperley 1991) as a source of constituency trees, without any download."""

from __future__ import annotations

import os
import queue
import re
import shutil
import subprocess
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import IO

from paranmt_hf.corpus.parsing.trees import Tree, read_tree
from paranmt_hf.errors import InputError

PROGRAM = "link-parser"
# Flat trees on one line; complete linkages only; no guesses at spelling, no second try with other limits.
OPTIONS = {"constituents": 3, "graphics": 0, "verbosity": 0, "limit": 50, "null": 0, "spell": 0, "panic": 0}
# Changes nothing, and is answered with one line, which ends what a sentence got.
MARK, ANSWER = "!width=16381\n", "width set to 16381"
# The program looks at the clock only now and then; past so many seconds more it is stopped.
GRACE = 10
START_SECONDS = 60


class LinkGrammar:
    """The program `link-parser` with its English dictionary.

    Its trees have categories of the Penn Treebank for phrases and none for words and punctuation, so entropies are not
    to be compared with those of other parsers. A sentence has no tree where it has no complete linkage, or where that
    is not found in time.

    Args:
        seconds: What a sentence may take.
        processes: How many run at once.

    Raises:
        InputError: The program is not installed.
    """

    def __init__(self, *, seconds: int = 5, processes: int = 1) -> None:
        program = shutil.which(PROGRAM)
        if program is None:
            raise InputError(
                f"link-grammar needs the program {PROGRAM}, which is not installed: apt-get install link-grammar "
                "(Debian, Ubuntu), or take trees from a file"
            )
        self._command = [program, "en", *(f"-{name}={value}" for name, value in OPTIONS.items())]
        self._command.append(f"-timeout={seconds}")
        self._processes = [_Process(self._command, seconds + GRACE) for _ in range(processes)]
        self.at_once: int | None = 100 * processes
        self.name = f"link-grammar {_version(program)}, at most {seconds} s for a sentence"

    def trees(self, sentences: Sequence[str]) -> list[Tree | None]:
        """Parse sentences; see `Parser`. The programs run on until this object is gone.

        Raises:
            InputError: The program does not work, for example because its dictionary is missing.
        """
        if not sentences:
            return []
        waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        for index in range(len(sentences)):
            waiting.put(index)
        found: list[Tree | None] = [None] * len(sentences)

        def work(process: _Process) -> None:
            while (index := _next(waiting)) is not None:
                found[index] = process.parse(sentences[index])

        with ThreadPoolExecutor(len(self._processes)) as pool:
            try:
                list(pool.map(work, self._processes))
            except BaseException:
                # Ctrl-C shall not wait for all that is in the queue.
                while _next(waiting) is not None:
                    pass
                raise
        return found


def _next(waiting: queue.SimpleQueue[int]) -> int | None:
    try:
        return waiting.get_nowait()
    except queue.Empty:
        return None


class _Process:
    """A running program, started when first needed, and anew when it hangs or dies."""

    def __init__(self, command: Sequence[str], seconds: float) -> None:
        self._command, self._seconds = command, seconds
        self._stop: weakref.finalize | None = None

    def _start(self) -> None:
        # It holds back what it writes unless that goes to a terminal.
        ours, terminal = os.openpty()
        try:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=terminal,
                stderr=subprocess.DEVNULL,
                encoding="utf8",
                # Else Ctrl-C would reach it too.
                start_new_session=True,
            )
        finally:
            os.close(terminal)
        assert process.stdin is not None
        self._input: IO[str] = process.stdin
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=_read, args=(ours, self._lines), daemon=True).start()
        self._stop = weakref.finalize(self, _end, process)
        if self._ask("", START_SECONDS) is None:
            self._stop()
            raise InputError(
                f"{self._command[0]} does not start or knows no English: apt-get install "
                "link-grammar-dictionaries-en, or take trees from a file"
            )

    def parse(self, sentence: str) -> Tree | None:
        if not sentence.strip():
            return None
        if self._stop is None or not self._stop.alive:
            self._start()
        # A blank before it, because at the start of a line `!` is a command and `%` a comment.
        lines = self._ask(f" {' '.join(sentence.split())}\n", self._seconds)
        if lines is None:
            assert self._stop is not None
            self._stop()
            return None
        tree = next((line for line in lines if line.startswith("(")), None)
        try:
            return None if tree is None else read_tree(tree)
        except InputError:
            # It may write a word with a bracket in it as it is.
            return None

    def _ask(self, text: str, seconds: float) -> list[str] | None:
        """Send a line and read what comes back; None if that takes too long, or the program ended."""
        try:
            self._input.write(text + MARK)
            self._input.flush()
            lines: list[str] = []
            while (line := self._lines.get(timeout=seconds)) is not None:
                if line == ANSWER:
                    return lines
                lines.append(line)
        except (queue.Empty, OSError):
            pass
        return None


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    with suppress(OSError):
        assert process.stdin is not None
        process.stdin.close()


def _read(terminal: int, lines: queue.SimpleQueue[str | None]) -> None:
    # The end of a terminal is an error to some systems.
    with suppress(OSError), open(terminal, encoding="utf8", errors="replace") as stream:
        for line in stream:
            lines.put(line.rstrip("\r\n"))
    lines.put(None)


def _version(program: str) -> str:
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"{program} cannot be run: {error}; install it again, or take trees from a file") from None
    found = re.search(r"link-grammar-([\w.]+)", done.stdout + done.stderr)
    return found[1] if found else "of unknown version"
