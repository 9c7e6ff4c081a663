"""MinHash: sets of shingles of documents, the similarity of sets, and keys that similar documents probably share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from paranmt_hf.text.identity import TokenHashes, mix, salt
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.text.normal_form import normal_form
from paranmt_hf.text.word_rules import with_blanks, word_tokenizer_for
from paranmt_hf.util.ranges import ranges

BATCH = 2**16  # Largest number of documents that are cut at once
# A shingle is a hash of 48 bits; two different pairs of words have the same one with a probability of 4e-15. The upper
# 16 bits of a number are free for the index of a document in its batch.
SHINGLE_BITS = np.uint64(48)
SHINGLE = np.uint64(2**48 - 1)


@dataclass(frozen=True)
class Sets:
    """The sets of shingles of a batch of documents."""

    values: np.ndarray  # Shingles of all documents [shingle], uint64 below 2**48; distinct and ascending in each
    bounds: np.ndarray  # Document `i` has the shingles `values[bounds[i]:bounds[i + 1]]` [document + 1], int64

    def __len__(self) -> int:
        return len(self.bounds) - 1


class Shingler:
    """Cuts documents, which are one or two sentences each, into sets of shingles: pairs of neighbouring words.

    A sentence of one word is one shingle. In scripts without blanks between words each character is a word, in any
    language. Shingles of the first sentence never equal those of the second.

    Args:
        language: Language of the documents (ISO 639-1), which determines how text is cut into words.
    """

    def __init__(self, language: str = ENGLISH) -> None:
        self._tokenizer = word_tokenizer_for(language)
        self._hashes = TokenHashes()

    def sets(self, columns: Sequence[pa.Array]) -> Sets:
        """Return the sets of shingles of documents.

        Args:
            columns: The first sentences [document], and the second ones if documents have two; at most `BATCH`.
        """
        assert len(columns[0]) <= BATCH
        packed = np.concatenate([self._packed(column, side) for side, column in enumerate(columns)])
        packed.sort()
        if len(packed):
            packed = packed[np.concatenate([[True], packed[1:] != packed[:-1]])]
        counts = np.bincount((packed >> SHINGLE_BITS).astype(np.int64), minlength=len(columns[0]))
        return Sets(packed & SHINGLE, np.concatenate([[0], np.cumsum(counts)]))

    def _packed(self, column: pa.Array, side: int) -> np.ndarray:
        """Return the shingles of sentences [shingle], uint64, with the index of the document in the upper 16 bits.

        Args:
            column: The sentences [document].
            side: 0 for first and 1 for second sentences.
        """
        (table,) = self._tokenizer.tables(with_blanks(normal_form(column)))
        hashes = self._hashes.of(table)[table.ids]
        lengths = np.diff(table.offsets)
        parts = []
        for words, documents in ((2, np.flatnonzero(lengths >= 2)), (1, np.flatnonzero(lengths == 1))):
            counts = lengths[documents] - (words - 1)
            starts, _ = ranges(table.offsets[:-1][documents], counts)
            # Words are hashed in order, so `dog bites` and `bites dog` are different shingles.
            runs = np.full(len(starts), salt(words), np.uint64)
            for step in range(words):
                runs = mix(runs ^ hashes[starts + step]) + salt(step)
            shingles = mix(mix(runs) ^ salt(side)) & SHINGLE
            parts.append((np.repeat(documents, counts).astype(np.uint64) << SHINGLE_BITS) | shingles)
        return np.concatenate(parts)


def jaccard(left: Sets, right: Sets) -> np.ndarray:
    """Return the Jaccard similarity [pair], float64, of each document with one of another batch; 1 if both are empty.

    Args:
        left: Sets of the one documents [pair].
        right: Sets of the others [pair].
    """
    keys = []
    for sets in (left, right):
        documents = np.repeat(np.arange(len(sets), dtype=np.uint64), np.diff(sets.bounds))
        keys.append((documents << SHINGLE_BITS) | sets.values)
    merged = np.concatenate(keys)
    # Both halves are sorted, and a stable sort only merges them, which is seventeen times as fast.
    merged.sort(kind="stable")
    in_both = merged[1:][merged[1:] == merged[:-1]]
    shared = np.bincount((in_both >> SHINGLE_BITS).astype(np.int64), minlength=len(left))
    union = np.diff(left.bounds) + np.diff(right.bounds) - shared
    return np.divide(shared, union, out=np.ones(len(left)), where=union > 0)


def bands_and_rows(similarity: float) -> tuple[int, int]:
    """Choose the number of bands of MinHash, and of minima (rows) in each, for a smallest similarity.

    Two documents of Jaccard similarity s share one minimum with probability s, all r minima of a band with s**r, and
    at least one of b bands with 1 - (1 - s**r)**b (Leskovec, Rajaraman, Ullman: Mining of Massive Datasets, section
    3.4.2). The result has the largest r, up to 4, with which at most 200 bands, each of which is a file, make this
    probability 0.995; and the smallest such b. More rows mean that fewer pairs below the smallest similarity are
    compared. 0.7 gives 20 bands of 4 rows, 0.3 gives 194 of 3. Below 0.027 even one row is not enough, and fewer pairs
    are found.

    Args:
        similarity: Smallest similarity, in (0, 1].

    Returns:
        Number of bands, and number of rows in each.
    """
    for rows in (4, 3, 2, 1):
        shared = similarity**rows
        bands = 1 if shared == 1 else math.ceil(math.log(1 - 0.995) / math.log(1 - shared))
        if bands <= 200:
            return bands, rows
    return 200, 1


class MinHash:
    """Computes the keys of documents in `bands` bands, each of `rows` minima.

    The permutations of the numbers below 2**32 are x -> a x + b modulo 2**32 with an odd a, over mixed shingles. This
    is several times as fast as signatures from `rensa` (benchmarks/near_duplicates.py), and the result does not depend
    on the version of a package.
    """

    def __init__(self, bands: int, rows: int) -> None:
        self.bands, self.rows = bands, rows
        # PCG64 gives the same numbers in every version of NumPy; the methods of `Generator` need not.
        draws = np.random.PCG64(1).random_raw(2 * bands * rows)
        self._factors = (draws[0::2] >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
        self._terms = (draws[1::2] >> np.uint64(32)).astype(np.uint32)

    def keys(self, sets: Sets) -> np.ndarray:
        """Return the key [band, document], uint64, of each document in each band; no document may be empty."""
        hashes = (mix(sets.values) >> np.uint64(32)).astype(np.uint32)
        keys = np.zeros((self.bands, len(sets)), np.uint64)
        # The shingles of 4,000 documents stay in the cache of the processor while every permutation reads them.
        for start in range(0, len(sets), 4_000):
            stop = min(start + 4_000, len(sets))
            bounds = sets.bounds[start : stop + 1]
            self._fill(keys[:, start:stop], hashes[bounds[0] : bounds[-1]], bounds[:-1] - bounds[0])
        return keys

    def _fill(self, keys: np.ndarray, hashes: np.ndarray, starts: np.ndarray) -> None:
        """Compute the keys of some documents.

        Args:
            keys: The keys [band, document], which are filled in.
            hashes: Hashes of the shingles of all documents [shingle], uint32.
            starts: Where each document begins in `hashes` [document].
        """
        permuted, minima = np.empty_like(hashes), np.empty(len(starts), np.uint32)
        for number, (factor, term) in enumerate(zip(self._factors, self._terms, strict=True)):
            np.multiply(hashes, factor, out=permuted)
            permuted += term
            np.minimum.reduceat(permuted, starts, out=minima)
            band = number // self.rows
            keys[band] = mix(keys[band] ^ minima)
