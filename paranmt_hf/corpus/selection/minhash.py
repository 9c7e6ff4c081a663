"""MinHash: shingles, band keys, candidate pairs, and documents on disk."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from paranmt_hf.text.identity import TokenHashes, mix, salt
from paranmt_hf.text.normal_form import normal_form
from paranmt_hf.text.tokens import ranges
from paranmt_hf.text.word_rules import ENGLISH, with_blanks, word_tokenizer_for

WORDS = 2  # Words of a shingle
BATCH = 2**16  # Sentences that are cut at once; their number within a batch takes the upper bits of a 64-bit number
SHINGLE_BITS = np.uint64(48)  # A shingle is a hash of 48 bits: two different ones are equal with a chance of 4e-15
_SHINGLE = np.uint64(2**48 - 1)


@dataclass(frozen=True)
class Sets:
    """The sets of shingles of a batch of documents."""

    values: np.ndarray  # Shingles [shingle], uint64 below 2**48, distinct and ascending within a document
    offsets: np.ndarray  # Bounds [document + 1], int64: document `i` has `values[offsets[i]:offsets[i + 1]]`

    def __len__(self) -> int:
        return len(self.offsets) - 1


class Shingler:
    """Cuts documents, which are one or two sentences each, into sets of shingles: pairs of neighbouring words.

    A sentence of one word is one shingle. Of scripts that put no blanks between words each character is a word,
    whatever the language. Shingles of the first and of the second sentence are never equal.
    """

    def __init__(self, language: str = ENGLISH) -> None:
        self._tokenizer, self._hashes = word_tokenizer_for(language), TokenHashes()

    def sets(self, columns: Sequence[pa.Array]) -> Sets:
        """Split one or two columns of at most `BATCH` sentences into shingles [document]."""
        assert len(columns[0]) <= BATCH
        keys = np.concatenate([self._keys(column, side) for side, column in enumerate(columns)])
        keys.sort()
        if len(keys):
            keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
        counts = np.bincount((keys >> SHINGLE_BITS).astype(np.int64), minlength=len(columns[0]))
        return Sets(keys & _SHINGLE, np.concatenate([[0], np.cumsum(counts)]))

    def _keys(self, column: pa.Array, side: int) -> np.ndarray:
        """Document in the upper 16 bits, shingle in the lower 48 [shingle of a sentence]."""
        (table,) = self._tokenizer.tables(with_blanks(normal_form(column)))
        hashes, lengths = self._hashes.of(table)[table.ids], np.diff(table.offsets)
        whole, short = np.flatnonzero(lengths >= WORDS), np.flatnonzero(lengths == 1)
        return np.concatenate(
            [_runs(hashes, table.offsets, rows, size, side) for rows, size in ((whole, WORDS), (short, 1))]
        )


def _runs(hashes: np.ndarray, offsets: np.ndarray, documents: np.ndarray, size: int, side: int) -> np.ndarray:
    """Document and shingle of all runs of a size in some documents [run]."""
    counts = offsets[1:][documents] - offsets[:-1][documents] - (size - 1)
    starts, _ = ranges(offsets[:-1][documents], counts)
    shingles = mix(run_hashes(hashes, starts, size) ^ salt(side)) & _SHINGLE
    return (np.repeat(documents, counts).astype(np.uint64) << SHINGLE_BITS) | shingles


def run_hashes(hashes: np.ndarray, starts: np.ndarray, size: int) -> np.ndarray:
    """Hash runs of `size` tokens, given token hashes [token], uint64, and starts [run]; token order counts."""
    combined = np.full(len(starts), salt(size), np.uint64)
    for step in range(size):
        combined = mix(combined ^ hashes[starts + step]) + salt(step)
    return mix(combined)


def jaccard(left: Sets, right: Sets) -> np.ndarray:
    """Jaccard similarities of documents with those of another batch [pair], float64; 1 for two empty documents."""
    keys = []
    for sets in (left, right):
        documents = np.repeat(np.arange(len(sets), dtype=np.uint64), np.diff(sets.offsets))
        keys.append((documents << SHINGLE_BITS) | sets.values)
    merged = np.concatenate(keys)
    # Two halves in ascending order, which a stable sort only merges: seventeen times as fast.
    merged.sort(kind="stable")
    shared = np.bincount((merged[1:][merged[1:] == merged[:-1]] >> SHINGLE_BITS).astype(np.int64), minlength=len(left))
    union = np.diff(left.offsets) + np.diff(right.offsets) - shared
    return np.divide(shared, union, out=np.ones(len(left)), where=union > 0)


_CACHED = 4_000  # Documents whose shingles stay in the processor's cache while every permutation reads them
SEED = 1  # Seed of the permutations


FOUND = 0.995  # Probability that a pair at the threshold shares a band
MAX_ROWS, MAX_BANDS = 4, 200  # More rows make the search no faster; each band is a file


def bands_and_rows(similarity: float) -> tuple[int, int]:
    """Choose the number of bands of MinHash, and of minima in each, for a smallest Jaccard similarity in (0, 1].

    Two documents of similarity s share one minimum with probability s, all r minima of a band with s**r, and at least
    one of b bands with 1 - (1 - s**r)**b (Leskovec, Rajaraman, Ullman: Mining of Massive Datasets, section 3.4.2).
    The bands are as few as make this `FOUND`, the rows as many, up to `MAX_ROWS`, as need no more than `MAX_BANDS`
    bands: the more rows, the fewer pairs below the threshold are compared. 0.7 gives 20 bands of 4, 0.3 gives 194 of
    3. Below 0.027 not even one row is enough, and fewer pairs are found.
    """
    for rows in range(MAX_ROWS, 0, -1):
        shared = similarity**rows
        bands = 1 if shared == 1 else math.ceil(math.log(1 - FOUND) / math.log(1 - shared))
        if bands <= MAX_BANDS:
            return bands, rows
    return MAX_BANDS, 1


class MinHash:
    """Computes the keys of `bands` bands, each of `rows` minima.

    A permutation of the numbers below 2**32 is x -> a x + b modulo 2**32 with an odd a, over mixed shingles. This is
    several times as fast as taking signatures out of `rensa` (benchmarks/near_duplicates.py), and what is found does
    not depend on the version of a package.
    """

    def __init__(self, bands: int, rows: int) -> None:
        self.bands, self.rows = bands, rows
        # PCG64 gives the same numbers in every version of NumPy; Generator's methods need not.
        draws = np.random.PCG64(SEED).random_raw(2 * bands * rows)
        self._factors = (draws[0::2] >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
        self._terms = (draws[1::2] >> np.uint64(32)).astype(np.uint32)

    def keys(self, sets: Sets) -> np.ndarray:
        """Compute the band keys [band, document], uint64, of documents that are not empty."""
        hashes = (mix(sets.values) >> np.uint64(32)).astype(np.uint32)
        keys = np.zeros((self.bands, len(sets)), np.uint64)
        for start in range(0, len(sets), _CACHED):
            stop = min(start + _CACHED, len(sets))
            bounds = sets.offsets[start : stop + 1]
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


class ColumnFile:
    """A column of numbers, or of vectors of a `width`, in a file, which is overwritten."""

    def __init__(self, path: Path, kind: type[np.generic], *width: int) -> None:
        self.path, self.kind, self.width, self.rows = path, np.dtype(kind), width, 0
        self._file = path.open("wb")

    def append(self, values: np.ndarray) -> None:
        self._file.write(np.ascontiguousarray(values, self.kind).data)
        self.rows += len(values)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Read rows in any order [row] or [row, number]."""
        if not len(rows):
            return np.empty((0, *self.width), self.kind)
        self._file.flush()
        # Mapped again each time, so that what was read does not stay in the memory of this process.
        return np.memmap(self.path, self.kind, "r", shape=(self.rows, *self.width))[rows]

    def read(self, start: int, count: int) -> np.ndarray:
        """Read up to `count` numbers from a row on [row]."""
        self._file.flush()
        return np.fromfile(self.path, self.kind, count, offset=start * self.kind.itemsize)

    def salted(self, salts: np.ndarray) -> ColumnFile:
        """Write another file with these numbers, each mixed with its own of the `salts` [row], uint64."""
        made = ColumnFile(self.path.with_suffix(".salted"), np.uint64)
        for start in range(0, self.rows, _READ):
            values = self.read(start, _READ)
            made.append(mix(values ^ salts[start : start + len(values)]))
        return made

    def close(self) -> None:
        self._file.close()

    def remove(self) -> None:
        """Close the file and delete it."""
        self.close()
        self.path.unlink()


