"""Nearest neighbours of words in several spaces; PARAGRAM-PHRASE (arXiv:1511.08198), section 6 and table 8."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.text.word_vectors import WordVectors
from paranmt_hf.util.records import to_json
from paranmt_hf.util.tables import write_table

# The neighbours of table 8 are among the most common tokens.
COMMON = 10_000


@dataclass(frozen=True)
class Neighbour:
    """A word near another one, and their cosine, in [-1, 1]."""

    word: str
    cosine: float


@dataclass(frozen=True)
class WordNeighbours:
    """The neighbours of one word.

    Attributes:
        word: The word.
        neighbours: In each space the nearest words, nearest first; None where the word has no vector.
    """

    word: str
    neighbours: list[list[Neighbour] | None]


@dataclass(frozen=True)
class NeighbourTable:
    """Neighbours of words in several spaces.

    Attributes:
        spaces: Names of the encoders or files.
        common: Number of words that could be neighbours: the most common ones that all spaces have.
        source: Where the frequencies come from.
        words: The words asked for.
    """

    spaces: list[str]
    common: int
    source: str
    words: list[WordNeighbours]

    def to_json(self) -> dict[str, Any]:
        """Give the table as JSON values."""
        values: dict[str, Any] = to_json(self)
        return values

    def write(self, style: Literal["markdown", "text"] = "text") -> str:
        """Write a table for each word, the spaces side by side."""
        blocks = []
        for each in self.words:
            columns = [_cells(found) for found in each.neighbours]
            depth = max(map(len, columns))
            rows = [
                (str(rank + 1), *(column[rank] if rank < len(column) else "" for column in columns))
                for rank in range(depth)
            ]
            blocks.append(write_table((each.word, *self.spaces), rows, style))
        said = f"Cosines; among the {self.common:,} most common words that all have. Frequencies: {self.source}."
        return "\n\n".join([*blocks, said])


def _cells(found: list[Neighbour] | None) -> list[str]:
    return ["not known"] if found is None else [f"{each.word} {each.cosine:.2f}" for each in found]


def find_neighbours(
    spaces: Sequence[tuple[str, WordVectors]], words: Sequence[str], common: Sequence[str], source: str, *, top: int
) -> NeighbourTable:
    """Find the nearest neighbours of words by cosine; a word is no neighbour of itself, nor is a vector of zeros.

    Args:
        spaces: Names, and word vectors.
        words: The words whose neighbours are wanted.
        common: The words that can be neighbours, most common first; those that a space lacks are left out of all.
        source: Where their frequencies come from.
        top: Neighbours of each word; equally near ones in the order of `common`.

    Raises:
        InputError: No common word is in all spaces, or none of the words is in any.
    """
    rows = [{word: row for row, word in enumerate(vectors.words)} for _, vectors in spaces]
    candidates = [word for word in common if all(word in row_of for row_of in rows)]
    if not candidates:
        raise InputError(
            f"none of the {len(common):,} most common words has a vector in all of "
            f"{', '.join(name for name, _ in spaces)}; give other frequencies (--frequencies)"
        )
    if not any(word in row_of for word in words for row_of in rows):
        raise InputError(
            f"{' '.join(words)}: no vector in {', '.join(name for name, _ in spaces)}; ask for other words (--words)"
        )
    found = [
        _in_space(vectors, row_of, words, candidates, top) for (_, vectors), row_of in zip(spaces, rows, strict=True)
    ]
    table = [WordNeighbours(word, [space[number] for space in found]) for number, word in enumerate(words)]
    return NeighbourTable([name for name, _ in spaces], len(candidates), source, table)


def _in_space(
    vectors: WordVectors, row_of: dict[str, int], words: Sequence[str], candidates: Sequence[str], top: int
) -> list[list[Neighbour] | None]:
    matrix = _directions(vectors.matrix[[row_of[word] for word in candidates]])
    filled = (matrix != 0).any(axis=1)
    answers: list[list[Neighbour] | None] = []
    for word in words:
        if word not in row_of:
            answers.append(None)
            continue
        cosines = matrix @ _directions(vectors.matrix[[row_of[word]]])[0]
        order = [
            row for row in np.argsort(-cosines, kind="stable").tolist() if filled[row] and candidates[row] != word
        ]
        answers.append([Neighbour(candidates[row], float(np.clip(cosines[row], -1, 1))) for row in order[:top]])
    return answers


def _directions(rows: np.ndarray) -> np.ndarray:
    wide = rows.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.divide(wide, lengths, out=np.zeros_like(wide), where=lengths != 0)
