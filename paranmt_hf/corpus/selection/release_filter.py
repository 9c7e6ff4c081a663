"""Which rows `paranmt select` keeps: the settings, and their filters in the order in which they decide."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import get_args

import pyarrow as pa

from paranmt_hf.corpus.draws import Interval
from paranmt_hf.corpus.language import LANGUAGES, Detector, InLanguage, LanguageConfig
from paranmt_hf.corpus.selection.copies import Copied, FirstCopies
from paranmt_hf.corpus.selection.decontamination import MIN_WORDS, NGRAM, EvaluationText, NotInEvaluation
from paranmt_hf.corpus.selection.filters import (
    DifferentSides,
    Filter,
    FromOrigins,
    HasValue,
    InRange,
    Keep,
    LengthLimit,
    OneHypothesis,
)
from paranmt_hf.corpus.selection.minhash import Unit
from paranmt_hf.corpus.selection.near_duplicates import FirstOfLike, Likeness
from paranmt_hf.corpus.selection.ranks import Sample, Tenths, parse_parts
from paranmt_hf.encoders.scorer import ScorerConfig
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.sentences import read_sentences
from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.util.settings import check, is_given, seed_setting, setting

logger = logging.getLogger(__name__)

# Settings that do nothing without another one.
NEEDS = {
    "by": "tenths",
    "seed": "sample",
    **dict.fromkeys(("near_similarity", "near_unit", "near_size", "near_encoder"), "drop_near_duplicates"),
    **dict.fromkeys(("near_cosine", "near_exhaustive"), "near_encoder"),
    **{f"language_{name}": "language" for name in ("detector", "candidates", "probability", "letters")},
    **dict.fromkeys(("decontaminate_ngram", "decontaminate_words"), "decontaminate"),
}


@dataclass(frozen=True)
class ReleaseFilter:
    """Which rows of a release are kept.

    Attributes:
        ranges: Smallest and largest value of columns, both inside; None is no bound.
    """

    tenths: str | None = setting(
        None, "tenths of all rows that are kept, such as 9-10 or 1,3: 1 has the lowest values, 10 the highest"
    )
    by: str = setting("para_score", "column of numbers whose ranks the tenths are of")
    ranges: Mapping[str, Interval] = field(default_factory=dict)
    origin: tuple[str, ...] | None = setting(None, "keep rows of these origins")
    min_length: int | None = setting(None, "fewest word tokens on either side", at_least=1)
    max_length: int | None = setting(None, "most word tokens on either side; the paper: 30", at_least=1)
    keep: Keep | None = setting(
        None, "of several hypotheses of a sentence that pass all other filters keep one (before --sample)"
    )
    drop_identical: bool = setting(False, "drop pairs whose sides have the same letters and digits, case aside")
    drop_copies: tuple[str, ...] | None = setting(
        None, "keep only the first row of each pair, reference or translation, exactly as written"
    )
    drop_near_duplicates: Copied | None = setting(
        None, "keep only the first of rows whose pair, reference or translation is nearly the same (MinHash)"
    )
    near_similarity: float = setting(
        Likeness.similarity,
        "nearly the same: smallest Jaccard similarity of the two sets of shingles",
        above=0,
        at_most=1,
    )
    near_unit: Unit = setting(Likeness.unit, "what a shingle is a run of")
    near_size: int = setting(Likeness.size, "words or characters in a shingle", at_least=1, at_most=20)
    near_encoder: str | None = setting(
        None, "encoder whose cosine decides in place of shingles: a folder, a Hub id, or `embedded` for the small one"
    )
    near_cosine: float = setting(Likeness.cosine, "with --near-encoder: smallest cosine", above=0, at_most=1)
    near_exhaustive: bool = setting(
        False, "with --near-encoder: compare all with all; the time grows with the square of the rows"
    )
    language: str | None = setting(None, "drop rows of which a side is not in this language, such as en")
    language_detector: Detector = setting(LanguageConfig.detector, "py3langid, or lingua: much slower")
    language_candidates: tuple[str, ...] | None = setting(
        None, "languages to choose from, as ISO 639-1 codes; left out: 47 with much text"
    )
    language_probability: float = setting(
        LanguageConfig.probability, "a side with less of --language is another language", at_least=0, at_most=1
    )
    language_letters: int = setting(
        LanguageConfig.letters, "a side of fewer letters is too short to tell, and stays", at_least=0
    )
    decontaminate: tuple[str, ...] | None = setting(
        None, "drop rows that share a sentence or a run of words with the evaluation sets in these folders"
    )
    decontaminate_ngram: int = setting(NGRAM, "so many words in a row are too many to share", at_least=2)
    decontaminate_words: int = setting(
        MIN_WORDS, "an evaluation sentence of fewer words may stand in the corpus", at_least=1
    )
    sample: int | None = setting(
        None, "so many of the rows that are left, drawn by chance; the paper: 5 million", at_least=1
    )
    seed: int = seed_setting(0, "decides which rows are drawn")

    def __post_init__(self) -> None:
        check(self)
        if self.tenths is not None:
            parse_parts(self.tenths)
        for column, (low, high) in self.ranges.items():
            if any(bound is not None and not isfinite(bound) for bound in (low, high)):
                raise InputError(f"a bound of {column} must be a finite number")
            if low is not None and high is not None and low > high:
                raise InputError(f"no {column} is at least {low:g} and at most {high:g}; the range is empty")
        if self.min_length is not None and self.max_length is not None and self.min_length > self.max_length:
            raise InputError(f"min_length {self.min_length} is above max_length {self.max_length}: no row is left")
        if wrong := set(self.drop_copies or ()) - set(get_args(Copied)):
            raise InputError(f"copies can be of {', '.join(get_args(Copied))}, not {', '.join(sorted(wrong))}")
        for name, other in NEEDS.items():
            if is_given(self, name) and getattr(self, other) is None:
                given, needed = (word.replace("_", "-") for word in (name, other))
                raise InputError(f"--{given} does nothing without --{needed}; give that too, or leave it out")

    def filters(self, schema: pa.Schema, language: str = ENGLISH) -> list[Filter]:
        """Make the filters, in the order in which they decide.

        Args:
            schema: Columns of the release; which of them may hold nulls is what counts.
            language: ISO 639-1 code of that of the release, which decides what a word is.
        """
        filters: list[Filter] = []

        def need(column: str) -> None:
            if column not in schema.names or schema.field(column).nullable:
                filters.append(HasValue(column))

        if self.tenths is not None:
            need(self.by)
            filters.append(Tenths(self.by, parse_parts(self.tenths)))
        for column, (low, high) in self.ranges.items():
            need(column)
            filters.append(InRange(column, low, high))
        if self.origin:
            filters.append(FromOrigins(self.origin))
        if self.min_length is not None or self.max_length is not None:
            filters.append(LengthLimit(self.min_length, self.max_length))
        if self.drop_identical:
            filters.append(DifferentSides())
        copies = [FirstCopies(copied) for copied in get_args(Copied) if copied in (self.drop_copies or ())]
        # Copies of a pair are all alike to the filters between. Those of one side are not: the first one that passes
        # all other filters is to stay.
        filters += [one for one in copies if one.copied == "pair"]
        filters += self._language_and_evaluation(language)
        filters += [one for one in copies if one.copied != "pair"]
        filters += self._near_duplicates(language)
        if self.keep is not None:
            filters.append(OneHypothesis(self.keep))
        if self.sample is not None:
            filters.append(Sample(self.sample, self.seed))
        # A column that decides twice lacks a value only once.
        return list({one.reason: one for one in filters}.values())

    def _language_and_evaluation(self, language: str) -> list[Filter]:
        filters: list[Filter] = []
        if self.language is not None:
            filters.append(
                InLanguage(
                    LanguageConfig(
                        language=self.language,
                        detector=self.language_detector,
                        candidates=self.language_candidates or LANGUAGES,
                        probability=self.language_probability,
                        letters=self.language_letters,
                    )
                )
            )
        if self.decontaminate:
            found = read_sentences(*self.decontaminate)
            for file, reason in found.unread.items():
                logger.warning(f"not read for --decontaminate: {file} ({reason})")
            text = EvaluationText(
                found.texts,
                ngram=self.decontaminate_ngram,
                min_words=self.decontaminate_words,
                language=language,
            )
            filters.append(NotInEvaluation(text, found.checksum))
        return filters

    def _near_duplicates(self, language: str) -> list[Filter]:
        if self.drop_near_duplicates is None:
            return []
        likeness = Likeness(
            unit=self.near_unit,
            size=self.near_size,
            similarity=self.near_similarity,
            cosine=self.near_cosine,
            exhaustive=self.near_exhaustive,
            language=language,
        )
        scorer = ScorerConfig(name=self.near_encoder) if self.near_encoder is not None else None
        load, identity = (scorer.load, scorer.identity) if scorer else (None, None)
        return [FirstOfLike(self.drop_near_duplicates, likeness, load, identity)]
