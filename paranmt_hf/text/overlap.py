"""Trigram overlap: the share of word trigrams that two sentences have in common.

ParaNMT-50M (Wieting & Gimpel 2018), section 5.4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from paranmt_hf.text.tokens import TokenTable, ngram_starts


def trigram_overlap(references: TokenTable, translations: TokenTable, *, key_bits: int = 64) -> pa.Array:
    """Compute the `trigram_overlap` column [pair]: shared word trigrams over the smaller side's count, in [0, 1].

    Trigrams are counted as multisets: a trigram that stands twice on both sides counts twice. The two tables have one
    vocabulary; the overlap is null if a side has fewer than three tokens. A trigram and its side are numbers of at
    most `key_bits`, which change no result.
    """
    smaller = np.minimum(references.lengths, translations.lengths) - 2
    shared = _shared_trigrams((references, translations), key_bits)
    valid = smaller > 0
    values = np.divide(shared, smaller, out=np.zeros(len(shared)), where=valid)
    return pa.array(values.astype(np.float32), pa.float32(), mask=~valid)


def _shared_trigrams(tables: Sequence[TokenTable], key_bits: int) -> np.ndarray:
    """Count the trigrams that both sides of each pair have [pair], as multisets.

    Trigram and side are packed into one 64-bit key, and the keys of a pair are sorted in a row of their own: a
    processor sorts short rows without branches, twenty times as fast as all keys together.
    """
    pairs, trigrams = len(tables[0]), _number_trigrams(tables, key_bits)
    counts = [np.maximum(table.lengths - 2, 0) for table in tables]
    widths = np.left_shift(1, np.ceil(np.log2(np.maximum(sum(counts), 16))).astype(np.int64))
    order = np.argsort(widths, kind="stable")
    begins = np.empty(pairs, np.int64)
    begins[order] = np.cumsum(widths[order]) - widths[order]
    # What is left in a row is larger than any key.
    keys = np.full(widths.sum(), np.uint64(2**64 - 1))
    for side, table in enumerate(tables):
        own = trigrams[side] << np.uint64(1) | np.uint64(side)
        starts, rows = ngram_starts(table, 3)
        first = np.cumsum(counts[side]) - counts[side]
        behind = begins + side * counts[0] - first
        keys[behind[rows] + np.arange(len(starts))] = own[starts]
    shared, done, at = np.zeros(pairs, np.int64), 0, 0
    for width, count in zip(*np.unique(widths, return_counts=True), strict=True):
        block = keys[at : at + count * width].reshape(count, width)
        shared[order[done : done + count]] = _shared_in_rows(block)
        done, at = done + count, at + count * width
    return shared


def _number_trigrams(tables: Sequence[TokenTable], key_bits: int) -> list[np.ndarray]:
    """Give equal trigrams equal numbers of at most 63 bits: that of each token and its two successors [token], uint64.

    The last two tokens of a table have no successors, and numbers without a meaning.
    """
    ids = np.concatenate([*(table.ids for table in tables), [0, 0]]).astype(np.uint64)
    bits = len(tables[0].vocabulary).bit_length()
    shift = np.uint64(bits)
    pairs = ids[:-1] << shift | ids[1:]
    if 3 * bits + 1 > key_bits:
        # Of a large vocabulary: there are fewer different pairs than tokens.
        pairs = np.unique(pairs, return_inverse=True)[1].astype(np.uint64)
    numbers = pairs[:-1] << shift | ids[2:]
    return np.split(numbers, [len(tables[0].ids)])


def _shared_in_rows(keys: np.ndarray) -> np.ndarray:
    """Count shared trigrams [pair] by the keys [pair, key] of each pair, which are sorted in place."""
    keys.sort(axis=1)
    # Where a trigram of the reference stands before the same of the translation, only the last bit differs.
    rows, at = np.nonzero((keys[:, 1:] ^ keys[:, :-1]) == 1)
    shared = np.zeros(len(keys), np.int64)
    copies = 0
    while len(rows):
        shared += np.bincount(rows, minlength=len(keys))
        copies += 1
        # Of those are counted once more that stand once more on both sides.
        inside = (at >= copies) & (at + copies + 1 < keys.shape[1])
        rows, at = rows[inside], at[inside]
        more = (keys[rows, at - copies] == keys[rows, at]) & (keys[rows, at + copies + 1] == keys[rows, at + 1])
        rows, at = rows[more], at[more]
    return shared
