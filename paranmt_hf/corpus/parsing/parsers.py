"""Parsers that give constituency trees: named ones, files of trees, or your own."""

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
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.util.files import checksum
from paranmt_hf.util.progress import Progress

NAMED_PARSERS = ("link-grammar", "stanza")


class Parser(Protocol):
    """Anything that gives constituency trees of sentences.

    Attributes:
        name: Name of the parser, with its version and everything else that determines the trees.
        at_once: Largest number of sentences in one call of `trees`; None for any number.
    """

    name: str
    at_once: int | None

    def trees(self, sentences: Sequence[str]) -> Iterable[Tree | None]:
        """Parse sentences, each on one line with normalised white space; None for a sentence without a tree."""


def open_parser(
    parser: str | Path | Parser,
    *,
    text: Path | None = None,
    index: Path | None = None,
    processes: int = 1,
    languages: Collection[str] = (),
) -> Parser:
    """Open a parser.

    Args:
        parser: `link-grammar` or `stanza`, which parse English; a file of trees; or a parser object, which is
            returned.
        text: For a file of trees alone: the file with the sentences, line by line; see `TreeFile`.
        index: Folder for the index of a file of trees; see `TreeFile`.
        processes: Number of processes of link-grammar.
        languages: Languages of the sentences (ISO 639-1).

    Raises:
        InputError: If there is no such parser or file, or it does not parse the languages.
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
    """Return the linearised tree of each sentence; None for a sentence without a tree."""
    found: list[str | None] = []
    for block in _blocks(parser, sentences):
        found += [None if tree is None else linearised(tree) for _, tree in block]
    return found


def _blocks(parser: Parser, sentences: list[str]) -> Iterator[list[tuple[str, Tree | None]]]:
    """Parse sentences in blocks as large as the parser takes, and yield each block: sentences with their trees."""
    step = parser.at_once or max(1, len(sentences))
    for start in range(0, len(sentences), step):
        block = sentences[start : start + step]
        yield list(zip(block, parser.trees(block), strict=True))


@dataclass(frozen=True)
class TreeSource:
    """A parser in a form that can be sent to worker processes, which open it themselves."""

    parser: str | Parser  # Name of a parser, or a parser object, such as a file of trees
    name: str  # Name of the parser, with its version
    checksum: str | None = None  # SHA-256 of the file of trees; None for other parsers

    @classmethod
    def of(cls, parser: str | Path | Parser, index: Path, *, languages: Collection[str] = ()) -> TreeSource:
        """Describe a parser.

        Args:
            parser: The parser; see `open_parser`.
            index: Folder for the index of a file of trees.
            languages: Languages of the sentences (ISO 639-1).
        """
        opened = open_parser(parser, index=index, languages=languages)
        if isinstance(opened, TreeFile):
            return cls(opened, opened.name, checksum(opened.path))
        return cls(str(parser) if isinstance(parser, str | Path) else parser, opened.name)

    def write_index(self) -> None:
        """Write the index of a file of trees, unless it is there; other parsers have none."""
        if isinstance(self.parser, TreeFile):
            self.parser.write_index()

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the trees, as JSON values."""
        return {"name": self.name, **({"sha256": self.checksum} if self.checksum else {})}

    def load(self) -> Parser:
        """Open the parser.

        Raises:
            InputError: If this machine has another version of it.
        """
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
    """Parse sentences, each distinct one once, and return a text made from the tree of each [sentence].

    Only these texts are kept in memory, not the trees.

    Args:
        parser: The parser.
        sentences: The sentences.
        cut: Makes the text from a tree, such as its top levels; by default the whole tree in brackets.
        keep: File in which trees are kept, with lines `SENTENCE<tab>TREE` as `TreeFile` reads them. Sentences in it
            are not parsed again. Only one process at a time can write it.
        label: What progress messages call the work.

    Returns:
        The texts; None for a sentence without a tree.

    Raises:
        InputError: If a file of trees has none of the sentences, or another process writes `keep`.
    """
    distinct = list(dict.fromkeys(sentences))
    with nullcontext() if keep is None else lock_kept(keep):
        found = {} if keep is None else read_kept(keep, parser.name, set(distinct), cut)
        missing = [sentence for sentence in distinct if sentence not in found]
        # A file of trees is read once, in the order of its lines.
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
