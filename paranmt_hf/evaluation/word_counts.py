"""How often words occur: what the weights of averages and the analyses of word vectors start from."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.util.files import check_regular

# No corpus has more words than 18 digits count.
_LINE = re.compile(rb"\S+[ \t]\d{1,18}")
# Lines by which a list is told from a text.
_FIRST = 10


@dataclass(frozen=True)
class WordCounts:
    """How often words occur.

    Attributes:
        counts: Occurrences of each word; a word that is not there was not seen.
        source: Where they come from, for people.
    """

    counts: Mapping[str, float]
    source: str

    def __post_init__(self) -> None:
        if not self.total:
            raise InputError(f"{self.source} holds no word, so no word has a frequency; name a text or another list")

    @cached_property
    def total(self) -> float:
        """Occurrences of all words together."""
        return float(sum(self.counts.values()))

    def of(self, words: Sequence[str]) -> np.ndarray:
        """Occurrences of words [word], float64; 0 for one that was not seen."""
        return np.array([self.counts.get(word, 0) for word in words], np.float64)

    def most_frequent(self, number: int) -> list[str]:
        """The words with the most occurrences; of equal ones the first in the order of their characters."""
        return sorted(self.counts, key=lambda word: (-self.counts[word], word))[:number]


def counts_by_rank(words: Sequence[str], source: str) -> WordCounts:
    """Guess counts from the order of words by Zipf's law: the word at rank r of n counts n / r, the last one 1.

    Args:
        words: Words, most frequent first.
        source: Where their order comes from.
    """
    return WordCounts(
        {word: len(words) / rank for rank, word in enumerate(words, 1)}, f"order of words in {source} (Zipf's law)"
    )


def is_count_list(path: Path) -> bool:
    """Tell whether a file is a list for `read_counts`: most of its first lines are a word and a whole number."""
    check_regular(path)
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
            first = [line.strip() for line, _ in zip(lines, range(_FIRST), strict=False)]
    except (OSError, EOFError, zlib.error):
        return False
    filled = [line for line in first if line]
    return 2 * sum(_LINE.fullmatch(line) is not None for line in filled) > len(filled)


def read_counts(path: Path) -> WordCounts:
    """Read a list of words and their counts, such as `enwiki_vocab_min200.txt` of Arora et al. (2017).

    A line is a word, a blank or tab, and a whole number; empty lines are passed over. Words are taken in lower case,
    and the counts of equal ones are added up.
    """
    check_regular(path)
    counts: dict[str, float] = {}
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not (stripped := line.strip()):
                    continue
                if not _LINE.fullmatch(stripped):
                    raise InputError(
                        f"{path}, line {number}: expected a word and how often it occurs, found "
                        f"{stripped[:40].decode('utf8', 'replace')!r}"
                    )
                word, count = stripped.split()
                try:
                    lowered = word.decode("utf8").lower()
                except UnicodeDecodeError:
                    raise InputError(
                        f"{path}, line {number}: expected text in UTF-8, found "
                        f"{stripped[:40].decode('utf8', 'replace')!r}; save the file in that encoding"
                    ) from None
                counts[lowered] = counts.get(lowered, 0) + int(count)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    return WordCounts(counts, str(path))
