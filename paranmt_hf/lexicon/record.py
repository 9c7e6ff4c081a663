"""The record of a lexicon, `lexicon.json`: what it was made from, its files, and what is in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.util.records import Record

TABLE, WORDS = "lexicon.parquet", "words.parquet"


@dataclass(frozen=True)
class LexiconSettings:
    """What determines a lexicon.

    Attributes:
        pairs: The identity of the pairs of sentences, with checksums.
        words: Maximum number of words.
        min_count: Least count of a pair of words.
        language: ISO 639-1 code of the language.
    """

    pairs: dict[str, Any]
    words: int
    min_count: int
    language: str = ENGLISH


@dataclass(frozen=True, kw_only=True)
class LexiconRecord(Record):
    """The content of `lexicon.json`.

    Attributes:
        settings: What determines the lexicon.
        pairs: Number of pairs of sentences that were counted.
        words: Number of words.
        word_pairs: Number of rows, two for each pair of words, one in each order.
        files: SHA-256 of each file.
    """

    FILE: ClassVar[str] = "lexicon.json"
    KIND: ClassVar[str] = "a lexicon (`paranmt lexicon build`)"

    settings: LexiconSettings
    pairs: int
    words: int
    word_pairs: int
    files: dict[str, str]
