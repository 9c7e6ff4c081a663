"""Trigram overlap: the share of word trigrams that two sentences have in common.

ParaNMT-50M (Wieting & Gimpel 2018), section 5.4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from paranmt_hf.text.tokens import TokenTable, ngram_starts


def trigram_overlap(references: TokenTable, translations: TokenTable, *, key_bits: int = 64) -> pa.Array:
    """Compute the column `trigram_overlap`: the number of shared word trigrams over that of the side with fewer.

    Trigrams are counted as multisets: a trigram that occurs twice on both sides counts twice.

    Args:
        references: First sentence of each pair [pair].
        translations: Second sentence of each pair [pair], in the same vocabulary.
        key_bits: Number of bits into which a trigram and its side must fit; tokens of larger vocabularies are
            renumbered. The result does not depend on it; tests set it.

    Returns:
        The overlap of each pair [pair], float32, in [0, 1]; null if a side has fewer than three tokens.
    """
    smaller = np.minimum(references.lengths, translations.lengths) - 2
    shared = _shared_trigrams((references, translations), key_bits)
    valid = smaller > 0
    values = np.divide(shared, smaller, out=np.zeros(len(shared)), where=valid)
    return pa.array(values.astype(np.float32), pa.float32(), mask=~valid)


def _shared_trigrams(tables: Sequence[TokenTable], key_bits: int) -> np.ndarray:
    """Count the trigrams that both sides of each pair have [pair], as multisets.

    The number of a trigram and its side are packed into one key of 64 bits. The keys of each pair are sorted in a row
    of their own: a processor sorts short rows without branches, twenty times as fast as all keys together.

    Args:
        tables: The two sides of the pairs.
        key_bits: See `trigram_overlap`.
    """
    pairs, trigrams = len(tables[0]), _number_trigrams(tables, key_bits)
    counts = [np.maximum(table.lengths - 2, 0) for table in tables]
    # The width of a pair's row is a power of two with room for the trigrams of both sides. Rows of one width are put
    # next to one another, so that they are sorted as one matrix.
    widths = np.left_shift(1, np.ceil(np.log2(np.maximum(sum(counts), 16))).astype(np.int64))
    order = np.argsort(widths, kind="stable")
    row_starts = np.empty(pairs, np.int64)
    row_starts[order] = np.cumsum(widths[order]) - widths[order]
    # Places of a row that hold no key have a number larger than any key.
    keys = np.full(widths.sum(), np.uint64(2**64 - 1))
    for side, table in enumerate(tables):
        side_keys = trigrams[side] << np.uint64(1) | np.uint64(side)
        starts, rows = ngram_starts(table, 3)
        # Trigram i of this side, which belongs to pair p, is put at shifts[p] + i.
        first_trigrams = np.cumsum(counts[side]) - counts[side]
        shifts = row_starts + side * counts[0] - first_trigrams
        keys[shifts[rows] + np.arange(len(starts))] = side_keys[starts]
    shared, done, start = np.zeros(pairs, np.int64), 0, 0
    for width, count in zip(*np.unique(widths, return_counts=True), strict=True):
        block = keys[start : start + count * width].reshape(count, width)
        shared[order[done : done + count]] = _shared_in_rows(block)
        done, start = done + count, start + count * width
    return shared


def _number_trigrams(tables: Sequence[TokenTable], key_bits: int) -> list[np.ndarray]:
    """Number the trigrams of both tables, equal ones equally, with at most 63 bits.

    Args:
        tables: The two sides of the pairs.
        key_bits: See `trigram_overlap`.

    Returns:
        For each table the number of the trigram that begins at each token [token], uint64. The numbers of trigrams
        that cross the end of a sentence mean nothing.
    """
    ids = np.concatenate([*(table.ids for table in tables), [0, 0]]).astype(np.uint64)
    bits = len(tables[0].vocabulary).bit_length()
    shift = np.uint64(bits)
    pairs = ids[:-1] << shift | ids[1:]
    if 3 * bits + 1 > key_bits:
        # Three ids of a large vocabulary and a side do not fit into the key, so pairs of tokens are renumbered: there
        # are at most as many distinct pairs as tokens.
        pairs = np.unique(pairs, return_inverse=True)[1].astype(np.uint64)
    numbers = pairs[:-1] << shift | ids[2:]
    return np.split(numbers, [len(tables[0].ids)])


def _shared_in_rows(keys: np.ndarray) -> np.ndarray:
    """Count the trigrams that the two sides of each pair share [pair].

    Args:
        keys: The keys of each pair [pair, key], a trigram times 2 plus its side; sorted in place.
    """
    keys.sort(axis=1)
    # Find places where the last copy of a trigram on the first side is followed by its first copy on the second side:
    # two such keys differ in the last bit alone.
    rows, at = np.nonzero((keys[:, 1:] ^ keys[:, :-1]) == 1)
    shared = np.zeros(len(keys), np.int64)
    copies = 0
    while len(rows):
        shared += np.bincount(rows, minlength=len(keys))
        copies += 1
        # A trigram that both sides have twice counts twice: look one place further on each side, and so on.
        inside = (at >= copies) & (at + copies + 1 < keys.shape[1])
        rows, at = rows[inside], at[inside]
        more = (keys[rows, at - copies] == keys[rows, at]) & (keys[rows, at + copies + 1] == keys[rows, at + 1])
        rows, at = rows[more], at[more]
    return shared
