"""Sampling by seeded hashes, and ranges of columns."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.release.schema import row_numbers
from paranmt_hf.errors import InputError
from paranmt_hf.text.identity import mix, salt

SAMPLE_ROWS = 1000
SAMPLE_SEED = 0  # Seed of the config `sample` and of the examples of a card

Interval = tuple[float | None, float | None]


def top_tenths(scores: np.ndarray) -> float:
    """Smallest score among the best two tenths of the scores [row]; equal scores all count."""
    if not len(scores):
        raise InputError("there are no rows to take tenths of")
    first = len(scores) - max(1, len(scores) * 2 // 10)
    return float(np.partition(scores, first)[first])


def in_ranges(table: pa.Table, ranges: Mapping[str, Interval]) -> pa.ChunkedArray:
    """Mark the rows [row] whose columns are all inside their ranges, ends included; None is unbounded.

    A null is outside. Bounds are compared in the precision of the column.
    """
    mask = pa.chunked_array([np.ones(table.num_rows, bool)])
    for name, (low, high) in ranges.items():
        column = table[name]
        if column.type == pa.float32():
            # The column's own 0.7 is at least 0.7, though it is a little less than that of 64 bits.
            low, high = (bound if bound is None else float(np.float32(bound)) for bound in (low, high))
        if low is not None:
            mask = pc.and_(mask, pc.fill_null(pc.greater_equal(column, low), False))
        if high is not None:
            mask = pc.and_(mask, pc.fill_null(pc.less_equal(column, high), False))
    return mask


def filtered_ranges(scores: np.ndarray) -> dict[str, Interval]:
    """Ranges of the config `filtered`: the top two tenths of the paraphrase score, at most 30 tokens."""
    return {
        "para_score": (top_tenths(scores), None),
        "reference_length": (None, 30),
        "translation_length": (None, 30),
    }


def lottery(ids: np.ndarray, seed: int) -> np.ndarray:
    """Map each row number [row] (`schema.row_numbers`) to a distinct, evenly distributed uint64."""
    return mix(ids.astype(np.uint64) + salt(seed))


def draw_bound(total: int, count: int, seed: int, *, at_once: int = 1_000_000) -> int | None:
    """Largest lottery number among `count` rows sampled from `total` rows; None if there are at most `count`.

    The rows with at most this number are the sample: numbers are distinct, so exactly `count` rows are drawn, each set
    of them with equal probability. Memory is that of `count` numbers.
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
    """Sample `count` of the row numbers [row], or all if there are no more; returns them in ascending order."""
    if len(ids) <= count:
        return np.sort(ids)
    draws = lottery(ids, seed)
    return np.sort(ids[np.argpartition(draws, count)[:count]])


class Sample:
    """A random sample of the added rows: those with the smallest lottery numbers.

    It does not depend on how the rows come in; a smaller sample of the same seed is the beginning of a larger one. At
    most `slack` rows beyond its size are held before it is cut down.
    """

    def __init__(self, count: int, seed: int, slack: int = 10_000) -> None:
        self.seen = 0  # Rows that were added
        self.held = 0  # Rows that are in memory
        self._count, self._seed = count, seed
        self._most = count + min(count // 2, slack)
        self._tables: list[pa.Table] = []
        self._draws: list[np.ndarray] = []
        self._bound = np.uint64(2**64 - 1)

    def add(self, rows: pa.Table | pa.RecordBatch, places: np.ndarray | None = None) -> None:
        """Add rows with an `id` (`schema.row_numbers`), or those of them at `places` [chosen]."""
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
        """Keep the rows with the smallest numbers, in their order."""
        draws = np.concatenate(self._draws)
        order = np.argsort(draws, kind="stable")[: self._count]
        self._tables = [pa.concat_tables(self._tables).take(pa.array(order)).combine_chunks()]
        self._draws = [draws[order]]
        self.held = len(order)
        if self.held == self._count:
            self._bound = draws[order[-1]]

    def table(self) -> pa.Table:
        """Return the sampled rows in the order of their numbers; there must be at least one."""
        self._cut()
        return self._tables[0]


def text_numbers(column: pa.ChunkedArray, *, size: int = 8, salt: str = "") -> np.ndarray:
    """Map each text [row], none null, to a pseudo-random number [row] below 256**size, uint64, by its hash.

    Another salt, of at most 16 bytes, gives another draw; `size` is at most 8.
    """
    encoded = column.combine_chunks().dictionary_encode()
    numbers = [
        int.from_bytes(hashlib.blake2b(text.encode(), digest_size=size, salt=salt.encode()).digest())
        for text in encoded.dictionary.to_pylist()
    ]
    return np.array(numbers, np.uint64)[encoded.indices.to_numpy()]
