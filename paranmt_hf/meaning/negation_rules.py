"""The compiled rules of negations: how many a sentence has, and whether another one says the same without them."""

from __future__ import annotations

import numpy as np

from paranmt_hf.meaning.sentence_pair import first_of
from paranmt_hf.meaning.words import (
    CONFIRMS,
    CONTENT,
    FUNCTION,
    MARKER,
    NEGATION,
    NEGATIVE,
    QUANTIFIER,
    Lexicon,
    class_bits,
)
from paranmt_hf.util.machine import compiled

NONE = class_bits("quantifiers")["none"]


@compiled()
def negations_of(words: np.ndarray, lexicon: Lexicon) -> int:
    """Count the negations of a sentence; `not` before a negative word, as in `not so bad`, is none."""
    count = 0
    for place in range(len(words)):
        kind = lexicon.kinds[words[place]]
        if kind != NEGATION:
            count += kind == QUANTIFIER and lexicon.values[words[place]] == NONE
            continue
        ahead = place + 1
        while ahead < min(len(words), place + 3) and lexicon.kinds[words[ahead]] == FUNCTION:
            ahead += 1
        count += ahead == len(words) or not lexicon.flags[words[ahead]] & NEGATIVE
    return count


@compiled()
def plain_negations(words: np.ndarray, lexicon: Lexicon) -> int:
    """Count the negations of a sentence, before whatever they are."""
    count = 0
    for word in words:
        count += lexicon.kinds[word] == NEGATION or (
            lexicon.kinds[word] == QUANTIFIER and lexicon.values[word] == NONE
        )
    return count


@compiled()
def is_explained(
    words: np.ndarray, partners: np.ndarray, others: np.ndarray, other_lone: np.ndarray, lexicon: Lexicon
) -> bool:
    """Whether a sentence without `not` may say what the negation of the other one says.

    It may by a negation of any kind, weaker ones included, or by a word for what is negated: `not survive`, `die`.

    Args:
        words: Words of the sentence with the negation [word].
        partners: Place of each word's partner in the other sentence [word], -1 without one.
        others: Words of the other sentence [word].
        other_lone: Places of its words without a partner.
        lexicon: What is known of the words.
    """
    for word in others:
        if lexicon.kinds[word] == NEGATION or lexicon.flags[word] & CONFIRMS:
            return True
    place = first_of(words, NEGATION, lexicon) + 1
    while place < len(words) and lexicon.kinds[words[place]] < MARKER:
        place += 1
    if place >= len(words) or partners[place] >= 0:
        return False
    for other in other_lone:
        if lexicon.kinds[others[other]] == CONTENT or lexicon.kinds[others[other]] == MARKER:
            return True
    return False
