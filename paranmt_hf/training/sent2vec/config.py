"""The settings of Sent2Vec, each with its source: Pagliardini, Gupta and Jaggi (2018, arXiv:1703.02507)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from paranmt_hf.errors import InputError
from paranmt_hf.util.settings import check, seed_setting, setting

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
    """How Sent2Vec is trained. What is None is that of the preset, for words alone or with n-grams; see `resolved`."""

    preset: Literal["books", "wikipedia", "twitter"] = setting(
        "wikipedia", "whose settings hold where nothing else is given (table 5)", changes_result=False
    )
    ngrams: int = setting(1, "words of the longest n-grams; 1 for words alone (section 2)", at_least=1, at_most=20)
    dimension: int | None = setting(None, "size of a vector (table 5: 600 or 700)", at_least=1, at_most=100_000)
    min_count: int | None = setting(None, "words that occur less often are left out (table 5)", at_least=1)
    min_target_count: int | None = setting(
        None, "words that occur less often are in contexts, but never predicted (table 5)", at_least=1
    )
    max_words: int | None = setting(None, "keep the most frequent so many words", at_least=1)
    epochs: int | None = setting(None, "passes over the text (table 5)", at_least=1, at_most=MOST)
    learning_rate: float = setting(
        0.2, "rate at the beginning; it falls linearly to zero (table 5)", above=0, at_most=LARGEST_RATE
    )
    threshold: float | None = setting(
        None,
        "t: a word of frequency f is predicted with probability sqrt(t/f) + t/f (section 2.1; table 5)",
        above=0,
        at_most=1,
    )
    negatives: int = setting(10, "negatives of a target (table 5)", at_least=1, at_most=MOST_NEGATIVES)
    dropped_ngrams: int | None = setting(
        None, "K: n-grams of each sentence that are left out, drawn anew each time (section 2.4; table 5)", at_least=0
    )
    buckets: int = setting(
        2_000_000,
        "buckets that n-grams are hashed into; rows are for those that occur",
        at_least=0,
        at_most=MOST_BUCKETS,
    )
    min_ngram_count: int = setting(
        1, "buckets that occur less often get no row (not in the paper)", at_least=1, at_most=255
    )
    placeholder_ngrams: Literal["train", "leave-out"] = setting(
        "leave-out",
        "n-grams that reach over the place of the target, which are met in training alone: leave them out, or "
        "train them as the authors' program does",
    )
    cut: Literal["words", "blanks"] = setting(
        "words", "how text is cut: lower-cased words as WORD reads them, or at blanks alone, for text cut before"
    )
    seed: int = seed_setting(1, "decides initial weights, targets, negatives and dropped n-grams")
    threads: int = setting(
        1,
        "threads that train at once without locks; with more than one, equal runs differ a little",
        at_least=1,
        at_most=1024,
    )
    checkpoint_seconds: float = setting(
        60.0,
        "time between two checkpoints; the result does not depend on it",
        at_least=0,
        changes_result=False,
    )

    def __post_init__(self) -> None:
        check(self)
        if self.ngrams > 1 and self.buckets < 1:
            raise InputError(
                f"ngrams {self.ngrams} are hashed into buckets, and there are {self.buckets}; give --buckets 2000000, "
                "or --ngrams 1"
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
