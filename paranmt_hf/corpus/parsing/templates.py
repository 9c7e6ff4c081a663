"""Linearised trees and templates: what a syntactically controlled network reads."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.parsing.trees import PIECES, Tree, read_tree, without_wrapper, written
from paranmt_hf.errors import InputError

# The root of a sentence and the level immediately below it.
LEVELS = 2
# Maximum length of a template that a person writes.
MAX_CHARACTERS = 1000
# A node begins with its bracket and label in one token, and ends with a token of its own.
CLOSING = ")"
_TOKEN = re.compile(r"\([^\s()]*|\)")
# Bytes of trees that are cut at once.
BLOCK_BYTES = 1 << 24
_OPENS, _CLOSES = b"()"


def linearised(tree: Tree) -> str:
    """Write the labels of a tree without its words and its node ROOT: `(S(NP(DT)(NN))(VP(VBZ)))`."""
    return _labels(without_wrapper(tree))


def _labels(tree: Tree) -> str:
    return f"({written(tree.label)}{''.join(map(_labels, tree.nodes))})"


def template_of(linearised: str) -> str:
    """Cut a linearised tree to its root and the level immediately below: `(S(NP)(VP))`."""
    kept, depth = [], 0
    for token in _TOKEN.findall(linearised):
        depth += token != CLOSING
        if depth <= LEVELS:
            kept.append(token)
        depth -= token == CLOSING
    return "".join(kept)


def templates_of(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Cut linearised trees [sentence] to templates [sentence], as `template_of`; nulls stay null."""
    text = pc.cast(column, pa.large_string())
    chunks = text.chunks if isinstance(text, pa.ChunkedArray) else [text]
    parts = [_cut(block) for chunk in chunks for block in _blocks(chunk)]
    return pa.concat_arrays(parts) if parts else pa.array([], pa.string())


def are_trees(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Mark the texts [sentence] that are linearised trees: one balanced tree without white space; null is not."""
    text = pc.cast(column, pa.large_string())
    chunks = text.chunks if isinstance(text, pa.ChunkedArray) else [text]
    found = [_balanced(block) for chunk in chunks for block in _blocks(chunk)]
    compact = pc.fill_null(pc.invert(pc.match_substring_regex(column, r"\s|\(\)|^[^(]|[^)]$|\)[^()]")), False)
    return np.concatenate([*found, np.empty(0, bool)]) & compact.to_numpy(zero_copy_only=False)


def _balanced(column: pa.LargeStringArray) -> np.ndarray:
    """Mark the texts [sentence] whose brackets close for the first time at the end."""
    filled = column.fill_null("") if column.null_count else column
    offsets = _offsets(filled) - _offsets(filled)[0]
    data, first = filled.buffers()[2], int(_offsets(filled)[0])
    text = np.frombuffer(data, np.uint8, int(offsets[-1]), first) if offsets[-1] else np.empty(0, np.uint8)
    depth = np.cumsum((text == _OPENS).astype(np.int8) - (text == _CLOSES), dtype=np.int64)
    before = np.concatenate([[0], depth])[offsets[:-1]]
    lengths = np.diff(offsets)
    outside = depth - np.repeat(before, lengths) <= 0
    # A tree is outside of all brackets at its last character alone.
    times = np.concatenate([[0], np.cumsum(outside)])[offsets]
    ends = np.concatenate([[0], depth])[offsets[1:]] == before
    return (lengths > 0) & ends & (np.diff(times) == 1)


def _offsets(column: pa.LargeStringArray) -> np.ndarray:
    """Bounds of the texts [text + 1] in bytes of the buffer."""
    return np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]


def _blocks(column: pa.LargeStringArray) -> list[pa.LargeStringArray]:
    if not len(column):
        return []
    offsets = _offsets(column)
    ends = np.arange(offsets[0], offsets[-1], BLOCK_BYTES)[1:]
    cuts = np.unique([0, *np.searchsorted(offsets, ends), len(column)])
    return [column.slice(start, stop - start) for start, stop in zip(cuts[:-1], cuts[1:], strict=True)]


def _cut(column: pa.LargeStringArray) -> pa.Array:
    # Nulls may have bytes.
    filled = column.fill_null("") if column.null_count else column
    offsets = _offsets(filled)
    size = int(offsets[-1] - offsets[0])
    data = filled.buffers()[2]
    text = np.frombuffer(data, np.uint8, size, int(offsets[0])) if size else np.empty(0, np.uint8)
    closes = text == _CLOSES
    # Trees are balanced, so each begins at depth 0.
    depth = np.cumsum((text == _OPENS).astype(np.int8) - closes, dtype=np.int32)
    # A closing bracket belongs to the node that it ends.
    kept = depth + closes <= LEVELS
    before = np.concatenate([[0], np.cumsum(kept, dtype=np.int32)])
    ends = before[offsets - offsets[0]].astype(np.int32)
    cut = pa.StringArray.from_buffers(len(filled), pa.py_buffer(ends), pa.py_buffer(text[kept]))
    return pc.if_else(column.is_valid(), cut, None) if column.null_count else cut


def read_template(text: str) -> str:
    """Read a template that a person wrote, such as `(S (NP) (VP))`, and write it as `template_of` does."""
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"expected a template of at most {MAX_CHARACTERS:,} characters, got {len(text):,}")
    try:
        tree = read_tree(text)
    except InputError as error:
        raise InputError(f"{_brief(text)} is not a template such as (S(NP)(VP)): {error}") from None
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
            raise InputError(f"{_brief(text)} is not a template: the node at character {opened} has no label")
        if piece == "(":
            depth, opened = depth + 1, at
            if depth > levels:
                raise InputError(
                    f"{_brief(text)} is not a template, which has a root and one level below it: the node at "
                    f"character {at} is deeper"
                )
            continue
        if piece == CLOSING:
            depth -= 1
        elif opened < 0:
            raise InputError(
                f"{_brief(text)} is not a template, which has no words: {piece!r} at character {at}; write nodes as "
                f"({piece})"
            )
        opened = -1


def _brief(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}...")


def tree_tokens(linearised: str) -> list[str]:
    """Split a linearised tree into the tokens of models: `["(S", "(NP", ")", ")"]`."""
    tokens = _TOKEN.findall(linearised)
    if sum(map(len, tokens)) != len(linearised):
        raise InputError(f"expected a linearised tree such as (S(NP)(VP)), got {_brief(linearised)}")
    return tokens


def tree_token_lists(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Split linearised trees [sentence] into lists of tokens, as `tree_tokens`, unchecked; nulls stay null."""
    spaced = pc.replace_substring_regex(column, "[()]", r" \0")
    return pc.utf8_split_whitespace(pc.utf8_ltrim_whitespace(spaced))


def joined(tokens: Sequence[str]) -> str:
    """Join tokens to a linearised tree, the inverse of `tree_tokens`.

    Missing closing brackets at the end, as of generated trees, are added, and superfluous ones are left out.
    """
    depth = 0
    kept: list[str] = []
    for index, token in enumerate(tokens):
        if _TOKEN.fullmatch(token) is None:
            raise InputError(f"{token!r} at index {index} is not a token of a tree: expected '(LABEL' or ')'")
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
