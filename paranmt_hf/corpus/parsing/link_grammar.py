"""The link grammar parser (Sleator & Temperley 1991), a program that needs no model files."""

from __future__ import annotations

import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import IO

from paranmt_hf.corpus.parsing.trees import Tree, read_tree
from paranmt_hf.errors import InputError

# A command without effect, whose one line of output ends the output for a sentence.
MARK, ANSWER = "!width=16381\n", "width set to 16381"


class LinkGrammar:
    """The program `link-parser` with its English dictionary, with a maximum time for each sentence.

    Its trees have Penn Treebank categories for phrases and none for words and punctuation, so their entropy is not
    comparable with that of other parsers. A sentence without a complete linkage, or without one in time, has no tree.
    The program checks the time rarely; after `grace` more seconds it is killed.
    """

    def __init__(self, *, seconds: int = 5, processes: int = 1, grace: int = 10) -> None:
        if not hasattr(os, "openpty"):
            raise InputError(f"link-grammar runs on Linux and macOS, not on {sys.platform}; take trees from a file")
        program = shutil.which("link-parser")
        if program is None:
            raise InputError(
                "link-grammar needs the program link-parser, which is not installed: apt-get install link-grammar "
                "(Debian, Ubuntu), or take trees from a file"
            )
        # Flat trees on one line; complete linkages only; no guesses at spelling, no second try with other limits.
        options = {"constituents": 3, "graphics": 0, "verbosity": 0, "limit": 50, "null": 0, "spell": 0, "panic": 0}
        options["timeout"] = seconds
        command = [program, "en", *(f"-{name}={value}" for name, value in options.items())]
        self._processes = [_Process(command, seconds + grace) for _ in range(processes)]
        self.at_once: int | None = 100 * processes
        self.name = f"link-grammar {_version(program)}, at most {seconds} s for a sentence"

    def trees(self, sentences: Sequence[str]) -> list[Tree | None]:
        """Parse sentences; the processes end with this object."""
        free: queue.SimpleQueue[_Process] = queue.SimpleQueue()
        for process in self._processes:
            free.put(process)

        def parse(sentence: str) -> Tree | None:
            process = free.get()
            try:
                return process.parse(sentence)
            finally:
                free.put(process)

        with ThreadPoolExecutor(len(self._processes)) as pool:
            return list(pool.map(parse, sentences))


class _Process:
    """A process of the program, started when needed, and again after it hangs or dies."""

    def __init__(self, command: Sequence[str], seconds: float) -> None:
        self._command, self._seconds = command, seconds
        self._stop: weakref.finalize | None = None

    def _start(self) -> None:
        # The program buffers its output unless that is a terminal.
        ours, terminal = os.openpty()
        try:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=terminal,
                stderr=subprocess.DEVNULL,
                encoding="utf8",
                # So that Ctrl-C does not reach it.
                start_new_session=True,
            )
        finally:
            os.close(terminal)
        assert process.stdin is not None
        self._input: IO[str] = process.stdin
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=_read, args=(ours, self._lines), daemon=True).start()
        self._stop = weakref.finalize(self, _end, process)
        if self._ask("", 60) is None:
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
        # At the start of a line `!` is a command and `%` a comment.
        lines = self._ask(f" {' '.join(sentence.split())}\n", self._seconds)
        if lines is None:
            assert self._stop is not None
            self._stop()
            return None
        tree = next((line for line in lines if line.startswith("(")), None)
        try:
            return None if tree is None else read_tree(tree)
        except InputError:
            # The program writes words with brackets unescaped.
            return None

    def _ask(self, text: str, seconds: float) -> list[str] | None:
        """Send a line and read the answer; None after a timeout or if the program ended."""
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
    # Some systems report the end of a terminal as an error.
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
