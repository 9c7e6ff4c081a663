"""The compiled rules: what two sentences say differently, by their words.

The words of a sentence are numbers; `words.py` says what is known of each. Each word of one sentence is paired with an
equal word of the other one, if there is one. The rules look at words without a partner, at the order of the others
(`order.py`), and at words such as `only`, `all` and `must`, of which both sentences should have the same.
"""

from __future__ import annotations

import numpy as np

from paranmt_hf.meaning.little_word_rules import other_little_words
from paranmt_hf.meaning.opposite_rules import opposites_and_order
from paranmt_hf.meaning.order import LONGEST, slots_of
from paranmt_hf.meaning.replacement_rules import replaced_words
from paranmt_hf.meaning.sentence_pair import KINDS, NEAR, OPPOSITE, paired
from paranmt_hf.meaning.words import Lexicon
from paranmt_hf.util.machine import compiled


@compiled()
def differences(
    first: np.ndarray,
    second: np.ndarray,
    first_slots: np.ndarray,
    second_slots: np.ndarray,
    passive: bool,
    other_passive: bool,
    lexicon: Lexicon,
    found: np.ndarray,
) -> int:
    """Find the differences of two sentences.

    Args:
        first: Words of the one sentence [word].
        second: Words of the other sentence [word].
        first_slots: Markers of the words of the one sentence [word].
        second_slots: Markers of the words of the other sentence [word].
        passive: Whether the one sentence is passive.
        other_passive: Whether the other sentence is passive.
        lexicon: What is known of the words.
        found: Receives the words of each difference [difference, side], -1 for none.

    Returns:
        The differences, as bits, with `NEAR` and `NUMBER_REPLACED`.
    """
    if len(first) > LONGEST or len(second) > LONGEST:
        return 0
    pair = paired(first, second, first_slots, second_slots, lexicon, found)
    # Of sentences that share less than they do not share, the rules say nothing: their vectors tell them apart.
    if pair.alone > pair.shared + pair.numbers + 1:
        return 0
    result = NEAR if pair.alone <= 2 else 0
    result |= opposites_and_order(pair, passive, other_passive, lexicon)
    opposed = found[OPPOSITE, 0] >= 0
    result |= other_little_words(pair, opposed, lexicon)
    return result | replaced_words(pair, lexicon)


@compiled()
def comes_later(first: np.ndarray, second: np.ndarray, lexicon: Lexicon) -> bool:
    """Whether the other sentence is to be taken as the first one, so that a pair is judged alike both ways round."""
    if len(first) != len(second):
        return len(first) > len(second)
    for place in range(len(first)):
        one, other = lexicon.hashes[first[place]], lexicon.hashes[second[place]]
        if one != other:
            return one > other
    return False


@compiled()
def compare_pairs(
    words: np.ndarray, bounds: np.ndarray, left: np.ndarray, right: np.ndarray, lexicon: Lexicon
) -> tuple[np.ndarray, np.ndarray]:
    """Find the differences of pairs of sentences.

    Args:
        words: Words and phrases of all sentences [word].
        bounds: Bounds of each sentence in `words` [sentence + 1].
        left: Index of the first sentence of each pair [pair].
        right: Index of the second sentence of each pair [pair].
        lexicon: What is known of the words.

    Returns:
        The differences of each pair, as bits, and `NEAR` [pair], int32; the words of each difference
        [pair, difference, side], int32, -1 for none.
    """
    slots = np.empty(len(words), np.int32)
    passives = np.empty(len(bounds) - 1, np.bool_)
    for sentence in range(len(bounds) - 1):
        start, stop = bounds[sentence], bounds[sentence + 1]
        passives[sentence] = slots_of(words[start:stop], lexicon, slots[start:stop])
    results = np.zeros(len(left), np.int32)
    found = np.full((len(left), KINDS, 2), -1, np.int32)
    for pair in range(len(left)):
        a, b = left[pair], right[pair]
        turned = comes_later(words[bounds[a] : bounds[a + 1]], words[bounds[b] : bounds[b + 1]], lexicon)
        if turned:
            a, b = b, a
        results[pair] = differences(
            words[bounds[a] : bounds[a + 1]],
            words[bounds[b] : bounds[b + 1]],
            slots[bounds[a] : bounds[a + 1]],
            slots[bounds[b] : bounds[b + 1]],
            passives[a],
            passives[b],
            lexicon,
            found[pair],
        )
        if turned:
            found[pair] = found[pair, :, ::-1].copy()
    return results, found
