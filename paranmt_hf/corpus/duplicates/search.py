"""Near-duplicates among many documents: candidates that share a band, compared exactly; the first stays."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.duplicates.candidates import BLOCK, FIRST, PairFiles, sharing
from paranmt_hf.corpus.duplicates.first_stays import resolve
from paranmt_hf.corpus.duplicates.minhash import MinHash
from paranmt_hf.corpus.duplicates.shingles import BATCH, Shingler, Unit, jaccard
from paranmt_hf.corpus.duplicates.store import DocumentStore
from paranmt_hf.corpus.hashing import mix, salt
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.util.settings import check, seed_setting, setting

# Pairs that are compared at once.
_COMPARED = 2**15
# Documents whose cosines are computed at once.
_ROWS = 2_048


@dataclass(frozen=True)
class Likeness:
    """When two documents are alike, and how candidates are found.

    Attributes:
        unit: What a shingle is a run of.
        size: How many words or characters a shingle has.
        similarity: Smallest Jaccard similarity of the two sets of shingles.
        cosine: With an encoder: smallest cosine of the two vectors, in place of the Jaccard similarity.
        exhaustive: With an encoder: compare every document with every earlier one that stays.
        bands: Number of bands of MinHash.
        rows: Number of minima in a band.
        seed: Decides the permutations of MinHash.
        language: ISO 639-1 code of that of the documents, which decides what a word is.
    """

    unit: Unit = setting("word", "what a shingle is a run of")
    size: int = setting(2, "words or characters in a shingle", at_least=1, at_most=20)
    similarity: float = setting(0.7, "smallest Jaccard similarity of near-duplicates", above=0, at_most=1)
    cosine: float = setting(0.95, "with an encoder: smallest cosine of near-duplicates", above=0, at_most=1)
    exhaustive: bool = setting(False, "with an encoder: compare all with all; time grows with the square of the rows")
    bands: int = setting(20, "bands of MinHash", at_least=1, at_most=256)
    rows: int = setting(4, "minima in a band", at_least=1, at_most=64)
    seed: int = seed_setting(1, "decides the permutations of MinHash")
    language: str = setting(ENGLISH, "language of the documents, which decides what a word is")

    def __post_init__(self) -> None:
        check(self)


class NearDuplicateSearch:
    """Takes documents in batches, then says which of them repeat an earlier one.

    A document is one sentence, or a pair of sentences. Two are alike if their Jaccard similarity reaches the
    threshold; with an encoder, if their cosine does (vectors are kept with 16 bits a number, so its third digit is the
    last).
    Documents without any shingle, or with a vector of zeros, are like none. What is found depends on the documents and
    their order alone, not on the batches.

    Memory: a sort of 2**25 keys, and 18 bytes for each document. Disk: 8 bytes for each band and each shingle of a
    document, and 2 for each dimension with an encoder.

    Args:
        folder: An empty folder for what does not fit into memory; the caller removes it.
        likeness: When two documents are alike.
        encoder: Gives the vectors, if cosines are to decide; a document of two sentences has the two vectors behind
            each other.
    """

    def __init__(self, folder: Path, likeness: Likeness, encoder: Encoder | None = None) -> None:
        self.likeness, self._encoder, self._folder = likeness, encoder, folder
        self._shingler = Shingler(likeness.unit, likeness.size, likeness.language)
        self._minhash = MinHash(likeness.bands, likeness.rows, likeness.seed)
        # The last key is that of the whole set, which finds equal ones.
        self._store = DocumentStore(folder, likeness.bands + 1)

    def __len__(self) -> int:
        return len(self._store)

    def add(self, columns: Sequence[pa.Array]) -> None:
        """Take the next documents.

        Args:
            columns: One or two columns of sentences [document], strings without nulls.
        """
        for start in range(0, len(columns[0]), BATCH):
            self._add([column.slice(start, BATCH) for column in columns])

    def _add(self, columns: Sequence[pa.Array]) -> None:
        sets = self._shingler.sets(columns)
        lengths = np.diff(sets.offsets)
        filled = np.flatnonzero(lengths)
        keys = np.empty((self.likeness.bands + 1, len(sets)), np.uint64)
        # Documents without shingles get keys of their own.
        keys[:] = mix(np.arange(len(self), len(self) + len(sets), dtype=np.uint64) ^ salt(7))
        if len(filled):
            starts = sets.offsets[:-1][filled]
            bounded = type(sets)(sets.values, np.append(starts, len(sets.values)))
            keys[:-1, filled] = self._minhash.keys(bounded)
            keys[-1, filled] = mix(np.add.reduceat(mix(sets.values), starts))
        self._store.append(sets, keys, self._vectors(columns))

    def _vectors(self, columns: Sequence[pa.Array]) -> np.ndarray | None:
        if self._encoder is None:
            return None
        parts = []
        for column in columns:
            encoded = column.dictionary_encode()
            vectors = np.asarray(self._encoder.encode(encoded.dictionary.to_pylist()), np.float32)
            parts.append(unit_vectors(vectors)[encoded.indices.to_numpy()])
        return unit_vectors(np.concatenate(parts, axis=1))

    def repeats(self, progress: Callable[[int, int], None] | None = None) -> np.ndarray:
        """Find the near-duplicates among the documents taken; call it once.

        Args:
            progress: Is told how many steps are done, and how many there are.

        Returns:
            For each document the first earlier one that stays and that it is like; -1 where it stays [document].
        """
        blocks = -(-len(self) // (_ROWS if self._compares_all else BLOCK))
        total = blocks + (0 if self._compares_all else len(self._store.keys))
        steps = itertools.count(1)

        def tell() -> None:
            if progress is not None:
                progress(next(steps), total)

        repeats = np.full(len(self), -1, np.int64)
        if not len(self):
            self._close()
            return repeats
        copies = np.full(len(self), -1, np.int64)
        if self._encoder is None:
            for earlier, later in sharing(self._store.keys[-1], 1, copies >= 0):
                for pairs in _cut(earlier, later):
                    equal = self._jaccard(*pairs) == 1
                    copies[pairs[1][equal]] = pairs[0][equal]
        if self._compares_all:
            self._compare_all(repeats, tell)
        else:
            self._compare_candidates(repeats, copies >= 0, tell)
        # A copy goes the way of the first of its kind.
        copied = np.flatnonzero(copies >= 0)
        origin = copies[copied]
        repeats[copied] = np.where(repeats[origin] >= 0, repeats[origin], origin)
        self._close()
        return repeats

    def _compare_candidates(self, repeats: np.ndarray, leave_out: np.ndarray, tell: Callable[[], None]) -> None:
        pairs = PairFiles(self._folder, len(self))
        for keys in self._store.keys:
            for earlier, later in sharing(keys, FIRST, leave_out):
                pairs.append(earlier, later)
            tell()
        for block in pairs.blocks():
            for earlier, later in _cut_between(*block):
                # Documents that are decided and were dropped need no comparison.
                open_ = repeats[earlier] < 0
                near = earlier[open_], later[open_]
                alike = self._alike(*near)
                resolve(near[0][alike], near[1][alike], repeats)
            tell()

    def _alike(self, earlier: np.ndarray, later: np.ndarray) -> np.ndarray:
        if self._encoder is None:
            counts = self._store.counts(earlier), self._store.counts(later)
            # No two sets are more alike than their sizes are.
            alike = np.minimum(*counts) >= self.likeness.similarity * np.maximum(*counts)
            alike[alike] = self._jaccard(earlier[alike], later[alike]) >= self.likeness.similarity
            return alike
        products = np.einsum("pd,pd->p", self._store.vectors(earlier), self._store.vectors(later))
        return products >= self.likeness.cosine

    def _jaccard(self, earlier: np.ndarray, later: np.ndarray) -> np.ndarray:
        return jaccard(self._store.sets(earlier), self._store.sets(later))

    @property
    def _compares_all(self) -> bool:
        return self._encoder is not None and self.likeness.exhaustive

    def _compare_all(self, repeats: np.ndarray, tell: Callable[[], None]) -> None:
        """Compare each document with all earlier ones that stay, block by block."""
        stay = np.empty(0, np.int64)
        for start in range(0, len(self), _ROWS):
            block = np.arange(start, min(start + _ROWS, len(self)))
            vectors = self._store.vectors(block)
            near: list[tuple[np.ndarray, np.ndarray]] = []
            for first in range(0, len(stay), _ROWS):
                others = stay[first : first + _ROWS]
                rows, columns = np.nonzero(vectors @ self._store.vectors(others).T >= self.likeness.cosine)
                near.append((others[columns], block[rows]))
            rows, columns = np.nonzero(np.tril(vectors @ vectors.T, -1) >= self.likeness.cosine)
            near.append((block[columns], block[rows]))
            earlier, later = (np.concatenate(side) for side in zip(*near, strict=True))
            resolve(earlier, later, repeats)
            stay = np.concatenate([stay, block[repeats[block] < 0]])
            tell()

    def _close(self) -> None:
        self._store.__exit__(None, None, None)


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """Bring vectors [document, dimension] to length 1; those of zeros stay, and are like none."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


def _cut(earlier: np.ndarray, later: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for start in range(0, len(later), _COMPARED):
        yield earlier[start : start + _COMPARED], later[start : start + _COMPARED]


def _cut_between(earlier: np.ndarray, later: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Cut pairs that are in the order of their later documents, and never between two of the same one."""
    start = 0
    while start < len(later):
        stop = int(np.searchsorted(later, later[min(start + _COMPARED, len(later)) - 1], "right"))
        yield earlier[start:stop], later[start:stop]
        start = stop
