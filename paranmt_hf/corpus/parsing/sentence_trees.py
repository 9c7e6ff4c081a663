"""The linearised trees of sentences from any parser: settings that travel to workers, and what they load."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paranmt_hf.corpus.parsing.parser import Parser, named_parsers
from paranmt_hf.corpus.parsing.templates import linearised, read_template
from paranmt_hf.corpus.parsing.tree_file import TreeFile
from paranmt_hf.corpus.parsing.tree_index import TreeIndex
from paranmt_hf.errors import InputError

# Seconds that a sentence may take, of parsers that can take long.
SECONDS = 5


class SentenceTrees:
    """The linearised trees of sentences, by a parser.

    Args:
        parser: The parser.
    """

    def __init__(self, parser: Parser) -> None:
        self._parser = parser

    def trees(self, sentences: list[str]) -> list[str | None]:
        """Give the linearised trees of sentences; None for a sentence that has none."""
        step = self._parser.at_once or max(1, len(sentences))
        found: list[str | None] = []
        for start in range(0, len(sentences), step):
            block = self._parser.trees(sentences[start : start + step])
            found += [None if tree is None else linearised(tree) for tree in block]
        return found

    def template(self, text: str) -> str:
        """Read a template that a person wrote."""
        return read_template(text)


@dataclass(frozen=True)
class TreeSource:
    """Where workers get trees from.

    Attributes:
        parser: Name of a parser, or the folder of an index of trees.
        name: What it calls itself, with its version.
        checksum: That of the file of trees, where they come from one.
    """

    parser: str | Path
    name: str
    checksum: str | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """What determines the trees, as JSON values."""
        return {"name": self.name, **({"sha256": self.checksum} if self.checksum else {})}

    def load(self) -> SentenceTrees:
        """Start the parser.

        Raises:
            InputError: It is not installed.
        """
        if isinstance(self.parser, Path):
            return SentenceTrees(TreeIndex(self.parser, self.name))
        return SentenceTrees(named_parsers(seconds=SECONDS, processes=1)[self.parser]())


def open_parser(parser: str | Path) -> Parser:
    """Find a parser by its name, or a file of trees.

    Raises:
        InputError: It is not installed, or there is no such file.
    """
    named = named_parsers(seconds=SECONDS, processes=1)
    if str(parser) in named:
        return named[str(parser)]()
    path = Path(parser).expanduser()
    if not path.exists():
        raise InputError(f"parser {parser}: there is no such file, nor a parser of that name: {', '.join(named)}")
    return TreeFile(path)
