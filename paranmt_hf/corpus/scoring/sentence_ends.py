"""The column `sentence_mismatch`: how many sentences one side of a pair has more than the other.

A translation without the second of two sentences still gets a good paraphrase score. Sentences are counted by their
ends. Because translators also join sentences, the side with more of them counts only if it is also longer.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SENTENCE_MISMATCH = "sentence_mismatch"
DEFINITION = 1  # Raise it when the definition changes, so that columns of earlier corpora are computed again

# A full stop behind one of these does not end a sentence. A single capital letter is an initial.
_ABBREVIATIONS = (
    r"\b(Mr|Mrs|Ms|Dr|Prof|St|Sen|Rep|Gov|Gen|Col|Lt|Sgt|Capt|Jr|Sr|vs|No|Inc|Ltd|Co|Corp|e\.g|i\.e|etc|[A-Z])\."
)
# The end of a sentence with another one behind it: the marks, closing quotes and brackets, and the letter or number
# that begins the next sentence. In Chinese and Japanese there is no blank between them.
_INNER_ENDS = (
    r"""[.!?…؟।][.!?…"')\]»”’]*\s+["'(\[«“‘¿¡-]*[\p{Lu}\p{Lo}\p{N}]|[。！？｡][。！？｡」』”’）]*[^\s。！？｡」』”’）]"""
)


def count_sentences(texts: pa.Array) -> np.ndarray:
    """Count the sentences in each text [text]; at least 1."""
    plain = pc.replace_substring_regex(texts, _ABBREVIATIONS, r"\1")
    return pc.count_substring_regex(plain, _INNER_ENDS).to_numpy(zero_copy_only=False) + 1


def sentence_mismatch(
    references: pa.Array, translations: pa.Array, reference_lengths: np.ndarray, translation_lengths: np.ndarray
) -> pa.Array:
    """Compute the column `sentence_mismatch` [pair], int32.

    It is the difference in the number of sentences, if the side with more of them has at least 1.3 times the words of
    the other; otherwise 0.

    Args:
        references: References [pair].
        translations: Translations [pair].
        reference_lengths: Number of words in the references [pair].
        translation_lengths: Number of words in the translations [pair].
    """
    more = count_sentences(references) - count_sentences(translations)
    longer = np.where(more > 0, reference_lengths, translation_lengths)
    shorter = np.where(more > 0, translation_lengths, reference_lengths)
    # If one of two sentences is missing, 88 % of the pairs have at least 1.3 times the words on one side. Of real
    # machine translations only 0.5 % have this and more sentences.
    return pa.array(np.where(longer >= 1.3 * shorter, np.abs(more), 0), pa.int32())
