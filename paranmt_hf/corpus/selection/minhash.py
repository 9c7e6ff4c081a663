"""MinHash: sets of shingles of documents, their similarity, and the keys that find candidates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from paranmt_hf.text.identity import TokenHashes, mix, salt
from paranmt_hf.text.normal_form import normal_form
from paranmt_hf.text.tokens import ranges
from paranmt_hf.text.word_rules import ENGLISH, with_blanks, word_tokenizer_for

BATCH = 2**16  # Maximum number of documents that are cut at once
# A shingle is a hash of 48 bits: two different ones are equal with a chance of 4e-15. The number of a document within
# its batch takes the upper bits.
SHINGLE_BITS = np.uint64(48)
SHINGLE = np.uint64(2**48 - 1)


@dataclass(frozen=True)
class Sets:
    """The sets of shingles of a batch of documents."""

    values: np.ndarray  # Shingles [shingle], uint64 below 2**48, distinct and ascending within a document
    bounds: np.ndarray  # Bounds [document + 1], int64: document `i` has `values[bounds[i]:bounds[i + 1]]`

    def __len__(self) -> int:
        return len(self.bounds) - 1


class Shingler:
    """Cuts documents, which are one or two sentences each, into sets of shingles: pairs of neighbouring words.

    A sentence of one word is one shingle. Of scripts that put no blanks between words each character is a word,
    whatever the language. Shingles of the first and of the second sentence are never equal.
    """

    def __init__(self, language: str = ENGLISH) -> None:
        self._tokenizer = word_tokenizer_for(language)
        self._hashes = TokenHashes()

    def sets(self, columns: Sequence[pa.Array]) -> Sets:
        """Split one or two columns of at most `BATCH` sentences into shingles [document]."""
        assert len(columns[0]) <= BATCH
        keys = np.concatenate([self._keys(column, side) for side, column in enumerate(columns)])
        keys.sort()
        if len(keys):
            keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
        counts = np.bincount((keys >> SHINGLE_BITS).astype(np.int64), minlength=len(columns[0]))
        return Sets(keys & SHINGLE, np.concatenate([[0], np.cumsum(counts)]))

    def _keys(self, column: pa.Array, side: int) -> np.ndarray:
        """Document in the upper 16 bits, shingle in the lower 48 [shingle of a sentence]."""
        (table,) = self._tokenizer.tables(with_blanks(normal_form(column)))
        hashes = self._hashes.of(table)[table.ids]
        lengths = np.diff(table.offsets)
        parts = []
        for words, documents in ((2, np.flatnonzero(lengths >= 2)), (1, np.flatnonzero(lengths == 1))):
            counts = lengths[documents] - (words - 1)
            starts, _ = ranges(table.offsets[:-1][documents], counts)
            # The order of the words counts.
            runs = np.full(len(starts), salt(words), np.uint64)
            for step in range(words):
                runs = mix(runs ^ hashes[starts + step]) + salt(step)
            shingles = mix(mix(runs) ^ salt(side)) & SHINGLE
            parts.append((np.repeat(documents, counts).astype(np.uint64) << SHINGLE_BITS) | shingles)
        return np.concatenate(parts)


def jaccard(left: Sets, right: Sets) -> np.ndarray:
    """Jaccard similarities of documents with those of another batch [pair], float64; 1 for two empty documents."""
    keys = []
    for sets in (left, right):
        documents = np.repeat(np.arange(len(sets), dtype=np.uint64), np.diff(sets.bounds))
        keys.append((documents << SHINGLE_BITS) | sets.values)
    merged = np.concatenate(keys)
    # Two halves in ascending order, which a stable sort only merges: seventeen times as fast.
    merged.sort(kind="stable")
    in_both = merged[1:][merged[1:] == merged[:-1]]
    shared = np.bincount((in_both >> SHINGLE_BITS).astype(np.int64), minlength=len(left))
    union = np.diff(left.bounds) + np.diff(right.bounds) - shared
    return np.divide(shared, union, out=np.ones(len(left)), where=union > 0)


def bands_and_rows(similarity: float) -> tuple[int, int]:
    """Choose the number of bands of MinHash, and of minima in each, for a smallest Jaccard similarity in (0, 1].

    Two documents of similarity s share one minimum with probability s, all r minima of a band with s**r, and at least
    one of b bands with 1 - (1 - s**r)**b (Leskovec, Rajaraman, Ullman: Mining of Massive Datasets, section 3.4.2).
    The bands are as few as make this 0.995, the rows as many, up to 4, as need no more than 200 bands, each of which
    is a file: the more rows, the fewer pairs below the threshold are compared. 0.7 gives 20 bands of 4, 0.3 gives 194
    of 3. Below 0.027 not even one row is enough, and fewer pairs are found.
    """
    for rows in (4, 3, 2, 1):
        shared = similarity**rows
        bands = 1 if shared == 1 else math.ceil(math.log(1 - 0.995) / math.log(1 - shared))
        if bands <= 200:
            return bands, rows
    return 200, 1


class MinHash:
    """Computes the keys of `bands` bands, each of `rows` minima.

    A permutation of the numbers below 2**32 is x -> a x + b modulo 2**32 with an odd a, over mixed shingles. This is
    several times as fast as taking signatures out of `rensa` (benchmarks/near_duplicates.py), and what is found does
    not depend on the version of a package.
    """

    def __init__(self, bands: int, rows: int) -> None:
        self.bands, self.rows = bands, rows
        # PCG64 gives the same numbers in every version of NumPy; Generator's methods need not.
        draws = np.random.PCG64(1).random_raw(2 * bands * rows)
        self._factors = (draws[0::2] >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
        self._terms = (draws[1::2] >> np.uint64(32)).astype(np.uint32)

    def keys(self, sets: Sets) -> np.ndarray:
        """Compute the band keys [band, document], uint64, of documents that are not empty."""
        hashes = (mix(sets.values) >> np.uint64(32)).astype(np.uint32)
        keys = np.zeros((self.bands, len(sets)), np.uint64)
        # The shingles of so many documents stay in the processor's cache while every permutation reads them.
        for start in range(0, len(sets), 4_000):
            stop = min(start + 4_000, len(sets))
            bounds = sets.bounds[start : stop + 1]
            self._fill(keys[:, start:stop], hashes[bounds[0] : bounds[-1]], bounds[:-1] - bounds[0])
        return keys

    def _fill(self, keys: np.ndarray, hashes: np.ndarray, starts: np.ndarray) -> None:
        permuted, minima = np.empty_like(hashes), np.empty(len(starts), np.uint32)
        for number, (factor, term) in enumerate(zip(self._factors, self._terms, strict=True)):
            np.multiply(hashes, factor, out=permuted)
            permuted += term
            np.minimum.reduceat(permuted, starts, out=minima)
            band = number // self.rows
            keys[band] = mix(keys[band] ^ minima)
