"""The score columns: paraphrase score, trigram overlap, lengths. Pure functions from columns to columns.

ParaNMT-50M (Wieting & Gimpel 2018), sections 3.1 and 5.4: the paraphrase score of a pair is the cosine of its two
sentence embeddings; the trigram overlap counts shared word trigrams.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paranmt_hf.errors import InputError
from paranmt_hf.protocols import Encoder, TokenEncoder
from paranmt_hf.tokens import TokenTable, WordTokenizer, ngram_starts

# Lengths of vectors whose products are sure to be numbers of 32 bits, with all their digits.
SMALLEST, LARGEST = 1e-15, 1e15
# Pairs that are encoded at once, and those whose vectors are compared at once.
ENCODED, BLOCK = 5000, 1024
# Bits of the key of a trigram, the key that none has, and the keys of the shortest row that is sorted.
KEY_BITS = 64
NO_KEY = np.uint64(2**64 - 1)
NARROWEST = 16


def cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Cosine of each row of `left` with the same row of `right`; 0 where a row is all zeros.

    Args:
        left: Vectors [sentence, dimension].
        right: Vectors [sentence, dimension].

    Returns:
        Cosines [sentence], float32, clipped to [-1, 1].
    """
    values = np.empty(len(left), np.float32)
    # In blocks, whose products stay in the processor's cache.
    for start in range(0, len(left), BLOCK):
        block = slice(start, start + BLOCK)
        values[block] = _cosines(left[block], right[block])
    return values


def _cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        products = np.multiply(left, right).sum(axis=1)
        lengths = np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1)
        norms = lengths[0] * lengths[1]
        values = np.divide(products, norms, out=np.zeros_like(products), where=norms != 0)
    # The squares of very small and very large numbers are none of 32 bits.
    outside = np.logical_or(*(~((length > SMALLEST) & (length < LARGEST)) for length in lengths))
    if outside.any() and left.dtype != np.float64:
        values[outside] = cosines(left[outside].astype(np.float64), right[outside].astype(np.float64))
    return np.clip(values, -1, 1).astype(np.float32)


def paraphrase_scores(
    references: pa.Array, translations: pa.Array, encoder: Encoder, tokens: tuple[TokenTable, TokenTable] | None = None
) -> pa.Array:
    """Compute the `para_score` column.

    Args:
        references: Strings [pair].
        translations: Strings [pair].
        encoder: The scorer.
        tokens: The word tokens of both columns, if at hand; used by encoders that can start from them.

    Raises:
        InputError: The encoder gave a vector that is not finite.
    """
    if not len(references):
        return pa.array([], pa.float32())
    if tokens is not None and isinstance(encoder, TokenEncoder):
        scores = _token_scores(*tokens, encoder)
    else:
        scores = cosines(*(_encode_distinct(column, encoder) for column in (references, translations)))
    if not np.isfinite(scores).all():
        where = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise InputError(
            f"the scorer gave a vector that is not finite for {references[where].as_py()!r} or "
            f"{translations[where].as_py()!r}; choose another scorer"
        )
    return pa.array(scores, pa.float32())


def _token_scores(references: TokenTable, translations: TokenTable, encoder: TokenEncoder) -> np.ndarray:
    """Scores [pair] of tokenised pairs."""
    scores = np.empty(len(references), np.float32)
    # Fresh memory for the vectors of many pairs would cost as much as the vectors; that of few is used again.
    for start in range(0, len(scores), ENCODED):
        stop = min(start + ENCODED, len(scores))
        sides = (slice_table(table, start, stop) for table in (references, translations))
        scores[start:stop] = cosines(*map(encoder.encode_tokens, sides))
    return scores


def _encode_distinct(column: pa.Array, encoder: Encoder) -> np.ndarray:
    """Encode each distinct sentence once: in imported corpora a reference often stands in many pairs."""
    encoded = column.dictionary_encode()
    vectors = np.asarray(encoder.encode(encoded.dictionary.to_pylist()), dtype=np.float32)
    return vectors[encoded.indices.to_numpy()]


def trigram_overlap(references: TokenTable, translations: TokenTable) -> pa.Array:
    """Compute the `trigram_overlap` column: shared word trigrams over the smaller side's count.

    Trigrams are counted as multisets: a trigram that stands twice on both sides counts twice.

    Args:
        references: Word tokens [pair].
        translations: Word tokens [pair], over the same vocabulary.

    Returns:
        Overlap [pair], float32 in [0, 1]; null where a side has fewer than three tokens.
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
            raise InputError(
                "a pair of more than a million different words is no pair of sentences; lower max_characters"
            )
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
    """Pack each token, the two behind it and the side into a number [token less 2], uint64."""
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


def score_pairs(
    references: pa.Array, translations: pa.Array, encoder: Encoder | None, tokenizer: WordTokenizer
) -> dict[str, pa.Array]:
    """Compute every score column of a batch of pairs.

    Args:
        references: Strings [pair].
        translations: Strings [pair].
        encoder: The scorer, or None when the paraphrase score is there already.
        tokenizer: Cuts the text; keep one for all batches.

    Returns:
        `trigram_overlap`, `reference_length`, `translation_length` and, with an encoder, `para_score`.
    """
    tables = tokenizer.tables(references, translations)
    columns = {
        "trigram_overlap": trigram_overlap(*tables),
        "reference_length": pa.array(tables[0].lengths),
        "translation_length": pa.array(tables[1].lengths),
    }
    if encoder is not None:
        columns["para_score"] = paraphrase_scores(references, translations, encoder, (tables[0], tables[1]))
    return columns
