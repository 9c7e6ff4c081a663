"""The words, word n-grams and character trigrams that an encoder knows, and their rows in its table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from paranmt_hf.encoders.modules.paranmt_tables import NgramTable, blank_tokens
from paranmt_hf.encoders.packed_units import PackedUnits
from paranmt_hf.encoders.widened_rows import WidenedRows
from paranmt_hf.errors import UnfitError
from paranmt_hf.text.definitions import PIECE, cut_chunk, is_piece

if TYPE_CHECKING:
    from paranmt_hf.encoders.config import UnitKind

UNKNOWN = "[UNK]"
# Functions that split text into words, by name: as `text/definitions.py` does, or at white space only.
CUTTERS: dict[str, Callable[[str], list[str]]] = {"words": cut_chunk, "blanks": blank_tokens}


@dataclass(frozen=True)
class Vocabulary:
    """The units of one kind that have a row in the table of an encoder."""

    kind: UnitKind  # Words, words with their n-grams, or character trigrams
    # The unit of each row. Row 0 is `[UNK]`, which all units without a row share. Among words there may be pieces,
    # such as `##ing`, from which words without a row are put together.
    units: Sequence[str]
    # The n-grams, whose rows follow those of the units; None unless the kind is `ngram`
    ngrams: NgramTable | None = None

    def __post_init__(self) -> None:
        if len(self.units) < 2:
            raise UnfitError(f"the {self.kind} vocabulary is empty: the text holds no {self.kind} that is kept")

    def __len__(self) -> int:
        return len(self.units)

    @cached_property
    def row_of(self) -> dict[str, int]:
        """The row of each unit, by the unit."""
        return {unit: row for row, unit in enumerate(self.units)}

    @cached_property
    def find(self) -> Callable[[str], int | None]:
        """Function that returns the row of a unit, or None; for packed units it needs no dictionary of them."""
        return self.units.find if isinstance(self.units, PackedUnits) else self.row_of.get

    @cached_property
    def has_pieces(self) -> bool:
        """Whether words without a row are cut into pieces."""
        return self.kind == "word" and any(map(is_piece, self.units))


@dataclass(frozen=True, eq=False)
class AverageTable:
    """The table of one averaging encoder, or of one part of a combination."""

    vocabulary: Vocabulary  # The units of its rows
    # Vectors [row, dimension], float32: those of the units, then those of the n-grams
    rows: np.ndarray | WidenedRows
    cut: str = "words"  # How text is split into words, a name in `CUTTERS`


def trigrams_in(word: str) -> list[str]:
    """Return the character trigrams in a word with the blanks around it, one for each character."""
    line = f" {word} "
    return [line[start : start + 3] for start in range(len(word))]


def most_frequent(kind: UnitKind, counts: Counter[str], size: int, *, min_count: int = 1) -> Vocabulary:
    """Make a vocabulary of the `size` most frequent units; equally frequent ones are in the order of their characters.

    Args:
        kind: Kind of the units.
        counts: How often each unit occurs.
        size: Maximum number of units besides the unknown one.
        min_count: Units that occur less often are left out.
    """
    kept = [unit for unit, count in counts.items() if count >= min_count and unit != UNKNOWN]
    kept.sort(key=lambda unit: (-counts[unit], unit))
    return Vocabulary(kind, [UNKNOWN, *kept[:size]])


def pieces_of(counts: Counter[str], size: int) -> list[str]:
    """Choose pieces of words: the characters of a text, then the most frequent endings of its words.

    An ending counts once for each distinct word. Characters get an eighth of the pieces, each with and without the
    prefix `##`, so that nearly every word can be put together from pieces.

    Args:
        counts: How often each word occurs.
        size: Maximum number of pieces.
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
