"""Parsers that give constituency trees: by name, from a file, or your own; how sentences are parsed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import Any, Protocol

from paranmt_hf.corpus.parsing.link_grammar import LinkGrammar
from paranmt_hf.corpus.parsing.stanza_parser import StanzaParser
from paranmt_hf.corpus.parsing.tree_file import TreeFile, append_kept, lock_kept, read_kept
from paranmt_hf.corpus.parsing.trees import Tree, linearised
from paranmt_hf.errors import InputError
from paranmt_hf.hub.client import perhaps_path
from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.util.files import checksum
from paranmt_hf.util.progress import Progress

NAMED_PARSERS = ("link-grammar", "stanza")


class Parser(Protocol):
    """Gives the constituency trees of sentences.

    `name` has the version and everything else that determines the trees; `at_once` is the number of sentences of a
    call of `trees`, None for all of them.
    """

    name: str
    at_once: int | None

    def trees(self, sentences: Sequence[str]) -> Iterable[Tree | None]:
        """Parse sentences, each on one line, white space normalised; None for a sentence without a tree."""


def open_parser(
    parser: str | Path | Parser,
    *,
    text: Path | None = None,
    index: Path | None = None,
    processes: int = 1,
    languages: Collection[str] = (),
) -> Parser:
    """Open a parser: `link-grammar` and `stanza`, which parse English, a file of trees, or a parser object.

    A file of trees may follow the lines of `text` and keep its `index`, see `TreeFile`; `languages` are ISO 639-1
    codes of the sentences.
    """
    if not isinstance(parser, str | Path):
        return parser
    if str(parser) not in NAMED_PARSERS:
        path = Path(parser).expanduser()
        if not path.exists():
            raise InputError(
                f"parser {parser}: there is no such file; expected {', '.join(NAMED_PARSERS)} or a file of trees"
                f"{perhaps_path(str(parser), *NAMED_PARSERS)}",
                option="parser",
            )
        return TreeFile(path, text, index=index)
    if others := sorted(set(languages) - {ENGLISH}):
        raise InputError(
            f"{parser} parses English, and the sentences are in {', '.join(others)}; name a file of trees, or "
            "pass a parser in Python",
            option="parser",
        )
    return StanzaParser() if str(parser) == "stanza" else LinkGrammar(processes=processes)


def linearised_trees(parser: Parser, sentences: list[str]) -> list[str | None]:
    """Return the linearised tree of each sentence; None for a sentence without one."""
    found: list[str | None] = []
    for block in _blocks(parser, sentences):
        found += [None if tree is None else linearised(tree) for _, tree in block]
    return found


def _blocks(parser: Parser, sentences: list[str]) -> Iterator[list[tuple[str, Tree | None]]]:
    """Parse as many sentences at once as the parser takes: each with its tree."""
    step = parser.at_once or max(1, len(sentences))
    for start in range(0, len(sentences), step):
        block = sentences[start : start + step]
        yield list(zip(block, parser.trees(block), strict=True))


@dataclass(frozen=True)
class TreeSource:
    """A handle of a parser, which can be pickled: worker processes open the parser by it."""

    parser: str | Parser  # Name of a parser, a file of trees with the folder of its index, or another parser
    name: str  # Name of the parser with its version
    checksum: str | None = None  # Checksum of the file of trees; None for other parsers

    @classmethod
    def of(cls, parser: str | Path | Parser, index: Path, *, languages: Collection[str] = ()) -> TreeSource:
        """Describe a parser (see `open_parser`); `index` is the folder for that of a file of trees."""
        opened = open_parser(parser, index=index, languages=languages)
        if isinstance(opened, TreeFile):
            return cls(opened, opened.name, checksum(opened.path))
        return cls(str(parser) if isinstance(parser, str | Path) else parser, opened.name)

    def write_index(self) -> None:
        """Write the index of a file of trees, unless it is there."""
        if isinstance(self.parser, TreeFile):
            self.parser.write_index()

    @property
    def identity(self) -> dict[str, Any]:
        return {"name": self.name, **({"sha256": self.checksum} if self.checksum else {})}

    def load(self) -> Parser:
        parser = open_parser(self.parser)
        if parser.name != self.name:
            raise InputError(f"this worker has {parser.name}, expected {self.name}; install the same version")
        return parser


def parse_sentences(
    parser: Parser,
    sentences: Sequence[str],
    cut: Callable[[Tree], str] = str,
    *,
    keep: Path | None = None,
    label: str = "parse",
) -> list[str | None]:
    """Parse sentences in blocks, each distinct one once, and return what was cut from the tree of each [sentence].

    Only what `cut` returns of a tree, such as its top levels, stays in memory; None is a sentence without a tree. The
    file `keep`, a line `SENTENCE<tab>TREE` for each sentence as `TreeFile` reads them, is written by one process at a
    time; sentences in it are not parsed again.
    """
    distinct = list(dict.fromkeys(sentences))
    with nullcontext() if keep is None else lock_kept(keep):
        found = {} if keep is None else read_kept(keep, parser.name, set(distinct), cut)
        missing = [sentence for sentence in distinct if sentence not in found]
        # A file of trees is read once, in its own order.
        blocks = parser.stream(missing) if isinstance(parser, TreeFile) else _blocks(parser, missing)
        with Progress(label, total=len(distinct), done=len(found)) as progress:
            for trees in blocks:
                if keep is not None:
                    append_kept(keep, trees)
                for sentence, tree in trees:
                    found[sentence] = None if tree is None else intern(cut(tree))
                progress.advance_to(len(found))
    if isinstance(parser, TreeFile) and distinct and not any(found.values()):
        raise InputError(
            f"{parser.path} has no tree of the {len(distinct):,} sentences, such as {distinct[0]!r}; parse the same "
            "sentences (`paranmt stats --write-samples` writes a sample)",
            path=parser.path,
        )
    return [found[sentence] for sentence in sentences]
