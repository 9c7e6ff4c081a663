"""Claims of a sentence, and evidence for them in the other sentence of a pair.

A sentence makes claims: a number, a negation, a name. A claim is a set of keys, the forms in which the other sentence
may say the same. It is confirmed if the other sentence's evidence holds one of these keys. There is more evidence than
claims: "both" confirms the number 2 without claiming it, so that its absence is no mismatch. Some claims count under a
condition only: if the other sentence's evidence holds another key. So a unit counts only against a unit.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, count, islice, repeat

import numpy as np
import pyarrow as pa

from paranmt_hf.text.identity import hash_texts
from paranmt_hf.text.tokens import expand

Claim = tuple[str, ...]  # Keys that confirm the claim, and conditions
CONDITION = "if "


def condition(key: str) -> str:
    """A condition of a claim: it counts only if the other sentence has this key, or that of another condition."""
    return CONDITION + key


@dataclass(frozen=True)
class Statement:
    """What a text says."""

    claims: tuple[Claim, ...]  # Each a tuple of keys, any one of which confirms it, and of conditions
    evidence: tuple[str, ...]  # Keys that the text confirms


@dataclass(frozen=True)
class Lists:
    """A list of integers for each row."""

    values: np.ndarray  # All lists end to end [value], int32
    starts: np.ndarray  # Where each list begins in `values` [row], int64
    lengths: np.ndarray  # Length of each list [row], int64

    def take(self, rows: np.ndarray) -> Lists:
        """Select rows [chosen], in that order; the values are not copied."""
        return Lists(self.values, self.starts[rows], self.lengths[rows])

    def flat(self) -> tuple[np.ndarray, np.ndarray]:
        """The concatenated lists [value], and their offsets [row + 1]."""
        return expand(self.values, self.starts, self.lengths)

    def joined(self, bounds: np.ndarray) -> Lists:
        """Join the lists of consecutive rows: row `i` of the result has those from `bounds[i]` to `bounds[i + 1]`."""
        values, limits = self.flat()
        starts = limits[bounds[:-1]]
        return Lists(values, starts, limits[bounds[1:]] - starts)


class GrowingLists:
    """Lists of integers that grow."""

    def __init__(self) -> None:
        # They begin with a filler because an empty buffer is no array.
        self._values, self._bounds = array("i", [0]), array("q", [1])

    def add(self, lists: Sequence[Sequence[int]]) -> None:
        """Append lists."""
        self._values.extend(chain.from_iterable(lists))
        self._bounds.extend(islice(accumulate(map(len, lists), initial=self._bounds[-1]), 1, None))

    def take(self, rows: np.ndarray) -> Lists:
        """Select rows [chosen]; nothing can be added while the result is in use."""
        values, bounds = np.frombuffer(self._values, np.int32), np.frombuffer(self._bounds, np.int64)
        return Lists(values, bounds[rows], bounds[rows + 1] - bounds[rows])


class Claims:
    """Numbers claims; `keys` and `conditions` are the numbered keys of each claim."""

    def __init__(self) -> None:
        self._known: dict[Claim, int] = {}
        self._hashes, self._first_keys = array("Q"), array("Q")
        self.keys, self.conditions = GrowingLists(), GrowingLists()

    def number(self, claim: Claim, keys: dict[str, int]) -> int:
        if claim not in self._known:
            self._known[claim] = len(self._known)
            whole, first = hash_texts(["\n".join(claim), claim[0]]).tolist()
            self._hashes.append(whole)
            self._first_keys.append(first)
            self.keys.add([[keys[key] for key in claim if not key.startswith(CONDITION)]])
            self.conditions.add([[keys[key[len(CONDITION) :]] for key in claim if key.startswith(CONDITION)]])
        return self._known[claim]

    def hashes(self, numbers: np.ndarray, *, first_key: bool = False) -> np.ndarray:
        """Hashes of numbered claims, or of their first keys alone [claim], uint64; the numbers do not count."""
        return np.array(self._first_keys if first_key else self._hashes, np.uint64)[numbers]


class Memory:
    """Cache of the two lists of integers that `read` returns for each distinct text."""

    def __init__(self, read: Callable[[str], tuple[list[int], list[int]]]) -> None:
        self._read = read
        self._rows: dict[str, int] = {}
        self._lists = GrowingLists(), GrowingLists()

    def __len__(self) -> int:
        return len(self._rows)

    def lists(self, texts: pa.Array) -> list[Lists]:
        """Read texts [row]; returns both lists of each [row]."""
        encoded = texts.dictionary_encode()
        distinct = encoded.dictionary.to_pylist()
        rows = np.array(list(map(self._rows.get, distinct, repeat(-1))), np.int64)
        new = np.flatnonzero(rows < 0)
        rows[new] = len(self._rows) + np.arange(len(new))
        texts_met = [distinct[position] for position in new.tolist()]
        self._rows.update(zip(texts_met, count(len(self._rows)), strict=False))
        if texts_met:
            for grown, lists in zip(self._lists, zip(*map(self._read, texts_met), strict=True), strict=True):
                grown.add(lists)
        rows = rows[encoded.indices.to_numpy()]
        return [grown.take(rows) for grown in self._lists]


def count_unconfirmed(made: Lists, claims: Claims, *evidence: Lists) -> np.ndarray:
    """Count the distinct claims of sentences that the other sentences do not confirm [pair], int32.

    `made` are the numbers of the claims of each sentence [pair], and `evidence` the keys of the other sentences
    [pair], in one or more parts.
    """
    numbers, bounds = made.flat()
    pairs = np.repeat(np.arange(len(made.starts)), np.diff(bounds))
    conditions = claims.conditions.take(numbers)
    open_ = ~_any_offered(claims.keys.take(numbers), pairs, evidence)
    open_ &= (conditions.lengths == 0) | _any_offered(conditions, pairs, evidence)
    # A claim that is made twice counts once.
    left = np.unique(np.stack([pairs[open_], numbers[open_]]), axis=1)
    return np.bincount(left[0], minlength=len(made.starts)).astype(np.int32)


def _any_offered(keys: Lists, pairs: np.ndarray, evidence: Sequence[Lists]) -> np.ndarray:
    """Whether the evidence of its pair [claim] holds any of the keys of each claim [claim]."""
    values, limits = keys.flat()
    claim_of = np.repeat(np.arange(len(pairs)), np.diff(limits))
    found = np.zeros(len(pairs), bool)
    for part in evidence:
        offered = part.take(pairs[claim_of])
        others, ends = offered.flat()
        equal = np.flatnonzero(others == np.repeat(values, offered.lengths))
        found[claim_of[np.searchsorted(ends, equal, side="right") - 1]] = True
    return found
