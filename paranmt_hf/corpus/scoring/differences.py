"""Texts that look like repeats but are not: they differ in a number, a unit, a negation, a name or an address.

So do texts with the same numbers in another order: "at 8 in room 9" and "at 9 in room 8".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.scoring.mismatch_columns import MISMATCHES, MismatchReader
from paranmt_hf.text.identity import mix
from paranmt_hf.text.word_rules import ENGLISH


class Differences:
    """Compares documents of a language (ISO 639-1 code), whose texts, one or more each, `sides` read by their places.

    In languages other than English only numbers in digits and addresses count.
    """

    def __init__(self, *sides: Callable[[np.ndarray], pa.Array], language: str = ENGLISH) -> None:
        self._sides = sides
        # Digits, units by their signs, and addresses are the same in every language.
        any_language = ("number_mismatch", "address_mismatch")
        self._reader = MismatchReader(MISMATCHES if language == ENGLISH else any_language)

    def between(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Mark the pairs of documents [pair], by their places, that differ in any of their texts."""
        found = np.zeros(len(first), bool)
        for start in range(0, len(first), 2**17):
            part = slice(start, start + 2**17)
            places, at = np.unique(np.concatenate([first[part], second[part]]), return_inverse=True)
            for side in self._sides:
                found[part] |= self._reader.differ(side(places), *np.split(at, 2))
        return found

    def signatures(self, count: int) -> np.ndarray:
        """Hash what the first `count` documents claim [document], uint64: equal claims have equal hashes."""
        found = np.zeros(count, np.uint64)
        for start in range(0, count, 2**16):
            places = np.arange(start, min(start + 2**16, count))
            for side in self._sides:
                found[places] = mix(found[places]) + self._reader.signatures(side(places))
        return found
