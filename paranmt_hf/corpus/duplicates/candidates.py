"""Which documents to compare: those that share the key of a band. Sorted band by band, never all in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from paranmt_hf.corpus.duplicates.store import ColumnFile

# Keys that are sorted at once: 0.3 GB, and as much again for what is read and marked on the way.
SORTED_AT_ONCE = 2**25
# Of the documents that share a key, each is compared with the first ones.
FIRST = 32
# Later documents whose pairs are resolved at once.
BLOCK = 2**18
_READ = 2**22
_EARLIER_BITS = np.uint64(46)
_EARLIER = np.uint64(2**46 - 1)


def sharing(keys: ColumnFile, first: int, leave_out: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Find documents that share a key of one band.

    The lowest bits of a key make room for the document's number, so that one sort of plain numbers does it; with 50
    million documents 38 bits remain, and the few thousand pairs that agree in those by chance are compared in vain.

    Args:
        keys: The keys of all documents.
        first: Each document is paired with at most this many others: those of the smallest numbers.
        leave_out: Documents that count for nothing [document], bool.

    Yields:
        Earlier and later document of each pair [pair], int64.
    """
    number_bits = max(int(keys.rows - 1).bit_length(), 1)
    low = np.uint64(2**number_bits - 1)
    part_bits = max((keys.rows - 1) // SORTED_AT_ONCE, 0).bit_length()
    for part in range(2**part_bits):
        chosen = []
        for start, stop in keys.blocks(_READ):
            values = keys.read(start, stop)
            wanted = ~leave_out[start:stop]
            if part_bits:
                wanted &= (values >> np.uint64(64 - part_bits)) == np.uint64(part)
            numbers = np.arange(start, stop, dtype=np.uint64)
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


class PairFiles:
    """Pairs of documents on disk, kept apart by blocks of the later one.

    Args:
        folder: Where the files lie.
        documents: How many documents there are.
    """

    def __init__(self, folder: Path, documents: int) -> None:
        self._paths = [folder / f"pairs-{block:05d}" for block in range(-(-documents // BLOCK))]

    def append(self, earlier: np.ndarray, later: np.ndarray) -> None:
        """Write pairs [pair]."""
        blocks = later // BLOCK
        packed = ((later % BLOCK).astype(np.uint64) << _EARLIER_BITS) | earlier.astype(np.uint64)
        order = np.argsort(blocks, kind="stable")
        bounds = np.searchsorted(blocks[order], np.arange(len(self._paths) + 1))
        for path, start, stop in zip(self._paths, bounds[:-1], bounds[1:], strict=True):
            if stop > start:
                with path.open("ab") as file:
                    file.write(packed[order[start:stop]].data)

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Read the pairs block by block, each pair once, by later and then by earlier document.

        Yields:
            Earlier and later document of each pair [pair], int64.
        """
        for block, path in enumerate(self._paths):
            packed = np.unique(np.fromfile(path, np.uint64)) if path.exists() else np.empty(0, np.uint64)
            yield (
                (packed & _EARLIER).astype(np.int64),
                (packed >> _EARLIER_BITS).astype(np.int64) + block * BLOCK,
            )
            path.unlink(missing_ok=True)