class DocumentStore:
    """Documents on disk: their shingles, their keys in each band, and their vectors if there is an encoder."""

    def __init__(self, folder: Path, bands: int) -> None:
        self.keys = [ColumnFile(folder / f"keys-{band:03d}", np.uint64) for band in range(bands)]
        self._bounds = ColumnFile(folder / "bounds", np.int64)
        self._bounds.append(np.zeros(1, np.int64))
        self._shingles = ColumnFile(folder / "shingles", np.uint64)
        self._folder = folder
        self._vectors: ColumnFile | None = None

    def __len__(self) -> int:
        return self._bounds.rows - 1

    def append(self, sets: Sets, keys: np.ndarray, vectors: np.ndarray | None = None) -> None:
        """Write the next documents: shingles, keys [band, document], and vectors of length 1 [document, dimension]."""
        self._bounds.append(self._shingles.rows + sets.offsets[1:])
        self._shingles.append(sets.values)
        for file, column in zip(self.keys, keys, strict=True):
            file.append(column)
        if vectors is not None:
            if self._vectors is None:
                self._vectors = ColumnFile(self._folder / "vectors", np.float16, vectors.shape[1])
            self._vectors.append(vectors)

    def counts(self, documents: np.ndarray) -> np.ndarray:
        """Count the shingles of some documents [document]."""
        return self._bounds.take(documents + 1) - self._bounds.take(documents)

    def sets(self, documents: np.ndarray) -> Sets:
        at, bounds = ranges(self._bounds.take(documents), self.counts(documents))
        return Sets(self._shingles.take(at), bounds)

    def vectors(self, documents: np.ndarray) -> np.ndarray:
        """Read the vectors of some documents [document, dimension], float32."""
        assert self._vectors is not None
        return self._vectors.take(documents).astype(np.float32)

    def close(self) -> None:
        for file in (*self.keys, self._bounds, self._shingles, *([self._vectors] if self._vectors else [])):
            file.close()


