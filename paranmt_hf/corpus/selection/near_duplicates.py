"""Finds near-duplicates: documents that have mostly the same pairs of neighbouring words as an earlier one.

MinHash finds candidates, and the similarity of the whole sets decides. Everything that grows with the number of
documents is in files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.selection.column_files import ColumnFile, ListFile
from paranmt_hf.corpus.selection.minhash import BATCH, MinHash, Sets, Shingler, bands_and_rows, jaccard
from paranmt_hf.meaning.differences import DifferentDocuments
from paranmt_hf.text.identity import mix, salt
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.util.progress import Progress

SIMILARITY = 0.7  # Smallest Jaccard similarity of near-duplicates
FIRST = 32  # Maximum number of documents sharing a key, the first ones, that a document is compared with
COMPARED_AT_ONCE = 2**15  # Number of pairs that are compared at once
BLOCK = 2**18  # Number of later documents whose pairs are in one file
# A pair on disk is one number: the lower 46 bits are the earlier document, the upper ones the later document, by its
# index in its block.
EARLIER_BITS = np.uint64(46)
EARLIER = np.uint64(2**46 - 1)


class NearDuplicateSearch:
    """Collects documents in batches, then finds which of them are near-duplicates of an earlier one.

    A document is one sentence or a pair of sentences. Two documents are alike if the Jaccard similarity of their sets
    of shingles reaches `similarity`; documents without shingles are like none. The result depends only on the
    documents and their order, not on the batches.

    Memory: a sort of 2**25 keys, and 18 bytes for each document. Disk: 8 bytes for each band and each shingle of a
    document.

    Args:
        folder: Empty folder for the files.
        similarity: Smallest Jaccard similarity of documents that are alike.
        language: Language of the documents (ISO 639-1).
        differences: If given, documents that do not mean the same are not alike.
    """

    def __init__(
        self,
        folder: Path,
        similarity: float = SIMILARITY,
        language: str = ENGLISH,
        *,
        differences: DifferentDocuments | None = None,
    ) -> None:
        self._folder, self._similarity, self._differences = folder, similarity, differences
        self._shingler = Shingler(language)
        self._minhash = MinHash(*bands_and_rows(similarity))
        self._sets = ListFile(folder / "shingles", np.uint64)
        # One more key stands for the whole set, and finds equal sets.
        names = [f"keys-{band:03d}" for band in range(self._minhash.bands + 1)]
        self._keys = [ColumnFile(folder / name, np.uint64) for name in names]

    def __len__(self) -> int:
        return len(self._sets)

    def add(self, columns: Sequence[pa.Array]) -> None:
        """Add documents, given as their first sentences [document], and their second ones if they have two."""
        for start in range(0, len(columns[0]), BATCH):
            sets = self._shingler.sets([column.slice(start, BATCH) for column in columns])
            # Documents without shingles get keys that no other document has.
            keys = np.empty((len(self._keys), len(sets)), np.uint64)
            keys[:] = mix(np.arange(len(self), len(self) + len(sets), dtype=np.uint64) ^ salt(7))
            filled = np.flatnonzero(np.diff(sets.bounds))
            if len(filled):
                starts = sets.bounds[:-1][filled]
                keys[:-1, filled] = self._minhash.keys(Sets(sets.values, np.append(starts, len(sets.values))))
                keys[-1, filled] = mix(np.add.reduceat(mix(sets.values), starts))
            for file, keys_of_band in zip(self._keys, keys, strict=True):
                file.append(keys_of_band)
            self._sets.append(sets.values, sets.bounds)

    def repeats(self, progress: Progress, fixed: int = 0) -> np.ndarray:
        """Find for each document the first earlier document that is kept and like it; call this once.

        Args:
            progress: Advances by one for each band and each block of candidates.
            fixed: Number of documents, the first ones, that are kept in any case.

        Returns:
            The index [document] of the earlier document; -1 for a document that is kept.
        """
        if not len(self):
            return np.empty(0, np.int64)
        candidates = CandidateFiles(self._folder, len(self))
        progress.total = len(self._keys) + candidates.blocks
        # Of each document the first one with an equal set of shingles. With `differences`, documents with equal sets
        # need not be alike: their numbers may be in another order.
        copies = np.full(len(self), -1, np.int64)
        if self._differences is None:
            for earlier, later in sharing(self._keys[-1], 1, copies >= 0):
                equal = self.similarities(earlier, later) == 1
                copies[later[equal]] = earlier[equal]
        signatures = None if self._differences is None else self._differences.signatures(len(self))
        for keys in self._keys:
            for earlier, later in sharing(keys, FIRST, copies >= 0):
                candidates.append(earlier, later)
            if signatures is not None:
                # Many texts of one template may share a key, more than are compared. Among these, texts with equal
                # claims are found by mixing the claims into the keys.
                for earlier, later in sharing(keys, FIRST, copies >= 0, salts=signatures):
                    candidates.append(earlier, later)
            progress.advance_to(progress.rows + 1)
        repeats = decide(candidates, len(self), self._alike, progress, fixed)
        # A copy repeats whatever its original repeats, or else the original.
        copied = fixed + np.flatnonzero(copies[fixed:] >= 0)
        origin = copies[copied]
        repeats[copied] = np.where(repeats[origin] >= 0, repeats[origin], origin)
        return repeats

    def similarities(self, earlier: np.ndarray, later: np.ndarray) -> np.ndarray:
        """Return the Jaccard similarity [pair] of each pair of documents.

        Args:
            earlier: Index of the earlier document of each pair [pair].
            later: Index of the later document of each pair [pair].
        """
        found = np.empty(len(later))
        for start in range(0, len(later), COMPARED_AT_ONCE):
            part = slice(start, start + COMPARED_AT_ONCE)
            sets = [Sets(*self._sets.take(side[part])) for side in (earlier, later)]
            found[part] = jaccard(*sets)
        return found

    def close(self) -> None:
        """Close all files."""
        for file in self._keys:
            file.close()
        self._sets.close()

    def _alike(self, earlier: np.ndarray, later: np.ndarray) -> np.ndarray:
        """Mark the pairs of documents [pair] that are alike."""
        counts = self._sets.lengths(earlier), self._sets.lengths(later)
        # The Jaccard similarity is at most the ratio of the sizes of the sets.
        alike = np.minimum(*counts) >= self._similarity * np.maximum(*counts)
        alike[alike] = self.similarities(earlier[alike], later[alike]) >= self._similarity
        if self._differences is not None:
            alike[alike] = ~self._differences.between(earlier[alike], later[alike])
        return alike


def sharing(
    keys: ColumnFile,
    first: int,
    leave_out: np.ndarray,
    *,
    salts: np.ndarray | None = None,
    sorted_at_once: int = 2**25,
    read_at_once: int = 2**22,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Find documents that share a key of one band.

    A key gives up its lowest bits to the index of the document, so that sorting plain numbers brings equal keys
    together. With 50 million documents 38 bits of a key remain; the few thousand pairs that agree in these by chance
    are compared in vain.

    Args:
        keys: The keys of the band [document].
        first: Maximum number of others sharing its key, those with the smallest indices, that a document is
            paired with.
        leave_out: Mask [document] of documents that are ignored.
        salts: Numbers [document], uint64, that are mixed into the keys first; None for none.
        sorted_at_once: Number of keys that are sorted at once; the result does not depend on it. The default takes 0.3
            GB, and as much again for what is read and marked.
        read_at_once: Number of keys that are read at once.

    Yields:
        Earlier and later document of each pair [pair], int64.
    """
    number_bits = max(int(keys.rows - 1).bit_length(), 1)
    low = np.uint64(2**number_bits - 1)
    part_bits = max((keys.rows - 1) // sorted_at_once, 0).bit_length()
    for part in range(2**part_bits):
        chosen = [np.empty(0, np.uint64)]
        for start in range(0, keys.rows, read_at_once):
            values = keys.read(start, read_at_once)
            block = slice(start, start + len(values))
            if salts is not None:
                values = mix(values ^ salts[block])
            wanted = ~leave_out[block]
            if part_bits:
                wanted &= (values >> np.uint64(64 - part_bits)) == np.uint64(part)
            numbers = np.arange(block.start, block.stop, dtype=np.uint64)
            chosen.append((values[wanted] & ~low) | numbers[wanted])
        packed = np.concatenate(chosen)
        del chosen
        packed.sort()
        yield from _pairs_of(packed, number_bits, first)


def _pairs_of(packed: np.ndarray, number_bits: int, first: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the pairs within runs of equal keys; see `sharing`.

    Args:
        packed: Keys with the index of the document in their lowest bits, ascending.
        number_bits: Number of these bits.
        first: Largest number of earlier documents with which a document is paired.
    """
    keys = packed >> np.uint64(number_bits)
    inside = np.zeros(len(packed), bool)
    inside[1:] = keys[1:] == keys[:-1]
    shared = inside.copy()
    shared[:-1] |= inside[1:]
    packed, inside = packed[shared], inside[shared]
    documents = (packed & np.uint64(2**number_bits - 1)).astype(np.int64)
    starts = np.flatnonzero(~inside)
    if not len(starts):
        return
    sizes = np.diff(np.concatenate([starts, [len(documents)]]))
    index_in_run = np.arange(len(documents)) - np.repeat(starts, sizes)
    for step in range(min(first, int(sizes.max()) - 1)):
        later = np.flatnonzero(index_in_run > step)
        yield documents[later - index_in_run[later] + step], documents[later]


class CandidateFiles:
    """Pairs of documents on disk, in one file for each block of later documents.

    Args:
        folder: Folder of the files.
        documents: Number of documents.
        block: Number of later documents in a block.
    """

    def __init__(self, folder: Path, documents: int, *, block: int = BLOCK) -> None:
        self._block = block
        self._paths = [folder / f"pairs-{number:05d}" for number in range(-(-documents // block))]
        for path in self._paths:
            path.unlink(missing_ok=True)

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(self._paths)

    def append(self, earlier: np.ndarray, later: np.ndarray) -> None:
        """Write pairs of earlier and later documents [pair]."""
        blocks = later // self._block
        packed = ((later % self._block).astype(np.uint64) << EARLIER_BITS) | earlier.astype(np.uint64)
        order = np.argsort(blocks, kind="stable")
        bounds = np.searchsorted(blocks[order], np.arange(self.blocks + 1))
        for path, start, stop in zip(self._paths, bounds[:-1], bounds[1:], strict=True):
            if stop > start:
                with path.open("ab") as file:
                    file.write(packed[order[start:stop]].data)

    def parts(self, block: int, *, at_once: int = COMPARED_AT_ONCE) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Read the pairs of a block in parts, each pair once, and remove the file.

        Args:
            block: Number of the block.
            at_once: Number of pairs in a part, about; all pairs of a later document are in one part.

        Yields:
            Earlier and later document of each pair [pair], sorted by the later and then by the earlier one.
        """
        path = self._paths[block]
        if not path.exists():
            return
        packed = np.unique(np.fromfile(path, np.uint64))
        earlier = (packed & EARLIER).astype(np.int64)
        later = (packed >> EARLIER_BITS).astype(np.int64) + block * self._block
        start = 0
        while start < len(later):
            stop = int(np.searchsorted(later, later[min(start + at_once, len(later)) - 1], "right"))
            yield earlier[start:stop], later[start:stop]
            start = stop
        path.unlink()


def decide(
    candidates: CandidateFiles,
    documents: int,
    alike: Callable[[np.ndarray, np.ndarray], np.ndarray],
    progress: Progress,
    fixed: int = 0,
) -> np.ndarray:
    """Find for each document the first earlier document that is kept and like it.

    Args:
        candidates: Pairs of documents that may be alike.
        documents: Number of documents.
        alike: Marks the pairs [pair] that are alike, given their earlier and later documents [pair].
        progress: Advances by one for each block of candidates.
        fixed: Number of documents, the first ones, that are kept in any case.

    Returns:
        The index [document] of the earlier document; -1 for a document that is kept.
    """
    repeats = np.full(documents, -1, np.int64)
    for block in range(candidates.blocks):
        for earlier, later in candidates.parts(block):
            # Only earlier documents that are kept, or not yet decided, are compared.
            kept = (repeats[earlier] < 0) & (later >= fixed)
            earlier, later = earlier[kept], later[kept]  # noqa: PLW2901
            near = alike(earlier, later)
            decide_pairs(earlier[near], later[near], repeats)
        progress.advance_to(progress.rows + 1)
    return repeats


def decide_pairs(earlier: np.ndarray, later: np.ndarray, repeats: np.ndarray) -> None:
    """Decide which later documents of similar pairs are dropped, in the order of the documents.

    A document is dropped if and only if it is like an earlier one that is kept. So each dropped document is like a
    kept one, and no two kept documents are a pair.

    Args:
        earlier: Earlier document of each pair [pair]; decided by a call before, or a later document in this call.
        later: Later document of each pair [pair]; not decided by a call before.
        repeats: For each document [document] the first document that is kept and like it; filled in for the dropped
            ones, -1 for the others.
    """
    undecided = np.zeros(len(repeats), bool)
    undecided[later] = True
    first, second = earlier, later
    while len(second):
        waits = undecided[first]
        hit = second[~waits & (repeats[first] < 0)]
        repeats[hit] = 0
        undecided[hit] = False
        still = waits & undecided[second]
        undecided[second] = False
        first, second = first[still], second[still]
        undecided[second] = True
    stays = repeats[earlier] < 0
    order = np.lexsort((earlier[stays], later[stays]))
    dropped, first_of = np.unique(later[stays][order], return_index=True)
    repeats[dropped] = earlier[stays][order][first_of]
