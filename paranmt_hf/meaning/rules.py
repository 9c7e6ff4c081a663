"""The compiled rules: what two sentences say differently, by their words.

The words of a sentence are numbers; `words.py` says what is known of each. Each word of one sentence is paired with an
equal word of the other one, if there is one. The rules look at words without a partner, at the order of the others
(`order.py`), and at words such as `only`, `all` and `must`, of which both sentences should have the same.
"""

from __future__ import annotations

import numpy as np

from paranmt_hf.meaning.order import LONGEST, THAN, any_inversion, exchanged, other_agent, slots_of
from paranmt_hf.meaning.words import (
    ASKS,
    BEFORE_NUMBER,
    BOUND,
    CLAUSE,
    CONFIRMS,
    CONTENT,
    CONVERSE,
    EXCEPT,
    FUNCTION,
    GIVING,
    HAS_OPPOSITE,
    MARKER,
    MODAL,
    MOVABLE,
    NAME,
    NEGATION,
    NEGATIVE,
    NUMBER,
    ONLY,
    PASSING,
    QUANTIFIER,
    QUESTION,
    QUESTIONS,
    REPLACING,
    SAYING,
    SHORT,
    VERSIONED,
    Lexicon,
    class_bits,
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
TO, FOR, FROM, WITH = (marker_number(marker) for marker in ("to", "for", "from", "with"))
MUST, MAYBE, CAN, WILL, BARRED = (class_bits("modals")[name] for name in ("must", "maybe", "can", "will", "barred"))
ALL, SOME, NONE = (class_bits("quantifiers")[name] for name in ("all", "some", "none"))
MORE, LESS = (class_bits("bounds")[name] for name in ("more than", "less than"))


@compiled()
def find(keys: np.ndarray, wanted: int) -> int:
    """Return the position of a key in ascending keys; -1 if it is not there."""
    place = int(np.searchsorted(keys, wanted))
    return place if place < len(keys) and keys[place] == wanted else -1


@compiled()
def join_phrases(words: np.ndarray, bounds: np.ndarray, lexicon: Lexicon) -> tuple[np.ndarray, np.ndarray]:
    """Replace the words of each phrase by the phrase, the longest where several begin.

    Args:
        words: Numbers of the words of all sentences [word], int32.
        bounds: Bounds of each sentence in `words` [sentence + 1].
        lexicon: What is known of the words.

    Returns:
        The words and phrases [word], and the bounds of each sentence [sentence + 1].
    """
    joined, limits = np.empty(len(words), np.int32), np.empty(len(bounds), np.int64)
    count = 0
    for sentence in range(len(bounds) - 1):
        limits[sentence] = count
        place, stop = bounds[sentence], bounds[sentence + 1]
        while place < stop:
            word, last, following = words[place], place, place + 1
            node = lexicon.first_nodes[word]
            while node >= 0 and following < stop:
                step = find(lexicon.edges, (int(node) << 32) | int(words[following]))
                node = lexicon.edge_nodes[step] if step >= 0 else -1
                ends = node >= 0 and lexicon.node_words[node] >= 0
                # `up to` is a limit only before a number.
                if ends and lexicon.flags[lexicon.node_words[node]] & BEFORE_NUMBER:
                    ends = following + 1 < stop and lexicon.kinds[words[following + 1]] == NUMBER
                if ends:
                    word, last = lexicon.node_words[node], following
                following += 1
            joined[count] = word
            count += 1
            place = last + 1
    limits[-1] = count
    return joined[:count], limits


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
def classes_of(words: np.ndarray, kind: int, lexicon: Lexicon) -> int:
    """Return the classes of the words of some kind in a sentence, as bits."""
    found = 0
    for place in range(len(words)):
        if lexicon.kinds[words[place]] == kind:
            # `more than` says something of a number only before one.
            value = lexicon.values[words[place]]
            before_number = place + 1 < len(words) and lexicon.kinds[words[place + 1]] == NUMBER
            if kind != BOUND or before_number or not value & (MORE | LESS):
                found |= value
    return found


@compiled()
def only_will(modals: int) -> int:
    """Return the modals of a sentence without `will` if there are others: `it may be that she will come`."""
    return modals & ~WILL if modals & ~WILL else modals


@compiled()
def is_question(words: np.ndarray, lexicon: Lexicon) -> bool:
    """Whether a sentence begins as a question does, or asks for a way to do something."""
    return len(words) > 0 and (lexicon.flags[words[0]] & ASKS) != 0


@compiled()
def asked_by(words: np.ndarray, lexicon: Lexicon) -> int:
    """Return the question word of a sentence, such as `where`; -1 if there is none."""
    # `when` begins a question only before a verb: `when is`.
    if len(words) > 1 and lexicon.flags[words[0]] & QUESTIONS and lexicon.flags[words[1]] & ASKS:
        return int(words[0])
    place = first_of(words, QUESTION, lexicon)
    return int(words[place]) if place >= 0 else -1


@compiled()
def quantities_of(words: np.ndarray, lexicon: Lexicon) -> int:
    """Return the quantifiers of a sentence, as bits; `any` is `all`, but `some` in a question."""
    found = 0
    for place in range(len(words)):
        kind, value = lexicon.kinds[words[place]], lexicon.values[words[place]]
        if kind == QUANTIFIER or kind == NEGATION:
            if value == ALL | SOME and is_question(words, lexicon):
                value = SOME
            found |= value
    return found


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


@compiled()
def has_flag(words: np.ndarray, flag: int, lexicon: Lexicon) -> bool:
    """Whether a word of a sentence has a flag."""
    for word in words:
        if lexicon.flags[word] & flag:
            return True
    return False


@compiled()
def same_before(first: np.ndarray, second: np.ndarray, place: int, other: int, lexicon: Lexicon) -> bool:
    """Whether the words before two places are equal."""
    if place == 0 or other == 0:
        return place == other
    return lexicon.stems[first[place - 1]] == lexicon.stems[second[other - 1]]


@compiled()
def same_behind(first: np.ndarray, second: np.ndarray, place: int, other: int, lexicon: Lexicon) -> bool:
    """Whether the words behind two places are equal."""
    if place + 1 >= len(first) or other + 1 >= len(second):
        return place + 1 >= len(first) and other + 1 >= len(second)
    return lexicon.stems[first[place + 1]] == lexicon.stems[second[other + 1]]


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


@compiled()
def note(
    difference: int, kind: int, first: np.ndarray, second: np.ndarray, lexicon: Lexicon, found: np.ndarray
) -> int:
    """Note the first word of some kind in each sentence for a difference, and return the difference as a bit."""
    place, other = first_of(first, kind, lexicon), first_of(second, kind, lexicon)
    found[difference, 0] = first[place] if place >= 0 else -1
    found[difference, 1] = second[other] if other >= 0 else -1
    return 1 << difference


@compiled()
def has_marker(words: np.ndarray, marker: int, lexicon: Lexicon) -> bool:
    """Whether a sentence has a marker, such as `from`."""
    for word in words:
        if lexicon.kinds[word] == MARKER and lexicon.values[word] == marker:
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
        The differences, as bits, and `NEAR`.
    """
    if len(first) > LONGEST or len(second) > LONGEST:
        return 0
    partners, others = pair_words(first, second, lexicon)
    shared, alone, other_alone, numbers, giving = 0, 0, 0, 0, False
    for place in range(len(first)):
        kind = lexicon.kinds[first[place]]
        if kind == CONTENT and partners[place] < 0:
            alone += 1
        elif kind == CONTENT:
            shared += 1
            giving |= (lexicon.flags[first[place]] & GIVING) != 0
        elif kind == NUMBER and partners[place] >= 0:
            numbers += 1
    for other in range(len(second)):
        other_alone += lexicon.kinds[second[other]] == CONTENT and others[other] < 0
    most_alone = max(alone, other_alone)
    # Of sentences that share less than they do not share, the rules say nothing: their vectors tell them apart.
    if most_alone > shared + numbers + 1:
        return 0
    result = NEAR if most_alone <= 2 else 0
    lone, other_lone = places_alone(first, partners, lexicon), places_alone(second, others, lexicon)
    asks = is_question(first, lexicon) or is_question(second, lexicon)
    negations, other_negations = negations_of(first, lexicon), negations_of(second, lexicon)

    # The order of words. `to` marks a recipient, who may have no marker, and the sides of `with` may change places.
    slots, other_slots = first_slots.copy(), second_slots.copy()
    replacing = has_flag(first, REPLACING, lexicon)
    for place in range(len(first)):
        if (giving and (slots[place] == TO or slots[place] == FOR)) or (slots[place] == WITH and not replacing):
            slots[place] = 0
    for place in range(len(second)):
        slot = other_slots[place]
        if (giving and (slot == TO or slot == FOR)) or (slot == WITH and not replacing):
            other_slots[place] = 0

    # Opposites; words count before markers, because `sold to` and `bought from` are one difference.
    opposed, opposed_marker, converse, passing = False, False, False, False
    for is_marker in (False, True):
        for place in lone:
            word = first[place]
            if (lexicon.kinds[word] == MARKER) != is_marker:
                continue
            for other in other_lone:
                candidate = second[other]
                other_kind = lexicon.kinds[candidate]
                # Quantifiers and modals are compared by their classes, below.
                is_classed = other_kind == QUANTIFIER or other_kind == MODAL
                if (is_classed and other_kind == lexicon.kinds[word]) or not are_opposites(word, candidate, lexicon):
                    continue
                if is_marker and other_kind == MARKER:
                    # An exchange of two words is seen behind the markers if these are taken for equal.
                    for slot in range(len(second)):
                        if other_slots[slot] == lexicon.values[candidate]:
                            other_slots[slot] = lexicon.values[word]
                    beside = same_before(first, second, place, other, lexicon)
                    beside |= same_behind(first, second, place, other, lexicon)
                    if opposed or not (beside or most_alone <= 1):
                        continue
                    opposed_marker = True
                elif shared + numbers == 0:
                    continue
                else:
                    opposed = True
                either = lexicon.flags[word] | lexicon.flags[candidate]
                converse |= (either & CONVERSE) != 0 and not is_marker
                passing |= (either & PASSING) != 0
                if found[OPPOSITE, 0] < 0:
                    found[OPPOSITE, 0], found[OPPOSITE, 1] = word, candidate

    x, y = -1, -1
    loose = has_flag(first, SAYING, lexicon) or has_flag(second, SAYING, lexicon)
    loose &= has_inner_sign(first, lexicon) or has_inner_sign(second, lexicon)
    if most_alone <= 2 and most_alone <= shared and not loose:
        same_voice = passive == other_passive
        x, y = exchanged(first, second, partners, others, slots, other_slots, same_voice, opposed_marker, lexicon)
        if x < 0 and passive and not other_passive:
            x, y = other_agent(first, partners, slots, other_slots, lexicon)
        elif x < 0 and other_passive and not passive:
            x, y = other_agent(second, others, other_slots, slots, lexicon)
            if x >= 0:
                x, y = others[x], others[y]
    cancels = False
    if opposed or opposed_marker:
        cancels = (plain_negations(first, lexicon) + plain_negations(second, lexicon)) % 2 != 0
        turned = x >= 0 and (converse or opposed_marker)
        if has_marker(first, THAN, lexicon) and has_marker(second, THAN, lexicon):
            turned |= opposed and other_than(partners, slots, other_slots)
        else:
            turned |= converse and passive == other_passive and any_inversion(first, partners, lexicon)
        turned |= passing and only_from(first, second, lexicon)
        if not cancels and not turned:
            result |= 1 << OPPOSITE
    elif x >= 0:
        result |= 1 << ORDER
        found[ORDER, 0], found[ORDER, 1] = first[x], first[y]

    if not cancels:
        if negations and not other_negations and not is_explained(first, partners, second, other_lone, lexicon):
            result |= 1 << NEGATED
            found[NEGATED, 0] = first[max(0, first_of(first, NEGATION, lexicon))]
        elif other_negations and not negations and not is_explained(second, others, first, lone, lexicon):
            result |= 1 << NEGATED
            found[NEGATED, 1] = second[max(0, first_of(second, NEGATION, lexicon))]

    # Words such as `only`. `only X` is `nothing except X`.
    only, other_only = first_of(first, ONLY, lexicon), first_of(second, ONLY, lexicon)
    besides, other_besides = first_of(first, EXCEPT, lexicon), first_of(second, EXCEPT, lexicon)
    moved = only >= 0 and other_only >= 0 and (only == 0) != (other_only == 0)
    if moved and most_alone == 0 and first[only] == second[other_only]:
        result |= 1 << ONLY_ONE
        found[ONLY_ONE, 0], found[ONLY_ONE, 1] = first[only], second[other_only]
    if most_alone <= 2 and (only >= 0 or besides >= 0) != (other_only >= 0 or other_besides >= 0):
        for row, one, other in ((ONLY_ONE, only, other_only), (EXCEPT_ONE, besides, other_besides)):
            if one >= 0 or other >= 0:
                result |= 1 << row
                found[row, 0] = first[one] if one >= 0 else -1
                found[row, 1] = second[other] if other >= 0 else -1

    # Words of which both sentences should have the same
    one, other = quantities_of(first, lexicon), quantities_of(second, lexicon)
    if one and other and not one & other and not (opposed and (one | other) & NONE):
        result |= note(QUANTITY, QUANTIFIER, first, second, lexicon, found)
    one, other = classes_of(first, BOUND, lexicon), classes_of(second, BOUND, lexicon)
    if one and other and not one & other:
        result |= note(LIMIT, BOUND, first, second, lexicon, found)
    one, other = classes_of(first, MODAL, lexicon), classes_of(second, MODAL, lexicon)
    one |= BARRED if negations and one & (MUST | MAYBE | CAN) else 0
    other |= BARRED if other_negations and other & (MUST | MAYBE | CAN) else 0
    one, other = only_will(one), only_will(other)
    # `might` and `must` count alone, too, if the sentences are equal otherwise; in questions people use them freely.
    single = (one | other) & (MUST | MAYBE) != 0 and most_alone <= 1 and not asks and negations + other_negations == 0
    if (one and other and not one & other) or (single and not (one and other)):
        result |= note(MODALITY, MODAL, first, second, lexicon, found)

    for place in lone:
        word = first[place]
        for other in other_lone:
            candidate = second[other]
            before = same_before(first, second, place, other, lexicon)
            behind = same_behind(first, second, place, other, lexicon)
            names = (lexicon.flags[word] & lexicon.flags[candidate] & NAME) != 0
            if names and (most_alone <= 1 or (most_alone <= 2 and (before or behind))):
                result |= 1 << NAMED
                found[NAMED, 0], found[NAMED, 1] = word, candidate
            if not before:
                continue
            markers = lexicon.kinds[word] == MARKER and lexicon.kinds[candidate] == MARKER
            if (
                markers
                and most_alone == 0
                and not opposed_marker
                and x < 0
                and not lexicon.bases[word] & lexicon.bases[candidate]
            ):
                if behind:
                    result |= 1 << OTHER_MARKER
                    found[OTHER_MARKER, 0], found[OTHER_MARKER, 1] = word, candidate
            value, other_value = number_in_words(word, lexicon), number_in_words(candidate, lexicon)
            if value and value == other_value:
                continue
            is_number = lexicon.kinds[word] == NUMBER and lexicon.kinds[candidate] == NUMBER
            is_number |= (lexicon.flags[word] & lexicon.flags[candidate] & SHORT) != 0
            if is_number and place and lexicon.flags[first[place - 1]] & VERSIONED:
                result |= 1 << VERSION
                found[VERSION, 0], found[VERSION, 1] = word, candidate
            if value and other_value and value != other_value and behind:
                result |= 1 << COUNT
                found[COUNT, 0], found[COUNT, 1] = word, candidate
            unit, other_unit = lexicon.units[word], lexicon.units[candidate]
            if unit >= 0 and other_unit >= 0 and unit != other_unit and place:
                if behind or unit // 1000 == other_unit // 1000:
                    result |= 1 << UNIT
                    found[UNIT, 0], found[UNIT, 1] = word, candidate
    replaced = replaces_number(first, lone, second, other_lone, lexicon)
    if most_alone <= 1 and (replaced or replaces_number(second, other_lone, first, lone, lexicon)):
        result |= NUMBER_REPLACED
    asked, other_asked = asked_by(first, lexicon), asked_by(second, lexicon)
    if asked >= 0 and other_asked >= 0 and asked != other_asked and most_alone <= 2:
        result |= 1 << ASKED
        found[ASKED, 0], found[ASKED, 1] = asked, other_asked
    return result


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
