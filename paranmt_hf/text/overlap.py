"""Trigram overlap: the share of word trigrams that two sentences have in common.

ParaNMT-50M (Wieting & Gimpel 2018), section 5.4.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paranmt_hf.errors import InputError
from paranmt_hf.text.tokens import TokenTable, ngram_starts

# Bits of the key of a trigram, the key that none has, and the keys of the shortest row that is sorted.
KEY_BITS = 64
NO_KEY = np.uint64(2**64 - 1)
NARROWEST = 16


def trigram_overlap(references: TokenTable, translations: TokenTable) -> pa.Array:
    """Compute the `trigram_overlap` column [pair]: shared word trigrams over the smaller side's count, in [0, 1].

    Trigrams are counted as multisets: a trigram that stands twice on both sides counts twice. The two tables have one
    vocabulary; the overlap is null if a side has fewer than three tokens.
    """
    smaller = np.minimum(references.lengths, translations.lengths) - 2
    shared = _shared_trigrams(references, translations)
    valid = smaller > 0
    values = np.divide(shared, smaller, out=np.zeros(len(shared)), where=valid)
    return pa.array(values.astype(np.float32), pa.float32(), mask=~valid)


def _shared_trigrams(references: TokenTable, translations: TokenTable) -> np.ndarray:
    """Count the trigrams that both sides of each pair have [pair], as multisets.

    Trigram and side are packed into one 64-bit key, and the keys of a pair are sorted in a row of their own: a
    processor sorts short rows without branches, twenty times as fast as all keys together.
    """
    pairs, tables = len(references), (references, translations)
    ids, bits = [table.ids for table in tables], len(references.vocabulary).bit_length()
    if 3 * bits + 1 > KEY_BITS:
        # Of a large vocabulary a batch uses a part, whose words are numbered from 0 here.
        used, numbered = np.unique(np.concatenate(ids), return_inverse=True)
        ids, bits = np.split(numbered, [len(ids[0])]), len(used).bit_length()
    if 3 * bits + 1 > KEY_BITS:
        if pairs == 1:
            raise InputError("a pair of sentences has more than a million different words; lower `max_characters`")
        middle = pairs // 2
        halves = [(0, middle), (middle, pairs)]
        cuts = [(slice_table(references, *half), slice_table(translations, *half)) for half in halves]
        return np.concatenate([_shared_trigrams(*cut) for cut in cuts])
    counts = [np.maximum(table.lengths - 2, 0) for table in tables]
    widths = np.left_shift(1, np.ceil(np.log2(np.maximum(sum(counts), NARROWEST))).astype(np.int64))
    order = np.argsort(widths, kind="stable")
    begins = np.empty(pairs, np.int64)
    begins[order] = np.cumsum(widths[order]) - widths[order]
    # What is left in a row is larger than any key.
    keys = np.full(widths.sum(), NO_KEY)
    for side, table in enumerate(tables):
        own = _trigram_keys(ids[side], bits, side)
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


def _trigram_keys(ids: np.ndarray, bits: int, side: int) -> np.ndarray:
    """Pack each token, its two successors and the side into a number [token - 2], uint64."""
    words, shift = ids.astype(np.uint64), np.uint64(bits)
    trigrams = ((words[:-2] << shift | words[1:-1]) << shift) | words[2:]
    return trigrams << np.uint64(1) | np.uint64(side)


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


def slice_table(table: TokenTable, start: int, stop: int) -> TokenTable:
    """Take the sentences from `start` up to `stop` of a table."""
    offsets = table.offsets[start : stop + 1]
    return TokenTable(table.ids[offsets[0] : offsets[-1]], offsets - offsets[0], table.vocabulary)