# Keys that are sorted at once: 0.3 GB, and as much again for what is read and marked on the way.
SORTED_AT_ONCE = 2**25
FIRST = 32  # Of the documents that share a key, each is compared with the first ones
BLOCK = 2**18  # Later documents whose pairs are resolved at once
_READ = 2**22
_EARLIER_BITS = np.uint64(46)
_EARLIER = np.uint64(2**46 - 1)


def sharing(keys: ColumnFile, first: int, leave_out: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Find documents that share a key of one band: yields earlier and later document of each pair [pair], int64.

    The lowest bits of a key make room for the document's number, so that one sort of plain numbers does it; with 50
    million documents 38 bits remain, and the few thousand pairs that agree in those at random are compared in vain.
    Each document is paired with at most `first` others, those of the smallest numbers; `leave_out` [document] are
    ignored.
    """
    number_bits = max(int(keys.rows - 1).bit_length(), 1)
    low = np.uint64(2**number_bits - 1)
    part_bits = max((keys.rows - 1) // SORTED_AT_ONCE, 0).bit_length()
    for part in range(2**part_bits):
        chosen = []
        for start in range(0, keys.rows, _READ):
            values = keys.read(start, _READ)
            wanted = ~leave_out[start : start + _READ]
            if part_bits:
                wanted &= (values >> np.uint64(64 - part_bits)) == np.uint64(part)
            numbers = np.arange(start, start + len(values), dtype=np.uint64)
            chosen.append((values[wanted] & ~low) | numbers[wanted])
        packed = np.concatenate(chosen) if chosen else np.empty(0, np.uint64)
        del chosen
        packed.sort()
        yield from _pairs_of(packed, number_bits, first)


def _pairs_of(packed: np.ndarray, number_bits: int, first: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs within runs of equal keys."""
    same = (packed[1:] >> np.uint64(number_bits)) == (packed[:-1] >> np.uint64(number_bits))
    inside = np.concatenate([[False], same])
    shared = inside.copy()
    shared[:-1] |= same
    packed, inside = packed[shared], inside[shared]
    documents = (packed & np.uint64(2**number_bits - 1)).astype(np.int64)
    starts = np.flatnonzero(~inside)
    if not len(starts):
        return
    sizes = np.diff(np.concatenate([starts, [len(documents)]]))
    place = np.arange(len(documents)) - np.repeat(starts, sizes)
    for step in range(min(first, int(sizes.max()) - 1)):
        later = np.flatnonzero(place > step)
        yield documents[later - place[later] + step], documents[later]


class CandidateFiles:
    """Pairs of documents on disk, in one file for each block of later documents."""

    def __init__(self, folder: Path, documents: int) -> None:
        self._paths = [folder / f"pairs-{block:05d}" for block in range(-(-documents // BLOCK))]

    def append(self, earlier: np.ndarray, later: np.ndarray) -> None:
        blocks = later // BLOCK
        packed = ((later % BLOCK).astype(np.uint64) << _EARLIER_BITS) | earlier.astype(np.uint64)
        order = np.argsort(blocks, kind="stable")
        bounds = np.searchsorted(blocks[order], np.arange(len(self._paths) + 1))
        for path, start, stop in zip(self._paths, bounds[:-1], bounds[1:], strict=True):
            if stop > start:
                with path.open("ab") as file:
                    file.write(packed[order[start:stop]].data)

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Read earlier and later documents [pair] by blocks, each pair once, by later and then by earlier document."""
        for block, path in enumerate(self._paths):
            packed = np.unique(np.fromfile(path, np.uint64)) if path.exists() else np.empty(0, np.uint64)
            yield (
                (packed & _EARLIER).astype(np.int64),
                (packed >> _EARLIER_BITS).astype(np.int64) + block * BLOCK,
            )
            path.unlink(missing_ok=True)
