"""Pairs on disk: as word tokens, and as rows of the encoders' tables, which are read in a seeded order.

Text is tokenised once; counts, rows and keys all come from the tokens.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from paranmt_hf.encoders.units import Lookup
from paranmt_hf.errors import InputError
from paranmt_hf.text.identity import TokenHashes, sentence_keys
from paranmt_hf.text.tokens import Bags, CorpusIds, TokenTable, WordTokenizer
from paranmt_hf.util.files import ChecksummedFile, checksum, parse_json, write_bytes, writing

# Pairs are shuffled in blocks of neighbours, and a buffer of blocks is shuffled pair by pair.
BLOCK_PAIRS = 1024
BUFFER_BLOCKS = 256
# Units that are read together.
READ_UNITS = 1 << 24
ABOUT = "pairs.json"
KEYS, IDS, LENGTHS, CHECKSUM = "keys", "ids", "lengths", "keys.sha256"  # Files of tokens; pairs have keys too


@dataclass(frozen=True)
class MegaBatch:
    """Some pairs; sentences are the references, then the translations."""

    bags: dict[str, Bags]  # Rows of the sentences [2 x pair] under each reader, perhaps followed by further sentences
    keys: np.ndarray  # Key of each sentence [2 x pair], uint64, equal for equal sentences
    # Position of a wrong translation of each pair's reference among the further sentences [pair], or -1; None if there
    # are no further sentences
    errors: np.ndarray | None = None

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return len(self.keys) // 2

    @property
    def sentences(self) -> int:
        """Number of sentences, including additional ones."""
        return len(next(iter(self.bags.values())))

    def take(self, sentences: np.ndarray) -> MegaBatch:
        """Select sentences by position [2 x pair], all references before their translations."""
        chosen = {name: bags.take(sentences) for name, bags in self.bags.items()}
        bags = {name: Bags(part.rows.astype(np.int32), part.offsets) for name, part in chosen.items()}
        return MegaBatch(bags, self.keys[sentences])


def write_pairs(
    tables: Iterable[tuple[TokenTable, TokenTable]],
    folder: Path,
    readers: Mapping[str, Lookup],
    *,
    left_out: Mapping[str, int] | None = None,
    unit: str = "pairs",
) -> PairStore:
    """Look up the rows of all pairs, given as tokens batch by batch, and write them into a folder.

    Pairs with a side of which no reader knows a unit are left out, and counted next to those that were `left_out`
    before, by reason; `unit` is the name of pairs there.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ABOUT).unlink(missing_ok=True)
    rows = {name: len(reader.vocabulary) for name, reader in readers.items()}
    writers = {name: _SideWriter(folder, name, rows[name]) for name in readers}
    hashes = TokenHashes()
    read = kept = 0
    key_file = ChecksummedFile(folder / KEYS)
    for batch in tables:
        bags = {name: [reader.bags(table) for table in batch] for name, reader in readers.items()}
        known = np.any([[side.known > 0 for side in sides] for sides in bags.values()], axis=0).all(axis=0)
        positions = np.flatnonzero(known)
        for name, sides in bags.items():
            writers[name].write([side.take(positions) for side in sides])
        keys = [sentence_keys(table, hashes)[positions] for table in batch]
        key_file.write(np.stack(keys, axis=1).tobytes())
        read, kept = read + len(known), kept + len(positions)
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
    return np.uint16 if rows <= 1 << 16 else np.uint32


class _SideWriter:
    """Appends the rows of pairs: the reference and then the translation of each pair."""

    def __init__(self, folder: Path, name: str, rows: int) -> None:
        self._name = name
        self._rows = ChecksummedFile(folder / f"{name}.rows")
        self._bounds = ChecksummedFile(folder / f"{name}.bounds")
        self._type = _row_type(rows)
        self._end = 0
        self._bounds.write(np.zeros(1, np.int64).tobytes())

    def write(self, sides: list[Bags]) -> None:
        pairs = len(sides[0])
        # Joined, reference i is sentence i and its translation sentence pairs + i: read the two rows by columns.
        joined = join_bags(sides).take(np.arange(2 * pairs).reshape(2, pairs).T.ravel())
        self._rows.write(joined.rows.astype(self._type).tobytes())
        self._bounds.write((joined.offsets[1:] + self._end).astype(np.int64).tobytes())
        self._end += len(joined.rows)

    def close(self) -> dict[str, str]:
        """Close the files; returns the checksum of each by its name."""
        return {f"{self._name}.rows": self._rows.close(), f"{self._name}.bounds": self._bounds.close()}


