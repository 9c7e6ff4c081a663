"""Random samples of rows by seeded hashes, and selection of rows by ranges of columns."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.release.schema import row_numbers
from paranmt_hf.errors import InputError
from paranmt_hf.text.identity import mix, salt

SAMPLE_ROWS = 1000  # Number of rows in the config `sample`
SAMPLE_SEED = 0  # Seed of the config `sample`, and of the examples on a card

# Smallest and largest value, both included; None if there is no bound.
Interval = tuple[float | None, float | None]


def top_tenths(scores: np.ndarray) -> float:
    """Return the smallest score among the best two tenths of the scores [row]; scores equal to it are among them.

    Raises:
        InputError: If there are no scores.
    """
    if not len(scores):
        raise InputError("there are no rows to take tenths of")
    first = len(scores) - max(1, len(scores) * 2 // 10)
    return float(np.partition(scores, first)[first])


def in_ranges(table: pa.Table, ranges: Mapping[str, Interval]) -> pa.ChunkedArray:
    """Mark the rows [row] whose columns are all inside their ranges, bounds included; null is outside.

    Bounds are compared in the precision of the column.
    """
    mask = pa.chunked_array([np.ones(table.num_rows, bool)])
    for name, (low, high) in ranges.items():
        column = table[name]
        if column.type == pa.float32():
            # A bound of 0.7 must include 0.7 in single precision, which is a little less than in double precision.
            low, high = (bound if bound is None else float(np.float32(bound)) for bound in (low, high))
        if low is not None:
            mask = pc.and_(mask, pc.fill_null(pc.greater_equal(column, low), False))
        if high is not None:
            mask = pc.and_(mask, pc.fill_null(pc.less_equal(column, high), False))
    return mask


def filtered_ranges(scores: np.ndarray) -> dict[str, Interval]:
    """Return the ranges of the config `filtered`: the best two tenths of the scores [row], and at most 30 tokens."""
    return {
        "para_score": (top_tenths(scores), None),
        "reference_length": (None, 30),
        "translation_length": (None, 30),
    }


def lottery(ids: np.ndarray, seed: int) -> np.ndarray:
    """Return a pseudo-random uint64 for each row number [row], different for different rows.

    Args:
        ids: Row numbers (`schema.row_numbers`).
        seed: Another seed gives other numbers.
    """
    return mix(ids.astype(np.uint64) + salt(seed))


def draw_bound(total: int, count: int, seed: int, *, at_once: int = 1_000_000) -> int | None:
    """Return the lottery number up to which rows are drawn, so that exactly `count` of the rows 0 to `total` - 1 are.

    Lottery numbers are distinct, so the rows whose number is at most the bound are a random sample of `count` rows.
    Only `count` numbers are in memory.

    Args:
        total: Number of rows.
        count: Number of rows to draw.
        seed: Seed of the lottery.
        at_once: Numbers that are computed at a time; the result does not depend on it.

    Returns:
        The bound, or None if there are at most `count` rows and all are drawn.
    """
    if total <= count:
        return None
    best = np.empty(0, np.uint64)
    for start in range(0, total, at_once):
        best = np.concatenate([best, lottery(np.arange(start, min(start + at_once, total)), seed)])
        if len(best) > count:
            best = np.partition(best, count - 1)[:count]
    return int(best.max())


def sample_ids(ids: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Sample `count` of the row numbers [row], or all if there are not more, and return them in ascending order."""
    if len(ids) <= count:
        return np.sort(ids)
    draws = lottery(ids, seed)
    return np.sort(ids[np.argpartition(draws, count)[:count]])


class Sample:
    """A random sample of the rows that are added: those with the smallest lottery numbers.

    The sample does not depend on the order in which rows are added. A smaller sample with the same seed is the
    beginning of a larger one.

    Attributes:
        seen: Number of rows that were added.
        held: Number of rows in memory.

    Args:
        count: Number of rows in the sample.
        seed: Seed of the lottery.
        slack: Number of rows beyond `count`, at most, that are held before the sample is cut down.
    """

    def __init__(self, count: int, seed: int, slack: int = 10_000) -> None:
        self.seen = 0
        self.held = 0
        self._count, self._seed = count, seed
        self._most = count + min(count // 2, slack)
        self._tables: list[pa.Table] = []
        self._draws: list[np.ndarray] = []
        self._bound = np.uint64(2**64 - 1)

    def add(self, rows: pa.Table | pa.RecordBatch, places: np.ndarray | None = None) -> None:
        """Add rows, which have the key columns of `schema.row_numbers`.

        Args:
            rows: The rows.
            places: Indices [chosen row] of those that are added; None for all.
        """
        numbers = row_numbers(rows)
        places = np.arange(len(numbers)) if places is None else places
        self.seen += len(places)
        draws = lottery(numbers[places], self._seed)
        inside = draws <= self._bound
        if not inside.any():
            return
        chosen = rows.take(pa.array(places[inside]))
        self._tables.append(chosen if isinstance(chosen, pa.Table) else pa.Table.from_batches([chosen]))
        self._draws.append(draws[inside])
        self.held += len(self._draws[-1])
        if self.held > self._most:
            self._cut()

    def _cut(self) -> None:
        """Keep the rows with the smallest lottery numbers, in the order of these."""
        draws = np.concatenate(self._draws)
        order = np.argsort(draws, kind="stable")[: self._count]
        self._tables = [pa.concat_tables(self._tables).take(pa.array(order)).combine_chunks()]
        self._draws = [draws[order]]
        self.held = len(order)
        if self.held == self._count:
            self._bound = draws[order[-1]]

    def table(self) -> pa.Table:
        """Return the sampled rows in the order of their lottery numbers.

        At least one row must have been added.
        """
        self._cut()
        return self._tables[0]


def text_numbers(column: pa.ChunkedArray, *, size: int = 8, salt: str = "") -> np.ndarray:
    """Return a pseudo-random number [row], uint64, for each text [row], by its hash; equal texts have equal numbers.

    Args:
        column: The texts, none of them null.
        size: Number of bytes of a number, at most 8; numbers are below 256**size.
        salt: Another salt, of at most 16 bytes, gives other numbers.
    """
    encoded = column.combine_chunks().dictionary_encode()
    numbers = [
        int.from_bytes(hashlib.blake2b(text.encode(), digest_size=size, salt=salt.encode()).digest())
        for text in encoded.dictionary.to_pylist()
    ]
    return np.array(numbers, np.uint64)[encoded.indices.to_numpy()]
