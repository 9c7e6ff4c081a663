"""Pairs on disk, as rows of the encoder's tables, which are read in a seeded order.

Memory does not grow with the corpus: the files are memory-mapped, and read when they are used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from paranmt_hf.encoders.units import Lookup
from paranmt_hf.errors import InputError
from paranmt_hf.text.tokens import Bags
from paranmt_hf.training.token_store import TokenBatch
from paranmt_hf.util.files import ChecksummedFile, checksum, write_bytes, writing
from paranmt_hf.util.records import read_json

ABOUT, KEYS = "pairs.json", "keys"  # Names of the description of the files, and of the file of keys


@dataclass(frozen=True)
class MegaBatch:
    """Some pairs; their sentences are all references, then all translations."""

    bags: dict[str, Bags]  # Rows of the sentences [2 x pair], by the kind of units
    keys: np.ndarray  # Key of each sentence [2 x pair], uint64; equal for equal sentences

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return len(self.keys) // 2

    def take(self, sentences: np.ndarray) -> MegaBatch:
        """Return some sentences, given by position [2 x pair], all references before their translations."""
        bags = {}
        for name, all_bags in self.bags.items():
            chosen = all_bags.take(sentences)
            bags[name] = Bags(chosen.rows.astype(np.int32), chosen.offsets)
        return MegaBatch(bags, self.keys[sentences])


class PairStore:
    """Reads the pairs that `write_pairs` wrote, in a seeded order.

    Blocks of neighbouring pairs are shuffled, and then pairs within a buffer of blocks.

    Attributes:
        pairs: Number of pairs.
        left_out: Numbers of pairs and sentences that were left out, by reason.
        unit: Name of a pair in messages.
    """

    unit = "pairs"
    # Number of pairs of a block, and number of blocks of the buffer in which pairs are shuffled.
    block_pairs, buffer_blocks = 1024, 256

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        about = read_json(folder / ABOUT, "pairs of a training run")
        self.pairs: int = about["pairs"]
        self.left_out: dict[str, int] = about["left_out"]
        self._rows: dict[str, int] = about["readers"]
        self._checksums: dict[str, str] = about["sha256"]

    def is_whole(self) -> bool:
        """Whether every file is intact; this reads all of them."""
        files = ((self._folder / name, wanted) for name, wanted in self._checksums.items())
        return all(path.is_file() and checksum(path) == wanted for path, wanted in files)

    @property
    def sentences(self) -> int:
        """Number of sentences, if the pairs are sentences of text, two to a pair.

        The last sentence of an odd number is both sides of its pair.
        """
        first, second = self.keys()[-2:]
        return 2 * self.pairs - int(first == second)

    def keys(self) -> np.ndarray:
        """Return the key of each sentence [2 x pair], uint64, equal for equal sentences.

        Pair p has the sentences 2p, its reference, and 2p + 1, its translation.
        """
        return self._mapped(KEYS, np.uint64, 2 * self.pairs)

    def rows_of(self, reader: str) -> np.ndarray:
        """Return the distinct rows of a table that the pairs use [row], ascending, int64.

        Args:
            reader: Kind of the units of the table.
        """
        rows = self.everything().bags[reader].rows
        used, together = np.zeros(self._rows[reader], bool), 1 << 24
        for start in range(0, len(rows), together):
            used[rows[start : start + together]] = True
        return np.flatnonzero(used)

    def everything(self) -> MegaBatch:
        """Return all pairs; unlike in other mega-batches, the sentences of pair p are 2p and 2p + 1."""
        bags = {}
        for name, rows in self._rows.items():
            bounds = self._mapped(f"{name}.bounds", np.int64, 2 * self.pairs + 1)
            bags[name] = Bags(self._mapped(f"{name}.rows", _row_type(rows), int(bounds[-1])), bounds)
        return MegaBatch(bags, self.keys())

    def mega_batches(self, size: int, *, seed: int, epoch: int, start: int = 0) -> Iterator[MegaBatch]:
        """Read an epoch in mega-batches of `size` pairs, the last perhaps of fewer, without the first `start` ones.

        The seed and the epoch determine the order.
        """
        everything, skipped = self.everything(), start * size
        waiting = np.empty(0, np.int64)
        blocks = np.random.default_rng([seed, epoch]).permutation(-(-self.pairs // self.block_pairs))
        for index, low in enumerate(range(0, len(blocks), self.buffer_blocks)):
            first = self.block_pairs * blocks[low : low + self.buffer_blocks]
            pairs = (first[:, None] + np.arange(self.block_pairs)).ravel()
            pairs = pairs[pairs < self.pairs]
            order = pairs[np.random.default_rng([seed, epoch, index]).permutation(len(pairs))]
            waiting = np.concatenate([waiting, order[skipped:]])
            skipped = max(0, skipped - len(order))
            while len(waiting) >= size:
                yield _choose(everything, waiting[:size])
                waiting = waiting[size:]
        if len(waiting):
            yield _choose(everything, waiting)

    def _mapped(self, name: str, kind: type[np.generic], count: int) -> np.ndarray:
        """Map a file of `count` numbers into memory."""
        return np.memmap(self._folder / name, kind, "r", shape=(count,)) if count else np.empty(0, kind)


def _choose(everything: MegaBatch, pairs: np.ndarray) -> MegaBatch:
    """Return some pairs, given by number [pair], as a mega-batch."""
    return everything.take(np.concatenate([2 * pairs, 2 * pairs + 1]))


def write_pairs(
    batches: Iterable[TokenBatch],
    folder: Path,
    readers: Mapping[str, Lookup],
    *,
    left_out: Mapping[str, int] | None = None,
    unit: str = "pairs",
) -> PairStore:
    """Look up the rows of all pairs, and write them into a folder.

    Pairs are left out if there is a side of which no unit has a row.

    Args:
        batches: The pairs as word tokens, batch by batch.
        folder: The folder.
        readers: Lookup of each kind of units.
        left_out: Numbers of pairs and sentences that were left out before, by reason; these pairs are added to them.
        unit: Name of a pair in the reason.

    Raises:
        InputError: No pair is left.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ABOUT).unlink(missing_ok=True)
    rows = {name: len(reader.vocabulary) for name, reader in readers.items()}
    writers = {name: _BagWriter(folder, name, _row_type(rows[name])) for name in readers}
    key_file = ChecksummedFile(folder / KEYS)
    read = kept = 0
    for batch in batches:
        bags = {name: [reader.bags(table) for table in batch.sides] for name, reader in readers.items()}
        known = np.any([[side.known > 0 for side in sides] for sides in bags.values()], axis=0).all(axis=0)
        positions = np.flatnonzero(known)
        for name, (references, translations) in bags.items():
            writers[name].write(references.take(positions), translations.take(positions))
        key_file.write(batch.keys[positions].tobytes())
        read += len(known)
        kept += len(positions)
    checksums = {KEYS: key_file.close()}
    for writer in writers.values():
        checksums |= writer.close()
    if not kept:
        reason = f"none of the {read:,} pairs has a known word on both sides" if read else "there are no pairs"
        raise InputError(f"nothing to train on: {reason}; check the filters, the vocabulary and the data")
    reasons = dict(left_out or {})
    if read > kept:
        reasons[f"{unit} without a known word on a side"] = read - kept
    about = {"pairs": kept, "left_out": reasons, "readers": rows, "sha256": checksums}
    write_bytes(folder / ABOUT, json.dumps(about).encode())
    return PairStore(folder)


