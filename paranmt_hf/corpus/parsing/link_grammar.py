"""The link grammar parser (Sleator & Temperley 1991), run as a program; it needs no model files."""

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

# A command that changes nothing. Its one line of output shows where the output for a sentence ends.
MARK, ANSWER = "!width=16381\n", "width set to 16381"


class LinkGrammar:
    """The program `link-parser` with its English dictionary.

    Its trees have Penn Treebank categories for phrases, and none for words and punctuation, so their entropy is not
    comparable with that of other parsers. A sentence without a complete linkage, or without one in time, has no tree.

    Attributes:
        name: Name of the parser, with its version and the time limit.
        at_once: Number of sentences in one call of `trees`.

    Args:
        seconds: Time limit for each sentence.
        processes: Number of processes of the program.
        grace: Seconds after the time limit when a process is killed, because the program checks the time rarely.

    Raises:
        InputError: If the program is not installed, or cannot run on this system.
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
        # Print trees flat, on one line; accept only complete linkages; do not guess at spelling or try again with
        # other limits.
        options = {"constituents": 3, "graphics": 0, "verbosity": 0, "limit": 50, "null": 0, "spell": 0, "panic": 0}
        options["timeout"] = seconds
        command = [program, "en", *(f"-{name}={value}" for name, value in options.items())]
        self._processes = [_Process(command, seconds + grace) for _ in range(processes)]
        self.at_once: int | None = 100 * processes
        self.name = f"link-grammar {_version(program)}, at most {seconds} s for a sentence"

    def trees(self, sentences: Sequence[str]) -> list[Tree | None]:
        """Parse sentences in parallel; None for a sentence without a tree."""
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
    """A process of the program, which is started when needed, and again after it hangs or dies."""

    def __init__(self, command: Sequence[str], seconds: float) -> None:
        self._command, self._seconds = command, seconds
        self._stop: weakref.finalize | None = None

    def _start(self) -> None:
        """Start the process, and wait until it answers."""
        # The output is a pseudo-terminal, because the program buffers any other output.
        ours, terminal = os.openpty()
        try:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=terminal,
                stderr=subprocess.DEVNULL,
                encoding="utf8",
                # Ctrl-C must not reach the process.
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
        """Parse one sentence; None if it has no tree."""
        if not sentence.strip():
            return None
        if self._stop is None or not self._stop.alive:
            self._start()
        # The blank comes first because `!` at the start of a line is a command, and `%` a comment.
        lines = self._ask(f" {' '.join(sentence.split())}\n", self._seconds)
        if lines is None:
            assert self._stop is not None
            self._stop()
            return None
        tree = next((line for line in lines if line.startswith("(")), None)
        try:
            return None if tree is None else read_tree(tree)
        except InputError:
            # The program does not escape brackets in words, so such a tree cannot be read.
            return None

    def _ask(self, text: str, seconds: float) -> list[str] | None:
        """Send a line, and return the lines of the answer; None after a timeout, or if the program has ended."""
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
    """End a process, and close its input."""
    process.kill()
    process.wait()
    with suppress(OSError):
        assert process.stdin is not None
        process.stdin.close()


def _read(terminal: int, lines: queue.SimpleQueue[str | None]) -> None:
    """Read the output of a process in a thread; None in the queue marks its end."""
    # Some systems report the end of a terminal as an `OSError`.
    with suppress(OSError), open(terminal, encoding="utf8", errors="replace") as stream:
        for line in stream:
            lines.put(line.rstrip("\r\n"))
    lines.put(None)


def _version(program: str) -> str:
    """Return the version of the program."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"{program} cannot be run: {error}; install it again, or take trees from a file") from None
    found = re.search(r"link-grammar-([\w.]+)", done.stdout + done.stderr)
    return found[1] if found else "of unknown version"
