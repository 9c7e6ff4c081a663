"""Stems, by which the forms of a word are known as one: `closes`, `closed` and `closing` have the stem `clos`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources

VOWELS = "aeiouy"
# Words in -ly that are no adverbs of the word before it, or whose meaning is another one.
WHOLE = frozenset(
    "supply family multiply assembly comply anomaly butterfly monopoly hourly daily nightly weekly monthly yearly "
    "quarterly annually hardly nearly lately shortly likely unlikely".split()
)


def stem(word: str, irregular: Mapping[str, str] | None = None) -> str:
    """Return the stem of a word in lower case.

    Irregular forms have the stem of their word; others lose the endings of English.

    Args:
        word: The word.
        irregular: Irregular forms with their words; None for those of assets/meaning/irregular.txt.

    >>> [stem(word) for word in ("stopped", "stops", "happily", "happy", "bought", "buying")]
    ['stop', 'stop', 'happi', 'happi', 'buy', 'buy']
    """
    word = (irregular_forms() if irregular is None else irregular).get(word, word)
    if not word.isalpha():
        return word
    if len(word) <= 3:
        return f"{word[:-1]}i" if word.endswith("y") else word.removesuffix("e")
    if word.endswith(("ies", "ied")) and len(word) > 4:
        word = f"{word[:-3]}y"
    elif word.endswith(("sses", "xes", "ches", "shes", "zzes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    elif word.endswith("ing") and len(word) > 5 and any(vowel in word[:-3] for vowel in VOWELS):
        word = _single(word[:-3])
    elif (
        word.endswith("ed")
        and not word.endswith("eed")
        and len(word) > 4
        and any(vowel in word[:-2] for vowel in VOWELS)
    ):
        word = _single(word[:-2])
    elif word.endswith("ly") and len(word) > 5 and word not in WHOLE:
        word = word[:-2]
    word = word.removesuffix("e")
    return f"{word[:-1]}i" if word.endswith("y") and len(word) > 2 else word


def _single(text: str) -> str:
    """Make a doubled consonant at the end of a text a single one: `stopp` becomes `stop`, and `sell` stays."""
    doubled = len(text) > 3 and text[-1] == text[-2] and text[-1] not in "aeiousz"
    return text[:-1] if doubled and (text[-1] != "l" or len(text) > 5) else text


def lines_of(name: str) -> list[str]:
    """Return the lines of a file of `assets/meaning`."""
    path = resources.files("paranmt_hf") / "assets" / "meaning" / name
    return path.read_text(encoding="utf8").splitlines()


@cache
def irregular_forms() -> dict[str, str]:
    """Return the word of each irregular form."""
    return {form: word for form, word in map(str.split, lines_of("irregular.txt"))}


@cache
def opposites() -> frozenset[tuple[str, str]]:
    """Return the pairs of words and phrases that exclude each other, both ways; `_` joins the words of a phrase.

    `antonyms.txt` has pairs of WordNet. In `exclusive.txt` any two words of a line exclude each other, or, in a line
    with a bar, those before the bar and those behind it.
    """
    found = set()
    for line in (*lines_of("antonyms.txt"), *lines_of("exclusive.txt")):
        left, bar, right = line.partition("|")
        for one in left.split():
            for other in (right if bar else left).split():
                if one != other:
                    found |= {(one, other), (other, one)}
    return frozenset(found)


@cache
def opposites_of() -> dict[str, set[str]]:
    """Return the opposites of each word and phrase that has some."""
    found: dict[str, set[str]] = {}
    for one, other in opposites():
        found.setdefault(one, set()).add(other)
    return found


def positive(word: str) -> str | None:
    """Return the adjective, among those that have an opposite, of a comparative or superlative; None for other words.

    A word that has opposites itself, such as `lower`, is taken for a comparative if one of these is the comparative of
    the adjective's opposite.

    >>> positive("happier"), positive("larger"), positive("offer")
    ('happy', 'large', None)
    """
    known = opposites_of()
    base = _without_degree(word, known)
    if base is None or word not in known:
        return base
    others = {_without_degree(other, known) for other in known[word]}
    return base if others & known[base] else None


def _without_degree(word: str, known: dict[str, set[str]]) -> str | None:
    """Return the known word of which a word may be the comparative or superlative, by its letters; None for none."""
    for ending in ("er", "est"):
        short = word.removesuffix(ending)
        if len(word) > len(short) > 2:
            # happier, nicer, taller, bigger
            bases = [f"{short[:-1]}y"] if short.endswith("i") else [f"{short}e", short]
            if short[-1] == short[-2]:
                bases.append(short[:-1])
            for base in bases:
                if base in known and len(base) > 2 and base != "off":
                    return base
    return None


@cache
def common_stems() -> frozenset[str]:
    """Return the stems of common words. A word with another stem is taken for a name."""
    return frozenset(lines_of("common.txt"))
