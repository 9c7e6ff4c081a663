"""BLEU and METEOR as similarities of sentences: what overlap of words alone achieves on STS (Table 8 of ParaNMT-50M).

Neither is symmetric, so each similarity is the mean of both directions. Both look at the word tokens of
`paranmt_hf.text.definitions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.similarities import PairSimilarity
from paranmt_hf.evaluation.wordnet import WordNet, find_wordnet, read_wordnet
from paranmt_hf.text.definitions import words
from paranmt_hf.util.optional import require

BaselineName = Literal["bleu", "meteor"]


def baseline(name: BaselineName) -> PairSimilarity:
    """Make a baseline by name."""
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
        self._stemmer = _CachedStemmer(stemmer)
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


class _Lemma:
    """What nltk asks of a synonym."""

    def __init__(self, word: str) -> None:
        self._word = word

    def name(self) -> str:
        return self._word


class _Synset:
    """What nltk asks of a set of synonyms."""

    def __init__(self, synonyms: Iterable[str]) -> None:
        self._lemmas = [_Lemma(word) for word in synonyms]

    def lemmas(self) -> list[_Lemma]:
        return self._lemmas


class _Dictionary:
    """What nltk asks of WordNet; without a dictionary no word has synonyms."""

    def __init__(self, wordnet: WordNet | None) -> None:
        self._wordnet = wordnet
        self._known: dict[str, list[_Synset]] = {}

    def synsets(self, word: str) -> list[_Synset]:
        if self._wordnet is None:
            return []
        if word not in self._known:
            self._known[word] = [_Synset(self._wordnet.synonyms(word))]
        return self._known[word]


class _CachedStemmer:
    """The same words come again and again, and stemming takes most of the time."""

    def __init__(self, stemmer: Any) -> None:  # noqa: ANN401
        self.stem = lru_cache(maxsize=None)(stemmer.stem)
