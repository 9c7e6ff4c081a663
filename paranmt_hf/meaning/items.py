"""Claims of a sentence, and evidence for them in the other sentence of a pair.

A sentence makes claims: a number, a negation, a name. A claim is a set of keys, which are forms in which the other
sentence may say the same; it is confirmed if the evidence of the other sentence has one of these keys. There is more
evidence than there are claims: "both" confirms the number 2 without being a claim itself, so it is no mismatch if the
other sentence lacks it. Some claims count only under a condition: that the evidence of the other sentence has some
other key. So a unit counts only against another unit.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, count, repeat

import numpy as np
import pyarrow as pa

from paranmt_hf.text.identity import hash_texts
from paranmt_hf.util.ranges import expand

Claim = tuple[str, ...]  # Keys, any of which confirms the claim, and conditions
CONDITION = "if "  # Prefix of conditions


def condition(key: str) -> str:
    """Return a condition of a claim.

    The claim counts only if the other sentence has this key, or that of another condition of the claim.
    """
    return CONDITION + key


@dataclass(frozen=True)
class Statement:
    """What a text claims and what it confirms."""

    claims: tuple[Claim, ...]  # Its claims
    evidence: tuple[str, ...]  # Keys that it confirms


@dataclass(frozen=True)
class Lists:
    """A list of integers for each row, in three arrays."""

    values: np.ndarray  # Values of all lists [value], int32
    starts: np.ndarray  # Index in `values` at which each list begins [row], int64
    lengths: np.ndarray  # Length of each list [row], int64

    def take(self, rows: np.ndarray) -> Lists:
        """Return the lists of some rows [chosen row], in that order; the values are not copied."""
        return Lists(self.values, self.starts[rows], self.lengths[rows])

    def flat(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the lists one after the other [value], and their bounds [row + 1]."""
        return expand(self.values, self.starts, self.lengths)

    def joined(self, bounds: np.ndarray) -> Lists:
        """Join lists of consecutive rows: row `i` of the result has those from `bounds[i]` up to `bounds[i + 1]`."""
        values, limits = self.flat()
        starts = limits[bounds[:-1]]
        return Lists(values, starts, limits[bounds[1:]] - starts)


class GrowingLists:
    """Lists of integers to which more can be added."""

    def __init__(self) -> None:
        self._values, self._bounds = np.zeros(64, np.int32), np.zeros(64, np.int64)
        self._count = 0

    def add(self, lists: Sequence[Sequence[int]]) -> None:
        """Append lists."""
        ends = self._bounds[self._count] + np.cumsum([len(some) for some in lists], dtype=np.int64)
        self._bounds = with_room(self._bounds, self._count + 1, len(lists))
        self._bounds[self._count + 1 : self._count + 1 + len(lists)] = ends
        start = int(self._bounds[self._count])
        added = np.fromiter(chain.from_iterable(lists), np.int32)
        self._values = with_room(self._values, start, len(added))
        self._values[start : start + len(added)] = added
        self._count += len(lists)

    def take(self, rows: np.ndarray) -> Lists:
        """Return the lists of some rows [chosen row]; it stays as it is when lists are added."""
        return Lists(self._values, self._bounds[rows], self._bounds[rows + 1] - self._bounds[rows])


def with_room(numbers: np.ndarray, used: int, more: int) -> np.ndarray:
    """Return an array of numbers, or a longer copy, that has room for more numbers behind those that are used."""
    if used + more <= len(numbers):
        return numbers
    longer = np.zeros(2 * (used + more), numbers.dtype)
    longer[:used] = numbers[:used]
    return longer


