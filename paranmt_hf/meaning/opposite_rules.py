"""The compiled rules of opposites, of the order of words, and of negations, which may cancel each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paranmt_hf.meaning.negation_rules import is_explained, negations_of, plain_negations
from paranmt_hf.meaning.order import THAN, any_inversion, exchanged, other_agent
from paranmt_hf.meaning.phrases import find
from paranmt_hf.meaning.sentence_pair import (
    NEGATED,
    OPPOSITE,
    ORDER,
    OTHER_MARKER,
    TO,
    SentencePair,
    first_of,
    has_flag,
    has_marker,
    note,
    same_before,
    same_behind,
    word_at,
)
from paranmt_hf.meaning.words import (
    CLAUSE,
    CONVERSE,
    HAS_OPPOSITE,
    MARKER,
    MODAL,
    NEGATION,
    PASSING,
    QUANTIFIER,
    SAYING,
    Lexicon,
    marker_number,
)
from paranmt_hf.util.machine import compiled

FROM = marker_number("from")


class Opposed(NamedTuple):
    """The opposites in two sentences."""

    words: bool  # Whether two words are opposites
    markers: bool  # Whether two markers are opposites, such as `on` and `off`
    converse: bool  # Whether they mean the same if the sides change places: `taller`, `shorter`
    passing: bool  # Whether something passes from one side to the other: `buy`, `sell`


@compiled()
def find_opposites(pair: SentencePair, lexicon: Lexicon) -> Opposed:
    """Find the opposites among the words that have no partner.

    Markers of the other sentence that are opposites become those of the first one in the slots, so that an exchange of
    words is seen behind them.
    """
    words, markers, converse, passing = False, False, False, False
    # Words count before markers, because `sold to` and `bought from` are one difference.
    for is_marker in (False, True):
        for place in pair.lone:
            word = pair.first[place]
            if (lexicon.kinds[word] == MARKER) != is_marker:
                continue
            for other in pair.other_lone:
                candidate = pair.second[other]
                kind = lexicon.kinds[candidate]
                # Quantifiers and modals are compared by their classes (little_word_rules.py).
                is_classed = kind == QUANTIFIER or kind == MODAL
                if (is_classed and kind == lexicon.kinds[word]) or not are_opposites(word, candidate, lexicon):
                    continue
                # Both sentences may have both words.
                if has_stem(pair.second, word, lexicon) or has_stem(pair.first, candidate, lexicon):
                    continue
                if is_marker and kind == MARKER:
                    for slot in range(len(pair.second)):
                        if pair.other_slots[slot] == lexicon.values[candidate]:
                            pair.other_slots[slot] = lexicon.values[word]
                    beside = same_before(pair, place, other, lexicon) or same_behind(pair, place, other, lexicon)
                    if words or not (beside or pair.alone <= 1):
                        continue
                    markers = True
                elif pair.shared + pair.numbers == 0:
                    continue
                else:
                    words = True
                either = lexicon.flags[word] | lexicon.flags[candidate]
                converse |= (either & CONVERSE) != 0 and not is_marker
                passing |= (either & PASSING) != 0
                if pair.found[OPPOSITE, 0] < 0:
                    note(pair, OPPOSITE, word, candidate)
    return Opposed(words, markers, converse, passing)


@compiled()
def find_exchange(
    pair: SentencePair, passive: bool, other_passive: bool, anywhere: bool, lexicon: Lexicon
) -> tuple[int, int]:
    """Find two words that have changed places, in sentences that share nearly all words; -1, -1 for none.

    Args:
        pair: The sentences.
        passive: Whether the one sentence is passive.
        other_passive: Whether the other sentence is passive.
        anywhere: Whether words that have each other's marker need not stand where the other one stood.
        lexicon: What is known of the words.
    """
    # What somebody said may stand before or behind `he said`.
    quotes = has_flag(pair.first, SAYING, lexicon) or has_flag(pair.second, SAYING, lexicon)
    quotes &= has_inner_sign(pair.first, lexicon) or has_inner_sign(pair.second, lexicon)
    if pair.alone > 2 or pair.alone > pair.shared or quotes:
        return -1, -1
    sides = pair.first, pair.second, pair.partners, pair.others, pair.slots, pair.other_slots
    x, y = exchanged(*sides, passive == other_passive, anywhere, lexicon)
    if x < 0 and passive and not other_passive:
        x, y = other_agent(pair.first, pair.partners, pair.slots, pair.other_slots, lexicon)
    elif x < 0 and other_passive and not passive:
        x, y = other_agent(pair.second, pair.others, pair.other_slots, pair.slots, lexicon)
        if x >= 0:
            x, y = pair.others[x], pair.others[y]
    return x, y


@compiled()
def opposites_and_order(pair: SentencePair, passive: bool, other_passive: bool, lexicon: Lexicon) -> int:
    """Note opposites, words that have changed places, and negations, unless two of them cancel each other.

    Args:
        pair: The sentences.
        passive: Whether the one sentence is passive.
        other_passive: Whether the other sentence is passive.
        lexicon: What is known of the words.

    Returns:
        The differences, as bits.
    """
    opposed = find_opposites(pair, lexicon)
    x, y = find_exchange(pair, passive, other_passive, opposed.markers, lexicon)
    if opposed.words or opposed.markers:
        negations = plain_negations(pair.first, lexicon) + plain_negations(pair.second, lexicon)
        if negations % 2:
            # `not open`, `closed`
            return 0
        turned = x >= 0 and (opposed.converse or opposed.markers)
        if has_marker(pair.first, THAN, lexicon) and has_marker(pair.second, THAN, lexicon):
            turned |= opposed.words and other_than(pair.partners, pair.slots, pair.other_slots)
        else:
            inverted = passive == other_passive and any_inversion(pair.first, pair.partners, lexicon)
            turned |= opposed.converse and inverted
        turned |= opposed.passing and only_from(pair.first, pair.second, lexicon)
        found = 0 if turned else 1 << OPPOSITE
    else:
        found = note(pair, ORDER, pair.first[x], pair.first[y]) if x >= 0 else 0
        if found == 0:
            found = other_markers(pair, lexicon)
    return found | other_negation(pair, lexicon)


@compiled()
def other_markers(pair: SentencePair, lexicon: Lexicon) -> int:
    """Note a marker that stands in the place of another one, in sentences that are equal otherwise."""
    found = 0
    for place in pair.lone:
        for other in pair.other_lone:
            word, candidate = pair.first[place], pair.second[other]
            if lexicon.kinds[word] != MARKER or lexicon.kinds[candidate] != MARKER or pair.alone > 0:
                continue
            akin = lexicon.bases[word] & lexicon.bases[candidate]
            beside = same_before(pair, place, other, lexicon) and same_behind(pair, place, other, lexicon)
            if beside and not akin:
                found |= note(pair, OTHER_MARKER, word, candidate)
    return found


@compiled()
def other_negation(pair: SentencePair, lexicon: Lexicon) -> int:
    """Note a negation that only one of the sentences has."""
    negations, other_negations = negations_of(pair.first, lexicon), negations_of(pair.second, lexicon)
    if negations and not other_negations:
        if not is_explained(pair.first, pair.partners, pair.second, pair.other_lone, lexicon):
            place = first_of(pair.first, NEGATION, lexicon)
            return note(pair, NEGATED, word_at(pair.first, max(place, 0)), -1)
    elif other_negations and not negations:
        if not is_explained(pair.second, pair.others, pair.first, pair.lone, lexicon):
            place = first_of(pair.second, NEGATION, lexicon)
            return note(pair, NEGATED, -1, word_at(pair.second, max(place, 0)))
    return 0


@compiled()
def are_opposites(one: int, other: int, lexicon: Lexicon) -> bool:
    """Whether two words exclude each other, by the lists, or because one has a negative prefix or ending."""
    if lexicon.flags[one] & lexicon.flags[other] & HAS_OPPOSITE:
        if find(lexicon.opposites, (int(lexicon.stems[one]) << 32) | int(lexicon.stems[other])) >= 0:
            return True
    base, other_base = lexicon.bases[one], lexicon.bases[other]
    if lexicon.kinds[one] == MARKER or lexicon.kinds[other] == MARKER:
        return False
    return (base >= 0 and base == lexicon.stems[other]) or (other_base >= 0 and other_base == lexicon.stems[one])


@compiled()
def has_stem(words: np.ndarray, wanted: int, lexicon: Lexicon) -> bool:
    """Whether a sentence has a word, in any form."""
    for word in words:
        if lexicon.stems[word] == lexicon.stems[wanted]:
            return True
    return False


@compiled()
def only_from(first: np.ndarray, second: np.ndarray, lexicon: Lexicon) -> bool:
    """Whether one sentence has `from`, and the other neither `from` nor `to`: `lent her a pen`, `a pen from her`."""
    for one, other in ((first, second), (second, first)):
        has_from = has_marker(one, FROM, lexicon)
        if has_from and not has_marker(other, FROM, lexicon) and not has_marker(other, TO, lexicon):
            return True
    return False


@compiled()
def other_than(partners: np.ndarray, slots: np.ndarray, other_slots: np.ndarray) -> bool:
    """Whether what is behind `than` in one sentence is not behind `than` in the other one."""
    for place in range(len(partners)):
        if partners[place] >= 0 and (slots[place] == THAN) != (other_slots[partners[place]] == THAN):
            return True
    return False


@compiled()
def has_inner_sign(words: np.ndarray, lexicon: Lexicon) -> bool:
    """Whether a sentence has a sign such as a comma before its end."""
    for place in range(len(words) - 1):
        if lexicon.kinds[words[place]] == CLAUSE:
            return True
    return False
