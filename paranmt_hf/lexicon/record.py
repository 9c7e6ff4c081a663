"""The record of a lexicon, `lexicon.json`: what it was made from, its files, and what is in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paranmt_hf.errors import InputError
from paranmt_hf.util.records import from_json, read_json

# Where an identity names another language than English.
LANGUAGE = "language"
RECORD, TABLE, WORDS = "lexicon.json", "lexicon.parquet", "words.parquet"
EXPECTED = "a folder made by `paranmt lexicon build`"


@dataclass(frozen=True)
class LexiconRecord:
    """What was written down of a lexicon.

    Attributes:
        identity: What determines the lexicon: checksums of the pairs of sentences, and settings.
        pairs: Pairs of sentences that were counted.
        words: Number of words.
        word_pairs: Number of rows, two for each pair of words, one in each order.
        files: SHA-256 of each file.
        version: Version of this package that wrote it.
    """

    identity: dict[str, Any]
    pairs: int
    words: int
    word_pairs: int
    files: dict[str, str]
    version: str


def read_lexicon_record(folder: Path) -> LexiconRecord:
    """Read the record of a lexicon."""
    where = folder / RECORD
    if not where.is_file():
        what = "is a file" if folder.is_file() else f"holds no {RECORD}" if folder.exists() else "is not there"
        raise InputError(f"{folder} {what}; expected {EXPECTED}")
    return from_json(LexiconRecord, read_json(where, "the record of a lexicon"), where)
