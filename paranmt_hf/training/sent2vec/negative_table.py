"""The table that negatives are taken from: words as often as the square root of their count says."""

from __future__ import annotations

import numpy as np

# Entries of the table in the authors' program (`NEGATIVE_TABLE_SIZE` in its `model.h`).
SIZE = 10_000_000
# A small corpus needs no large table: so many entries for each of its words.
ENTRIES_OF_A_WORD = 100


def negative_table(counts: np.ndarray, generator: np.random.Generator, size: int | None = None) -> np.ndarray:
    """Make the table, in the order in which its entries are taken (arXiv:1703.02507, section 2.1 and footnote 2).

    Each word has its share of the entries, rounded up, so that none is missing.

    Args:
        counts: How often each word occurs [word].
        generator: Decides the order.
        size: Entries, about; that of the authors' program, or less for a small corpus, if left out.

    Returns:
        Words [entry], int32.
    """
    if size is None:
        size = min(SIZE, ENTRIES_OF_A_WORD * int(counts.sum()))
    roots = np.sqrt(counts)
    entries = np.ceil(roots * (size / roots.sum())).astype(np.int64)
    table = np.repeat(np.arange(len(counts), dtype=np.int32), entries)
    generator.shuffle(table)
    return table
