"""The settings of Sent2Vec, each with its source: Pagliardini, Gupta and Jaggi (2018, arXiv:1703.02507)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from paranmt_hf.errors import InputError
from paranmt_hf.util.settings import Advanced, Count, PythonOnly, Range, RunOnly, Seed, check

MOST = 1_000_000
LARGEST_RATE = 1
# The loss of a target takes the logarithm of a product of as many numbers of at most 2, which must stay finite.
MOST_NEGATIVES = 1000
# A byte for each bucket while n-grams are counted, four while they are trained.
MOST_BUCKETS = 2**28
# Settings that have no effect on words alone.
OF_NGRAMS = ("dropped_ngrams", "buckets", "min_ngram_count", "placeholder_ngrams")
# Table 5: dimensions, minimum counts of words and of targets, epochs, threshold of subsampling, n-grams dropped. In
# each the rate is 0.2 and a target has 10 negatives. First words alone, then words and pairs of words.
_TABLE_5 = {
    "books": ((700, 5, 8, 13, 1e-5, 0), (700, 5, 5, 12, 5e-6, 7)),
    "wikipedia": ((600, 8, 20, 9, 1e-5, 0), (700, 8, 20, 9, 5e-6, 4)),
    "twitter": ((700, 20, 20, 3, 1e-6, 0), (700, 20, 20, 3, 1e-6, 3)),
}
_NAMES = ("dimension", "min_count", "min_target_count", "epochs", "threshold", "dropped_ngrams")


@dataclass(frozen=True)
class Sent2VecConfig:
    """How Sent2Vec is trained; what is not given is that of the preset, for words alone or with n-grams (table 5).

    Attributes:
        preset: Corpus of the paper whose settings are the defaults (table 5).
        ngrams: Number of words of the longest n-grams; 1 for words alone (section 2).
        dimension: Dimensions of a vector (table 5: 600 or 700).
        min_count: Leave out words that occur less often (table 5).
        min_target_count: Words that occur less often are in contexts, but are not predicted (table 5).
        max_words: Maximum number of words, the most frequent ones.
        epochs: Passes over the text (table 5).
        learning_rate: Rate at the beginning; it falls linearly to zero (table 5).
        threshold: t: a word of frequency f is predicted with probability sqrt(t/f) + t/f (section 2.1, table 5).
        negatives: Number of negatives of a target (table 5).
        dropped_ngrams: K: number of n-grams of each sentence that are left out at random (section 2.4, table 5).
        buckets: Number of buckets that n-grams are hashed into; only those that occur get a vector.
        min_ngram_count: Buckets that occur less often get no vector (not in the paper).
        placeholder_ngrams: N-grams that contain the place of the target, which occur in training alone: leave them
            out, or train them as the authors' program does.
        cut: How text is cut: lower-cased words as WORD reads them, or at blanks alone, for text that is tokenised.
        seed: Seed of the initial weights, targets, negatives and dropped n-grams.
        threads: Number of threads that train at once without locks; with more than one, equal runs differ a little.
        checkpoint_seconds: Seconds between two checkpoints.
    """

    preset: Annotated[Literal["books", "wikipedia", "twitter"], RunOnly] = "wikipedia"
    ngrams: Annotated[int, Range(at_least=1, at_most=20)] = 1
    dimension: Annotated[int | None, Range(at_least=1, at_most=100_000)] = None
    min_count: Count | None = None
    min_target_count: Count | None = None
    max_words: Annotated[Count | None, Advanced] = None
    epochs: Annotated[int | None, Range(at_least=1, at_most=MOST)] = None
    learning_rate: Annotated[float, Range(above=0, at_most=LARGEST_RATE), Advanced] = 0.2
    threshold: Annotated[float | None, Range(above=0, at_most=1), Advanced] = None
    negatives: Annotated[int, Range(at_least=1, at_most=MOST_NEGATIVES), Advanced] = 10
    dropped_ngrams: Annotated[int | None, Range(at_least=0), Advanced] = None
    buckets: Annotated[int, Range(at_least=0, at_most=MOST_BUCKETS), Advanced] = 2_000_000
    min_ngram_count: Annotated[int, Range(at_least=1, at_most=255), PythonOnly] = 1
    placeholder_ngrams: Annotated[Literal["train", "leave-out"], Advanced] = "leave-out"
    cut: Literal["words", "blanks"] = "words"
    seed: Seed = 1
    threads: Annotated[int, Range(at_least=1, at_most=1024)] = 1
    checkpoint_seconds: Annotated[float, Range(at_least=0), Advanced, RunOnly] = 60.0

    def __post_init__(self) -> None:
        check(self)
        if self.ngrams > 1 and self.buckets < 1:
            raise InputError(
                f"ngrams {self.ngrams} are hashed into buckets, and there are {self.buckets}; give 2000000 `buckets`, "
                "or 1 for `ngrams`"
            )

    def resolved(self) -> Sent2VecConfig:
        """Fill in what was left open; without n-grams, their settings become the defaults."""
        values: dict[str, Any] = dict(zip(_NAMES, _TABLE_5[self.preset][self.ngrams > 1], strict=True))
        values = {name: value for name, value in values.items() if getattr(self, name) is None}
        if self.ngrams == 1:
            usual = Sent2VecConfig()
            values |= {name: getattr(usual, name) for name in OF_NGRAMS} | {"dropped_ngrams": 0}
        return replace(self, **values)

    @property
    def with_placeholder(self) -> bool:
        """Whether n-grams that reach over the place of the target are trained."""
        return self.placeholder_ngrams == "train"