def join_bags(parts: Sequence[Bags]) -> Bags:
    """Concatenate the sentences of several tables."""
    ends = np.cumsum([0, *(len(part.rows) for part in parts)])
    bounds = [part.offsets[1:] + end for part, end in zip(parts, ends[:-1], strict=True)]
    return Bags(np.concatenate([part.rows for part in parts]), np.concatenate([[0], *bounds]))


class PairStore:
    """Reads what `write_pairs` wrote in a seeded order: blocks at random, and pairs at random in a buffer of blocks.

    `left_out` are the numbers of pairs and sentences that were left out, by reason, `unit` is the name of a pair in
    messages.
    """

    unit = "pairs"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            about = parse_json((folder / ABOUT).read_text(encoding="utf8"))
            self.pairs: int = about["pairs"]
            self.left_out: dict[str, int] = dict(about["left_out"])
            self._rows: dict[str, int] = about["readers"]
            self._checksums: dict[str, str] = about["sha256"]
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(f"{folder} is damaged; remove that folder and run again") from None

    def is_whole(self) -> bool:
        """Whether every file is intact; reads all of them."""
        files = ((self._folder / name, wanted) for name, wanted in self._checksums.items())
        return all(path.is_file() and checksum(path) == wanted for path, wanted in files)

    @property
    def sentences(self) -> int:
        """Number of sentences of text, every two of which are a pair; the last of an odd number is a pair alone."""
        first, second = self.keys()[-1]
        return 2 * self.pairs - int(first == second)

    def keys(self) -> np.ndarray:
        """Key of each sentence [pair, side], uint64, equal for equal sentences; read from disk when used."""
        return self._mapped(KEYS, np.uint64, 2 * self.pairs).reshape(-1, 2)

    def rows_of(self, reader: str) -> np.ndarray:
        """Distinct rows of the pairs under a reader [row], ascending, int64."""
        rows = self.everything().bags[reader].rows
        used = np.zeros(self._rows[reader], bool)
        for start in range(0, len(rows), READ_UNITS):
            used[rows[start : start + READ_UNITS]] = True
        return np.flatnonzero(used)

    def everything(self) -> MegaBatch:
        """All pairs, read from disk when used; each pair is two sentences, reference and then translation."""
        bags = {}
        for name, rows in self._rows.items():
            bounds = self._mapped(f"{name}.bounds", np.int64, 2 * self.pairs + 1)
            bags[name] = Bags(self._mapped(f"{name}.rows", _row_type(rows), int(bounds[-1])), bounds)
        return MegaBatch(bags, self.keys().ravel())

    def in_order(self, orders: Iterable[np.ndarray], size: int, *, start: int = 0) -> Iterator[MegaBatch]:
        """Read mega-batches of `size` pairs, the last one perhaps of fewer, in orders of some pairs each [pair].

        The first `start` mega-batches are skipped.
        """
        everything, skipped = self.everything(), start * size
        waiting = np.empty(0, np.int64)
        for order in orders:
            waiting = np.concatenate([waiting, order[skipped:]])
            skipped = max(0, skipped - len(order))
            whole = len(waiting) // size * size
            for low in range(0, whole, size):
                yield _choose(everything, waiting[low : low + size])
            waiting = waiting[whole:]
        if len(waiting):
            yield _choose(everything, waiting)

    def mega_batches(self, size: int, *, seed: int, epoch: int, start: int = 0) -> Iterator[MegaBatch]:
        """Read an epoch, whose order the seed and the epoch decide; other arguments as in `in_order`."""
        return self.in_order(self._shuffled(seed, epoch), size, start=start)

    def _shuffled(self, seed: int, epoch: int) -> Iterator[np.ndarray]:
        """The pairs of each buffer of blocks, shuffled [pair]."""
        blocks = np.random.default_rng([seed, epoch]).permutation(-(-self.pairs // BLOCK_PAIRS))
        for index, low in enumerate(range(0, len(blocks), BUFFER_BLOCKS)):
            pairs = (blocks[low : low + BUFFER_BLOCKS, None] * BLOCK_PAIRS + np.arange(BLOCK_PAIRS)).ravel()
            pairs = pairs[pairs < self.pairs]
            yield pairs[np.random.default_rng([seed, epoch, index]).permutation(len(pairs))]

    def _mapped(self, name: str, kind: type[np.generic], count: int) -> np.ndarray:
        path = self._folder / name
        if path.stat().st_size < count * np.dtype(kind).itemsize:
            raise InputError(f"{self._folder} is cut off; remove that folder and run again", path=self._folder)
        return np.memmap(path, kind, "r", shape=(count,)) if count else np.empty(0, kind)


def _choose(everything: MegaBatch, pairs: np.ndarray) -> MegaBatch:
    """Select pairs of a store; pair p is the sentences 2p, its reference, and 2p + 1, its translation."""
    return everything.take(np.concatenate([2 * pairs, 2 * pairs + 1]))


class TokenStore:
    """The tokens of pairs, written by `write_tokens`: the token of each id, and the pairs of each batch."""

    def __init__(self, folder: Path, vocabulary: list[str], batches: list[int]) -> None:
        self._folder, self._vocabulary, self._batches = folder, vocabulary, batches

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return sum(self._batches)

    def tables(self) -> Iterator[tuple[TokenTable, TokenTable]]:
        """Read the tokens of references and translations, batch by batch; all tables have one vocabulary."""
        with (self._folder / IDS).open("rb") as ids, (self._folder / LENGTHS).open("rb") as lengths:
            for pairs in self._batches:
                sides = []
                for _ in range(2):
                    counts = np.fromfile(lengths, np.int32, pairs)
                    offsets = np.zeros(len(counts) + 1, np.int64)
                    np.cumsum(counts, out=offsets[1:])
                    sides.append(TokenTable(np.fromfile(ids, np.int32, int(offsets[-1])), offsets, self._vocabulary))
                if any(len(side) != pairs or len(side.ids) != side.offsets[-1] for side in sides):
                    raise InputError(f"{self._folder} is cut off; remove that folder and run again")
                yield sides[0], sides[1]

    def drop_tokens(self) -> None:
        """Delete the tokens; the keys are kept."""
        for name in (IDS, LENGTHS):
            (self._folder / name).unlink(missing_ok=True)


def write_tokens(
    batches: Iterable[tuple[pa.Array, pa.Array]], folder: Path, count: Callable[[TokenTable], None] | None = None
) -> TokenStore:
    """Split the text of pairs into word tokens and write these, with a key for each sentence.

    `batches` gives references and translations [pair]; `count` is called with each table, to count its units.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / CHECKSUM).unlink(missing_ok=True)
    tokenizer, hashes, corpus_ids = WordTokenizer(), TokenHashes(), CorpusIds()
    sizes: list[int] = []
    ids, lengths, keys = (ChecksummedFile(folder / name) for name in (IDS, LENGTHS, KEYS))
    for batch in batches:
        tables = tokenizer.tables(*batch)
        for table in tables:
            if count is not None:
                count(table)
            ids.write(corpus_ids.of(table)[table.ids].tobytes())
            lengths.write(table.lengths.tobytes())
        keys.write(np.stack([sentence_keys(table, hashes) for table in tables], axis=1).tobytes())
        sizes.append(len(tables[0]))
    ids.close()
    lengths.close()
    # A resumed run reads only the keys again.
    write_bytes(folder / CHECKSUM, keys.close().encode())
    return TokenStore(folder, list(corpus_ids.id_of), sizes)


def keys_are_whole(folder: Path) -> bool:
    """Whether the keys in a folder are as `write_tokens` wrote them."""
    try:
        return (folder / CHECKSUM).read_text(encoding="utf8") == checksum(folder / KEYS)
    except (OSError, UnicodeDecodeError):
        return False


def read_keys(folder: Path) -> np.ndarray:
    """Read the keys that `write_tokens` wrote: [pair, side], uint64, in the order of the pairs."""
    return np.fromfile(folder / KEYS, np.uint64).reshape(-1, 2)
