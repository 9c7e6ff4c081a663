"""BLEU and METEOR as sentence similarities: what word overlap alone achieves on STS (Table 8 of ParaNMT-50M).

Neither is symmetric, so each similarity is the mean of both directions. Both look at the word tokens of
`paranmt_hf.text.definitions`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.similarities import PairSimilarity
from paranmt_hf.text.definitions import words
from paranmt_hf.util.optional import require

BaselineName = Literal["bleu", "meteor"]


def baseline(name: BaselineName) -> PairSimilarity:
    """Create the baseline `bleu` or `meteor`."""
    if name == "bleu":
        return Bleu()
    if name == "meteor":
        return Meteor()
    raise InputError(f"baselines must be bleu or meteor, was {name!r}", option="baselines")


class Bleu:
    """A measure of sentence pairs: the mean of sacrebleu's sentence BLEU in both directions.

    N-grams have up to four words; a shorter sentence counts with the n-grams that it has (effective order). Smoothing
    is exponential.
    """

    def __init__(self) -> None:
        sacrebleu = require("sacrebleu", "evaluate")
        # Sentences are cut into tokens here, so sacrebleu must not cut them again.
        self._bleu = sacrebleu.BLEU(tokenize="none", effective_order=True, smooth_method="exp")
        self.notes = ("BLEU: sentence BLEU, effective order, exponential smoothing, mean of both directions.",)

    def similarities(self, left: list[str], right: list[str]) -> np.ndarray:
        """Compute the BLEU of each pair [pair], in [0, 1]."""

        @cache
        def tokens(sentence: str) -> str:
            return " ".join(words(sentence))

        def score(hypothesis: str, reference: str) -> float:
            return float(self._bleu.sentence_score(tokens(hypothesis), [tokens(reference)]).score / 100)

        return _both_directions(score, left, right)


class Meteor:
    """A measure of sentence pairs: the mean of nltk's METEOR in both directions, with nltk's parameters.

    Recall weighs nine times as much as precision. Words are matched in stages: equal words, then words with equal
    Porter stems, then synonyms. Synonyms need nltk's WordNet, which is never downloaded here; without it, only the
    first two stages run.

    Attributes:
        stages: Names of the stages that run.
        notes: Sentences for the results, which name the stages too.
    """

    def __init__(self) -> None:
        require("nltk", "evaluate")
        from nltk.stem.porter import PorterStemmer

        wordnet = find_wordnet()
        self.stages = ("exact", "stem") if wordnet is None else ("exact", "stem", "synonym")
        self.notes = (
            "METEOR: nltk's; the paper's is that of Denkowski & Lavie 2014. Mean of both directions; stages: "
            f"{', '.join(self.stages)}.",
        )
        # Stemming and looking up words takes most of the time, and the same words occur again and again.
        self._stemmer = SimpleNamespace(stem=lru_cache(maxsize=None)(PorterStemmer().stem))
        find = (lambda word: []) if wordnet is None else wordnet.synsets
        self._wordnet = SimpleNamespace(synsets=lru_cache(maxsize=None)(find))

    def similarities(self, left: list[str], right: list[str]) -> np.ndarray:
        """Compute the METEOR of each pair [pair], in [0, 1]."""
        tokens = lru_cache(maxsize=None)(words)
        return _both_directions(lambda one, other: self.one_direction(tokens(one), tokens(other)), left, right)

    def one_direction(self, hypothesis: Sequence[str], reference: Sequence[str]) -> float:
        """Compute the METEOR of a hypothesis, given by its words, against a reference, in [0, 1]."""
        from nltk.translate.meteor_score import single_meteor_score

        return float(single_meteor_score(reference, hypothesis, stemmer=self._stemmer, wordnet=self._wordnet))


def find_wordnet() -> Any:  # noqa: ANN401 - nltk's reader
    """Open the WordNet of nltk's data (`python -m nltk.downloader wordnet`); None if it is not installed."""
    import nltk
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    for place in ("corpora/wordnet", "corpora/wordnet.zip/wordnet/"):
        try:
            folder = nltk.data.find(place)
        except LookupError:
            continue
        with warnings.catch_warnings():
            # The reader warns that it lacks the corpus for other languages than English, which is not needed.
            warnings.simplefilter("ignore")
            return WordNetCorpusReader(folder, omw_reader=None)
    return None


def _both_directions(score: Callable[[str, str], float], left: list[str], right: list[str]) -> np.ndarray:
    """Compute the mean of the scores of each pair in both directions [pair], float64."""
    means = [(score(one, other) + score(other, one)) / 2 for one, other in zip(left, right, strict=True)]
    return np.array(means, np.float64)
