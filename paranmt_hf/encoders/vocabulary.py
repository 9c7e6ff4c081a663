"""The words, word n-grams and character trigrams that an encoder knows, and their rows in its table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from paranmt_hf.encoders.modules.paranmt_tables import NgramTable, blank_tokens
from paranmt_hf.errors import UnfitError
from paranmt_hf.text.definitions import PIECE, cut_chunk, is_piece

if TYPE_CHECKING:
    from paranmt_hf.encoders.config import UnitKind

UNKNOWN = "[UNK]"
# The ways in which encoders split text into words: by `text/definitions.py`, or at white space only.
CUTTERS: dict[str, Callable[[str], list[str]]] = {"words": cut_chunk, "blanks": blank_tokens}


@dataclass(frozen=True)
class Vocabulary:
    """The units of one kind that have a row."""

    kind: UnitKind  # Words, words with their n-grams, or character trigrams
    # The unit of each row; row 0 is `[UNK]`, which every unit without a row shares. Of words some may be pieces, such
    # as `##ing`, of which words without a row are made.
    units: list[str]
    # The n-grams that have a row behind those of the units, where the kind is `ngram`
    ngrams: NgramTable | None = None

    def __post_init__(self) -> None:
        if len(self.units) < 2:
            raise UnfitError(f"the {self.kind} vocabulary is empty: the text holds no {self.kind} that is kept")

    def __len__(self) -> int:
        return len(self.units)

    @cached_property
    def row_of(self) -> dict[str, int]:
        """Row of each unit."""
        return {unit: row for row, unit in enumerate(self.units)}

    @cached_property
    def has_pieces(self) -> bool:
        """Whether words without a row are cut into pieces."""
        return self.kind == "word" and any(map(is_piece, self.units))


@dataclass(frozen=True, eq=False)
class AverageTable:
    """The table of one averaging encoder."""

    vocabulary: Vocabulary  # What has a row
    rows: np.ndarray  # Vectors [row, dimension], float32; behind those of the units the rows of the n-grams
    cut: str = "words"  # How text is split into words, a name in `CUTTERS`


def trigrams_in(word: str) -> list[str]:
    """List the character trigrams in a word with the blanks around it, one for each character."""
    line = f" {word} "
    return [line[start : start + 3] for start in range(len(word))]


def most_frequent(kind: UnitKind, counts: Counter[str], size: int, *, min_count: int = 1) -> Vocabulary:
    """Keep the `size` most frequent units; equally frequent ones in the order of their characters."""
    kept = [unit for unit, count in counts.items() if count >= min_count and unit != UNKNOWN]
    kept.sort(key=lambda unit: (-counts[unit], unit))
    return Vocabulary(kind, [UNKNOWN, *kept[:size]])


def pieces_of(counts: Counter[str], size: int) -> list[str]:
    """Choose at most `size` pieces of words: the characters of a text, then the most frequent endings of its words.

    `counts` has the frequency of each word; an ending counts once for each distinct word. Characters get an eighth of
    the rows, each with and without the prefix, so that nearly every word can be read as pieces.
    """
    characters = Counter[str]()
    endings = Counter[str]()
    for word, count in counts.items():
        for character in word:
            characters[character] += count
        # Pieces have at most six characters.
        for length in range(1, min(6, len(word) - 1) + 1):
            endings[PIECE + word[-length:]] += 1
    usual = sorted(characters, key=lambda character: (-characters[character], character))[: size // 16]
    others = sorted(endings, key=lambda piece: (-endings[piece], piece))
    return list(dict.fromkeys([*usual, *(PIECE + character for character in usual), *others]))[:size]
