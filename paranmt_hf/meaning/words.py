"""What is known of English words and phrases, as arrays for the compiled rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import yaml

from paranmt_hf.meaning.negations import NEGATIONS, UNDOES, WEAKER
from paranmt_hf.meaning.number_words import MONTHS, ORDINALS, ROMAN, SCALES, TENS, UNITS, WEEKDAYS
from paranmt_hf.meaning.stems import common_stems, lines_of, opposites, positive, stem

# Kinds of words, by what they do in a sentence. Words of the kinds from PRONOUN on, and markers, are paired with equal
# words of the other sentence.
FUNCTION, CLAUSE, CONJUNCTION, BE, POSSESSIVE, NEGATION, MODAL, QUANTIFIER, BOUND, ONLY, EXCEPT, QUESTION = range(12)
MARKER, PRONOUN, NUMBER, MOVABLE, CONTENT = range(12, 17)
WEAK = 1  # Value of an ONLY that one sentence may have alone
# Flags of words
GIVING, SAYING, REPLACING, PARTICIPLE, HAS_OPPOSITE, SUBORDINATES, VERSIONED = (1 << bit for bit in range(7))
CONVERSE, PASSING, CONFIRMS, NEGATIVE, NAME, SHORT, ASKS, DETERMINER, BEFORE_NUMBER, QUESTIONS, ASKS_HOW = (
    1 << bit for bit in range(7, 18)
)
# Words of a negation's degree: `not so bad`
NEGATIVE_PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non", "non-", "mis", "de-", "anti-", "anti", "counter")
QUESTION_WORDS = ("when", "where", "why", "who")
MONTHS_AND_VERBS = ("may", "march")
# Numbers in words and months, with their values; 0 where the value is not compared here.
NUMBER_WORDS = {
    **dict.fromkeys([*SCALES, *WEEKDAYS, "hundred", "dozen"], 0),
    **{word: 1 + value for word, value in {**UNITS, **ORDINALS, **TENS}.items()},
    **{word: 1000 + value for word, value in MONTHS.items() if word not in (*MONTHS_AND_VERBS, "mar")},
    **{f"{word}~": 1000 + MONTHS[word] for word in MONTHS_AND_VERBS},
}
TOKEN = re.compile(r"n't|'[a-z]+|[^\W_]+(?:[.\-_/&][^\W_]+)*(?=n't)|[^\W_]+(?:[.,:\-_/&][^\W_]+)*|[,;:!?().%]")
PARTICIPLES = re.compile(
    r".*ed|.*(?:wn|ten|ken|ven|sen|den|zen|len)|made|done|seen|sent|sold|told|held|found|won|lost|paid|bought|brought"
    r"|caught|taught|beat|hit|led|met|built|left|read|shot|put|cut|set|kept|gone|run|begun|sung"
)


@cache
def lists() -> dict[str, Any]:
    """Return the lists of words.yaml; expressions of a text are separated by `|`."""
    return yaml.safe_load("\n".join(lines_of("words.yaml")))


def expressions(text: str) -> list[str]:
    """Return the expressions of a list, which are separated by bars."""
    return [expression.strip() for expression in text.split("|")]


def markers() -> list[str]:
    """Return the main word of each marker; its number is its position, from 1."""
    return [line[0] for line in lists()["markers"]]


def marker_number(marker: str) -> int:
    """Return the number of a marker."""
    return 1 + markers().index(marker)


def class_bits(kind: str) -> dict[str, int]:
    """Return the bit of each class of a kind, such as `modals`, by its name."""
    return {name: 1 << bit for bit, name in enumerate(lists()[kind])}


class Lexicon(NamedTuple):
    """What is known of each word, by its number."""

    kinds: np.ndarray  # Kind [word], int32
    values: np.ndarray  # Number of the marker, or the classes of the word as bits [word], int32
    flags: np.ndarray  # Flags [word], int32
    stems: np.ndarray  # Number of the stem [word], int32
    bases: np.ndarray  # Number of the stem behind a negative prefix, or before `less` [word], int32; -1 for none
    units: np.ndarray  # Dimension of a unit times 1,000, and its number there [word], int32; -1 for other words
    hashes: np.ndarray  # Hash of the text [word], int32
    first_nodes: np.ndarray  # Node of the phrases that the word begins [word], int32; -1 if it begins none
    edges: np.ndarray  # Node and next word of each step within a phrase, ascending [edge], int64
    edge_nodes: np.ndarray  # Node after each step [edge], int32
    node_words: np.ndarray  # Number of the phrase that ends at each node [node], int32; -1 if none does
    opposites: np.ndarray  # Pairs of stems that exclude each other, ascending [pair], int64


class Word(NamedTuple):
    """What is known of a word, as in `Lexicon`."""

    kind: int
    value: int
    flags: int
    stem: int
    base: int
    unit: int
    hash: int
    first_node: int = -1


def tokens_of(chunk: str) -> list[str]:
    """Cut a chunk, a text without blanks in its normal form, into words in lower case and signs.

    >>> tokens_of("Anna's"), tokens_of("don't,"), tokens_of("we'll")
    (['anna', "'s"], ['do', 'not', ','], ['we', 'will'])
    """
    forms = lists()["forms"]
    lower = chunk.lower()
    if lower.startswith(MONTHS_AND_VERBS) and chunk[0].isupper():
        # Nearly always a month
        name = lower.rstrip(".,;:!?)")
        return [f"{name}~", *lower[len(name) :]] if name in MONTHS_AND_VERBS else TOKEN.findall(lower)
    if lower in forms:
        return forms[lower].split()
    if lower.isalpha():
        return [lower]
    found: list[str] = []
    for token in TOKEN.findall(lower):
        found += forms[token].split() if token in forms else [token]
    return found


def key(one: int, other: int) -> int:
    """Join two numbers, of nodes, words or stems, to a single one."""
    return (one << 32) | other


def _is_negative(word: str) -> bool:
    """Whether a word confirms a negation of the other sentence; `unable` does, and `installer` does not."""
    prefix = re.match("un|in|im|ir|il|dis|mis|non|anti", word)
    if prefix is not None and stem(word[prefix.end() :]) not in common_stems():
        return False
    return word in NEGATIONS or WEAKER.fullmatch(word) is not None


@dataclass
class Words:
    """Numbers words and phrases, and learns what is known of each when it is first seen."""

    def __post_init__(self) -> None:
        """Learn the expressions of the lists."""
        self.texts: list[str] = []
        self._new: list[Word] = []  # Words that the table lacks
        self._table = np.empty((len(Word._fields), 0), np.int32)  # What is known of each word [field, word]
        self._numbers: dict[str, int] = {}
        self._stems: dict[str, int] = {}
        self._edges: dict[int, int] = {}
        self._first_nodes: dict[int, int] = {}
        self._node_words: list[int] = []
        self._known = dict(self._listed_kinds())
        self._units = dict(self._listed_units())
        self._with_opposite = frozenset(word for word, _ in opposites())
        roots = {word: self._stem_number(self._root(word, *self._kind(word))[0]) for word in self._with_opposite}
        pairs = [key(roots[one], roots[other]) for one, other in opposites()]
        self._opposed = set(roots.values())
        self._opposites = np.unique(np.array(pairs, np.int64))
        self._flagged = {
            flag: {stem(word) for word in lists()[name].split()}
            for name, flag in {
                "giving": GIVING,
                "saying": SAYING,
                "replacing": REPLACING,
                "converse": CONVERSE,
                "passing": PASSING,
                "versioned": VERSIONED,
            }.items()
        }
        phrases = {word.replace("_", " ") for word in (*self._known, *self._with_opposite, *self._units)}
        phrases |= {f"{unit.replace('_', ' ')}s" for unit in self._units if "_" in unit}
        phrases |= {*lists()["alike"], *lists()["alike"].values()}
        for phrase in sorted(phrases):
            if " " in phrase:
                self._add_phrase(phrase)
        # No word that is learned later begins a phrase.
        for word, node in self._first_nodes.items():
            self._new[word] = self._new[word]._replace(first_node=node)
        edges = sorted(self._edges.items())
        self._phrases = (
            np.array([step for step, _ in edges], np.int64),
            np.array([node for _, node in edges], np.int32),
            np.array(self._node_words, np.int32),
        )

    @staticmethod
    def _listed_kinds() -> Iterator[tuple[str, tuple[int, int]]]:
        """Yield each expression of the lists with its kind and value; of two kinds of one the last counts."""
        known: dict[str, tuple[int, int]] = {}
        for name, kind in {
            "function": FUNCTION,
            "be": BE,
            "conjunctions": CONJUNCTION,
            "movable": MOVABLE,
            "questions": QUESTION,
        }.items():
            known |= dict.fromkeys(lists()[name].split(), (kind, 0))
        known["one"], known["first"] = (FUNCTION, NUMBER_WORDS["one"]), (MOVABLE, NUMBER_WORDS["first"])
        known |= dict.fromkeys(" ".join(lists()["pronouns"].values()).split(), (PRONOUN, 0))
        for number, words in enumerate(lists()["markers"], 1):
            known |= dict.fromkeys(words, (MARKER, number))
        known |= dict.fromkeys(expressions(lists()["negations"]), (NEGATION, 0))
        known |= dict.fromkeys(NEGATIONS - {"without", "cannot"}, (NEGATION, 0))
        for name, kind in {"quantifiers": QUANTIFIER, "bounds": BOUND, "modals": MODAL}.items():
            values: dict[str, int] = {}
            for bit, texts in enumerate(lists()[name].values()):
                for expression in expressions(texts):
                    values[expression] = values.get(expression, 0) | 1 << bit
            # Negations keep their kind, and say what they are as quantifiers.
            for text, value in values.items():
                known[text] = NEGATION if known.get(text) == (NEGATION, 0) else kind, value
        known |= dict.fromkeys(expressions(lists()["only"]), (ONLY, 0))
        known |= dict.fromkeys(expressions(lists()["hardly only"]), (ONLY, WEAK))
        known |= dict.fromkeys(expressions(lists()["except"]), (EXCEPT, 0))
        known |= dict.fromkeys(expressions(lists()["no negations"]), (FUNCTION, 0))
        yield from known.items()

    @staticmethod
    def _listed_units() -> Iterator[tuple[str, int]]:
        """Yield each unit with its dimension and number."""
        for dimension, line in enumerate(lists()["units"]):
            for number, names in enumerate(line.split()):
                for name in names.split("="):
                    yield name, 1000 * dimension + number

    def _add_phrase(self, phrase: str) -> None:
        """Learn an expression of several words."""
        first, *others = [self.number(word) for word in phrase.split()]
        node = self._first_nodes.setdefault(first, len(self._node_words))
        if node == len(self._node_words):
            self._node_words.append(-1)
        for word in others:
            node = self._edges.setdefault(key(node, word), len(self._node_words))
            if node == len(self._node_words):
                self._node_words.append(-1)
        self._node_words[node] = self.number(phrase)

    def _stem_number(self, text: str) -> int:
        """Return the number of a stem."""
        return self._stems.setdefault(text, len(self._stems))

    def number(self, word: str) -> int:
        """Return the number of a word in lower case, or of a phrase."""
        if word not in self._numbers:
            self._numbers[word] = len(self.texts)
            self.texts.append(word)
            self._new.append(self._read(word))
        return self._numbers[word]

    def _read(self, word: str) -> Word:
        """Find out what is known of a word."""
        spelt = lists()["alike"].get(word, word)
        kind, value = self._kind(spelt)
        root, compared = self._root(spelt, kind, value)
        flags = sum(flag for flag, stems in self._flagged.items() if root in stems)
        parts = spelt.split()
        unit = next((self._units[form] for form in self._singulars(word) if form in self._units), -1)
        found = {
            CONVERSE: compared,
            PARTICIPLE: PARTICIPLES.fullmatch(spelt) is not None,
            HAS_OPPOSITE: self._stem_number(root) in self._opposed,
            SUBORDINATES: spelt in lists()["subordinating"].split(),
            CONFIRMS: any(map(_is_negative, parts)),
            NEGATIVE: UNDOES.fullmatch(spelt) is not None,
            NAME: kind == CONTENT and len(spelt) > 2 and spelt.isalpha() and root not in common_stems(),
            ASKS: spelt in lists()["asking"].split(),
            ASKS_HOW: spelt in ("how", "what"),
            QUESTIONS: spelt in QUESTION_WORDS,
            DETERMINER: spelt in lists()["determiners"].split(),
            BEFORE_NUMBER: spelt == "up to",
            SHORT: (len(spelt) == 1 and spelt.isalpha()) or spelt.upper() in ROMAN,
        }
        flags |= sum(flag for flag, holds in found.items() if holds)
        if unit >= 0:
            flags &= ~NAME
        base = self._kin(value) if kind == MARKER else self._base(spelt)
        return Word(kind, value, flags, self._stem_number(root), base, unit, crc32(word.encode()) >> 1)

    @staticmethod
    def _kin(value: int) -> int:
        """Return the groups of markers to which the marker of a number belongs, as bits."""
        marker = markers()[value - 1]
        return sum(1 << bit for bit, line in enumerate(lists()["kin"]) if marker in line.split())

    @staticmethod
    def _singulars(word: str) -> list[str]:
        """Return a word, and what it is the plural of."""
        whole = word.replace(" ", "_")
        return [whole, whole.removesuffix("s"), whole.removesuffix("es")]

    def _kind(self, word: str) -> tuple[int, int]:
        """Return the kind of a word, and its value."""
        if word in self._known:
            return self._known[word]
        if word == "'s":
            return POSSESSIVE, 0
        if not any(character.isalnum() for character in word):
            return (FUNCTION if word in "%()" else CLAUSE), 0
        if word in NUMBER_WORDS:
            return NUMBER, NUMBER_WORDS[word]
        if word[0].isdigit():
            return NUMBER, 1 + int(word) if word.isdecimal() and len(word) < 4 else 0
        return CONTENT, 0

    def _root(self, word: str, kind: int, value: int) -> tuple[str, bool]:
        """Return the stem of a word, and whether the word is the comparative of an adjective that has an opposite."""
        if kind == MARKER:
            return stem(markers()[value - 1]), False
        if kind == PRONOUN:
            return next(name for name, forms in lists()["pronouns"].items() if word in forms.split()), False
        base = positive(word)
        if base is not None:
            return stem(base), True
        return stem(word.replace(" ", "_")), False

    def _base(self, word: str) -> int:
        """Return the stem of what a negative prefix negates, or of the `-ful` for a `-less`; -1 if there is none."""
        if word.endswith(("less", "lessly")) and len(word) > 6:
            return self._stem_number(stem(f"{word[: word.rindex('less')]}ful"))
        for prefix in NEGATIVE_PREFIXES:
            rest = word.removeprefix(prefix)
            if len(word) > len(rest) >= 3 and rest[0] != "-":
                return self._stem_number(stem(rest))
        return -1

    def lexicon(self) -> Lexicon:
        """Return what is known of all words seen so far."""
        count = len(self.texts)
        if count > self._table.shape[1]:
            grown = np.empty((len(Word._fields), 2 * count), np.int32)
            grown[:, : self._table.shape[1]] = self._table
            self._table = grown
        if self._new:
            self._table[:, count - len(self._new) : count] = np.array(self._new, np.int32).T
            self._new.clear()
        return Lexicon._make([*self._table[:, :count], *self._phrases, self._opposites])
