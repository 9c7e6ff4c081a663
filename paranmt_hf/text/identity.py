"""Equality of texts, sentences and runs of words, by hashes of 64 bits; and the rows that repeat earlier ones.

Two texts are equal if their characters are (`hash_texts`). Two sentences are equal if their word tokens are, whatever
their case and blanks (`keys_of`). All hashes are the same on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.text.tokens import PerToken, TokenTable, WordTokenizer

SLICE = 100_000  # Number of texts that are hashed or compared at once
_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio; odd, so it has an inverse modulo 2**64


def hash_texts(texts: Sequence[str] | pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Hash texts [text], without nulls, by BLAKE2b; return the hashes [text], uint64."""
    parts = [np.empty(0, np.uint64)]
    # In slices, because the texts and digests as Python objects take several times the memory of the texts.
    for start in range(0, len(texts), SLICE):
        part = texts[start : start + SLICE]
        if isinstance(part, pa.Array | pa.ChunkedArray):
            part = part.to_pylist()
        digests = b"".join(hashlib.blake2b(text.encode(), digest_size=8).digest() for text in part)
        parts.append(np.frombuffer(digests, np.uint64))
    return np.concatenate(parts)


def mix(values: np.ndarray) -> np.ndarray:
    """Mix the bits of 64-bit numbers [value], uint64, by the finaliser of MurmurHash3 (public domain).

    Each bit of a number changes each bit of its result half of the time, and different numbers stay different.
    """
    mixed = values ^ (values >> np.uint64(33))
    for multiplier in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        mixed *= np.uint64(multiplier)
        mixed ^= mixed >> np.uint64(33)
    return mixed


def salt(number: int) -> np.uint64:
    """Return a 64-bit salt for a small integer; different integers have different ones."""
    return np.uint64((number + 1) * _GOLDEN % 2**64)


class TokenHashes(PerToken):
    """The hash of every token of a tokenizer's vocabulary, uint64."""

    def __init__(self) -> None:
        super().__init__(hash_texts, np.uint64)


class RunHashes:
    """Hashes of any runs of consecutive tokens: equal runs have equal hashes, and different runs almost never.

    The hash of a run is the sum of the hashes of its tokens, modulo 2**64, each times a power of a constant by its
    place in the run. Cumulative sums over all tokens make the hash of any run one subtraction.

    Args:
        tokens: Hash of each token [token], uint64.
    """

    def __init__(self, tokens: np.ndarray) -> None:
        powers = np.cumprod(np.full(len(tokens), _GOLDEN, np.uint64))
        self._sums = np.zeros(len(tokens) + 1, np.uint64)
        np.cumsum(tokens * powers, out=self._sums[1:])
        # Multiplying by a power of the inverse makes the hash of a run independent of where the run begins.
        self._inverse = np.full(len(tokens) + 1, pow(_GOLDEN, -1, 2**64), np.uint64)
        self._inverse[0] = 1
        np.cumprod(self._inverse, out=self._inverse)

    def of(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Return the hashes of runs [run], uint64.

        Args:
            starts: Position of the first token of each run [run].
            ends: Position after its last token [run].
        """
        return (self._sums[ends] - self._sums[starts]) * self._inverse[starts]


def sentence_keys(table: TokenTable, hashes: TokenHashes) -> np.ndarray:
    """Return a hash of the word tokens of each sentence of a table [sentence], uint64; 0 for one without tokens."""
    return RunHashes(hashes.of(table)[table.ids]).of(table.offsets[:-1], table.offsets[1:])


def keys_of(*columns: pa.Array | Sequence[str]) -> np.ndarray:
    """Return a hash of the word tokens of each sentence of columns of equal length [column, sentence], uint64."""
    hashes = TokenHashes()
    return np.stack([sentence_keys(table, hashes) for table in WordTokenizer().tables(*columns)])


def first_equal(
    hashes: np.ndarray, texts: Callable[[np.ndarray], pa.Array] | None = None, *, step: int = SLICE
) -> np.ndarray:
    """Find the first row with an equal text for each row; -1 if no earlier row has it [row].

    Args:
        hashes: Hashes of the texts [row].
        texts: Function that returns the texts of some rows [row], at most `step` at a time, so that texts with equal
            hashes can be compared. Without it, texts with equal hashes are taken to be equal: among n texts two
            different ones share a hash with a probability of n**2 / 2**65, which is 3e-4 for 100 million.
        step: Number of texts that are compared at once; the result does not depend on it.
    """
    order = np.argsort(hashes, kind="stable")
    # Whether each row, in the order of hashes, has the hash of the row before it.
    same = np.zeros(len(hashes), bool)
    same[1:] = hashes[order[1:]] == hashes[order[:-1]]
    first = np.maximum.accumulate(np.where(same, 0, np.arange(len(hashes))))
    repeats, originals = order[same], order[first[same]]
    first_row = np.full(len(hashes), -1)
    if texts is None:
        first_row[repeats] = originals
        return first_row
    for start in range(0, len(repeats), step):
        later, earlier = repeats[start : start + step], originals[start : start + step]
        equal = pc.equal(texts(later), texts(earlier)).to_numpy(zero_copy_only=False)
        first_row[later[equal]] = earlier[equal]
    return first_row


def distinct_rows(hashes: np.ndarray) -> np.ndarray:
    """Return the first row of each distinct hash, ascending [distinct hash]."""
    return np.sort(np.unique(hashes, return_index=True)[1])


def distinct_texts(
    sentences: Iterable[tuple[np.ndarray, pa.Array | pa.ChunkedArray]],
) -> tuple[np.ndarray, pa.LargeStringArray]:
    """Find the distinct sentences of columns, in the order of their first occurrences.

    Texts stay in Arrow, because Python strings take several times the memory.

    Args:
        sentences: Columns of sentences, each with the keys of its sentences [sentence].

    Returns:
        The distinct keys [text], and the first sentence with each key [text].
    """
    keys, texts = [np.empty(0, np.uint64)], [pa.array([], pa.large_string())]
    for column_keys, column in sentences:
        keys.append(column_keys)
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        texts += [chunk.cast(pa.large_string()) for chunk in chunks]
    all_keys = np.concatenate(keys)
    first = distinct_rows(all_keys)
    return all_keys[first], pa.concat_arrays(texts).take(pa.array(first))
