"""Hashes of 64 bits, seeded draws by them, and ranges of columns: which rows are taken."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.errors import InputError

_GOLDEN = 0x9E3779B97F4A7C15


def mix(values: np.ndarray) -> np.ndarray:
    """Mix numbers of 64 bits: each input bit changes each output bit half of the time, and no two become equal.

    Args:
        values: Numbers [value], uint64.

    Returns:
        Mixed numbers [value], uint64; the finaliser of MurmurHash3 (public domain).
    """
    mixed = values ^ (values >> np.uint64(33))
    for multiplier in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        mixed *= np.uint64(multiplier)
        mixed ^= mixed >> np.uint64(33)
    return mixed


def salt(number: int) -> np.uint64:
    """Spread a small number over 64 bits."""
    return np.uint64((number + 1) * _GOLDEN % 2**64)


def run_hashes(hashes: np.ndarray, starts: np.ndarray, size: int) -> np.ndarray:
    """Hash runs of tokens, in which the order counts.

    Args:
        hashes: Hashes of tokens [token], uint64.
        starts: Position of each run's first token [run].
        size: Number of tokens of a run.

    Returns:
        Hashes [run], uint64.
    """
    combined = np.full(len(starts), salt(size), np.uint64)
    for step in range(size):
        combined = mix(combined ^ hashes[starts + step]) + salt(step)
    return mix(combined)


MAX_TOKENS = 30
TENTHS = 2
SAMPLE_ROWS = 1000
# Seed of the config `sample` and of the examples of a card.
SAMPLE_SEED = 0
# Rows whose numbers are drawn at once.
DRAW_ROWS = 1_000_000

Interval = tuple[float | None, float | None]


def top_tenths(scores: np.ndarray, tenths: int = TENTHS) -> float:
    """Find the score that the best `tenths` tenths of the rows reach.

    Args:
        scores: Scores [row].
        tenths: From 1 to 10.

    Returns:
        The smallest score that belongs to them; rows of exactly that score all count.
    """
    if not 1 <= tenths <= 10:
        raise InputError(f"tenths must be from 1 to 10, not {tenths!r}")
    if not len(scores):
        raise InputError("there are no rows to take tenths of")
    first = len(scores) - max(1, len(scores) * tenths // 10)
    return float(np.partition(scores, first)[first])


def in_ranges(table: pa.Table, ranges: Mapping[str, Interval]) -> pa.ChunkedArray:
    """Mark the rows whose columns all lie inside their ranges, both ends included.

    Args:
        table: Rows with the columns named in `ranges`.
        ranges: Smallest and largest value of each column; None is not a bound. A null is outside.

    Returns:
        Booleans [row].
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
        "reference_length": (None, MAX_TOKENS),
        "translation_length": (None, MAX_TOKENS),
    }


def lottery(ids: np.ndarray, seed: int) -> np.ndarray:
    """Draw a number for every row from its id: the same one whatever else is in the corpus.

    Args:
        ids: Row numbers [row], see `schema.row_numbers`.
        seed: Another seed, another draw.

    Returns:
        Evenly distributed 64-bit numbers [row].
    """
    return mix(ids.astype(np.uint64) + salt(seed))


def draw_bound(total: int, count: int, seed: int) -> int | None:
    """Find which rows 0, ..., total - 1 are drawn: those whose number in the lottery is at most this one.

    Numbers are all different, so exactly `count` rows are drawn, each set of them with equal chance. Memory is that of
    `count` numbers, however many rows there are.

    Args:
        total: Number of rows.
        count: How many are drawn.
        seed: Decides which.

    Returns:
        The largest number drawn; None where all rows are.
    """
    if total <= count:
        return None
    best = np.empty(0, np.uint64)
    for start in range(0, total, DRAW_ROWS):
        best = np.concatenate([best, lottery(np.arange(start, min(start + DRAW_ROWS, total)), seed)])
        if len(best) > count:
            best = np.partition(best, count - 1)[:count]
    return int(best.max())


def sample_ids(ids: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Choose rows at random.

    Args:
        ids: Row numbers [row], see `schema.row_numbers`.
        count: How many; all when there are no more.
        seed: Decides which.

    Returns:
        The chosen ids, ascending.
    """
    if len(ids) <= count:
        return np.sort(ids)
    draws = lottery(ids, seed)
    return np.sort(ids[np.argpartition(draws, count)[:count]])


def text_numbers(column: pa.ChunkedArray, *, size: int = 8, salt: str = "") -> np.ndarray:
    """Draw a number for each text by its hash.

    Args:
        column: Strings [row], without nulls; each distinct one is hashed once.
        size: Bytes of a number, at most 8.
        salt: Another salt, at most 16 bytes, another draw.

    Returns:
        Evenly distributed numbers [row] below 256**size, uint64.
    """
    encoded = column.combine_chunks().dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    numbers = [
        int.from_bytes(hashlib.blake2b(text.encode(), digest_size=size, salt=salt.encode()).digest())
        for text in encoded.dictionary.to_pylist()
    ]
    return np.array(numbers, np.uint64)[encoded.indices.to_numpy()]
