"""Finds texts that look like copies but differ in a number, a unit, a negation, a name or an address.

Texts with the same numbers in another order differ too: "at 8 in room 9" and "at 9 in room 8".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.scoring.mismatch_columns import MISMATCHES, MismatchReader
from paranmt_hf.text.identity import mix
from paranmt_hf.text.word_rules import ENGLISH


class Differences:
    """Compares documents, each of which has one or more texts.

    In languages other than English only numbers in digits and addresses count.

    Args:
        sides: For each text of a document a function that reads this text of the documents with some indices
            [document].
        language: Language of the texts (ISO 639-1).
    """

    def __init__(self, *sides: Callable[[np.ndarray], pa.Array], language: str = ENGLISH) -> None:
        self._sides = sides
        # Digits, units by their signs, and addresses are the same in every language.
        any_language = ("number_mismatch", "address_mismatch")
        self._reader = MismatchReader(MISMATCHES if language == ENGLISH else any_language)

    def between(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Mark the pairs of documents [pair] that differ in any of their texts.

        Args:
            first: Index of the first document of each pair.
            second: Index of the second document of each pair.
        """
        found = np.zeros(len(first), bool)
        for start in range(0, len(first), 2**17):
            part = slice(start, start + 2**17)
            documents, index_of = np.unique(np.concatenate([first[part], second[part]]), return_inverse=True)
            for side in self._sides:
                found[part] |= self._reader.differ(side(documents), *np.split(index_of, 2))
        return found

    def signatures(self, count: int) -> np.ndarray:
        """Return a hash [document], uint64, of what each of the first `count` documents claims.

        Equal claims have equal hashes.
        """
        found = np.zeros(count, np.uint64)
        for start in range(0, count, 2**16):
            documents = np.arange(start, min(start + 2**16, count))
            for side in self._sides:
                found[documents] = mix(found[documents]) + self._reader.signatures(side(documents))
        return found
