"""Mini-batches of neighbours: what a teacher finds similar is learned together. Not in the papers.

Of the cosines among random sentences nearly all are low, and a mini-batch of them tells little about how alike similar
sentences are.
"""

from __future__ import annotations

import numpy as np

# Rows that are widened to 32 bits at a time.
ROWS = 10_000


def neighbour_order(vectors: np.ndarray, size: int, generator: np.random.Generator) -> np.ndarray:
    """Order items so that every `size` of them in a row are neighbours.

    All items are halved along the line through two random ones, and so are the halves, down to `size` items; then
    these groups are shuffled. A group that is not full comes last.

    Args:
        vectors: Their vectors [item, dimension].
        size: Items of a group.
        generator: Decides the lines and the order of the groups.

    Returns:
        Every item once [item], int64.
    """
    groups, waiting = [], [generator.permutation(len(vectors))]
    while waiting:
        items = waiting.pop()
        if len(items) <= size:
            groups.append(items)
            continue
        ends = vectors[items[generator.choice(len(items), 2, replace=False)]].astype(np.float32)
        positions = along(vectors, items, ends[1] - ends[0])
        left = -(-len(items) // size) // 2 * size
        order = np.argpartition(positions, left)
        # The right half, which holds what does not fill a group, waits longest.
        waiting += [items[order[left:]], items[order[:left]]]
    *full, last = groups
    return np.concatenate([*(full[index] for index in generator.permutation(len(full)).tolist()), last])


def along(vectors: np.ndarray, items: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Position of some items [item] of `vectors` on a line [dimension]: [item], float32."""
    parts = [items[start : start + ROWS] for start in range(0, len(items), ROWS)]
    return np.concatenate([vectors[part].astype(np.float32) @ direction for part in parts])