def _row_type(rows: int) -> type[np.unsignedinteger[Any]]:
    """Return the type of numbers for the rows of a table with this number of rows."""
    return np.uint16 if rows <= 1 << 16 else np.uint32


class _BagWriter:
    """Appends the rows of pairs to files: the reference and then the translation of each pair."""

    def __init__(self, folder: Path, name: str, kind: type[np.unsignedinteger[Any]]) -> None:
        self._name, self._kind, self._end = name, kind, 0
        self._rows = ChecksummedFile(folder / f"{name}.rows")
        self._bounds = ChecksummedFile(folder / f"{name}.bounds")
        self._bounds.write(np.zeros(1, np.int64).tobytes())

    def write(self, references: Bags, translations: Bags) -> None:
        """Append the rows of some pairs."""
        pairs = len(references)
        rows = np.concatenate([references.rows, translations.rows])
        bounds = np.concatenate([references.offsets, translations.offsets[1:] + len(references.rows)])
        # Here reference i is sentence i, and its translation sentence pairs + i. Put each translation behind its
        # reference, by reading the two rows of these numbers column by column.
        joined = Bags(rows, bounds).take(np.arange(2 * pairs).reshape(2, pairs).T.ravel())
        self._rows.write(joined.rows.astype(self._kind).tobytes())
        self._bounds.write((joined.offsets[1:] + self._end).astype(np.int64).tobytes())
        self._end += len(joined.rows)

    def close(self) -> dict[str, str]:
        """Close the files, and return the checksum of each by its name."""
        return {f"{self._name}.rows": self._rows.close(), f"{self._name}.bounds": self._bounds.close()}
