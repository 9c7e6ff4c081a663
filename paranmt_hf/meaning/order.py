"""The order of words, and who does what: whether two words of a sentence have changed places in the other one.

A word is marked by the preposition or conjunction before it (`from`, `to`, `than`, `if`), which says what part it
plays; without one its place says it. In a passive sentence, the agent is marked by `by`.
"""

from __future__ import annotations

import numpy as np

from paranmt_hf.meaning.words import (
    BE,
    BOUND,
    CLAUSE,
    CONJUNCTION,
    CONTENT,
    DETERMINER,
    MARKER,
    MODAL,
    MOVABLE,
    PARTICIPLE,
    POSSESSIVE,
    PRONOUN,
    SUBORDINATES,
    Lexicon,
    class_bits,
    marker_number,
)
from paranmt_hf.util.machine import compiled

LONGEST = 60  # Sentences with more words are not compared
REACH = 3  # Number of words behind a marker such as `from` that belong to it
OWNER = -1  # The slot of a word before `'s`
COMPARES = class_bits("bounds")["more than"] | class_bits("bounds")["less than"]
BY, THAN = marker_number("by"), marker_number("than")


@compiled()
def slots_of(words: np.ndarray, lexicon: Lexicon, slots: np.ndarray) -> bool:
    """Find the marker of each word of a sentence, and return whether the sentence is passive.

    Args:
        words: Numbers of the words [word].
        lexicon: What is known of the words.
        slots: Receives the number of the marker of each word [word]; 0 without one, `OWNER` before `'s`.
    """
    marker, reach, taken, since_be, passive = 0, 0, 0, LONGEST, False
    for place in range(len(words)):
        word = words[place]
        kind = lexicon.kinds[word]
        slots[place] = 0
        since_be += 1
        if kind == MARKER:
            # `than to` is `than`.
            marker = lexicon.values[word] if marker != THAN or reach < REACH else THAN
            taken = 0
            reach = LONGEST if lexicon.flags[word] & SUBORDINATES else REACH
        elif kind == BOUND and lexicon.values[word] & COMPARES:
            marker, reach, taken = THAN, REACH, 0
        elif kind == CLAUSE:
            reach = 0
        elif kind == BE or kind == MODAL:
            since_be = 0 if kind == BE else since_be
            reach = reach if reach > REACH else 0
        elif kind == CONJUNCTION:
            if marker and place and slots[place - 1] == marker:
                reach = max(reach, REACH)
        elif kind == POSSESSIVE:
            if place:
                slots[place - 1] = OWNER
        elif kind >= PRONOUN and reach > 0:
            slots[place] = marker
            reach -= 1
            taken += 1
        elif lexicon.flags[word] & DETERMINER and taken and reach <= REACH:
            reach = 0
        if kind == CONTENT and since_be <= 3 and lexicon.flags[word] & PARTICIPLE:
            passive = True
    return passive


@compiled()
def _listed(words: np.ndarray, start: int, stop: int, lexicon: Lexicon) -> bool:
    """Whether a conjunction or a sign is between two places."""
    for place in range(min(start, stop) + 1, max(start, stop)):
        if lexicon.kinds[words[place]] == CONJUNCTION or lexicon.kinds[words[place]] == CLAUSE:
            return True
    return False


@compiled()
def _beside(partners: np.ndarray, place: int, step: int) -> int:
    """Return the place of the nearest word with a partner before (step -1) or behind (step 1) a place; -1 for none."""
    place += step
    while 0 <= place < len(partners):
        if partners[place] >= 0:
            return place
        place += step
    return -1


@compiled()
def _takes_place(partners: np.ndarray, others: np.ndarray, one: int, other: int) -> bool:
    """Whether a word of the other sentence stands where a word of this one does: beside the partner of its neighbour.

    Args:
        partners: Place of each word's partner in the other sentence [word], -1 without one.
        others: The same for the other sentence.
        one: Place of the word in this sentence.
        other: Place of the word in the other sentence.
    """
    for step in (-1, 1):
        mine, yours = _beside(partners, one, step), _beside(others, other, step)
        if mine >= 0 and yours >= 0 and partners[mine] == yours:
            return True
    return False


