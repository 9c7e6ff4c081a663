"""Add noise, as in hasty writing, at random to well-written English sentences.

ParaNMT-50M (section 6, table 11) shows that its paraphraser brings noisy input into a standard form. The paper takes
noisy sentences from reviews. Here noise is added to clean sentences, so that the standard form of each is known.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

KINDS = ("informal", "article", "swap", "misspelling", "repetition", "lower case", "end")
# Informal forms of two words, and then of single words.
PHRASES = {
    ("going", "to"): "gonna",
    ("want", "to"): "wanna",
    ("got", "to"): "gotta",
    ("have", "to"): "hafta",
    ("kind", "of"): "kinda",
    ("sort", "of"): "sorta",
    ("out", "of"): "outta",
    ("let", "me"): "lemme",
    ("give", "me"): "gimme",
    ("do", "not"): "dont",
    ("does", "not"): "doesnt",
    ("did", "not"): "didnt",
    ("is", "not"): "isnt",
    ("was", "not"): "wasnt",
    ("will", "not"): "wont",
    ("it", "is"): "its",
    ("i", "am"): "im",
}
FORMS = {
    "you": "u",
    "your": "ur",
    "are": "r",
    "because": "cuz",
    "about": "bout",
    "them": "em",
    "through": "thru",
    "though": "tho",
    "although": "altho",
    "tonight": "tonite",
    "cannot": "cant",
    "and": "n",
    "with": "w/",
    "without": "w/o",
    "people": "ppl",
    "please": "pls",
    "thanks": "thx",
    "probably": "prolly",
    "yes": "yeah",
    "no": "nah",
}
APOSTROPHE = re.compile(r"(?<=\w)['\u2019](?=\w)")
# A sentence becomes lower case, or loses its final mark, with this many times the probability that a word changes.
OFTEN = 3
Change = tuple[str, list[str], int]  # Kind of the change, the new words, and the number of words that they replace


def add_noise(sentence: str, rate: float, seed: int | str) -> tuple[str, list[str]]:
    """Add noise to a sentence.

    Some words become informal (`going to` becomes `gonna`), articles are dropped, neighbouring words are swapped,
    letters are swapped, dropped or doubled, and words are repeated. The whole sentence may become lower case and lose
    its final mark. Letters of names and digits of numbers are not swapped, dropped or doubled, because nobody could
    recognise them then.

    Args:
        sentence: The sentence.
        rate: Probability that a word changes, in [0, 1].
        seed: Seed of the changes. Sentence, rate and seed decide the result, on every machine.

    Returns:
        The noisy sentence, and the kinds of its changes (`KINDS`) in order, which may be none.
    """
    draw = random.Random(f"{seed} {rate} {sentence}").random
    words, made, kinds = sentence.split(" "), [], []
    place = 0
    while place < len(words):
        changes = _changes(words, place, draw) if draw() < rate else []
        if not changes:
            made.append(words[place])
            place += 1
            continue
        kind, instead, used = changes[int(draw() * len(changes))]
        made += instead
        kinds.append(kind)
        place += used
    text = " ".join(made)
    if draw() < OFTEN * rate and text != text.lower():
        text = text.lower()
        kinds.append("lower case")
    if draw() < OFTEN * rate and text.endswith((".", "!", "?")) and len(text) > 1:
        text = text[:-1].rstrip()
        kinds.append("end")
    # One change may undo another, so that nothing has changed.
    return text, kinds if text != sentence else []


def _changes(words: list[str], place: int, draw: Callable[[], float]) -> list[Change]:
    """Return all changes that are possible for the word at a position; `draw` returns random numbers in [0, 1)."""
    word, following = words[place], words[place + 1] if place + 1 < len(words) else ""
    changes: list[Change] = []
    if phrase := PHRASES.get((word.lower(), following.lower())):
        changes.append(("informal", [phrase], 2))
    if form := FORMS.get(word.lower()):
        changes.append(("informal", [form], 1))
    if APOSTROPHE.search(word):
        changes.append(("informal", [APOSTROPHE.sub("", word)], 1))
    if word.lower() in ("a", "an", "the") and following:
        changes.append(("article", [], 1))
    if _plain(word):
        changes.append(("repetition", [word, word], 1))
        if _plain(following) and following != word:
            changes.append(("swap", [following, word], 2))
        # Nobody could recognise a misspelled word that is shorter.
        if len(word) >= 4:
            changes.append(("misspelling", [_misspelled(word, draw)], 1))
    return changes


def _plain(word: str) -> bool:
    """Return whether a word consists of lower-case letters alone."""
    return word.isalpha() and word.islower()


def _misspelled(word: str, draw: Callable[[], float]) -> str:
    """Return a word with one letter after the first one swapped with the next, dropped or doubled.

    The letter is doubled if swapping would change nothing.
    """
    place, kind = 1 + int(draw() * (len(word) - 2)), int(draw() * 3)
    first, second = word[place], word[place + 1]
    if kind == 0 and first != second:
        return f"{word[:place]}{second}{first}{word[place + 2 :]}"
    if kind == 1:
        return word[:place] + word[place + 1 :]
    return word[:place] + first + word[place:]
