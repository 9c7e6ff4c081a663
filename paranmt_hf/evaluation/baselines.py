"""BLEU and METEOR as sentence similarities: what word overlap alone achieves on STS (Table 8 of ParaNMT-50M).

Neither is symmetric, so each similarity is the mean of both directions. Both look at the word tokens of
`paranmt_hf.text.definitions`.

Synonyms are read from WordNet's dictionary files (format: wndb(5WN)). nltk has a reader too, but it wants files that
Debian's dictionary lacks, and reads only folders that are registered for the whole process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.similarities import PairSimilarity
from paranmt_hf.text.definitions import words
from paranmt_hf.util.optional import require

BaselineName = Literal["bleu", "meteor"]


def baseline(name: BaselineName) -> PairSimilarity:
    """Create a baseline by name."""
    if name == "bleu":
        return Bleu()
    if name == "meteor":
        return Meteor()
    raise InputError(f"baselines must be bleu or meteor, was {name!r}")


class Bleu:
    """Sentence BLEU, the mean of both directions.

    sacrebleu's: n-grams up to four words, of a shorter sentence only those it has (effective order), exponential
    smoothing.
    """

    def __init__(self) -> None:
        sacrebleu = require("sacrebleu", "evaluate")
        # The tokens are ours, so sacrebleu must not cut them again.
        self._bleu = sacrebleu.BLEU(tokenize="none", effective_order=True, smooth_method="exp")
        self.notes = ("BLEU: sentence BLEU, effective order, exponential smoothing, mean of both directions.",)

    def similarities(self, left: list[str], right: list[str]) -> np.ndarray:
        """Compute BLEU of every pair [pair], in [0, 1]."""
        tokenise = lru_cache(maxsize=None)(lambda sentence: " ".join(words(sentence)))
        return _both_directions(
            lambda sentence, other: self._one_direction(tokenise(sentence), tokenise(other)), left, right
        )

    def _one_direction(self, hypothesis: str, reference: str) -> float:
        return self._bleu.sentence_score(hypothesis, [reference]).score / 100


class Meteor:
    """METEOR, the mean of both directions.

    nltk's, with its parameters (recall weighs nine times as much as precision): words match that are equal, then
    those with equal Porter stems, then synonyms. Synonyms need WordNet's dictionary, which nothing here downloads;
    without it the other two stages run. `stages` and `notes` say which did.

    Args:
        wordnet: Folder of the dictionary; by default the environment variable `WNSEARCHDIR`, else that of Debian's
            package `wordnet-base`, else no synonyms.
    """

    def __init__(self, wordnet: Path | str | None = None) -> None:
        require("nltk", "evaluate")
        stemmer = require("nltk.stem.porter", "evaluate").PorterStemmer()
        self._score = require("nltk.translate.meteor_score", "evaluate").single_meteor_score

        folder = find_wordnet(wordnet)
        self.stages = ("exact", "stem", "synonym") if folder else ("exact", "stem")
        self.notes = (
            "METEOR: nltk's; the paper's is that of Denkowski & Lavie 2014. Mean of both directions; stages: "
            f"{', '.join(self.stages)}.",
        )
        # The same words occur again and again, and stemming takes most of the time.
        self._stemmer = SimpleNamespace(stem=lru_cache(maxsize=None)(stemmer.stem))
        self._dictionary = _Dictionary(read_wordnet(folder) if folder else None)

    def similarities(self, left: list[str], right: list[str]) -> np.ndarray:
        """Compute METEOR of every pair [pair], in [0, 1]."""
        tokenise = lru_cache(maxsize=None)(words)
        return _both_directions(
            lambda sentence, other: self.one_direction(tokenise(sentence), tokenise(other)), left, right
        )

    def one_direction(self, hypothesis: Sequence[str], reference: Sequence[str]) -> float:
        """Compute METEOR of the words of a hypothesis against those of a reference, in [0, 1]."""
        return self._score(reference, hypothesis, stemmer=self._stemmer, wordnet=self._dictionary)


def _both_directions(score: Callable[[str, str], float], left: list[str], right: list[str]) -> np.ndarray:
    pairs = zip(left, right, strict=True)
    return np.array([(score(first, second) + score(second, first)) / 2 for first, second in pairs], np.float64)


class _Dictionary:
    """The dictionary in the interface of nltk's WordNet; without a dictionary no word has synonyms."""

    def __init__(self, wordnet: WordNet | None) -> None:
        self._wordnet = wordnet
        self._known: dict[str, list[SimpleNamespace]] = {}

    def synsets(self, word: str) -> list[SimpleNamespace]:
        if self._wordnet is None:
            return []
        if word not in self._known:
            lemmas = [SimpleNamespace(name=partial(str, synonym)) for synonym in self._wordnet.synonyms(word)]
            self._known[word] = [SimpleNamespace(lemmas=lambda: lemmas)]
        return self._known[word]


