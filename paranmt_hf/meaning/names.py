"""Names in sentences.

- A name is a word with a capital letter that does not begin a sentence and is not a title, month or day.
- The other sentence confirms it by any word, with or without a capital, that has the same first four letters, accents
aside: `Russia` and `Russians`, `Praha` and `prahy`.
- The first word of a sentence is a name if it is none of the words that usually begin one
(assets/meaning/openings.txt). It counts only if the other sentence begins with a name too.
- Acronyms are confirmed by capitalised words with these initials (`EU`, `European Union`), and the other way round.
- Some countries are confirmed by the words for their people (`France`, `French`).
- In a headline, capitals say nothing, so it claims no names. A sentence is a headline if more than half of its words
begin with a capital, and only little words (`of`, `the`) are in lower case.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from importlib import resources

from paranmt_hf.meaning.addresses import has_address
from paranmt_hf.meaning.chunks import CAPITAL, ENDS, LETTERS, OPENS, PLAIN, TAIL
from paranmt_hf.meaning.items import Claim, Statement, condition
from paranmt_hf.meaning.number_words import HUNDREDS, ORDINALS, ROMAN, SCALES, TENS, UNITS

STEM = 4  # Number of first letters that equal names share
# Capitalised words that are no names.
NOT_NAMES = frozenset(
    "i i'm i've i'd i'll a an the this that these those he she it we you they his her its our your their my in on "
    "at by for from of to with and or but if as is are was were not no yes so then there here what when where who "
    "why how mr mrs ms miss dr prof sir st president minister prime premier chancellor king queen prince princess "
    "pope bishop general director secretary chairman chairwoman chairperson chief mayor governor senator judge "
    "professor doctor captain colonel commander lord lady madam god internet web state government "
    "parliament assembly house senate congress ministry department office agency council commission committee "
    "court supreme constitution university college school institute faculty museum church club party league "
    "cup championship championships games world war olympic olympics national international federal republic city "
    "county region district street road square park river lake mountain mountains sea ocean island islands north "
    "south east west northern southern eastern western central bank airport station hotel company group "
    "foundation association society federation organization organisation army navy police force forces service "
    "services center centre board act law treaty agreement charter convention article report day days week month "
    "year century age middle ages english new old great january february march april may june july august "
    "september october november december jan feb mar apr jun jul aug sep sept oct nov dec monday tuesday "
    "wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays "
    "celsius fahrenheit christmas easter bible sun earth moon member representatives foreign affairs interior "
    "defence defense finance health education gen mp bc bce ad ce high eur usd inc ltd co corp sen rep gov".split()
).union(UNITS, ORDINALS, TENS, HUNDREDS, SCALES)
# Words that headlines leave in lower case.
LITTLE = frozenset(
    "a an and as at but by de der for from in into la le nor of on or over per the to van vs von with".split()
)
TITLES = frozenset("mr mrs ms dr prof st gen col sen gov jr sr rev hon vs no u.s".split())
# Key for words that mean one country or people but do not begin alike.
PEOPLES = {
    word: f"country {country}"
    for country, words in {
        "us": "us usa america american americans states",
        "uk": "uk britain british briton britons kingdom england english",
        "fr": "france french frenchman frenchmen frenchwoman",
        "es": "spain spanish spaniard spaniards",
        "nl": "netherlands dutch holland dutchman",
        "dk": "denmark danish dane danes",
        "pl": "poland polish pole poles",
        "ch": "switzerland swiss",
        "cy": "wales welsh",
        "ie": "ireland irish",
        "gr": "greece greek greeks hellenic",
        "tr": "turkey turkish turk turks",
        "fi": "finland finnish finn finns",
        "se": "sweden swedish swede swedes",
        "de": "germany german germans frg brd",
        "cz": "czech czechs czechia bohemia bohemian",
        "cn": "china chinese prc beijing peking",
        "mm": "burma burmese myanmar",
        "kv": "kiev kyiv",
        "eu": "eu europe european europeans union",
        "un": "un nations",
        "ru": "russia russian russians moscow kremlin soviet ussr",
        "ir": "iran iranian tehran teheran",
        "jew": "jew jews jewish judaism",
        "mu": "islam islamic muslim muslims moslem moslems",
        "eur": "euro euros eur",
        "pa": "palestine palestinian palestinians",
        "ua": "ukraine ukrainian ukrainians",
        "ph": "philippines filipino filipinos philippine",
        "nato": "nato alliance",
        "rom": "rome roman romans",
        "mu2": "munich m\u00fcnchen muenchen",
        "vie": "vienna wien viennese",
        "cgn": "cologne k\u00f6ln koeln",
        "bc": "bc bce",
    }.items()
    for word in words.split()
}
OPENING = "opening"
WORD = re.compile(r"[^\W\d_]+")
CLOSING, ENDING = "\"')]}\u201d\u2019\u00bb", (".", "!", "?", ":", ";", "\u2026")
EDGES = "\"'()[]{}.,;:!?\u2018\u2019\u201c\u201d\u00ab\u00bb"
ACRONYM = re.compile(r"(?:[A-Z]\.?){2,6}s?")


def name_bits(chunk: str, words: list[str]) -> int:
    """Return the flags for names of a chunk, the text between two blanks.

    - `CAPITAL`: a name, unless it begins a sentence
    - `LETTERS`: a word, which counts when the share of capitalised words is computed
    - `ENDS`: a sentence may begin after it
    - `OPENS`: a sentence may begin with it wherever it is, because of a sign before it
    - `TAIL`: a name does not go on after it
    - `PLAIN`: a word in lower case that a headline would not leave so

    Args:
        chunk: The text.
        words: Its words, which are runs of letters.
    """
    if chunk.isalpha():
        return _word_bits(chunk) | (CAPITAL if _is_name(chunk, chunk) else 0)
    if not words:
        return ENDS | TAIL if chunk else 0
    if has_address(chunk):
        return TAIL
    bits = _word_bits(words[0]) | (0 if chunk[0].isalnum() else OPENS)
    if not chunk[-1].isalnum():
        closed = chunk.rstrip(CLOSING)
        abbreviated = len(words[0]) == 1 or words[0].lower() in TITLES or "." in closed[:-1]
        if closed[-1:] in ENDING and not abbreviated:
            bits |= ENDS
        if bits & ENDS or chunk[-1] != ".":
            bits |= TAIL
    return bits | (CAPITAL if _is_name(words[0], chunk.strip(EDGES)) else 0)


def _word_bits(word: str) -> int:
    """Return the flags that the first word of a chunk gives."""
    return LETTERS | (PLAIN if word[0].islower() and word not in LITTLE else 0)


def _is_name(first: str, core: str) -> bool:
    """Whether a chunk is a name unless it begins a sentence, by its first word and its text without punctuation."""
    if not first[0].isupper() or (len(first) == 1 and "." not in core) or first in ROMAN:
        return False
    return core.lower().removesuffix("'s") not in NOT_NAMES


def folded(word: str) -> str:
    """Return a word in lower case and without accents."""
    if word.isascii():
        return word.lower()
    return "".join(
        letter for letter in unicodedata.normalize("NFD", word.lower()) if not unicodedata.combining(letter)
    )


def name_keys(chunk: str, words: list[str]) -> list[str]:
    """Return the keys that a chunk with these words confirms: those of each word, and of an acronym."""
    if chunk.isascii() and chunk.islower():
        # Most chunks need no folding and are no acronyms, so this case comes first.
        return [key for word in words for key in ((word[:STEM], PEOPLES[word]) if word in PEOPLES else (word[:STEM],))]
    found = [key for word in words for key in _keys(word)]
    return found + _acronym(chunk)


def _keys(word: str) -> list[str]:
    """Return the keys of a word: its first letters, and its country or people."""
    lower = folded(word)
    return [lower[:STEM], PEOPLES[lower]] if lower in PEOPLES else [lower[:STEM]]


def _acronym(chunk: str) -> list[str]:
    """Return the keys of an acronym; empty for any other chunk."""
    if not chunk[1:2].isupper() and "." not in chunk:
        return []
    text = chunk.strip("\"'()[],;:!?-").removesuffix("'s")
    if not ACRONYM.fullmatch(text):
        return []
    plain = text.replace(".", "").removesuffix("s").lower()
    return [plain[:STEM], *_initials(plain)]


def _initials(letters: str) -> list[str]:
    """Return the keys of a sequence of initials in lower case."""
    return [f"initials {letters}", *([PEOPLES[letters]] if letters in PEOPLES else [])]


def names_in(run: str) -> Statement:
    """Read a run of capitalised chunks.

    Args:
        run: The chunks with blanks between them. A blank before them says that the first begins a sentence.

    >>> names_in(" Peter Smith").claims
    (('pete', 'initials ps', 'if opening'), ('smit', 'initials ps'))
    """
    chunks = run.split()
    names = [WORD.findall(chunk.removesuffix("'s")) for chunk in chunks]
    initials = "".join(words[0][0].lower() for words in names if words)
    whole = _initials(initials) if len(initials) > 1 else []
    claims: list[Claim] = []
    evidence = list(whole)
    opens = run.startswith(" ")
    first = names[0][0] if names[0] else ""
    if opens and len(first) > 1 and chunks[0][0].isalnum() and first.lower() not in usual_openings():
        keys = _acronym(chunks[0]) or _keys(first)
        claims.append((*keys, *whole, condition(OPENING)))
        evidence.append(OPENING)
    for chunk, words in list(zip(chunks, names, strict=True))[opens:]:
        if acronym := _acronym(chunk):
            claims.append((*acronym, *whole))
        else:
            claims += [(*_keys(word), *whole) for word in words if word[0].isupper() and len(word) > 1]
    return Statement(tuple(dict.fromkeys(claims)), tuple(evidence))


@cache
def usual_openings() -> frozenset[str]:
    """Return words that often begin sentences and are written in lower case elsewhere."""
    path = resources.files("paranmt_hf") / "assets" / "meaning" / "openings.txt"
    return frozenset(path.read_text(encoding="ascii").split())
