"""The column `repeated_words`: how many words a translation repeats at once, and its reference does not.

Translation models at their limits repeat themselves, as in `a camp camp camp`. Paraphrase scores hardly notice that,
because the words themselves are right.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paranmt_hf.text.tokens import TokenTable

REPEATED_WORDS = "repeated_words"
DEFINITION = 1  # Raise it when the definition changes, so that columns of earlier corpora are computed again


def repeated_words(references: TokenTable, translations: TokenTable) -> pa.Array:
    """Compute the column `repeated_words` [pair]: the repeated words of the translation less those of the reference.

    Args:
        references: Word tokens of the references [pair].
        translations: Word tokens of the translations [pair].

    Returns:
        Numbers, int32, at least 0. "a camp camp camp" has two repeated words.
    """
    counts = [count_repeated(table).astype(np.int64) for table in (translations, references)]
    return pa.array(np.maximum(counts[0] - counts[1], 0), pa.int32())


def count_repeated(table: TokenTable) -> np.ndarray:
    """Count in each sentence [sentence] the words in a run that equals the run of words right before it.

    Runs have one to eight words; punctuation is left out. In "he said he said yes" the second "he said" is such a run
    of two words.
    """
    distinct, index_of = np.unique(table.ids, return_inverse=True)
    with_letters = [any(map(str.isalnum, table.vocabulary[token])) for token in distinct.tolist()]
    is_word = np.array(with_letters, bool)[index_of]
    words, sentence = table.ids[is_word], np.repeat(np.arange(len(table)), table.lengths)[is_word]
    repeated = np.zeros(len(words), bool)
    for size in range(1, 9):
        equal = np.zeros(len(words), bool)
        equal[size:] = (words[size:] == words[:-size]) & (sentence[size:] == sentence[:-size])
        repeated |= _in_runs(equal, size)
    return np.bincount(sentence[repeated], minlength=len(table))


def _in_runs(marks: np.ndarray, size: int) -> np.ndarray:
    """Return the marks [word] that are in a sequence of at least `size` marked words."""
    edges = np.flatnonzero(np.diff(marks, prepend=False, append=False))
    starts, stops = edges[::2], edges[1::2]
    long = stops - starts >= size
    change = np.zeros(len(marks) + 1, np.int64)
    change[starts[long]] += 1
    change[stops[long]] -= 1
    return np.cumsum(change)[:-1] > 0
