"""Linearised trees and templates: what a syntactically controlled network reads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.parsing.parsers import Parser, named_parsers
from paranmt_hf.corpus.parsing.tree_file import TreeFile, TreeIndex
from paranmt_hf.corpus.parsing.trees import PIECES, Tree, read_tree, without_wrapper, written
from paranmt_hf.errors import InputError

# A node of a template is the root of a sentence or immediately below it.
LEVELS = 2
# Of a template that a person writes; those of sentences rarely have a hundred.
MAX_CHARACTERS = 1000
# A node begins with its bracket and label in one token, and ends with a token of its own.
CLOSING = ")"
_TOKEN = re.compile(r"\([^\s()]*|\)")
# Bytes of trees that are cut at once.
BLOCK_BYTES = 1 << 24
_OPENS, _CLOSES = b"()"


def linearised(tree: Tree) -> str:
    """Write the labels of a tree: `(S(NP(DT)(NN))(VP(VBZ)))`.

    Args:
        tree: The tree of a sentence. Its words are left out, and so is a node ROOT, TOP, S1 or without a label that is
            around it.
    """
    return _labels(without_wrapper(tree))


def _labels(tree: Tree) -> str:
    return f"({written(tree.label)}{''.join(map(_labels, tree.nodes))})"


def template_of(linearised: str) -> str:
    """Cut a linearised tree to its root and the level immediately below.

    Args:
        linearised: A tree as `linearised` writes it.

    Returns:
        What remains, as compact: `(S(NP)(VP))`.
    """
    kept, depth = [], 0
    for token in _TOKEN.findall(linearised):
        depth += token != CLOSING
        if depth <= LEVELS:
            kept.append(token)
        depth -= token == CLOSING
    return "".join(kept)


def templates_of(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Cut a column of linearised trees; what `template_of` does to one.

    Args:
        column: Trees [sentence]; null where a sentence has none.

    Returns:
        Templates [sentence], strings; null where there is no tree.
    """
    text = pc.cast(column, pa.large_string())
    chunks = text.chunks if isinstance(text, pa.ChunkedArray) else [text]
    parts = [_cut(block) for chunk in chunks for block in _blocks(chunk)]
    return pa.concat_arrays(parts) if parts else pa.array([], pa.string())


