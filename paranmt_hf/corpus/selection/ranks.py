"""Exact ranks of all rows by a column, and an exact sample, in memory independent of the number of rows.

Rows are ranked by value, and equal values by id, so every row has its own rank. The row at a cut between two ranks is
found digit by digit: a pass over the column counts how many values begin with each 16 bits, the next one counts the
next 16 bits of those that begin like the wanted row. 32-bit numbers take two passes, 64-bit numbers four, and one more
if equal values lie on both sides of a cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.draws import lottery
from paranmt_hf.corpus.schema import row_numbers
from paranmt_hf.corpus.selection.filters import Rows, TwoPassFilter, Verdict, numbers
from paranmt_hf.errors import InputError

DIGIT_BITS = 16
# Below any id.
FIRST = -(2**63)
# Reads keys [row] and ids [row] of all rows in order of their ids, a block at a time.
Keys = Callable[[], Iterator[tuple[np.ndarray, np.ndarray]]]


@dataclass(frozen=True)
class Cut:
    """A boundary between two ranks, given by the first row above it.

    Attributes:
        key: Key of that row, as `sortable` gives it; None if no row lies above.
        id: Id of that row; rows with the same key and smaller ids lie below.
    """

    key: int | None
    id: int = FIRST

    def above(self, keys: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Mark the rows [row] that lie above."""
        if self.key is None:
            return np.zeros(len(keys), bool)
        key = keys.dtype.type(self.key)
        return (keys > key) | ((keys == key) & (ids >= self.id))


def sortable(values: np.ndarray) -> np.ndarray:
    """Turn numbers without NaN into unsigned integers of 32 or 64 bits in the same order; equal numbers stay equal."""
    if values.dtype.kind == "f":
        wide = values.astype(np.float32 if values.dtype.itemsize <= 4 else np.float64)
        # Minus zero is equal to zero.
        wide[wide == 0] = 0
        bits = wide.view(f"u{wide.dtype.itemsize}")
        sign = bits.dtype.type(1 << (8 * bits.dtype.itemsize - 1))
        # The bits of positive numbers are in order; those of negative ones in the opposite order.
        return np.where(bits & sign, ~bits, bits | sign)
    if values.dtype.kind == "i":
        wide = values.astype(np.int32 if values.dtype.itemsize <= 4 else np.int64)
        bits = wide.view(f"u{wide.dtype.itemsize}")
        return bits ^ bits.dtype.type(1 << (8 * bits.dtype.itemsize - 1))
    return values.astype(np.uint32 if values.dtype.itemsize <= 4 else np.uint64)


