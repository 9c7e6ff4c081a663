"""Near-duplicates: documents with much the same pairs of neighbouring words as an earlier one.

MinHash finds candidates, the similarity of the whole sets decides. Everything that grows with the documents is in
files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.scoring.differences import Differences
from paranmt_hf.corpus.selection.column_files import ColumnFile, ListFile
from paranmt_hf.corpus.selection.minhash import BATCH, MinHash, Sets, Shingler, bands_and_rows, jaccard
from paranmt_hf.text.identity import mix, salt
from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.util.progress import Progress

SIMILARITY = 0.7  # Smallest Jaccard similarity of near-duplicates
FIRST = 32  # Of the documents that share a key, each is compared with the first ones
COMPARED_AT_ONCE = 2**15  # Pairs
BLOCK = 2**18  # Later documents whose pairs are in one file
# A pair on disk: the number of the later document within its block, above that of the earlier one.
EARLIER_BITS = np.uint64(46)
EARLIER = np.uint64(2**46 - 1)


class NearDuplicateSearch:
    """Collects documents in batches, then finds which of them are near-duplicates of an earlier one.

    A document is one sentence or a pair of sentences. Two are alike if the Jaccard similarity of their sets of
    shingles reaches `similarity`. Documents without any shingle are like none. The result depends on the documents and
    their order alone, not on the batches. With `differences` no two documents that differ in a number, a negation and
    so on are alike.

    Memory: a sort of 2**25 keys, and 18 bytes for each document. Disk, in the empty `folder`: 8 bytes for each band
    and each shingle of a document.
    """

    def __init__(
        self,
        folder: Path,
        similarity: float = SIMILARITY,
        language: str = ENGLISH,
        *,
        differences: Differences | None = None,
    ) -> None:
        self._folder, self._similarity, self._differences = folder, similarity, differences
        self._shingler = Shingler(language)
        self._minhash = MinHash(*bands_and_rows(similarity))
        self._sets = ListFile(folder / "shingles", np.uint64)
        # The last key is that of the whole set, which finds equal ones.
        names = [f"keys-{band:03d}" for band in range(self._minhash.bands + 1)]
        self._keys = [ColumnFile(folder / name, np.uint64) for name in names]

    def __len__(self) -> int:
        return len(self._sets)

    def add(self, columns: Sequence[pa.Array]) -> None:
        """Add documents, given their first and perhaps their second sentences [document]."""
        for start in range(0, len(columns[0]), BATCH):
            sets = self._shingler.sets([column.slice(start, BATCH) for column in columns])
            # Documents without shingles get keys of their own.
            keys = np.empty((len(self._keys), len(sets)), np.uint64)
            keys[:] = mix(np.arange(len(self), len(self) + len(sets), dtype=np.uint64) ^ salt(7))
            filled = np.flatnonzero(np.diff(sets.bounds))
            if len(filled):
                starts = sets.bounds[:-1][filled]
                keys[:-1, filled] = self._minhash.keys(Sets(sets.values, np.append(starts, len(sets.values))))
                keys[-1, filled] = mix(np.add.reduceat(mix(sets.values), starts))
            for file, own in zip(self._keys, keys, strict=True):
                file.append(own)
            self._sets.append(sets.values, sets.bounds)

    def repeats(self, progress: Progress) -> np.ndarray:
        """For each document the first earlier kept one that is like it, -1 if it is kept [document]; call it once."""
        if not len(self):
            return np.empty(0, np.int64)
        candidates = CandidateFiles(self._folder, len(self))
        progress.total = len(self._keys) + candidates.blocks
        copies = np.full(len(self), -1, np.int64)
        if self._differences is None:
            # Texts that differ in the order of their numbers may have equal sets.
            for earlier, later in sharing(self._keys[-1], 1, copies >= 0):
                equal = self.similarities(earlier, later) == 1
                copies[later[equal]] = earlier[equal]
        signatures = None if self._differences is None else self._differences.signatures(len(self))
        for keys in self._keys:
            for earlier, later in sharing(keys, FIRST, copies >= 0):
                candidates.append(earlier, later)
            if signatures is not None:
                # Many texts of one template share a key; those of equal claims are found among them.
                for earlier, later in sharing(keys, FIRST, copies >= 0, salts=signatures):
                    candidates.append(earlier, later)
            progress.advance_to(progress.rows + 1)
        repeats = decide(candidates, len(self), self._alike, progress)
        # A copy is like what the first of its kind is like.
        copied = np.flatnonzero(copies >= 0)
        origin = copies[copied]
        repeats[copied] = np.where(repeats[origin] >= 0, repeats[origin], origin)
        return repeats

    def similarities(self, earlier: np.ndarray, later: np.ndarray) -> np.ndarray:
        """Jaccard similarities of pairs of documents [pair]."""
        found = np.empty(len(later))
        for start in range(0, len(later), COMPARED_AT_ONCE):
            part = slice(start, start + COMPARED_AT_ONCE)
            sets = [Sets(*self._sets.take(side[part])) for side in (earlier, later)]
            found[part] = jaccard(*sets)
        return found

    def close(self) -> None:
        for file in self._keys:
            file.close()
        self._sets.close()

    def _alike(self, earlier: np.ndarray, later: np.ndarray) -> np.ndarray:
        """Mark the pairs of documents that are alike [pair]."""
        counts = self._sets.lengths(earlier), self._sets.lengths(later)
        # No two sets are more alike than their sizes are.
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
    """Find documents that share a key of one band: yields earlier and later document of each pair [pair], int64.

    The lowest bits of a key make room for the document's number, so that one sort of plain numbers does it; with 50
    million documents 38 bits remain, and the few thousand pairs that agree in those at random are compared in vain.
    Each document is paired with at most `first` others, those of the smallest numbers; `leave_out` [document] are
    ignored. With `salts` [document], uint64, each key is first mixed with its own. The result does not depend on
    `sorted_at_once`, keys of 0.3 GB, and as much again for what is read and marked.
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
    """Pairs within runs of equal keys."""
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
    place = np.arange(len(documents)) - np.repeat(starts, sizes)
    for step in range(min(first, int(sizes.max()) - 1)):
        later = np.flatnonzero(place > step)
        yield documents[later - place[later] + step], documents[later]


