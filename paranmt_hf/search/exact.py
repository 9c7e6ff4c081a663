"""Every vector compared with every other one, in blocks of matrix products."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from paranmt_hf.search.neighbours import LOWEST, Neighbours
from paranmt_hf.search.vector_file import Vectors, spans

# Vectors of a block, for two blocks a side of a square: 8192 x 8192 similarities are 256 MB.
BLOCK = 8192


def nearest(queries: torch.Tensor, vectors: Vectors, top: int) -> Neighbours:
    """Find the vectors that are most similar to queries [query, dimension] of length 1."""
    found = Neighbours(len(queries), top)
    rows = torch.arange(len(queries))
    for start, stop in spans(len(vectors), BLOCK):
        block = torch.from_numpy(vectors.read(start, stop))
        found.offer(rows, torch.arange(start, stop, dtype=torch.int32), queries @ block.T)
    return found


def within(vectors: Vectors, found: Neighbours, *, done: int = 0) -> Iterator[float]:
    """Find the neighbours of each vector among the others.

    The similarity of two vectors is computed once and offered to both.

    Args:
        vectors: The vectors.
        found: Gets the neighbours [vector, rank].
        done: Steps that are done already.

    Yields:
        After each step, which part of the work is done.
    """
    blocks = list(spans(len(vectors), BLOCK))
    steps = [(row, column) for row in range(len(blocks)) for column in range(row, len(blocks))]
    held: tuple[int, torch.Tensor] | None = None
    for number, (row, column) in enumerate(steps[done:], done + 1):
        if held is None or held[0] != row:
            held = row, torch.from_numpy(vectors.read(*blocks[row]))
        others = held[1] if row == column else torch.from_numpy(vectors.read(*blocks[column]))
        similarities = held[1] @ others.T
        if row == column:
            similarities.fill_diagonal_(LOWEST)
        _offer(similarities, blocks[row], blocks[column], found, None if row == column else found)
        yield number / len(steps)


def between(
    vectors: Vectors, others: Vectors, forward: Neighbours, backward: Neighbours, *, done: int = 0
) -> Iterator[float]:
    """Find the neighbours of each vector among others, and the other way round.

    Args:
        vectors: Vectors of one side.
        others: Vectors of the other side.
        forward: Gets the neighbours of the one side in the other.
        backward: Gets those of the other side in the one.
        done: Steps that are done already.

    Yields:
        After each step, which part of the work is done.
    """
    steps = [(row, column) for row in spans(len(vectors), BLOCK) for column in spans(len(others), BLOCK)]
    for number, (row, column) in enumerate(steps[done:], done + 1):
        similarities = torch.from_numpy(vectors.read(*row)) @ torch.from_numpy(others.read(*column)).T
        _offer(similarities, row, column, forward, backward)
        yield number / len(steps)


def _offer(
    similarities: torch.Tensor,
    row: tuple[int, int],
    column: tuple[int, int],
    forward: Neighbours,
    backward: Neighbours | None,
) -> None:
    """Offer the similarities of two spans of vectors to the first one, and to the second one."""
    rows, columns = torch.arange(*row), torch.arange(*column)
    forward.offer(rows, columns.int(), similarities)
    if backward is not None:
        backward.offer(columns, rows.int(), similarities.T)