def find_cuts(read: Keys, ranks: Callable[[int], Sequence[int]]) -> tuple[int, list[Cut]]:
    """Find the rows at some ranks.

    Args:
        read: Reads keys and ids, as often as it is called.
        ranks: Gives the ranks, from 0, for a number of rows.

    Returns:
        The number of rows, and for each rank the cut below the row that has it.
    """
    rows, histograms, bits = _count(read, 0, {0})
    wanted = list(ranks(rows))
    inside = [index for index, rank in enumerate(wanted) if rank < rows]
    # The bits of each row sought that are known, and its rank among the rows that begin with them.
    prefixes, left = [0] * len(wanted), list(wanted)
    for digit in range(bits // DIGIT_BITS):
        if digit and inside:
            _, histograms, _ = _count(read, digit, {prefixes[index] for index in inside})
        for index in inside:
            below = np.cumsum(histograms[prefixes[index]])
            bucket = int(np.searchsorted(below, left[index], side="right"))
            left[index] -= int(below[bucket - 1]) if bucket else 0
            prefixes[index] = prefixes[index] << DIGIT_BITS | bucket
    tied = {(prefixes[index], left[index]) for index in inside if left[index]}
    ids = _find_ids(read, tied)
    cuts = [Cut(None)] * len(wanted)
    for index in inside:
        cuts[index] = Cut(prefixes[index], ids.get((prefixes[index], left[index]), FIRST))
    return rows, cuts


def _count(read: Keys, digit: int, prefixes: set[int]) -> tuple[int, dict[int, np.ndarray], int]:
    """Count the next digit of the keys that begin with each prefix; returns rows, counts, and bits of a key."""
    counts = {prefix: np.zeros(2**DIGIT_BITS, np.int64) for prefix in prefixes}
    rows, bits = 0, 0
    for keys, _ in read():
        rows += len(keys)
        bits = 8 * keys.dtype.itemsize
        shift = bits - DIGIT_BITS * (digit + 1)
        shifted = keys >> keys.dtype.type(shift)
        upper, lower = shifted >> keys.dtype.type(DIGIT_BITS), shifted & keys.dtype.type(2**DIGIT_BITS - 1)
        for prefix, histogram in counts.items():
            chosen = lower[upper == keys.dtype.type(prefix)]
            histogram += np.bincount(chosen.astype(np.int64), minlength=2**DIGIT_BITS)
    return rows, counts, bits


def _find_ids(read: Keys, tied: set[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """Find the id of the `n`-th row, from 0, of a key, for several pairs of a key and `n`."""
    found: dict[tuple[int, int], int] = {}
    if not tied:
        return found
    seen = dict.fromkeys((key for key, _ in tied), 0)
    for keys, ids in read():
        for key, before in seen.items():
            own = ids[keys == keys.dtype.type(key)]
            found |= {
                (key, number): int(own[number - before])
                for other, number in tied
                if other == key and before <= number < before + len(own)
            }
            seen[key] += len(own)
    return found


def parse_parts(text: str, parts: int = 10) -> list[int]:
    """Parse a choice of parts such as `9-10` or `1,3,5-6`: ascending numbers from 1 to `parts`."""
    chosen: set[int] = set()
    for word in text.split(","):
        first, dash, last = (part.strip() for part in word.partition("-"))
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise InputError(f"tenths must be numbers such as 9-10 or 1,3,5-6, was {text!r}", option="tenths")
        low, high = int(first), int(last or first)
        if not 1 <= low <= high <= parts:
            raise InputError(
                f"tenths must be from 1, the lowest, to {parts}, a range from low to high, was {text!r}",
                option="tenths",
            )
        chosen |= set(range(low, high + 1))
    return sorted(chosen)


class Tenths(TwoPassFilter):
    """Keeps some tenths of the rows by a column (ParaNMT-50M, section 5.4, table 5); tenth 1 has the lowest values.

    The row of rank `r`, from 0, of `n` belongs to tenth `10 r // n + 1`, so sizes differ by at most one. Equal values
    are ranked by id. Rows without a value have no rank: `HasValue` comes before.

    Args:
        column: Column of numbers.
        tenths: Which are kept.
        parts: Number of parts into which the rows are cut, if not ten.
    """

    def __init__(self, column: str, tenths: Sequence[int], parts: int = 10) -> None:
        self.tenths, self.parts = sorted(set(tenths)), parts
        what = "tenth" if parts == 10 else f"{parts}th part"
        reason = f"outside {what}{'s' * (len(self.tenths) > 1)} {', '.join(map(str, self.tenths))} of {column}"
        super().__init__("tenths", reason, [column], column, column=column, tenths=self.tenths, parts=parts)
        self.cuts: list[Cut] = []

    def _keys(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        return sortable(numbers(table[self.number])[0]), row_numbers(table)

    def prepare(self, rows: Rows, work: Path) -> None:
        """Find the cuts."""
        _, self.cuts = find_cuts(
            lambda: map(self._keys, rows()),
            lambda rows: [-(-rows * part // self.parts) for part in range(1, self.parts)],
        )

    def part_of(self, table: pa.Table) -> np.ndarray:
        """Part, from 1, of each row [row]."""
        keys, ids = self._keys(table)
        return 1 + sum((cut.above(keys, ids) for cut in self.cuts), start=np.zeros(len(keys), np.int64))

    def judge(self, table: pa.Table) -> Verdict:
        """Judge the next rows."""
        kept = np.isin(self.part_of(table), self.tenths)
        return Verdict(kept, numbers(table[self.number])[0].astype(np.float64))


class ExactSample(TwoPassFilter):
    """Keeps an exact number of rows, sampled at random: those whose ids have the smallest lottery numbers.

    The sample depends on the ids of the rows and on the seed alone, not on files or order.
    """

    def __init__(self, count: int, seed: int) -> None:
        super().__init__("sample", f"not among {count:,} sampled at random", count=count, seed=seed)
        self.count, self.seed = count, seed
        self._cut = Cut(None)

    def _keys(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        ids = row_numbers(table)
        return lottery(ids, self.seed), ids

    def prepare(self, rows: Rows, work: Path) -> None:
        """Find the cut."""
        found, (self._cut,) = find_cuts(lambda: map(self._keys, rows()), lambda rows: [self.count])
        if found < self.count:
            raise InputError(
                f"`sample` is {self.count:,} and the other filters leave {found:,} rows; lower it, or drop fewer rows",
                option="sample",
            )

    def judge(self, table: pa.Table) -> Verdict:
        """Judge the next rows."""
        return Verdict(~self._cut.above(*self._keys(table)))
