"""The compiled rules of words that stand in the place of another one: names, numbers, versions, units."""

from __future__ import annotations

import numpy as np

from paranmt_hf.meaning.sentence_pair import (
    COUNT,
    NAMED,
    NUMBER_REPLACED,
    UNIT,
    VERSION,
    SentencePair,
    note,
    number_in_words,
    same_before,
    same_behind,
)
from paranmt_hf.meaning.words import HAS_OPPOSITE, MOVABLE, NAME, NUMBER, SHORT, VERSIONED, Lexicon
from paranmt_hf.util.machine import compiled


@compiled()
def replaced_words(pair: SentencePair, lexicon: Lexicon) -> int:
    """Note names, numbers in words, versions and units that stand in the place of another one.

    Returns:
        The differences, as bits, and `NUMBER_REPLACED`.
    """
    found = 0
    for place in pair.lone:
        for other in pair.other_lone:
            word, candidate = pair.first[place], pair.second[other]
            before = same_before(pair, place, other, lexicon)
            behind = same_behind(pair, place, other, lexicon)
            names = (lexicon.flags[word] & lexicon.flags[candidate] & NAME) != 0
            if names and (pair.alone <= 1 or (pair.alone <= 2 and (before or behind))):
                found |= note(pair, NAMED, word, candidate)
            if before:
                found |= replaced_number(pair, place, other, behind, lexicon)
                found |= replaced_unit(pair, place, other, behind, lexicon)
    replaced = replaces_number(pair.first, pair.lone, pair.second, pair.other_lone, lexicon)
    replaced |= replaces_number(pair.second, pair.other_lone, pair.first, pair.lone, lexicon)
    return found | (NUMBER_REPLACED if replaced and pair.alone <= 1 else 0)


@compiled()
def replaced_number(pair: SentencePair, place: int, other: int, behind: bool, lexicon: Lexicon) -> int:
    """Note a number or letter in the place of another one, behind the same word.

    Args:
        pair: The sentences.
        place: Place of the one.
        other: Place of the other.
        behind: Whether the words behind them are equal.
        lexicon: What is known of the words.
    """
    word, candidate = pair.first[place], pair.second[other]
    value, other_value = number_in_words(word, lexicon), number_in_words(candidate, lexicon)
    if value and value == other_value:
        return 0
    found = 0
    is_number = lexicon.kinds[word] == NUMBER and lexicon.kinds[candidate] == NUMBER
    is_number |= (lexicon.flags[word] & lexicon.flags[candidate] & SHORT) != 0
    if is_number and place and lexicon.flags[pair.first[place - 1]] & VERSIONED:
        found |= note(pair, VERSION, word, candidate)
    if value and other_value and behind:
        found |= note(pair, COUNT, word, candidate)
    return found


@compiled()
def replaced_unit(pair: SentencePair, place: int, other: int, behind: bool, lexicon: Lexicon) -> int:
    """Note a unit in the place of another one, behind the same number; see `replaced_number`."""
    word, candidate = pair.first[place], pair.second[other]
    unit, other_unit = lexicon.units[word], lexicon.units[candidate]
    if place == 0 or unit < 0 or other_unit < 0 or unit == other_unit:
        return 0
    value, other_value = number_in_words(word, lexicon), number_in_words(candidate, lexicon)
    same_dimension = unit // 1000 == other_unit // 1000
    if (behind or same_dimension) and not (value and value == other_value):
        return note(pair, UNIT, word, candidate)
    return 0


@compiled()
def replaces_number(
    first: np.ndarray, lone: np.ndarray, second: np.ndarray, other_lone: np.ndarray, lexicon: Lexicon
) -> bool:
    """Whether a number of one sentence may stand for a time or another number of the other one: `at 11`, `at noon`.

    Args:
        first: Words of the one sentence [word].
        lone: Places of its words without a partner.
        second: Words of the other sentence [word].
        other_lone: Places of its words without a partner.
        lexicon: What is known of the words.
    """
    for place in lone:
        if lexicon.kinds[first[place]] == NUMBER:
            for other in other_lone:
                word = second[other]
                kind = lexicon.kinds[word]
                if kind == NUMBER or kind == MOVABLE or lexicon.units[word] >= 0 or lexicon.flags[word] & HAS_OPPOSITE:
                    return True
    return False
