"""BLEU and METEOR as sentence similarities: what word overlap alone achieves on STS (Table 8 of ParaNMT-50M).

Neither is symmetric, so each similarity is the mean of both directions. Both look at the word tokens of
`paranmt_hf.text.definitions`.

Synonyms are read from WordNet's dictionary files (format: wndb(5WN)). nltk has a reader too, but it wants files that
Debian's dictionary lacks, and reads only folders that are registered for the whole process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
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
        score = self._bleu.sentence_score
        return _both_directions(lambda one, other: score(tokenise(one), [tokenise(other)]).score / 100, left, right)


class Meteor:
    """METEOR, the mean of both directions.

    nltk's, with its parameters (recall weighs nine times as much as precision): words match that are equal, then those
    with equal Porter stems, then synonyms. Synonyms need WordNet's dictionary, which nothing here downloads (see
    `find_wordnet`); without it the other two stages run. `stages` and `notes` say which did.
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
        self._dictionary = read_wordnet(folder)

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


DEBIAN = Path("/usr/share/wordnet")  # Where Debian's package wordnet-base puts the dictionary
# The rules of detachment of morphy(7WN) for each part of speech: an ending, and what takes its place.
_ENDINGS = {
    "noun": "s/ ses/s ves/f xes/x zes/z ches/ch shes/sh men/man ies/y",
    "verb": "s/ ies/y es/e es/ ed/e ed/ ing/e ing/",
    "adj": "er/ est/ er/e est/e",
    "adv": "",
}
_FILES = [f"{kind}.{part}" for kind in ("index", "data") for part in _ENDINGS]


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

    offsets: dict[str, tuple[int, ...]]
    data: bytes
    exceptions: dict[str, list[str]]
    endings: list[tuple[str, ...]]

    def synonyms(self, word: str) -> Iterator[str]:
        """Members of all sets of the word or its base form."""
        bases = self.exceptions.get(word)
        if bases is None:
            bases = [word[: -len(old)] + new for old, new in self.endings if word.endswith(old)]
        for offset in (offset for form in (word, *bases) for offset in self.offsets.get(form, ())):
            # Offset, file number, type, number of words (hexadecimal), then each word and its sense number.
            fields = self.data[offset : self.data.index(b"\n", offset)].decode("utf8").split(" ")
            for member in fields[4 : 4 + 2 * int(fields[3], 16) : 2]:
                # Adjectives may carry a marker of where they stand, such as `(p)`.
                yield member.partition("(")[0]


class WordNet:
    """A dictionary in memory; without a folder an empty one."""

    def __init__(self, folder: Path | None) -> None:
        self._parts = [_read_part(folder, name) for name in _ENDINGS] if folder else []
        self._known: dict[str, list[SimpleNamespace]] = {}

    def synonyms(self, word: str) -> set[str]:
        """Single-word synonyms of a word in lower case or of its base form, including the word itself if known."""
        return {member for part in self._parts for member in part.synonyms(word) if "_" not in member}

    def synsets(self, word: str) -> list[SimpleNamespace]:
        """The synonyms of a word in the interface of nltk's WordNet."""
        if word not in self._known:
            lemmas = [SimpleNamespace(name=partial(str, synonym)) for synonym in self.synonyms(word)]
            self._known[word] = [SimpleNamespace(lemmas=lambda: lemmas)]
        return self._known[word]


# Once per process.
read_wordnet = cache(WordNet)


def _read_part(folder: Path, name: str) -> _Part:
    try:
        index = (folder / f"index.{name}").read_text(encoding="utf8").splitlines()
        data = (folder / f"data.{name}").read_bytes()
        irregular = folder / f"{name}.exc"
        lines = irregular.read_text(encoding="utf8").splitlines() if irregular.is_file() else []
        offsets = {}
        # Word, part of speech, number of sets, ..., offset of each set; lines of the licence begin with blanks.
        for fields in (line.split() for line in index if line and not line.startswith(" ")):
            offsets[fields[0]] = tuple(map(int, fields[-int(fields[2]) :]))
    except (OSError, ValueError, IndexError) as error:
        raise InputError(
            f"cannot read the {name}s of WordNet in {folder}: {error}; install the dictionary again"
        ) from None
    exceptions = {form: bases for form, *bases in map(str.split, lines) if form}
    return _Part(offsets, data, exceptions, [tuple(rule.split("/")) for rule in _ENDINGS[name].split()])
