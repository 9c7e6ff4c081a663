"""What counts as a repetition, for `paranmt dedup`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from paranmt_hf.corpus.selection.near_duplicates import SIMILARITY
from paranmt_hf.search.indexed_vectors import SEARCH
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.util.markers import Advanced, Count, Range
from paranmt_hf.util.settings import Settings

Method = Literal["exact", "near", "meaning"]
METHODS: tuple[Method, ...] = ("exact", "near", "meaning")


@dataclass(frozen=True)
class DedupConfig(Settings):
    """What counts as a repetition.

    Attributes:
        by: Methods, which run in this order: `exact` finds the same letters and digits, case aside, and always runs;
            `near` finds much the same pairs of neighbouring words; `meaning` finds much the same vector of an encoder.
        similarity: Smallest Jaccard similarity of two texts' sets of word bigrams, for `near`.
        cosine: Smallest cosine of two texts, for `meaning`.
        same_meaning: Drop only texts that mean the same: keep those that differ in a number, a negation, a name, an
            opposite, the order of words and so on (docs/same-meaning.md). By default `near` drops them, and `meaning`
            keeps them.
        language: Language of the texts, as an ISO 639-1 code; it decides how words are cut, and which
            encoder of this package is used.
        lists: Number of lists of the inverted index of `meaning`; 1 compares each text with all others. By default 1
            for few texts, else the square root of their number.
        probes: Number of lists that each text is compared with, for `meaning`.
    """

    by: tuple[Method, ...] = ("exact", "near")
    similarity: Annotated[float, Range(above=0, at_most=1)] = SIMILARITY
    cosine: Annotated[float, Range(above=0, at_most=1)] = 0.95
    same_meaning: bool | None = None
    language: Annotated[str, Advanced] = ENGLISH
    lists: Annotated[Count | None, SEARCH, Advanced] = None
    probes: Annotated[Count, SEARCH, Advanced] = 8
