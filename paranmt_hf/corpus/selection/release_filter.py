"""Which rows `paranmt select` keeps: the settings, and their filters in the order in which they are applied."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any, get_args

import pyarrow as pa

from paranmt_hf.corpus.draws import Interval
from paranmt_hf.corpus.language import Detector, InLanguage, LanguageConfig
from paranmt_hf.corpus.selection.copies import Copied, FirstCopies
from paranmt_hf.corpus.selection.decontamination import EvaluationText, NotInEvaluation
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
from paranmt_hf.corpus.selection.near_duplicates import FirstOfLike, Likeness
from paranmt_hf.corpus.selection.ranks import Sample, Tenths, parse_parts
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.text.evaluation_sets import read_sentences
from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.util.settings import Advanced, Count, Range, Seed, Share, check

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ReleaseFilter:
    """Which rows of a release are kept.

    Attributes:
        tenths: Tenths of all rows that are kept, such as 9-10 or 1,3: 1 has the lowest values, 10 the highest.
        by: Column of numbers that `tenths` ranks.
        min_score: Smallest paraphrase score.
        max_score: Largest paraphrase score.
        max_overlap: Largest trigram overlap.
        min: Smallest values of other columns, such as ppdb_score=3,negation_mismatch=1.
        max: Largest values of other columns, such as number_mismatch=0.
        origin: Keep rows of these origins.
        min_length: Minimum number of word tokens on either side.
        max_length: Maximum number of word tokens on either side; the paper: 30.
        keep: Which hypothesis of a sentence is kept, of those that pass all other filters (before `sample`).
        drop_identical: Drop pairs whose sides have the same letters and digits, case aside.
        drop_copies: Keep only the first row of each pair, reference or translation, exactly as written.
        drop_near_duplicates: Keep only the first of rows whose pair, reference or translation is nearly the same.
        near_similarity: Smallest similarity of near-duplicates: Jaccard similarity of the sets of word bigrams
            (default: 0.7), or with `near_encoder` cosine (default: 0.95).
        near_encoder: Encoder whose cosine decides instead: a folder, a Hub id, or `embedded`.
        near_exhaustive: Compare all rows by `near_encoder`; the time grows with the square of the rows.
        language: Drop rows with a side that is not in this language, such as en.
        language_detector: Package that detects languages: py3langid, or lingua, which is much slower.
        language_probability: A side with a smaller probability of `language` is not in it.
        decontaminate: Drop rows that share a sentence or a run of 8 words with the evaluation sets in these folders.
        sample: Number of rows, sampled at random from those that are left; the paper: 5 million.
        seed: Seed of the sample.
    """

    tenths: str | None = None
    by: str = "para_score"
    min_score: float | None = None
    max_score: Annotated[float | None, Advanced] = None
    max_overlap: float | None = None
    min: Mapping[str, Any] | None = None
    max: Mapping[str, Any] | None = None
    origin: tuple[str, ...] | None = None
    min_length: Count | None = None
    max_length: Count | None = None
    keep: Keep | None = None
    drop_identical: bool = False
    drop_copies: tuple[Copied, ...] | None = None
    drop_near_duplicates: Copied | None = None
    near_similarity: Annotated[float | None, Range(above=0, at_most=1), Advanced] = None
    near_encoder: Annotated[str | None, Advanced] = None
    near_exhaustive: Annotated[bool, Advanced] = False
    language: str | None = None
    language_detector: Annotated[Detector, Advanced] = LanguageConfig.detector
    language_probability: Annotated[Share, Advanced] = LanguageConfig.probability
    decontaminate: tuple[str, ...] | None = None
    sample: Count | None = None
    seed: Seed = 0

    def __post_init__(self) -> None:
        check(self)
        for name in ("min", "max"):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, _numbers(name, given))
        if self.tenths is not None:
            parse_parts(self.tenths)
        for column, (low, high) in self.ranges.items():
            if low is not None and high is not None and low > high:
                raise InputError(f"no {column} is at least {low:g} and at most {high:g}; the range is empty")
        if self.min_length is not None and self.max_length is not None and self.min_length > self.max_length:
            raise InputError(f"min_length {self.min_length} is above max_length {self.max_length}: no row is left")

    @property
    def ranges(self) -> dict[str, Interval]:
        """Smallest and largest value of columns, both inside; None is not a bound."""
        low = {"para_score": self.min_score, "trigram_overlap": None, **(self.min or {})}
        high = {"para_score": self.max_score, "trigram_overlap": self.max_overlap, **(self.max or {})}
        found = {name: (low.get(name), high.get(name)) for name in low | high}
        return {name: bounds for name, bounds in found.items() if bounds != (None, None)}

    def filters(self, schema: pa.Schema, language: str = ENGLISH) -> list[Filter]:
        """Make the filters, in the order in which they are applied.

        Args:
            schema: Columns of the release.
            language: Language of the release, which decides what a word is: ISO 639-1 code.
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
        # All filters between treat copies of a pair alike. Of copies of one side, the first that passes them stays.
        filters += [one for one in copies if one.copied == "pair"]
        filters += self._language_and_evaluation(language)
        filters += [one for one in copies if one.copied != "pair"]
        if self.drop_near_duplicates is not None:
            filters.append(self._near_duplicates(self.drop_near_duplicates, language))
        if self.keep is not None:
            filters.append(OneHypothesis(self.keep))
        if self.sample is not None:
            filters.append(Sample(self.sample, self.seed))
        # A column may decide twice, but its missing values are dropped once.
        return list({one.reason: one for one in filters}.values())

    def _language_and_evaluation(self, language: str) -> list[Filter]:
        filters: list[Filter] = []
        if self.language is not None:
            settings = LanguageConfig(self.language, self.language_detector, probability=self.language_probability)
            filters.append(InLanguage(settings))
        if self.decontaminate:
            found = read_sentences(*self.decontaminate)
            for file, reason in found.unread.items():
                logger.warning(f"not read for --decontaminate: {file} ({reason})")
            filters.append(NotInEvaluation(EvaluationText(found.texts, language=language), found.checksum))
        return filters

    def _near_duplicates(self, compared: Copied, language: str) -> FirstOfLike:
        if self.near_encoder is None:
            similarity = self.near_similarity or Likeness.similarity
            return FirstOfLike(compared, Likeness(similarity=similarity, language=language))
        scorer = NamedEncoder(self.near_encoder)
        cosine = self.near_similarity or Likeness.cosine
        likeness = Likeness(cosine=cosine, exhaustive=self.near_exhaustive, language=language)
        return FirstOfLike(compared, likeness, scorer.load, scorer.identity)


def _numbers(option: str, values: Mapping[str, Any]) -> dict[str, float | int]:
    """Read the values of `min` or `max`; the columns that have an option of their own are refused."""
    found: dict[str, float | int] = {}
    for column, value in values.items():
        own = {"para_score": f"{option}_score", "trigram_overlap": "max_overlap" if option == "max" else None}
        if own.get(column):
            raise InputError(f"`{option}` is for other columns than {column}; give `{own[column]}`", option=option)
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise InputError(f"`{option}` takes COLUMN=NUMBER, got {column}={value!r}", option=option) from None
        if not isfinite(number):
            raise InputError(f"`{option}` of {column} must be a finite number, was {value!r}", option=option)
        found[column] = int(number) if number.is_integer() else number
    return found