def are_trees(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Tell which of a column are linearised trees: one balanced tree without white space; null is none.

    Args:
        column: Texts [sentence].

    Returns:
        Booleans [sentence].
    """
    text = pc.cast(column, pa.large_string())
    chunks = text.chunks if isinstance(text, pa.ChunkedArray) else [text]
    found = [_balanced(block) for chunk in chunks for block in _blocks(chunk)]
    compact = pc.fill_null(pc.invert(pc.match_substring_regex(column, r"\s|\(\)|^[^(]|[^)]$|\)[^()]")), False)
    return np.concatenate([*found, np.empty(0, bool)]) & compact.to_numpy(zero_copy_only=False)


def _balanced(column: pa.LargeStringArray) -> np.ndarray:
    """Tell where brackets close for the first time at the end of a text, and there [sentence]."""
    filled = column.fill_null("") if column.null_count else column
    offsets = _offsets(filled) - _offsets(filled)[0]
    data, first = filled.buffers()[2], int(_offsets(filled)[0])
    text = np.frombuffer(data, np.uint8, int(offsets[-1]), first) if offsets[-1] else np.empty(0, np.uint8)
    depth = np.cumsum((text == _OPENS).astype(np.int8) - (text == _CLOSES), dtype=np.int64)
    before = np.concatenate([[0], depth])[offsets[:-1]]
    lengths = np.diff(offsets)
    outside = depth - np.repeat(before, lengths) <= 0
    # How often a text is outside of all brackets; it begins with one, so a tree is so at its last character alone.
    times = np.concatenate([[0], np.cumsum(outside)])[offsets]
    ends = np.concatenate([[0], depth])[offsets[1:]] == before
    return (lengths > 0) & ends & (np.diff(times) == 1)


def _offsets(column: pa.LargeStringArray) -> np.ndarray:
    """Where each text begins and the last one ends [text + 1], in bytes of the buffer."""
    return np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]


def _blocks(column: pa.LargeStringArray) -> list[pa.LargeStringArray]:
    if not len(column):
        return []
    offsets = _offsets(column)
    ends = np.arange(offsets[0], offsets[-1], BLOCK_BYTES)[1:]
    cuts = np.unique([0, *np.searchsorted(offsets, ends), len(column)])
    return [column.slice(start, stop - start) for start, stop in zip(cuts[:-1], cuts[1:], strict=True)]


def _cut(column: pa.LargeStringArray) -> pa.Array:
    # Nulls may have bytes, which would be counted.
    filled = column.fill_null("") if column.null_count else column
    offsets = _offsets(filled)
    size = int(offsets[-1] - offsets[0])
    data = filled.buffers()[2]
    text = np.frombuffer(data, np.uint8, size, int(offsets[0])) if size else np.empty(0, np.uint8)
    closes = text == _CLOSES
    # Every tree is balanced, so depths of one are not changed by those before it.
    depth = np.cumsum((text == _OPENS).astype(np.int8) - closes, dtype=np.int32)
    # A closing bracket counts to the node that it ends.
    kept = depth + closes <= LEVELS
    before = np.concatenate([[0], np.cumsum(kept, dtype=np.int32)])
    ends = before[offsets - offsets[0]].astype(np.int32)
    cut = pa.StringArray.from_buffers(len(filled), pa.py_buffer(ends), pa.py_buffer(text[kept]))
    return pc.if_else(column.is_valid(), cut, None) if column.null_count else cut


def read_template(text: str) -> str:
    """Read a template that a person wrote, and write it as `template_of` does.

    Args:
        text: `(S (NP) (VP))`; blanks do not count, and a node ROOT around it is left out.
    """
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"expected a template of at most {MAX_CHARACTERS:,} characters, got {len(text):,}")
    try:
        tree = read_tree(text)
    except InputError as error:
        raise InputError(f"{_brief(text)} is no template such as (S(NP)(VP)): {error}") from None
    _check(text, LEVELS + _wrappers(tree))
    return linearised(tree)


def _wrappers(tree: Tree) -> int:
    inner = without_wrapper(tree)
    count = 0
    while tree is not inner:
        (tree,) = tree.nodes
        count += 1
    return count


def _check(text: str, levels: int) -> None:
    """Look for words, nodes without a label and nodes that are too deep."""
    depth, opened = 0, -1
    for found in PIECES.finditer(text):
        piece, at = found[0], found.start() + 1
        if opened >= 0 and piece in "()" and depth > levels - LEVELS:
            raise InputError(f"{_brief(text)} is no template: the node at character {opened} has no label")
        if piece == "(":
            depth, opened = depth + 1, at
            if depth > levels:
                raise InputError(
                    f"{_brief(text)} is no template, which has a root and one level below it: the node at character "
                    f"{at} is deeper"
                )
            continue
        if piece == CLOSING:
            depth -= 1
        elif opened < 0:
            raise InputError(
                f"{_brief(text)} is no template, which has no words: {piece!r} at character {at}; a node is written "
                f"({piece})"
            )
        opened = -1


def _brief(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}...")


def tree_tokens(linearised: str) -> list[str]:
    """Cut a linearised tree into the tokens that models read and write: `["(S", "(NP", ")", ")"]`."""
    tokens = _TOKEN.findall(linearised)
    if sum(map(len, tokens)) != len(linearised):
        raise InputError(f"expected a linearised tree such as (S(NP)(VP)), got {_brief(linearised)}")
    return tokens


def tree_token_lists(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Cut a column of linearised trees; what `tree_tokens` does to one, unchecked.

    Args:
        column: Trees [sentence]; null where a sentence has none.

    Returns:
        Lists of tokens [sentence]; null where there is no tree.
    """
    spaced = pc.replace_substring_regex(column, "[()]", r" \0")
    return pc.utf8_split_whitespace(pc.utf8_ltrim_whitespace(spaced))


def joined(tokens: Sequence[str]) -> str:
    """Write the tree that tokens are, the inverse of `tree_tokens`.

    What a model generates may stop too early or too late: brackets that are missing at the end are added, and those
    that are too many are left out.
    """
    depth = 0
    kept: list[str] = []
    for index, token in enumerate(tokens):
        if _TOKEN.fullmatch(token) is None:
            raise InputError(f"{token!r} at index {index} is no token of a tree: expected '(LABEL' or ')'")
        if depth == 0 and (token == CLOSING) != bool(kept):
            reason = "one tree, but a second one begins" if kept else "a tree that begins with a node, got ')'"
            raise InputError(f"expected {reason} at index {index}")
        if depth == 0 and kept:
            continue
        depth += -1 if token == CLOSING else 1
        kept.append(token)
    if not kept:
        raise InputError("expected the tokens of a tree, got none")
    return "".join(kept) + CLOSING * depth


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
        """Start the parser."""
        if isinstance(self.parser, Path):
            return SentenceTrees(TreeIndex(self.parser, self.name))
        return SentenceTrees(named_parsers(seconds=SECONDS, processes=1)[self.parser]())


def open_parser(parser: str | Path) -> Parser:
    """Find a parser by its name, or a file of trees."""
    named = named_parsers(seconds=SECONDS, processes=1)
    if str(parser) in named:
        return named[str(parser)]()
    path = Path(parser).expanduser()
    if not path.exists():
        raise InputError(f"parser {parser}: there is no such file, nor a parser of that name: {', '.join(named)}")
    return TreeFile(path)
