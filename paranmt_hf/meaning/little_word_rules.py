"""The compiled rules of little words: `only`, quantifiers, limits, modals, and question words."""

from __future__ import annotations

import numpy as np

from paranmt_hf.meaning.negation_rules import negations_of
from paranmt_hf.meaning.sentence_pair import (
    ASKED,
    EXCEPT_ONE,
    LIMIT,
    MODALITY,
    ONLY_ONE,
    QUANTITY,
    SentencePair,
    first_of,
    note,
    word_at,
)
from paranmt_hf.meaning.words import (
    ASKS,
    ASKS_HOW,
    BOUND,
    EXCEPT,
    MODAL,
    NEGATION,
    NUMBER,
    ONLY,
    QUANTIFIER,
    QUESTION,
    QUESTIONS,
    WEAK,
    Lexicon,
    class_bits,
)
from paranmt_hf.util.machine import compiled

MUST, MAYBE, CAN, WILL, BARRED = (class_bits("modals")[name] for name in ("must", "maybe", "can", "will", "barred"))
ALL, SOME, NONE = (class_bits("quantifiers")[name] for name in ("all", "some", "none"))
MORE, LESS = (class_bits("bounds")[name] for name in ("more than", "less than"))


@compiled()
def other_little_words(pair: SentencePair, opposed: bool, lexicon: Lexicon) -> int:
    """Note words such as `only`, `all`, `at least` and `must`, of which both sentences should have the same.

    Args:
        pair: The sentences.
        opposed: Whether two words are opposites: `none are open` and `all are closed` are alike.
        lexicon: What is known of the words.

    Returns:
        The differences, as bits.
    """
    found = only_or_except(pair, lexicon) | other_modal(pair, lexicon)
    one, other = quantities_of(pair.first, lexicon), quantities_of(pair.second, lexicon)
    if one and other and not one & other and not (opposed and (one | other) & NONE):
        found |= note_kind(pair, QUANTITY, QUANTIFIER, lexicon)
    one, other = classes_of(pair.first, BOUND, lexicon), classes_of(pair.second, BOUND, lexicon)
    if one and other and not one & other:
        found |= note_kind(pair, LIMIT, BOUND, lexicon)
    asked, other_asked = asked_by(pair.first, lexicon), asked_by(pair.second, lexicon)
    if asked >= 0 and other_asked >= 0 and asked != other_asked and pair.alone <= 2:
        found |= note(pair, ASKED, asked, other_asked)
    return found


@compiled()
def only_or_except(pair: SentencePair, lexicon: Lexicon) -> int:
    """Note `only` and `except` that one sentence alone has; `only X` is `nothing except X`."""
    found = 0
    only, other_only = first_of(pair.first, ONLY, lexicon), first_of(pair.second, ONLY, lexicon)
    besides, other_besides = first_of(pair.first, EXCEPT, lexicon), first_of(pair.second, EXCEPT, lexicon)
    moved = only >= 0 and other_only >= 0 and (only == 0) != (other_only == 0)
    if moved and pair.alone == 0 and pair.first[only] == pair.second[other_only]:
        found |= note(pair, ONLY_ONE, pair.first[only], pair.second[other_only])
    weak = only >= 0 and lexicon.values[pair.first[only]] == WEAK
    weak |= other_only >= 0 and lexicon.values[pair.second[other_only]] == WEAK
    alone = (only >= 0 or besides >= 0) != (other_only >= 0 or other_besides >= 0)
    if pair.alone <= 2 and alone and not weak:
        if only >= 0 or other_only >= 0:
            found |= note(pair, ONLY_ONE, word_at(pair.first, only), word_at(pair.second, other_only))
        if besides >= 0 or other_besides >= 0:
            found |= note(pair, EXCEPT_ONE, word_at(pair.first, besides), word_at(pair.second, other_besides))
    return found


@compiled()
def other_modal(pair: SentencePair, lexicon: Lexicon) -> int:
    """Note words such as `must` and `may`, if the sentences have different ones."""
    negations, other_negations = negations_of(pair.first, lexicon), negations_of(pair.second, lexicon)
    one, other = modals_of(pair.first, negations, lexicon), modals_of(pair.second, other_negations, lexicon)
    differ = one != 0 and other != 0 and not one & other
    # `might` and `must` count alone, too, if the sentences are equal otherwise; in questions people use them freely.
    asks = is_question(pair.first, lexicon) or is_question(pair.second, lexicon)
    if not (one and other) and (one | other) & (MUST | MAYBE) and not asks:
        differ = pair.alone <= 1 and negations + other_negations == 0
    return note_kind(pair, MODALITY, MODAL, lexicon) if differ else 0


@compiled()
def modals_of(words: np.ndarray, negations: int, lexicon: Lexicon) -> int:
    """Return the modals of a sentence, as bits; with a negation, `may` and `must` are `barred`, too."""
    # People ask `how can I` and `what do I have to do` for the same.
    if len(words) and lexicon.flags[words[0]] & ASKS_HOW:
        return 0
    found = classes_of(words, MODAL, lexicon)
    if negations and found & (MUST | MAYBE | CAN):
        found |= BARRED
    # `It may be that she will come` is `may`.
    return found & ~WILL if found & ~WILL else found


@compiled()
def note_kind(pair: SentencePair, difference: int, kind: int, lexicon: Lexicon) -> int:
    """Note the first word of some kind in each sentence for a difference, and return the difference as a bit."""
    place, other = first_of(pair.first, kind, lexicon), first_of(pair.second, kind, lexicon)
    return note(pair, difference, word_at(pair.first, place), word_at(pair.second, other))


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
