"""Two sentences whose words are paired, and the differences that rules note in them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paranmt_hf.meaning.words import (
    CONTENT,
    FUNCTION,
    GIVING,
    MARKER,
    MODAL,
    MOVABLE,
    NUMBER,
    QUESTION,
    REPLACING,
    Lexicon,
    marker_number,
)
from paranmt_hf.util.machine import compiled

# The differences that the rules find. `differences.py` adds those of numbers, names and addresses.
(
    OPPOSITE,
    ORDER,
    ONLY_ONE,
    EXCEPT_ONE,
    QUANTITY,
    LIMIT,
    MODALITY,
    VERSION,
    ASKED,
    NEGATED,
    UNIT,
    NAMED,
    COUNT,
    OTHER_MARKER,
) = range(14)
KINDS = 14
NUMBER_REPLACED = 1 << 29  # Not a difference by itself: a number stands where the other sentence has another word
NEAR = 1 << 30  # Not a difference: the sentences share nearly all their words
TO, FOR, WITH = (marker_number(marker) for marker in ("to", "for", "with"))


class SentencePair(NamedTuple):
    """Two sentences whose words are paired, as the rules see them."""

    first: np.ndarray  # Words of the one sentence [word]
    second: np.ndarray  # Words of the other sentence [word]
    partners: np.ndarray  # Place of the partner of each word of the one sentence [word], -1 without one
    others: np.ndarray  # The same for the other sentence
    lone: np.ndarray  # Places of the words of the one sentence that may say something else, ascending
    other_lone: np.ndarray  # The same for the other sentence
    slots: np.ndarray  # Marker of each word of the one sentence [word]; rules may change it
    other_slots: np.ndarray  # The same for the other sentence
    shared: int  # Number of pairs of words of content
    numbers: int  # Number of pairs of numbers
    alone: int  # Number of words of content without a partner, of the sentence that has more
    found: np.ndarray  # Receives the words of each difference [difference, side], -1 for none


@compiled()
def paired(
    first: np.ndarray,
    second: np.ndarray,
    first_slots: np.ndarray,
    second_slots: np.ndarray,
    lexicon: Lexicon,
    found: np.ndarray,
) -> SentencePair:
    """Pair the words of two sentences; see `SentencePair`.

    The slots are copies in which a recipient and its `to`, and the sides of `with`, are not marked: `gave Ben a book`
    and `gave a book to Ben` are alike.
    """
    partners, others = pair_words(first, second, lexicon)
    shared, numbers, giving = 0, 0, False
    for place in range(len(first)):
        if partners[place] >= 0:
            kind = lexicon.kinds[first[place]]
            shared += kind == CONTENT
            numbers += kind == NUMBER
            giving |= kind == CONTENT and (lexicon.flags[first[place]] & GIVING) != 0
    alone = max(content_alone(first, partners, lexicon), content_alone(second, others, lexicon))
    replacing = has_flag(first, REPLACING, lexicon)
    slots, other_slots = first_slots.copy(), second_slots.copy()
    for some in (slots, other_slots):
        for place in range(len(some)):
            is_recipient = giving and (some[place] == TO or some[place] == FOR)
            if is_recipient or (some[place] == WITH and not replacing):
                some[place] = 0
    lone, other_lone = places_alone(first, partners, lexicon), places_alone(second, others, lexicon)
    return SentencePair(
        first, second, partners, others, lone, other_lone, slots, other_slots, shared, numbers, alone, found
    )


@compiled()
def content_alone(words: np.ndarray, partners: np.ndarray, lexicon: Lexicon) -> int:
    """Count the words of content of a sentence that have no partner."""
    count = 0
    for place in range(len(words)):
        count += lexicon.kinds[words[place]] == CONTENT and partners[place] < 0
    return count


@compiled()
def pair_words(first: np.ndarray, second: np.ndarray, lexicon: Lexicon) -> tuple[np.ndarray, np.ndarray]:
    """Give each word that counts an equal word of the other sentence, the first that is free.

    Args:
        first: Words of the one sentence [word].
        second: Words of the other sentence [word].
        lexicon: What is known of the words.

    Returns:
        The place of the partner of each word of the one sentence [word], -1 without one; the same for the other one.
    """
    partners, others = np.full(len(first), -1, np.int64), np.full(len(second), -1, np.int64)
    for place in range(len(first)):
        word = first[place]
        if lexicon.kinds[word] < MARKER:
            continue
        for other in range(len(second)):
            candidate = second[other]
            if others[other] < 0 and lexicon.stems[candidate] == lexicon.stems[word]:
                if lexicon.kinds[candidate] >= MARKER:
                    partners[place], others[other] = other, place
                    break
    return partners, others


@compiled()
def places_alone(words: np.ndarray, partners: np.ndarray, lexicon: Lexicon) -> np.ndarray:
    """Return the places of the words of a sentence that have no partner and may say something else, ascending."""
    places = np.empty(len(words), np.int64)
    count = 0
    for place in range(len(words)):
        word = words[place]
        kind = lexicon.kinds[word]
        if partners[place] < 0 and (kind >= MODAL or number_in_words(word, lexicon)) and kind != QUESTION:
            places[count] = place
            count += 1
    return places[:count]


@compiled()
def number_in_words(word: int, lexicon: Lexicon) -> int:
    """Return the value of a number in words, or a number for a month, both from 1; 0 for other words."""
    kind = lexicon.kinds[word]
    return lexicon.values[word] if kind == NUMBER or kind == FUNCTION or kind == MOVABLE else 0


@compiled()
def first_of(words: np.ndarray, kind: int, lexicon: Lexicon) -> int:
    """Return the place of the first word of some kind; -1 if there is none."""
    for place in range(len(words)):
        if lexicon.kinds[words[place]] == kind:
            return place
    return -1


@compiled()
def has_flag(words: np.ndarray, flag: int, lexicon: Lexicon) -> bool:
    """Whether a word of a sentence has a flag."""
    for word in words:
        if lexicon.flags[word] & flag:
            return True
    return False


@compiled()
def same_before(pair: SentencePair, place: int, other: int, lexicon: Lexicon) -> bool:
    """Whether the words before two places are equal."""
    first, second = pair.first, pair.second
    if place == 0 or other == 0:
        return place == other
    return lexicon.stems[first[place - 1]] == lexicon.stems[second[other - 1]]


@compiled()
def same_behind(pair: SentencePair, place: int, other: int, lexicon: Lexicon) -> bool:
    """Whether the words behind two places are equal."""
    first, second = pair.first, pair.second
    if place + 1 >= len(first) or other + 1 >= len(second):
        return place + 1 >= len(first) and other + 1 >= len(second)
    return lexicon.stems[first[place + 1]] == lexicon.stems[second[other + 1]]


@compiled()
def has_marker(words: np.ndarray, marker: int, lexicon: Lexicon) -> bool:
    """Whether a sentence has a marker, such as `from`."""
    for word in words:
        if lexicon.kinds[word] == MARKER and lexicon.values[word] == marker:
            return True
    return False


@compiled()
def note(pair: SentencePair, difference: int, word: int, other: int) -> int:
    """Note the words of a difference, -1 for none, and return the difference as a bit."""
    pair.found[difference, 0], pair.found[difference, 1] = word, other
    return 1 << difference


@compiled()
def word_at(words: np.ndarray, place: int) -> int:
    """Return the word at a place; -1 for the place -1."""
    return int(words[place]) if place >= 0 else -1
