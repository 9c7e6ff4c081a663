"""The settings of Sent2Vec: Pagliardini, Gupta and Jaggi (2018, arXiv:1703.02507)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from paranmt_hf.errors import InputError
from paranmt_hf.util.markers import Count, Group, PythonOnly, Range, RunOnly, Seed
from paranmt_hf.util.settings import Settings

# The loss of a target is the logarithm of a product, with a factor of at most 2 for each negative. The product must
# stay finite.
MOST_NEGATIVES = 1000
# Settings of table 5: dimensions, minimum count of words, minimum count of targets, epochs, threshold of subsampling,
# and number of dropped n-grams. For each corpus those for words alone come first, then those for words and pairs of
# words. The rate is always 0.2, and a target has 10 negatives.
_TABLE_5 = {
    "books": ((700, 5, 8, 13, 1e-5, 0), (700, 5, 5, 12, 5e-6, 7)),
    "wikipedia": ((600, 8, 20, 9, 1e-5, 0), (700, 8, 20, 9, 5e-6, 4)),
    "twitter": ((700, 20, 20, 3, 1e-6, 0), (700, 20, 20, 3, 1e-6, 3)),
}
STEPS = Group("steps", "Which words are predicted, against how many others, and at which rate.")
NGRAMS = Group("ngram_settings", "How n-grams are hashed and trained.")


@dataclass(frozen=True)
class Sent2VecConfig(Settings):
    """Settings of Sent2Vec; missing ones are those of the preset, for words alone or with n-grams (table 5).

    Attributes:
        preset: Corpus of the paper whose settings are the defaults (table 5); if left out those of Wikipedia, with a
            higher threshold for a text of fewer words than theirs.
        ngrams: Number of words of the longest n-grams; 1 for words alone (section 2).
        dimension: Dimensions of a vector (table 5: 600 or 700).
        min_count: Leave out words that occur less often (table 5).
        min_target_count: Words that occur less often are in contexts, but are not predicted (table 5).
        epochs: Passes over the text (table 5).
        learning_rate: Rate at the beginning; it falls linearly to zero (table 5).
        threshold: t: a word of frequency f is predicted with probability sqrt(t/f) + t/f (section 2.1, table 5).
        negatives: Number of negatives of a target (table 5).
        l1: Weight of the L1 norm of the rows of contexts, targets and negatives, which makes numbers zero (version 3
            of the paper, appendix B); those of contexts are shrunk once for each sentence.
        dropped_ngrams: K: number of n-grams of each sentence that are left out at random (section 2.4, table 5).
        buckets: Number of buckets that n-grams are hashed into; only those that occur get a vector.
        min_ngram_count: Buckets that occur less often get no vector (not in the paper).
        context: What a target is predicted from. `paper`: the average of the rest of its sentence (equations 2 and 3);
            `placeholder`: this and a trained row in the place of the target; `program`: these and the n-grams with
            that row, as in the authors' program; `cbow`, for words alone: the words around the target, the CBOW that
            the paper compares with (section 2.3).
        cut: How text is cut: lower-cased words as WORD reads them, or at blanks alone, for text that is tokenised.
        seed: Seed of the initial weights, targets, negatives and dropped n-grams.
        threads: Number of threads that train at once without locks; with more than one, equal runs differ a little.
    """

    preset: Annotated[Literal["books", "wikipedia", "twitter"] | None, RunOnly] = None
    ngrams: Annotated[int, Range(at_least=1, at_most=20)] = 1
    dimension: Annotated[int | None, Range(at_least=1, at_most=100_000)] = None
    min_count: Count | None = None
    min_target_count: Annotated[Count | None, STEPS] = None
    epochs: Annotated[int | None, Range(at_least=1, at_most=1_000_000)] = None
    learning_rate: Annotated[float, Range(above=0, at_most=1), STEPS] = 0.2
    threshold: Annotated[float | None, Range(above=0, at_most=1), STEPS] = None
    negatives: Annotated[int, Range(at_least=1, at_most=MOST_NEGATIVES), STEPS] = 10
    l1: Annotated[float, Range(at_least=0, at_most=1), STEPS] = 0.0
    dropped_ngrams: Annotated[int | None, Range(at_least=0), NGRAMS] = None
    buckets: Annotated[int, Range(at_least=0, at_most=2**28), NGRAMS] = 2_000_000
    min_ngram_count: Annotated[int, Range(at_least=1, at_most=255), PythonOnly] = 1
    context: Literal["paper", "placeholder", "program", "cbow"] = "paper"
    cut: Literal["words", "blanks"] = "words"
    seed: Seed = 1
    threads: Annotated[int, Range(at_least=1, at_most=1024)] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ngrams > 1 and self.buckets < 1:
            raise InputError(
                f"`ngrams` {self.ngrams} needs buckets that they are hashed into, and `buckets` is {self.buckets}; "
                "leave it out, or give 1 for `ngrams`",
                option="buckets",
            )
        if self.context == "cbow":
            # CBOW has no n-grams and predicts all words.
            for name, usual in (("ngrams", {1}), ("l1", {0.0}), ("min_target_count", {None, 1})):
                if getattr(self, name) not in usual:
                    raise InputError(f"`context` cbow has no `{name}`; leave it out", option=name)

    def resolved(self) -> Sent2VecConfig:
        """Return these settings with missing ones filled in.

        Without n-grams, the settings about them get their default values, so that they do not distinguish results.

        Without a preset, a missing threshold stays missing; it depends on the text (`threshold_for`).
        """
        missing: dict[str, Any] = {}
        names = ("dimension", "min_count", "min_target_count", "epochs", "threshold", "dropped_ngrams")
        for name, value in zip(names, self._table, strict=True):
            if getattr(self, name) is None:
                missing[name] = value
        if self.preset is None:
            missing.pop("threshold", None)
        if self.context == "cbow":
            missing["min_target_count"] = 1
        if self.ngrams == 1:
            # These have no effect without n-grams, so they must not distinguish results.
            missing |= {"dropped_ngrams": 0, "buckets": Sent2VecConfig.buckets, "min_ngram_count": 1}
        return replace(self, **missing)

    @property
    def _table(self) -> tuple[int, int, int, int, float, int]:
        """The values of table 5 for these settings, in the order of `_TABLE_5`."""
        return _TABLE_5[self.preset or "wikipedia"][self.ngrams > 1]

    def threshold_for(self, tokens: int) -> float:
        """Return the threshold for a text of this number of tokens: the one that is set, or one that fits the text."""
        if self.threshold is not None:
            return self.threshold
        # In a text much shorter than the paper's, hardly any word would be predicted, so the threshold is larger.
        return max(self._table[4], float(f"{min(5000 / tokens, 1e-3):.2g}"))
