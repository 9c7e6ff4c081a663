"""Which texts, sentences and runs of words are equal: hashes of 64 bits, and the rows that repeat earlier ones.

There are two kinds of equality. Two texts are equal if their characters are (`hash_texts`). Two sentences are equal if
their word tokens are, whatever their case and blanks (`keys_of`). All hashes are the same on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.text.tokens import PerToken, TokenTable, WordTokenizer

SLICE = 100_000  # Texts that are hashed or compared at once
_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio; odd, so it has an inverse modulo 2**64


def hash_texts(texts: Sequence[str] | pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Hash texts [text] without nulls by BLAKE2b; returns uint64 [text]."""
    parts = [np.empty(0, np.uint64)]
    # In slices: the digests of a large vocabulary as Python objects would take several times its own memory.
    for start in range(0, len(texts), SLICE):
        some = texts[start : start + SLICE]
        if isinstance(some, pa.Array | pa.ChunkedArray):
            some = some.to_pylist()
        digests = b"".join(hashlib.blake2b(text.encode(), digest_size=8).digest() for text in some)
        parts.append(np.frombuffer(digests, np.uint64))
    return np.concatenate(parts)


def mix(values: np.ndarray) -> np.ndarray:
    """Mix 64-bit numbers [value], uint64, by the finaliser of MurmurHash3 (public domain).

    Each input bit changes each output bit half of the time, and different inputs stay different.
    """
    mixed = values ^ (values >> np.uint64(33))
    for multiplier in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        mixed *= np.uint64(multiplier)
        mixed ^= mixed >> np.uint64(33)
    return mixed


def salt(number: int) -> np.uint64:
    """Map a small integer to a 64-bit salt."""
    return np.uint64((number + 1) * _GOLDEN % 2**64)


class TokenHashes(PerToken):
    """The hash of every token of a tokenizer's vocabulary, uint64."""

    def __init__(self) -> None:
        super().__init__(hash_texts, np.uint64)


class RunHashes:
    """Hashes of any runs of consecutive tokens: equal runs have equal ones, and different runs almost never.

    The hash of a run is the sum of the hashes of its tokens, each times a power of a constant by its place in the run,
    modulo 2**64. Sums over all tokens make each run one subtraction.

    Args:
        tokens: A hash for each token [token], uint64.
    """

    def __init__(self, tokens: np.ndarray) -> None:
        powers = np.cumprod(np.full(len(tokens), _GOLDEN, np.uint64))
        self._sums = np.zeros(len(tokens) + 1, np.uint64)
        np.cumsum(tokens * powers, out=self._sums[1:])
        # The powers of the inverse take away the place of a run among the tokens.
        self._inverse = np.full(len(tokens) + 1, pow(_GOLDEN, -1, 2**64), np.uint64)
        self._inverse[0] = 1
        np.cumprod(self._inverse, out=self._inverse)

    def of(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Hash runs, given their bounds [run]; returns uint64 [run]."""
        return (self._sums[ends] - self._sums[starts]) * self._inverse[starts]


def sentence_keys(table: TokenTable, hashes: TokenHashes) -> np.ndarray:
    """Hash the sentences of a table by their word tokens; returns uint64 [sentence], 0 for one without tokens."""
    return RunHashes(hashes.of(table)[table.ids]).of(table.offsets[:-1], table.offsets[1:])


def keys_of(*columns: pa.Array | Sequence[str]) -> np.ndarray:
    """Hash sentences of several columns of equal length by their word tokens; returns uint64 [column, sentence]."""
    hashes = TokenHashes()
    return np.stack([sentence_keys(table, hashes) for table in WordTokenizer().tables(*columns)])


def first_equal(
    hashes: np.ndarray, texts: Callable[[np.ndarray], pa.Array] | None = None, *, step: int = SLICE
) -> np.ndarray:
    """Find the first row with an equal text for each row; -1 if no earlier one has it [row].

    Args:
        hashes: Hashes of the texts [row].
        texts: Gets the texts of some rows [row], at most `step` at a time, to compare those with equal hashes. Without
            it equal hashes are taken for equal texts: among n texts two different ones share a hash with a probability
            of n**2 / 2**65, which is 3e-4 for 100 million.
        step: Texts that are compared at once; the result does not depend on it.
    """
    order = np.argsort(hashes, kind="stable")
    # Whether the row in each place has the hash of the row before it.
    same = np.zeros(len(hashes), bool)
    same[1:] = hashes[order[1:]] == hashes[order[:-1]]
    first = np.maximum.accumulate(np.where(same, 0, np.arange(len(hashes))))
    repeats, originals = order[same], order[first[same]]
    found = np.full(len(hashes), -1)
    if texts is None:
        found[repeats] = originals
        return found
    for start in range(0, len(repeats), step):
        some, earlier = repeats[start : start + step], originals[start : start + step]
        equal = pc.equal(texts(some), texts(earlier)).to_numpy(zero_copy_only=False)
        found[some[equal]] = earlier[equal]
    return found


def distinct_rows(hashes: np.ndarray) -> np.ndarray:
    """Find the first row of each hash: positions, ascending [distinct hash]."""
    return np.sort(np.unique(hashes, return_index=True)[1])


def distinct_texts(
    sentences: Iterable[tuple[np.ndarray, pa.Array | pa.ChunkedArray]],
) -> tuple[np.ndarray, pa.LargeStringArray]:
    """Find the distinct keys [text] of columns of sentences with their keys, and the first sentence of each [text].

    The order is that of the first occurrences. Texts stay in Arrow: Python strings take several times the memory.
    """
    keys, texts = [np.empty(0, np.uint64)], [pa.array([], pa.large_string())]
    for own, column in sentences:
        keys.append(own)
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        texts += [chunk.cast(pa.large_string()) for chunk in chunks]
    every = np.concatenate(keys)
    first = distinct_rows(every)
    return every[first], pa.concat_arrays(texts).take(pa.array(first))
