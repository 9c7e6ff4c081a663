"""The columns that every corpus has: paraphrase score, trigram overlap, and lengths.

The paraphrase score of a pair is the cosine of the embeddings of its sentences; the trigram overlap counts shared word
trigrams (ParaNMT-50M, Wieting & Gimpel 2018, sections 3.1 and 5.4).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paranmt_hf.errors import InputError
from paranmt_hf.text.overlap import trigram_overlap
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.text.tokens import TokenTable, WordTokenizer


def cosines(left: np.ndarray, right: np.ndarray, *, rows: int = 1024) -> np.ndarray:
    """Return the cosine of each row of two arrays of vectors [row, dimension]: float32 [row]; 0 if a vector is zero.

    `rows` vectors are compared at a time, few enough that their products stay in the cache of the processor.
    """
    values = np.empty(len(left), np.float32)
    for start in range(0, len(left), rows):
        block = slice(start, start + rows)
        values[block] = _cosines(left[block], right[block])
    return values


def _cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the cosines [row] of a few rows."""
    with np.errstate(over="ignore", invalid="ignore"):
        products = np.multiply(left, right).sum(axis=1)
        lengths = np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1)
        norms = lengths[0] * lengths[1]
        values = np.divide(products, norms, out=np.zeros_like(products), where=norms != 0)
    # Squares of very small and very large numbers lose digits in single precision, so these rows are done in double.
    outside = np.logical_or(*(~((length > 1e-15) & (length < 1e15)) for length in lengths))
    if outside.any() and left.dtype != np.float64:
        values[outside] = cosines(left[outside].astype(np.float64), right[outside].astype(np.float64))
    return np.clip(values, -1, 1).astype(np.float32)


def paraphrase_scores(
    references: pa.Array, translations: pa.Array, encoder: Encoder, tokens: tuple[TokenTable, TokenTable] | None = None
) -> pa.Array:
    """Compute the column `para_score` [pair], float32.

    Args:
        references: References [pair], string.
        translations: Translations [pair], string.
        encoder: The scorer.
        tokens: Word tokens of both, if they are known; encoders that can start from tokens use them.

    Raises:
        InputError: If the scorer gives a vector that is not finite.
    """
    if not len(references):
        return pa.array([], pa.float32())
    encode_tokens = getattr(encoder, "encode_tokens", None)
    if tokens is not None and encode_tokens is not None:
        scores = np.empty(len(references), np.float32)
        # New memory for the vectors of all pairs would take as long as the vectors; for few pairs it is reused.
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
    """Return the vectors [sentence, dimension] of sentences, each distinct one of which is encoded once.

    In imported corpora a reference is often in many pairs.
    """
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
    """Compute the score columns of pairs [pair].

    Args:
        references: References [pair], string.
        translations: Translations [pair], string.
        encoder: The scorer; None for no `para_score`.
        tokenizer: Cuts sentences into words; using one tokenizer for all batches is faster.
        shared: Whether the encoder cuts sentences into words by the same rules as the tokenizer. An encoder that can
            start from words is then given these.

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
        known = (tables[0], tables[1]) if shared else None
        columns["para_score"] = paraphrase_scores(references, translations, encoder, known)
    return columns