# Where Debian's package wordnet-base puts the dictionary.
DEBIAN = Path("/usr/share/wordnet")
_PARTS = ("noun", "verb", "adj", "adv")
_FILES = [f"{kind}.{part}" for kind in ("index", "data") for part in _PARTS]
# The rules of detachment of morphy(7WN): an ending, and what takes its place.
_ENDINGS: dict[str, tuple[tuple[str, str], ...]] = {
    "noun": (
        ("s", ""),
        ("ses", "s"),
        ("ves", "f"),
        ("xes", "x"),
        ("zes", "z"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("men", "man"),
        ("ies", "y"),
    ),
    "verb": (
        ("s", ""),
        ("ies", "y"),
        ("es", "e"),
        ("es", ""),
        ("ed", "e"),
        ("ed", ""),
        ("ing", "e"),
        ("ing", ""),
    ),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}


def find_wordnet(folder: Path | str | None = None) -> Path | None:
    """Find a dictionary: the folder, else `WNSEARCHDIR`, else `DEBIAN`; None if it does not exist."""
    named = folder or os.environ.get("WNSEARCHDIR")
    folder = Path(named) if named else DEBIAN
    missing = [name for name in _FILES if not (folder / name).is_file()]
    if not missing:
        return folder
    if named:
        raise InputError(
            f"{folder} holds no dictionary of WordNet: expected {missing[0]} in it; on Debian install wordnet-base"
        )
    return None


@dataclass(frozen=True)
class _Part:
    """One part of speech: offsets of the synonym sets of each word, and its irregular forms."""

    name: str
    offsets: dict[str, tuple[int, ...]]
    data: bytes
    exceptions: dict[str, list[str]]

    def synonyms(self, word: str) -> set[str]:
        """Members of all sets of the word or its base form."""
        return {
            member
            for form in self._base_forms(word)
            for offset in self.offsets[form]
            for member in self._members(offset)
        }

    def _base_forms(self, word: str) -> list[str]:
        if word in self.exceptions:
            return self._known([word, *self.exceptions[word]])
        detached = [word[: -len(old)] + new for old, new in _ENDINGS[self.name] if word.endswith(old)]
        return self._known([word, *detached])

    def _known(self, forms: list[str]) -> list[str]:
        return [form for form in forms if form in self.offsets]

    def _members(self, offset: int) -> list[str]:
        # Offset, file number, type, number of words (hexadecimal), then each word and its sense number.
        fields = self.data[offset : self.data.index(b"\n", offset)].decode("utf8").split(" ")
        words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
        # Adjectives may carry a marker of where they stand, such as `(p)`.
        return [word.partition("(")[0] for word in words]


class WordNet:
    """A dictionary in memory."""

    def __init__(self, folder: Path) -> None:
        self._parts = [_read_part(folder, name) for name in _PARTS]
        self._known: dict[str, frozenset[str]] = {}

    def synonyms(self, word: str) -> frozenset[str]:
        """Single-word synonyms of a word in lower case or of its base form, including the word itself if known."""
        if word not in self._known:
            members = {member for part in self._parts for member in part.synonyms(word) if "_" not in member}
            self._known[word] = frozenset(members)
        return self._known[word]


@cache
def read_wordnet(folder: Path) -> WordNet:
    """Read a dictionary, once per process."""
    return WordNet(folder)


def _read_part(folder: Path, name: str) -> _Part:
    try:
        index = (folder / f"index.{name}").read_text(encoding="utf8").splitlines()
        data = (folder / f"data.{name}").read_bytes()
        irregular = folder / f"{name}.exc"
        lines = irregular.read_text(encoding="utf8").splitlines() if irregular.is_file() else []
        # Lines of the licence begin with blanks.
        offsets = dict(_index_entry(line) for line in index if line and not line.startswith(" "))
    except (OSError, ValueError, IndexError) as error:
        raise InputError(
            f"cannot read the {name}s of WordNet in {folder}: {error}; install the dictionary again"
        ) from None
    return _Part(name, offsets, data, {form: bases for form, *bases in map(str.split, lines) if form})


def _index_entry(line: str) -> tuple[str, tuple[int, ...]]:
    """Word, part of speech, number of sets, ..., then the offset of each set."""
    fields = line.split()
    return fields[0], tuple(int(offset) for offset in fields[-int(fields[2]) :])
