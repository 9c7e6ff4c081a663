"""The column `repeated_words`: words that a translation repeats at once, and its reference does not.

Translation models at their limits repeat themselves, such as `a camp camp camp`, and paraphrase scores hardly notice,
for the words are right.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paranmt_hf.text.tokens import TokenTable

REPEATED_WORDS = "repeated_words"
DEFINITION = 1  # To be raised when the definition changes, so that older columns of a corpus are computed again


def repeated_words(references: TokenTable, translations: TokenTable) -> pa.Array:
    """Compute the column from the word tokens of pairs [pair]: int32, 0 or more."""
    counts = [count_repeated(table).astype(np.int64) for table in (translations, references)]
    return pa.array(np.maximum(counts[0] - counts[1], 0), pa.int32())


def count_repeated(table: TokenTable) -> np.ndarray:
    """Count the words of each sentence [sentence] that belong to a run equal to the run of words right before it.

    Runs have up to eight words. Punctuation is left out.
    """
    distinct, places = np.unique(table.ids, return_inverse=True)
    with_letters = [any(map(str.isalnum, table.vocabulary[token])) for token in distinct.tolist()]
    is_word = np.array(with_letters, bool)[places]
    words, sentence = table.ids[is_word], np.repeat(np.arange(len(table)), table.lengths)[is_word]
    repeated = np.zeros(len(words), bool)
    for size in range(1, 9):
        equal = np.zeros(len(words), bool)
        equal[size:] = (words[size:] == words[:-size]) & (sentence[size:] == sentence[:-size])
        repeated |= _in_runs(equal, size)
    return np.bincount(sentence[repeated], minlength=len(table))


def _in_runs(marks: np.ndarray, size: int) -> np.ndarray:
    """Of marks [word], those in runs of at least `size`."""
    edges = np.flatnonzero(np.diff(marks, prepend=False, append=False))
    starts, stops = edges[::2], edges[1::2]
    long = stops - starts >= size
    change = np.zeros(len(marks) + 1, np.int64)
    change[starts[long]] += 1
    change[stops[long]] -= 1
    return np.cumsum(change)[:-1] > 0
