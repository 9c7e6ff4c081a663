"""What a constituency parser is, which ones there are, and trees that are kept between runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from sys import intern
from typing import Protocol

from paranmt_hf.corpus.parsing.trees import Tree, read_tree
from paranmt_hf.errors import InputError
from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.util.files import check_regular, writing
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

    Raises:
        InputError: The file holds trees of another parser, or cannot be written.
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
    """Read a tree of a file.

    Raises:
        InputError: It is none; `where` stands before the reason.
    """
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
        from paranmt_hf.corpus.parsing.link_grammar import LinkGrammar

        return LinkGrammar(seconds=seconds, processes=processes)

    def stanza() -> Parser:
        from paranmt_hf.corpus.parsing.stanza_parser import StanzaParser

        return StanzaParser()

    return dict(zip(NAMED, (link_grammar, stanza), strict=True))


def check_reads(parser: object, languages: Collection[str]) -> None:
    """Refuse a parser that has a name where text is not English, which is what these read.

    Args:
        parser: Its name, a file of trees, or a parser.
        languages: ISO 639-1 codes of what is to be parsed.

    Raises:
        InputError: The parser is for English.
    """
    others = sorted(set(languages) - {ENGLISH})
    if others and str(parser) in NAMED:
        raise InputError(
            f"{parser} reads English here, and the sentences are of {', '.join(others)}: give a file of trees, or in "
            "Python a parser of your own"
        )
