"""The score columns: paraphrase score, trigram overlap, lengths. Pure functions from columns to columns.

ParaNMT-50M (Wieting & Gimpel 2018), sections 3.1 and 5.4: the paraphrase score of a pair is the cosine of its two
sentence embeddings; the trigram overlap counts shared word trigrams.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paranmt_hf.errors import InputError
from paranmt_hf.text.overlap import trigram_overlap
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.text.tokens import TokenTable, WordTokenizer


def cosines(left: np.ndarray, right: np.ndarray, *, rows: int = 1024) -> np.ndarray:
    """Cosine [sentence], float32, of the rows of two arrays of vectors [sentence, dimension]; 0 for a row of zeros.

    So many `rows` are compared at once that their products stay in the processor's cache.
    """
    values = np.empty(len(left), np.float32)
    for start in range(0, len(left), rows):
        block = slice(start, start + rows)
        values[block] = _cosines(left[block], right[block])
    return values


def _cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        products = np.multiply(left, right).sum(axis=1)
        lengths = np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1)
        norms = lengths[0] * lengths[1]
        values = np.divide(products, norms, out=np.zeros_like(products), where=norms != 0)
    # The squares of very small and very large numbers do not fit into 32 bits with all their digits.
    outside = np.logical_or(*(~((length > 1e-15) & (length < 1e15)) for length in lengths))
    if outside.any() and left.dtype != np.float64:
        values[outside] = cosines(left[outside].astype(np.float64), right[outside].astype(np.float64))
    return np.clip(values, -1, 1).astype(np.float32)


def paraphrase_scores(
    references: pa.Array, translations: pa.Array, encoder: Encoder, tokens: tuple[TokenTable, TokenTable] | None = None
) -> pa.Array:
    """Compute the column `para_score` of two columns of strings [pair].

    `tokens` are their word tokens, if known, for encoders that can start from them.
    """
    if not len(references):
        return pa.array([], pa.float32())
    encode_tokens = getattr(encoder, "encode_tokens", None)
    if tokens is not None and encode_tokens is not None:
        scores = np.empty(len(references), np.float32)
        # Fresh memory for the vectors of many pairs would cost as much as the vectors; that of few is used again.
        for start in range(0, len(scores), 5000):
            stop = min(start + 5000, len(scores))
            scores[start:stop] = cosines(*(encode_tokens(table.slice(start, stop)) for table in tokens))
    else:
        scores = cosines(*(encode_distinct(column, encoder) for column in (references, translations)))
    if not np.isfinite(scores).all():
        where = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise InputError(
            f"the scorer gave a vector that is not finite for {references[where].as_py()!r} or "
            f"{translations[where].as_py()!r}; choose another scorer"
        )
    return pa.array(scores, pa.float32())


def encode_distinct(column: pa.Array, encoder: Encoder) -> np.ndarray:
    """Encode each distinct sentence once: in imported corpora a reference often is in many pairs."""
    encoded = column.dictionary_encode()
    vectors = np.asarray(encoder.encode(encoded.dictionary.to_pylist()), dtype=np.float32)
    return vectors[encoded.indices.to_numpy()]


def score_pairs(
    references: pa.Array,
    translations: pa.Array,
    encoder: Encoder | None,
    tokenizer: WordTokenizer,
    *,
    shared: bool = True,
) -> dict[str, pa.Array]:
    """Compute every score column of pairs [pair]: `trigram_overlap`, the lengths and, with an encoder, `para_score`.

    Keep one tokenizer for all batches. The encoder may start from its tokens if they are the words that it knows:
    `shared`.
    """
    tables = tokenizer.tables(references, translations)
    columns = {
        "trigram_overlap": trigram_overlap(*tables),
        "reference_length": pa.array(tables[0].lengths),
        "translation_length": pa.array(tables[1].lengths),
    }
    if encoder is not None:
        known = (tables[0], tables[1]) if shared else None
        columns["para_score"] = paraphrase_scores(references, translations, encoder, known)
    return columns
