"""Sums and means of the rows of a table, over bags of rows: by torch, or by scipy where there is no torch yet.

Both add the rows of a bag one after the other, in float32, so that the vectors are equal in every bit. torch takes a
third of the time, but importing it takes 1.5 seconds.
"""

from __future__ import annotations

import sys
from typing import Literal

import numpy as np

from paranmt_hf.text.tokens import Bags

Mode = Literal["sum", "mean"]


def gather(weight: np.ndarray, bags: Bags, start: int, stop: int, mode: Mode) -> np.ndarray:
    """Sum or average the rows of some bags.

    Args:
        weight: Table [row, dimension]; float32, or float16 where torch is imported.
        bags: Rows of each sentence.
        start: First sentence.
        stop: First sentence that is left out.
        mode: `sum` or `mean`.

    Returns:
        Vectors [sentence, dimension] in the table's precision; zeros for an empty bag.
    """
    bounds = bags.offsets[start : stop + 1]
    rows = bags.rows[bounds[0] : bounds[-1]]
    # A bag begins so many rows behind the first one's beginning.
    offsets = (bounds - bounds[0]).astype(np.int32)
    by = by_torch if "torch" in sys.modules else by_scipy
    return by(weight, rows, offsets, mode)


def by_torch(weight: np.ndarray, rows: np.ndarray, offsets: np.ndarray, mode: Mode) -> np.ndarray:
    """Gather as `gather` does.

    Args:
        weight: Table [row, dimension], float32 or float16.
        rows: Rows of all bags [row].
        offsets: Where each bag begins, and the end [bag + 1].
        mode: `sum` or `mean`.
    """
    import torch
    from torch.nn.functional import embedding_bag

    with torch.no_grad():
        found = embedding_bag(
            torch.from_numpy(rows),
            torch.from_numpy(weight),
            torch.from_numpy(offsets),
            mode=mode,
            include_last_offset=True,
        )
    return found.numpy()


def by_scipy(weight: np.ndarray, rows: np.ndarray, offsets: np.ndarray, mode: Mode) -> np.ndarray:
    """Gather as `by_torch` does, of float32 alone: the product with a matrix of ones at the rows of each bag."""
    from scipy.sparse import csr_array

    ones = np.ones(len(rows), np.float32)
    summed: np.ndarray = csr_array((ones, rows, offsets), shape=(len(offsets) - 1, len(weight))) @ weight
    if mode == "mean":
        summed /= np.maximum(np.diff(offsets), 1).astype(np.float32)[:, None]
    return summed
