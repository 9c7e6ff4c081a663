"""Linearised trees and templates, which a syntactically controlled network reads."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.parsing.trees import PIECES, Tree, read_tree, without_wrapper, written
from paranmt_hf.errors import InputError
from paranmt_hf.text.tokens import text_bytes

# The root of a sentence and the level immediately below it.
LEVELS = 2
# Maximum length of a template that a person writes.
MAX_CHARACTERS = 1000
# Tokens of a linearised tree: an opening bracket with its label, or a closing bracket.
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
    """Reduce a linearised tree to its root and the level immediately below: `(S(NP)(VP))`."""
    kept, depth = [], 0
    for token in _TOKEN.findall(linearised):
        depth += token != CLOSING
        if depth <= LEVELS:
            kept.append(token)
        depth -= token == CLOSING
    return "".join(kept)


def templates_of(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Reduce linearised trees [sentence] to templates [sentence], as `template_of`; nulls stay null."""
    parts = list(map(_cut, _blocks(column)))
    return pa.concat_arrays(parts) if parts else pa.array([], pa.string())


def are_trees(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Mark the texts [sentence] that are linearised trees: one balanced tree without white space; null is not."""
    found = map(_balanced, _blocks(column))
    compact = pc.fill_null(pc.invert(pc.match_substring_regex(column, r"\s|\(\)|^[^(]|[^)]$|\)[^()]")), False)
    return np.concatenate([*found, np.empty(0, bool)]) & compact.to_numpy(zero_copy_only=False)


def _balanced(column: pa.LargeStringArray) -> np.ndarray:
    """Mark the texts [sentence] whose first bracket closes at the very end."""
    text, offsets = text_bytes(column)
    depth = np.cumsum((text == _OPENS).astype(np.int8) - (text == _CLOSES), dtype=np.int64)
    before = np.concatenate([[0], depth])[offsets[:-1]]
    lengths = np.diff(offsets)
    outside = depth - np.repeat(before, lengths) <= 0
    # A tree is outside of all brackets at its last character alone.
    times = np.concatenate([[0], np.cumsum(outside)])[offsets]
    ends = np.concatenate([[0], depth])[offsets[1:]] == before
    return (lengths > 0) & ends & (np.diff(times) == 1)


def _blocks(column: pa.Array | pa.ChunkedArray) -> Iterator[pa.LargeStringArray]:
    """Split a column of text into pieces of about `BLOCK_BYTES`."""
    text = pc.cast(column, pa.large_string())
    for chunk in filter(len, text.chunks if isinstance(text, pa.ChunkedArray) else [text]):
        _, offsets = text_bytes(chunk)
        ends = np.arange(0, offsets[-1], BLOCK_BYTES)[1:]
        cuts = np.unique([0, *np.searchsorted(offsets, ends), len(chunk)])
        yield from (chunk.slice(start, stop - start) for start, stop in zip(cuts[:-1], cuts[1:], strict=True))


def _cut(column: pa.LargeStringArray) -> pa.Array:
    text, offsets = text_bytes(column)
    closes = text == _CLOSES
    # Trees are balanced, so each begins at depth 0.
    depth = np.cumsum((text == _OPENS).astype(np.int8) - closes, dtype=np.int32)
    # A closing bracket belongs to the node that it ends.
    kept = depth + closes <= LEVELS
    before = np.concatenate([[0], np.cumsum(kept, dtype=np.int32)])
    ends = before[offsets].astype(np.int32)
    cut = pa.StringArray.from_buffers(len(column), pa.py_buffer(ends), pa.py_buffer(text[kept]))
    return pc.if_else(column.is_valid(), cut, None) if column.null_count else cut


def read_template(text: str) -> str:
    """Normalise a template such as `(S (NP) (VP))` to the form of `template_of`."""
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"expected a template of at most {MAX_CHARACTERS:,} characters, got {len(text):,}")
    try:
        tree = read_tree(text)
    except InputError as error:
        raise InputError(f"{_brief(text)} is not a template such as (S(NP)(VP)): {error}") from None
    inner, levels = without_wrapper(tree), LEVELS
    while tree is not inner:
        (tree,) = tree.nodes
        levels += 1
    _check(text, levels)
    return linearised(inner)


def _check(text: str, levels: int) -> None:
    """Reject words, nodes without a label, and nodes below the given number of levels."""
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
