"""Pointwise mutual information of words, across the sentences of a pair and within a sentence.

ParaNMT-50M (arXiv:1711.05732), appendix A.1. Logarithms are natural. All counts are of sentences: a word counts once
in a sentence.

- Across: both sentences of a pair are taken in turn for the sentence, and the other one for its paraphrase, so n pairs
  are 2 n events. #(u, v) counts those in which u is in the sentence and v in the paraphrase. It is symmetric.
  #(u) counts sentences of either side with u: PMI = log(#(u, v) 2n / (#(u) #(v))).
- Within: the same in the n references, and in the n translations, with v in the same sentence.
- Adjusted: PMI across minus the mean of the PMI within references and that within translations.

Two words that are never in one reference (or translation) have no PMI there. It counts as 0, the PMI of independent
words.
"""

from __future__ import annotations

import numpy as np

from paranmt_hf.lexicon.merging import PairCounts
from paranmt_hf.lexicon.word_sets import Words


def pmi(together: np.ndarray, counts: PairCounts, events_of: np.ndarray, events: int) -> np.ndarray:
    """Pointwise mutual information, with the natural logarithm.

    Args:
        together: Events with both words [entry].
        counts: Which words these are.
        events_of: Events with a word [word].
        events: Number of all events.

    Returns:
        log(together * events / (#(word) #(other))) [entry]; 0 where `together` is 0.
    """
    # A sum of logarithms, because a product of counts would leave the range in which integers are exact.
    logarithms = np.log(np.maximum(events_of, 1)) - np.log(events) / 2
    values = np.log(np.maximum(together, 1)) - logarithms[counts.words] - logarithms[counts.others]
    values[together == 0] = 0
    return values


def cross_sentence_pmi(counts: PairCounts, words: Words) -> np.ndarray:
    """PMI across the two sentences of a pair [entry]."""
    return pmi(counts.across, counts, words.references + words.translations, 2 * words.pairs)


def within_sentence_pmi(counts: PairCounts, words: Words) -> np.ndarray:
    """Mean of the ordinary PMI within references and that within translations [entry]."""
    references = pmi(counts.references, counts, words.references, words.pairs)
    return (references + pmi(counts.translations, counts, words.translations, words.pairs)) / 2