@compiled()
def exchanged(
    first: np.ndarray,
    second: np.ndarray,
    partners: np.ndarray,
    others: np.ndarray,
    slots: np.ndarray,
    other_slots: np.ndarray,
    same_voice: bool,
    anywhere: bool,
    lexicon: Lexicon,
) -> tuple[int, int]:
    """Find two words that have changed places; -1, -1 if there are none.

    Each stands where the other one stood, and either their markers have changed too (`from A to B`, `from B to A`), or
    both are unmarked, or marked alike, and a word between them stayed (`A sees B`, `B sees A`).

    Args:
        first: Words of the one sentence [word].
        second: Words of the other sentence [word].
        partners: Place of the partner of each word of the one sentence [word], -1 without one.
        others: The same for the other sentence.
        slots: Markers of the words of the one sentence [word].
        other_slots: Markers of the words of the other sentence [word].
        same_voice: Whether both sentences are passive or both active.
        anywhere: Whether words that have each other's marker need not stand where the other one stood.
        lexicon: What is known of the words.
    """
    for x in range(len(first)):
        x2 = partners[x]
        if x2 < 0 or lexicon.kinds[first[x]] == MARKER or lexicon.kinds[first[x]] == MOVABLE:
            continue
        for y in range(x + 1, len(first)):
            y2 = partners[y]
            if y2 < 0 or lexicon.kinds[first[y]] == MARKER or lexicon.kinds[first[y]] == MOVABLE:
                continue
            if lexicon.stems[first[x]] == lexicon.stems[first[y]]:
                continue
            marked = slots[x] != slots[y] and slots[x] == other_slots[y2] and slots[y] == other_slots[x2]
            if marked:
                if anywhere or _takes_place(partners, others, x, y2) or _takes_place(partners, others, y, x2):
                    return x, y
                continue
            if y2 > x2 or not same_voice or slots[x] != slots[y]:
                continue
            if slots[x] != other_slots[x2] or slots[y] != other_slots[y2]:
                continue
            if not (_takes_place(partners, others, x, y2) or _takes_place(partners, others, y, x2)):
                continue
            for pivot in range(x + 1, y):
                if lexicon.kinds[first[pivot]] >= MOVABLE and y2 < partners[pivot] < x2:
                    if not (_listed(first, x, pivot, lexicon) and _listed(first, pivot, y, lexicon)):
                        return x, y
    return -1, -1


@compiled()
def other_agent(
    passive: np.ndarray, partners: np.ndarray, slots: np.ndarray, other_slots: np.ndarray, lexicon: Lexicon
) -> tuple[int, int]:
    """Find an agent and a patient of a passive sentence that play the other part in an active one; -1, -1 for none.

    Args:
        passive: Words of the passive sentence [word].
        partners: Place in the active sentence of each word's partner [word].
        slots: Markers of the words of the passive sentence [word].
        other_slots: Markers of the words of the active sentence [word].
        lexicon: What is known of the words.
    """
    for agent in range(len(passive)):
        if slots[agent] != BY or partners[agent] < 0 or other_slots[partners[agent]] != 0:
            continue
        verb = -1
        for place in range(agent):
            is_verb = lexicon.kinds[passive[place]] == CONTENT and lexicon.flags[passive[place]] & PARTICIPLE
            if is_verb and partners[place] >= 0:
                verb = place
        for patient in range(verb):
            other = partners[patient]
            counts = other >= 0 and lexicon.kinds[passive[patient]] >= PRONOUN
            if counts and slots[patient] == 0 and other_slots[other] == 0:
                if other < partners[verb] < partners[agent]:
                    return agent, patient
    return -1, -1


@compiled()
def any_inversion(first: np.ndarray, partners: np.ndarray, lexicon: Lexicon) -> bool:
    """Whether two words stand the other way round in the other sentence."""
    highest = -1
    for place in range(len(first)):
        if partners[place] >= 0 and lexicon.kinds[first[place]] != MARKER and lexicon.kinds[first[place]] != MOVABLE:
            if partners[place] < highest:
                return True
            highest = partners[place]
    return False
