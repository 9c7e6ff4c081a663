"""Linearised trees and templates, which a syntactically controlled network reads."""

from __future__ import annotations

import re
from itertools import accumulate

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.parsing.trees import PIECES, Tree, read_tree, without_wrapper, written
from paranmt_hf.errors import InputError

# The root of a sentence and the level immediately below it.
LEVELS = 2
# Maximum length of a template that a person writes.
MAX_CHARACTERS = 1000
# Tokens of a linearised tree: an opening bracket with its label, or a closing bracket.
CLOSING = ")"
_TOKEN = re.compile(r"\([^\s()]*|\)")


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
    return pa.array([None if tree is None else template_of(tree) for tree in column.to_pylist()], pa.string())


def are_trees(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Mark the texts [sentence] that are linearised trees: one balanced tree without white space; null is not."""
    return np.fromiter(map(_is_tree, column.to_pylist()), bool, len(column))


def _is_tree(text: str | None) -> bool:
    tokens = _TOKEN.findall(text or "")
    depths = list(accumulate(-1 if token == CLOSING else 1 for token in tokens))
    return "".join(tokens) == text and "(" not in tokens and depths[-1:] == [0] and 0 not in depths[:-1]


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
