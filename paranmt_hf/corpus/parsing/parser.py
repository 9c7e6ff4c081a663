"""What a constituency parser is, which ones there are, and trees that are kept between runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from paranmt_hf.corpus.parsing.trees import Tree, read_tree
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import check_regular, writing
from paranmt_hf.util.progress import Progress

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

    def trees(self, sentences: Sequence[str]) -> list[Tree | None]:
        """Parse sentences.

        Args:
            sentences: Each on one line, white space normalised.

        Returns:
            The tree of each, in their order; None for a sentence that has none.
        """


def parse(
    parser: Parser, sentences: Sequence[str], *, keep: Path | None = None, label: str = "parse"
) -> list[Tree | None]:
    """Parse sentences in blocks, with progress.

    Args:
        parser: The parser.
        sentences: What to parse; each distinct one is parsed once.
        keep: A file where trees are kept as they come, a line `SENTENCE<tab>TREE` for each sentence. What stands there
            already, of this or an earlier run, is not parsed again. `TreeFile` reads it too.
        label: What is done, for the progress.

    Returns:
        As of `Parser.trees`.

    Raises:
        InputError: The file holds trees of another parser, or cannot be written.
    """
    kept = _read_kept(keep, parser.name) if keep is not None else {}
    distinct = list(dict.fromkeys(sentences))
    missing = [sentence for sentence in distinct if sentence not in kept]
    with Progress(label, total=len(distinct), done=len(distinct) - len(missing)) as progress:
        step = parser.at_once or max(1, len(missing))
        for start in range(0, len(missing), step):
            block = missing[start : start + step]
            found = dict(zip(block, parser.trees(block), strict=True))
            kept |= found
            if keep is not None:
                _append(keep, [f"{sentence}\t{tree or ''}" for sentence, tree in found.items()])
            progress.advance_to(len(distinct) - len(missing) + start + len(block))
    return [kept[sentence] for sentence in sentences]


def _read_kept(path: Path, parser: str) -> dict[str, Tree | None]:
    """Read the trees of an earlier run; half a line that a kill left at the end is cut off."""
    check_regular(path)
    if not path.exists():
        _append(path, [f"{PARSER_LINE}\t{parser}"])
        return {}
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    try:
        lines = whole.decode().split("\n")[:-1]
    except UnicodeDecodeError:
        lines = [""]
    if not content or (not whole and f"{PARSER_LINE}\t{parser}".encode().startswith(content)):
        path.unlink()
        return _read_kept(path, parser)
    if lines[:1] != [f"{PARSER_LINE}\t{parser}"]:
        first = lines[0] if lines else ""
        was = first.removeprefix(f"{PARSER_LINE}\t") if first.startswith(PARSER_LINE) else "something else"
        raise InputError(f"{path} holds {was}, expected trees of {parser}; name another file to keep trees in")
    if len(whole) < len(content):
        with writing(path):
            os.truncate(path, len(whole))
    kept = {}
    for number, line in enumerate(lines[1:], 2):
        sentence, _, tree = line.partition("\t")
        kept[sentence] = read_at(tree, f"{path}:{number}") if tree else None
    return kept


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

    return {"link-grammar": link_grammar, "stanza": stanza}