class Claims:
    """Gives each distinct claim a number.

    Attributes:
        keys: Numbers of the keys of each claim.
        conditions: Numbers of the keys in the conditions of each claim.
    """

    def __init__(self) -> None:
        self._known: dict[Claim, int] = {}
        self._hashes, self._first_keys = array("Q"), array("Q")
        self.keys, self.conditions = GrowingLists(), GrowingLists()

    def number(self, claim: Claim, keys: dict[str, int]) -> int:
        """Return the number of a claim; `keys` gives each key its number."""
        if claim not in self._known:
            self._known[claim] = len(self._known)
            whole, first = hash_texts(["\n".join(claim), claim[0]]).tolist()
            self._hashes.append(whole)
            self._first_keys.append(first)
            self.keys.add([[keys[key] for key in claim if not key.startswith(CONDITION)]])
            self.conditions.add([[keys[key[len(CONDITION) :]] for key in claim if key.startswith(CONDITION)]])
        return self._known[claim]

    def hashes(self, numbers: np.ndarray, *, first_key: bool = False) -> np.ndarray:
        """Return hashes [claim], uint64, of the claims with some numbers, or of their first keys alone.

        The hashes do not depend on the numbers.
        """
        return np.array(self._first_keys if first_key else self._hashes, np.uint64)[numbers]


class Memory:
    """A cache of the two lists of integers that `read` returns for each distinct text."""

    def __init__(self, read: Callable[[str], tuple[list[int], list[int]]]) -> None:
        self._read = read
        self._rows: dict[str, int] = {}
        self._lists = GrowingLists(), GrowingLists()

    def __len__(self) -> int:
        return len(self._rows)

    def lists(self, texts: pa.Array) -> list[Lists]:
        """Return both lists of each text [row]; new texts are read."""
        encoded = texts.dictionary_encode()
        distinct = encoded.dictionary.to_pylist()
        rows = np.array(list(map(self._rows.get, distinct, repeat(-1))), np.int64)
        new = np.flatnonzero(rows < 0)
        rows[new] = len(self._rows) + np.arange(len(new))
        new_texts = [distinct[position] for position in new.tolist()]
        self._rows.update(zip(new_texts, count(len(self._rows)), strict=False))
        if new_texts:
            for grown, lists in zip(self._lists, zip(*map(self._read, new_texts), strict=True), strict=True):
                grown.add(lists)
        rows = rows[encoded.indices.to_numpy()]
        return [grown.take(rows) for grown in self._lists]


def count_unconfirmed(made: Lists, claims: Claims, *evidence: Lists) -> np.ndarray:
    """Count the distinct claims of one sentence of each pair that the other sentence does not confirm [pair], int32.

    Args:
        made: Numbers of the claims of the one sentence [pair].
        claims: The claims by their numbers.
        evidence: Numbers of the keys that the other sentence confirms [pair], in one or more parts.
    """
    numbers, bounds = made.flat()
    pairs = np.repeat(np.arange(len(made.starts)), np.diff(bounds))
    conditions = claims.conditions.take(numbers)
    unconfirmed = ~_any_offered(claims.keys.take(numbers), pairs, evidence)
    unconfirmed &= (conditions.lengths == 0) | _any_offered(conditions, pairs, evidence)
    # A claim that a sentence makes twice counts once.
    distinct = np.unique(np.stack([pairs[unconfirmed], numbers[unconfirmed]]), axis=1)
    return np.bincount(distinct[0], minlength=len(made.starts)).astype(np.int32)


def _any_offered(keys: Lists, pairs: np.ndarray, evidence: Sequence[Lists]) -> np.ndarray:
    """Mark the claims [claim] for which the evidence of their pair has any of their keys.

    Args:
        keys: Numbers of the keys of each claim [claim].
        pairs: Index of the pair of each claim [claim].
        evidence: Numbers of the keys that the other sentence confirms [pair], in one or more parts.
    """
    values, limits = keys.flat()
    claim_of = np.repeat(np.arange(len(pairs)), np.diff(limits))
    found = np.zeros(len(pairs), bool)
    for part in evidence:
        offered = part.take(pairs[claim_of])
        others, ends = offered.flat()
        equal = np.flatnonzero(others == np.repeat(values, offered.lengths))
        found[claim_of[np.searchsorted(ends, equal, side="right") - 1]] = True
    return found
