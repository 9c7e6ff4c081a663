"""Parsers of English: the protocol, link-grammar, stanza, and how sentences are parsed."""

from __future__ import annotations

import os
import queue
import re
import shutil
import subprocess
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from sys import intern
from typing import IO, Any, Protocol

from paranmt_hf.corpus.parsing.trees import Tree, read_tree
from paranmt_hf.errors import InputError
from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.util.files import check_regular, writing
from paranmt_hf.util.optional import require
from paranmt_hf.util.progress import Progress

# Parsers that have a name.
NAMED = ("link-grammar", "stanza")
# Stands where a sentence stands in a line with its tree, and is none: the line says which parser gave the trees.
PARSER_LINE = "#parser"


class Parser(Protocol):
    """Something that gives the constituency trees of sentences.

    Attributes:
        name: What it is called, with its version and whatever else decides about its trees.
        at_once: How many sentences it is given at a time; None for all of them.
    """

    name: str
    at_once: int | None

    def trees(self, sentences: Sequence[str]) -> Iterable[Tree | None]:
        """Parse sentences.

        Args:
            sentences: Each on one line, white space normalised.

        Returns:
            The tree of each, in their order; None for a sentence that has none.
        """


def parse(
    parser: Parser,
    sentences: Sequence[str],
    cut: Callable[[Tree], str] = str,
    *,
    keep: Path | None = None,
    label: str = "parse",
) -> list[str | None]:
    """Parse sentences in blocks, with progress; only what is cut from a tree stays in memory.

    Args:
        parser: The parser.
        sentences: What to parse; each distinct one is parsed once.
        cut: What of a tree is wanted, such as its top levels; else all of it, in brackets.
        keep: A file where trees are kept as they come, a line `SENTENCE<tab>TREE` for each sentence. What stands there
            already, of this or an earlier run, is not parsed again. `TreeFile` reads it too.
        label: What is done, for the progress.

    Returns:
        What was cut from the tree of each sentence, in their order; None for one that has no tree.
    """
    distinct = list(dict.fromkeys(sentences))
    found = _read_kept(keep, parser.name, set(distinct), cut) if keep is not None else {}
    missing = [sentence for sentence in distinct if sentence not in found]
    step = parser.at_once or max(1, len(missing))
    with Progress(label, total=len(distinct), done=len(distinct) - len(missing)) as progress:
        for start in range(0, len(missing), step):
            block, lines = missing[start : start + step], []
            for sentence, tree in zip(block, parser.trees(block), strict=True):
                found[sentence] = None if tree is None else intern(cut(tree))
                if keep is not None:
                    lines.append(f"{sentence}\t{tree or ''}")
            if keep is not None:
                _append(keep, lines)
            progress.advance_to(len(distinct) - len(missing) + start + len(block))
    return [found[sentence] for sentence in sentences]


def _read_kept(path: Path, parser: str, wanted: Collection[str], cut: Callable[[Tree], str]) -> dict[str, str | None]:
    """Read the trees of an earlier run; half a line that a kill left at the end is cut off."""
    check_regular(path)
    head = f"{PARSER_LINE}\t{parser}\n"
    found: dict[str, str | None] = {}
    with writing(path), path.open("a+b") as file:
        file.seek(0)
        whole = len(first := file.readline())
        if first != head.encode():
            if not head.encode().startswith(first):
                raise InputError(
                    f"{path} begins with {_brief(first)}, expected trees of {parser}; name another file to keep trees "
                    "in"
                )
            file.truncate(0)
            file.write(head.encode())
            return found
        for number, line in enumerate(file, 2):
            if not line.endswith(b"\n"):
                break
            whole += len(line)
            sentence, _, tree = line.decode(errors="replace").rstrip("\n").partition("\t")
            if sentence in wanted:
                found[sentence] = intern(cut(read_at(tree, f"{path}:{number}"))) if tree else None
        file.truncate(whole)
    return found


def _brief(line: bytes) -> str:
    text = line.decode(errors="replace").strip()
    return repr(text if len(text) <= 60 else f"{text[:60]}...")


def _append(path: Path, lines: Sequence[str]) -> None:
    with writing(path), path.open("a", encoding="utf8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
        file.flush()
        os.fsync(file.fileno())


def read_at(tree: str, where: str) -> Tree:
    """Read a tree of a file."""
    try:
        return read_tree(tree)
    except InputError as error:
        raise InputError(f"{where}: {error}; mend that line or empty its tree") from None


def named_parsers(*, seconds: int, processes: int) -> dict[str, Callable[[], Parser]]:
    """List the parsers that have a name.

    Args:
        seconds: What a sentence may take, for parsers that can take long.
        processes: How many run at once, for parsers that are programs.
    """

    def link_grammar() -> Parser:
        from paranmt_hf.corpus.parsing.parsers import LinkGrammar

        return LinkGrammar(seconds=seconds, processes=processes)

    def stanza() -> Parser:
        from paranmt_hf.corpus.parsing.parsers import StanzaParser

        return StanzaParser()

    return dict(zip(NAMED, (link_grammar, stanza), strict=True))


def check_reads(parser: object, languages: Collection[str]) -> None:
    """Refuse a parser that has a name where text is not English, which is what these read.

    Args:
        parser: Its name, a file of trees, or a parser.
        languages: ISO 639-1 codes of what is to be parsed.
    """
    others = sorted(set(languages) - {ENGLISH})
    if others and str(parser) in NAMED:
        raise InputError(
            f"{parser} reads English here, and the sentences are of {', '.join(others)}: give a file of trees, or in "
            "Python a parser of your own"
        )


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
        """Parse sentences; see `Parser`. The programs run on until this object is gone."""
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


PROCESSORS = "tokenize,pos,constituency"
GET_MODELS = f"python -c \"import stanza; stanza.download('en', processors='{PROCESSORS}')\""


class StanzaParser:
    """The English constituency parser of stanza: categories of the Penn Treebank, parts of speech included."""

    at_once: int | None = 100

    def __init__(self) -> None:
        stanza: Any = require("stanza", "parse")
        try:
            self._pipeline = stanza.Pipeline(
                "en", processors=PROCESSORS, download_method=None, tokenize_no_ssplit=True, verbose=False
            )
        # Stanza has an error of its own for each thing that may be missing, most but not all of them OSErrors.
        except Exception as error:
            reason = " ".join(str(error).split())
            raise InputError(
                f"stanza's English models cannot be loaded ({reason}); fetch them once, where there is a network: "
                f"{GET_MODELS}, or take trees from a file"
            ) from None
        self.name = f"stanza {stanza.__version__}"

    def trees(self, sentences: Sequence[str]) -> list[Tree | None]:
        """Parse sentences; see `Parser`. One that stanza takes for several has the tree of the first."""
        present = [index for index, sentence in enumerate(sentences) if sentence.strip()]
        documents = self._pipeline.bulk_process([sentences[index] for index in present])
        found: list[Tree | None] = [None] * len(sentences)
        for index, document in zip(present, documents, strict=True):
            parsed = [sentence.constituency for sentence in document.sentences]
            if parsed and parsed[0] is not None:
                found[index] = _plain(parsed[0])
        return found


def _plain(tree: Any) -> Tree:  # noqa: ANN401 - a tree of stanza
    """Turn a tree of stanza, whose words are nodes without children, into ours."""
    return Tree(tree.label, tuple(_plain(child) if child.children else child.label for child in tree.children))
