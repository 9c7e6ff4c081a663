"""Bracketed constituency trees, `(S (NP (DT The) (NN dog)) (VP (VBZ barks)))`, and the top levels of one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from paranmt_hf.errors import InputError

# What parsers of the Penn Treebank's kind put around the tree of a sentence.
WRAPPERS = frozenset({"ROOT", "TOP", "S1", ""})
# No sentence is nested as deeply.
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
    """A node of a tree with what is below it.

    Attributes:
        label: Its category; empty where the brackets have none.
        children: Nodes and words, in the order of the sentence.
    """

    label: str
    children: tuple[Tree | str, ...] = ()

    @property
    def nodes(self) -> list[Tree]:
        """The children that are nodes, words left out."""
        return [child for child in self.children if isinstance(child, Tree)]

    def __str__(self) -> str:
        """Write the tree in brackets on one line; brackets in words become -LRB- and -RRB-, blanks in them `_`."""
        children = [str(child) if isinstance(child, Tree) else written(child) for child in self.children]
        return f"({' '.join([written(self.label), *children])})"


def written(word: str) -> str:
    """Write a word or label so that it neither breaks the brackets nor has blanks in it."""
    return "_".join(word.replace("(", "-LRB-").replace(")", "-RRB-").split())


def read_tree(text: str) -> Tree:
    """Read a bracketed tree.

    Args:
        text: One tree. Words that are brackets must be written otherwise, as the Penn Treebank does: `-LRB-`.
    """
    open_nodes: list[tuple[str, list[Tree | str]]] = []
    root: Tree | None = None
    awaits_label = False
    for found in PIECES.finditer(text):
        piece, at = found[0], f"character {found.start() + 1}"
        if root is not None:
            raise InputError(f"expected one tree, but after its last bracket there is more at {at}")
        if piece == "(":
            if len(open_nodes) == MAX_DEPTH:
                raise InputError(f"expected a tree, but it is nested more than {MAX_DEPTH} levels deep at {at}")
            open_nodes.append(("", []))
        elif not open_nodes:
            raise InputError(f"expected a tree that begins with an opening bracket, got {piece!r} at {at}")
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


def without_wrapper(tree: Tree) -> Tree:
    """Take away a node ROOT, TOP, S1 or without a label that is around the tree of a sentence and nothing else."""
    while tree.label in WRAPPERS and len(tree.nodes) == len(tree.children) == 1:
        (tree,) = tree.nodes
    return tree


def top_levels(tree: Tree, reading: Reading = "two-levels") -> str:
    """Cut a tree to its top levels.

    ParaNMT-50M (Wieting & Gimpel 2018) computes the entropy of parses, table 1, of "the top two levels" of each tree,
    and elsewhere describes such a template as the level immediately below the root along with the root: that is
    `two-levels`. Since "two levels" may also be meant without the root, there is `two-below`; and because its parser
    puts a node ROOT around each sentence, `with-wrapper`.

    Args:
        tree: The tree of a sentence. Words are no nodes; a part of speech over a word is one.
        reading: Which nodes count, see `READINGS`. All but `with-wrapper` take a node ROOT, TOP, S1 or without a
            label that has one child away first.

    Returns:
        What remains, bracketed: `(S (NP) (VP) (.))`.
    """
    cut = tree if reading == "with-wrapper" else without_wrapper(tree)
    return _cut(cut, 2 if reading == "two-below" else 1)


def _cut(tree: Tree, below: int) -> str:
    nodes = [_cut(node, below - 1) for node in tree.nodes] if below else []
    return f"({' '.join([tree.label, *nodes])})"