class CandidateFiles:
    """Pairs of documents on disk, in a file for each block of later documents."""

    def __init__(self, folder: Path, documents: int, *, block: int = BLOCK) -> None:
        self._block = block
        self._paths = [folder / f"pairs-{number:05d}" for number in range(-(-documents // block))]
        for path in self._paths:
            path.unlink(missing_ok=True)

    @property
    def blocks(self) -> int:
        return len(self._paths)

    def append(self, earlier: np.ndarray, later: np.ndarray) -> None:
        blocks = later // self._block
        packed = ((later % self._block).astype(np.uint64) << EARLIER_BITS) | earlier.astype(np.uint64)
        order = np.argsort(blocks, kind="stable")
        bounds = np.searchsorted(blocks[order], np.arange(self.blocks + 1))
        for path, start, stop in zip(self._paths, bounds[:-1], bounds[1:], strict=True):
            if stop > start:
                with path.open("ab") as file:
                    file.write(packed[order[start:stop]].data)

    def parts(self, block: int, *, at_once: int = COMPARED_AT_ONCE) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Read a block in parts: earlier and later documents [pair], by later and then by earlier document.

        A pair is read once, and all pairs of a later document are in one part. The file is removed.
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
) -> np.ndarray:
    """For each document the first earlier kept one that is like it, -1 if it is kept [document].

    `alike` marks those of some candidates [pair], given earlier and later documents, that are alike.
    """
    repeats = np.full(documents, -1, np.int64)
    for block in range(candidates.blocks):
        for earlier, later in candidates.parts(block):
            # Documents that are decided and were dropped need no comparison.
            kept = repeats[earlier] < 0
            earlier, later = earlier[kept], later[kept]  # noqa: PLW2901
            near = alike(earlier, later)
            decide_pairs(earlier[near], later[near], repeats)
        progress.advance_to(progress.rows + 1)
    return repeats


def decide_pairs(earlier: np.ndarray, later: np.ndarray, repeats: np.ndarray) -> None:
    """Decide which later documents of similar pairs are dropped, in the order of the documents, in `repeats`.

    A document is dropped if and only if it is like an earlier one that is kept. So each dropped one is like a kept
    one, and no two that are kept are a pair. The earlier ones [pair] were decided by a call before, or are later ones
    of this call, of which [pair] none was decided. `repeats` [document] gets the first one that is kept and like each,
    or stays -1.
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
    dropped, at = np.unique(later[stays][order], return_index=True)
    repeats[dropped] = earlier[stays][order][at]
