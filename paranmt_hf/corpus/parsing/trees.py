"""Bracketed constituency trees, their top levels, linearised trees and templates.

A tree is written `(S (NP (DT The) (NN dog)) (VP (VBZ barks)))`. Syntactically controlled networks read linearised
trees, such as `(S(NP(DT)(NN))(VP(VBZ)))`, and templates, such as `(S(NP)(VP))`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

import numpy as np
import pyarrow as pa

from paranmt_hf.errors import InputError
from paranmt_hf.util.wording import brief

MAX_DEPTH = 200
PIECES = re.compile(r"[()]|[^\s()]+")

Reading = Literal["two-levels", "two-below", "with-wrapper"]
READINGS: dict[Reading, str] = {
    "two-levels": "the root of the sentence and the level immediately below",
    "two-below": "the root of the sentence and two levels below",
    "with-wrapper": "the outermost node that the parser gives, such as ROOT, and the level immediately below",
}


@dataclass(frozen=True, slots=True)
class Tree:
    """A node of a tree, with everything below it."""

    label: str  # Category of the node; may be empty
    children: tuple[Tree | str, ...] = ()  # Nodes and words in the order of the sentence

    @property
    def nodes(self) -> list[Tree]:
        """The children that are nodes rather than words."""
        return [child for child in self.children if isinstance(child, Tree)]

    def __str__(self) -> str:
        """Write the tree in brackets on one line; brackets in words become -LRB- and -RRB-, and blanks `_`."""
        children = [str(child) if isinstance(child, Tree) else bracketed_word(child) for child in self.children]
        return f"({' '.join([bracketed_word(self.label), *children])})"


def bracketed_word(word: str) -> str:
    """Escape brackets and blanks in a word or label, for a tree in brackets."""
    return "_".join(word.replace("(", "-LRB-").replace(")", "-RRB-").split())


def read_tree(text: str) -> Tree:
    """Read a tree in brackets; brackets in words are expected as `-LRB-` and `-RRB-`, and stay so.

    Raises:
        InputError: If the text is not exactly one tree, or the tree is more than `MAX_DEPTH` levels deep.
    """
    open_nodes: list[tuple[str, list[Tree | str]]] = []
    root: Tree | None = None
    awaits_label = False
    for found in PIECES.finditer(text):
        piece = found[0]
        too_deep = piece == "(" and len(open_nodes) == MAX_DEPTH
        if root is not None or too_deep or (piece != "(" and not open_nodes):
            raise InputError(
                f"expected one tree in brackets, at most {MAX_DEPTH} levels deep, but there is {piece!r} at character "
                f"{found.start() + 1}"
            )
        if piece == "(":
            open_nodes.append(("", []))
        elif piece == ")":
            label, children = open_nodes.pop()
            node = Tree(label, tuple(children))
            if open_nodes:
                open_nodes[-1][1].append(node)
            else:
                root = node
        elif awaits_label:
            open_nodes[-1] = (piece, [])
        else:
            open_nodes[-1][1].append(piece)
        awaits_label = piece == "("
    if root is None:
        missing = f"{len(open_nodes)} closing brackets are missing" if open_nodes else "there is nothing"
        raise InputError(f"expected a tree, but {missing} at the end")
    return root


def read_at(tree: str, where: str) -> Tree:
    """Read a tree of a file; errors begin with `where`, its place."""
    try:
        return read_tree(tree)
    except InputError as error:
        raise InputError(f"{where}: {error}; correct that line or leave its tree empty") from None


def without_wrapper(tree: Tree) -> Tree:
    """Remove the nodes that parsers put around the tree of a sentence: ROOT, TOP, S1, or a node without a label."""
    while tree.label in ("ROOT", "TOP", "S1", "") and len(tree.nodes) == len(tree.children) == 1:
        (tree,) = tree.nodes
    return tree


def top_levels(tree: Tree, reading: Reading = "two-levels") -> str:
    """Reduce a tree, whose words are not nodes, to its top levels in brackets, such as `(S (NP) (VP) (.))`.

    Table 1 of ParaNMT-50M (Wieting & Gimpel 2018) has the entropy of "the top two levels" of each tree; elsewhere the
    paper describes such a template as the root and the level immediately below, which is the reading `two-levels`. In
    the reading `two-below` the root does not count as a level; in `with-wrapper` the node ROOT that the parser puts
    around each sentence does.
    """
    cut = tree if reading == "with-wrapper" else without_wrapper(tree)
    return _cut(cut, 2 if reading == "two-below" else 1)


def _cut(tree: Tree, below: int) -> str:
    """Write the labels of a tree down to `below` levels below its root."""
    nodes = [_cut(node, below - 1) for node in tree.nodes] if below else []
    return f"({' '.join([tree.label, *nodes])})"


# Tokens of a linearised tree: an opening bracket with its label, or a closing bracket.
_TOKEN = re.compile(r"\([^\s()]*|\)")


def linearised(tree: Tree) -> str:
    """Write the labels of a tree without its words and without a node such as ROOT: `(S(NP(DT)(NN))(VP(VBZ)))`."""
    return _labels(without_wrapper(tree))


def _labels(tree: Tree) -> str:
    """Write the labels of a tree without its words."""
    return f"({bracketed_word(tree.label)}{''.join(map(_labels, tree.nodes))})"


def template_of(linearised: str) -> str:
    """Return the template of a linearised tree, its root and the level immediately below: `(S(NP)(VP))`."""
    kept, depth = [], 0
    for token in _TOKEN.findall(linearised):
        depth += token != ")"
        if depth <= 2:
            kept.append(token)
        depth -= token == ")"
    return "".join(kept)


def templates_of(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the templates [sentence] of linearised trees [sentence], string; null stays null."""
    return pa.array([None if tree is None else template_of(tree) for tree in column.to_pylist()], pa.string())


def are_trees(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Mark the texts [sentence] that are linearised trees: one balanced tree without white space; null is not one."""
    found = np.zeros(len(column), bool)
    for row, text in enumerate(column.to_pylist()):
        tokens = _TOKEN.findall(text or "")
        depths = list(accumulate(-1 if token == ")" else 1 for token in tokens))
        balanced = depths[-1:] == [0] and 0 not in depths[:-1]
        found[row] = balanced and "".join(tokens) == text and "(" not in tokens
    return found


def read_template(text: str) -> str:
    """Read a template such as `(S (NP) (VP))`, and return it in the form of `template_of`.

    Raises:
        InputError: If it is not a root with at least one node below it, each with a label, and no words.
    """
    try:
        tree = read_tree(text)
    except InputError as error:
        raise InputError(f"{brief(text)} is not a template such as (S(NP)(VP)): {error}") from None
    sentence = without_wrapper(tree)
    labels = [sentence.label, *(node.label for node in sentence.nodes)]
    below = [child for node in sentence.nodes for child in node.children]
    if len(text) > 1000 or not all(labels) or len(labels) <= len(sentence.children) or below:
        raise InputError(
            f"{brief(text)} is not a template such as (S(NP)(VP)): a root and one level below it, each node with a "
            "label, no words, at most 1,000 characters"
        )
    return linearised(tree)
