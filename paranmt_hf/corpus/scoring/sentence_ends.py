"""The column `sentence_mismatch`: sentences that one side of a pair has and the other has not.

A translator that drops the second of two sentences still gets a good paraphrase score. Sentences are counted by their
ends; as translators also join sentences, the side with more of them must be longer too.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SENTENCE_MISMATCH = "sentence_mismatch"
DEFINITION = 1  # To be raised when the definition changes, so that older columns of a corpus are computed again

# A full stop behind these ends no sentence; a single capital letter is an initial.
_ABBREVIATIONS = (
    r"\b(Mr|Mrs|Ms|Dr|Prof|St|Sen|Rep|Gov|Gen|Col|Lt|Sgt|Capt|Jr|Sr|vs|No|Inc|Ltd|Co|Corp|e\.g|i\.e|etc|[A-Z])\."
)
# The marks that end a sentence, closing quotes and brackets, and the letter or number that begins the next one; no
# blank is between them in Chinese and Japanese.
_INNER_ENDS = (
    r"""[.!?…؟।][.!?…"')\]»”’]*\s+["'(\[«“‘¿¡-]*[\p{Lu}\p{Lo}\p{N}]|[。！？｡][。！？｡」』”’）]*[^\s。！？｡」』”’）]"""
)


def count_sentences(texts: pa.Array) -> np.ndarray:
    """Count the sentences of texts [text], at least 1 each."""
    plain = pc.replace_substring_regex(texts, _ABBREVIATIONS, r"\1")
    return pc.count_substring_regex(plain, _INNER_ENDS).to_numpy(zero_copy_only=False) + 1


def sentence_mismatch(
    references: pa.Array, translations: pa.Array, reference_lengths: np.ndarray, translation_lengths: np.ndarray
) -> pa.Array:
    """Compute the column from the sides of pairs and their lengths in words [pair]: int32."""
    more = count_sentences(references) - count_sentences(translations)
    longer = np.where(more > 0, reference_lengths, translation_lengths)
    shorter = np.where(more > 0, translation_lengths, reference_lengths)
    # Of pairs that lack one of two sentences 88 % have at least 1.3 times the words on one side; of real machine
    # translations 0.5 % are longer by that and have more sentences.
    return pa.array(np.where(longer >= 1.3 * shorter, np.abs(more), 0), pa.int32())
