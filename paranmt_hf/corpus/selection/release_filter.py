"""Which rows `paranmt select` keeps: the settings, and the filters that follow from them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any, Literal

import pyarrow as pa

from paranmt_hf.corpus.reading.evaluation_sets import read_sentences
from paranmt_hf.corpus.release.schema import ANY, RANGES
from paranmt_hf.corpus.scoring.language import Detector, InLanguage, LanguageConfig
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
    RandomSample,
    Tenths,
    parse_tenths,
)
from paranmt_hf.corpus.selection.near_duplicates import SIMILARITY
from paranmt_hf.corpus.selection.paraphrased_items import ITEM_SIMILARITY, NotParaphrased
from paranmt_hf.corpus.selection.repeated_rows import Compared, FirstCopies, FirstOfLike
from paranmt_hf.corpus.statistics.draws import Interval
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.util.markers import Advanced, Count, Group, Range, Seed, Share
from paranmt_hf.util.settings import Settings

logger = logging.getLogger(__name__)


NEAR = Group("near_duplicates", "How `drop_near_duplicates` finds near-duplicates.")
ITEMS = Group("decontamination", "How `decontaminate_by` meaning finds rows.")
DETECTION = Group("language_detection", "How `language` detects languages.")


@dataclass(frozen=True)
class ReleaseFilter(Settings):
    """Which rows of a corpus are kept.

    Attributes:
        tenths: Tenths of all rows that are kept, such as 9-10 or 1,3: 1 has the lowest values, 10 the highest.
        by: Column of numbers that `tenths` ranks.
        min: Smallest values of columns, such as para_score=0.4,negation_mismatch=1.
        max: Largest values of columns, such as trigram_overlap=0.7,number_mismatch=0.
        origin: Keep only rows of these origins.
        min_length: Minimum number of word tokens on either side.
        max_length: Maximum number of word tokens on either side; the paper: 30.
        keep: Which hypothesis of a sentence is kept, among those that pass all other filters (before `sample`).
        drop_identical: Drop pairs whose sides have the same letters and digits; case does not matter.
        drop_copies: Keep only the first row of each pair, reference or translation; case and punctuation matter.
        drop_near_duplicates: Keep only the first of rows whose pair, reference or translation is nearly the same.
        similarity: Smallest Jaccard similarity of the sets of word bigrams of near-duplicates.
        same_meaning: Drop only near-duplicates that mean the same (docs/same-meaning.md).
        language: Drop rows with a side that is not in this language, such as en.
        detector: Package that detects languages: langid (py3langid), or lingua, which is much slower.
        probability: A side with a smaller probability of `language` is not in it.
        decontaminate: Drop rows that share text with the evaluation sets in these folders.
        decontaminate_by: What is shared: `ngrams`, a sentence or a run of 8 words; `meaning`, a sentence that is a
            paraphrase of one of a set.
        item_encoder: Encoder whose cosine finds paraphrases of evaluation sentences; that of this package for the
            language if not given.
        item_similarity: Smallest score of a paraphrase: the cosine, less 0.04 for each of numbers, negation and names
            that differ, and less 0.1 times the share of characters that the longer text has more.
        sample: Number of rows that are sampled at random from those that pass all filters, or all of these if there
            are fewer; the paper: 5 million.
        seed: Seed of the sample.
    """

    tenths: str | None = None
    by: str = "para_score"
    min: Mapping[str, Any] | None = None
    max: Mapping[str, Any] | None = None
    origin: tuple[str, ...] | None = None
    min_length: Count | None = None
    max_length: Count | None = None
    keep: Keep | None = None
    drop_identical: bool = False
    drop_copies: tuple[Compared, ...] | None = None
    drop_near_duplicates: Compared | None = None
    similarity: Annotated[float, Range(above=0, at_most=1), NEAR, Advanced] = SIMILARITY
    same_meaning: Annotated[bool, NEAR, Advanced] = False
    language: str | None = None
    detector: Annotated[Detector, DETECTION, Advanced] = LanguageConfig.detector
    probability: Annotated[Share, DETECTION, Advanced] = LanguageConfig.probability
    decontaminate: tuple[str, ...] | None = None
    decontaminate_by: tuple[Literal["ngrams", "meaning"], ...] = ("ngrams",)
    item_encoder: Annotated[str | None, ITEMS, Advanced] = None
    item_similarity: Annotated[float, Range(above=0, at_most=1), ITEMS, Advanced] = ITEM_SIMILARITY
    sample: Count | None = None
    seed: Seed = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("min", "max"):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, _numbers(name, given))
        if self.tenths is not None:
            parse_tenths(self.tenths)

    @property
    def ranges(self) -> dict[str, Interval]:
        """Smallest and largest value of columns, both included; None if there is no bound."""
        low, high = self.min or {}, self.max or {}
        return {name: (low.get(name), high.get(name)) for name in {**low, **high}}

    def filters(self, schema: pa.Schema, language: str = ENGLISH) -> list[Filter]:
        """Return the filters, in the order in which they are applied.

        Args:
            schema: Schema of the corpus.
            language: Language of the corpus (ISO 639-1).
        """
        filters: list[Filter] = []

        def need(column: str) -> None:
            if column not in schema.names or schema.field(column).nullable:
                filters.append(HasValue(column))

        if self.tenths is not None:
            need(self.by)
            filters.append(Tenths(self.by, parse_tenths(self.tenths)))
        for column, (low, high) in self.ranges.items():
            need(column)
            filters.append(InRange(column, low, high))
        if self.origin:
            filters.append(FromOrigins(self.origin))
        if self.min_length is not None or self.max_length is not None:
            filters.append(LengthLimit(self.min_length, self.max_length))
        if self.drop_identical:
            filters.append(DifferentSides())
        copies = self.drop_copies or ()
        # The filters between these two treat all copies of a pair alike, so copies of pairs can be dropped first.
        # Copies of one side are dropped after them, so that the first one that passes them stays.
        if "pair" in copies:
            filters.append(FirstCopies("pair"))
        filters += self._language_and_evaluation(language)
        if "reference" in copies:
            filters.append(FirstCopies("reference"))
        if "translation" in copies:
            filters.append(FirstCopies("translation"))
        if self.drop_near_duplicates is not None:
            compared, keeps = self.drop_near_duplicates, self.same_meaning
            filters.append(FirstOfLike(compared, self.similarity, language, same_meaning=keeps))
        if self.keep is not None:
            filters.append(OneHypothesis(self.keep))
        if self.sample is not None:
            filters.append(RandomSample(self.sample, self.seed))
        # If a column decides twice, its missing values are still dropped, and counted, once.
        return list({one.reason: one for one in filters}.values())

    def _language_and_evaluation(self, language: str) -> list[Filter]:
        """Return the filters by detected language and by evaluation sets."""
        filters: list[Filter] = []
        if self.language is not None:
            filters.append(InLanguage(LanguageConfig(self.language, self.detector, probability=self.probability)))
        if self.decontaminate:
            found = read_sentences(*self.decontaminate)
            for file, reason in found.unread.items():
                logger.warning(f"evaluation set not read: {file} ({reason})")
            if "ngrams" in self.decontaminate_by:
                filters.append(NotInEvaluation(found, EvaluationText(found.texts, language=language)))
            if "meaning" in self.decontaminate_by:
                encoder = NamedEncoder.of(self.item_encoder, language)
                filters.append(NotParaphrased(found, encoder, self.item_similarity, language))
        return filters


def _numbers(option: str, values: Mapping[str, Any]) -> dict[str, float | int]:
    """Read the numbers of `min` or `max`, for each column.

    Raises:
        InputError: If a value is no finite number, or one that the column cannot have.
    """
    found: dict[str, float | int] = {}
    for column, value in values.items():
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise InputError(f"`{option}` takes COLUMN=NUMBER, got {column}={value!r}", option=option) from None
        if not isfinite(number):
            raise InputError(f"`{option}` of {column} must be a finite number, was {value!r}", option=option)
        if number not in (allowed := RANGES.get(column, ANY)):
            raise InputError(f"`{option}` of {column} must be {allowed}, was {number:g}", option=option)
        found[column] = int(number) if number.is_integer() else number
    return found
