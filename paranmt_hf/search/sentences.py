"""The sentences of a corpus on disk, any of which can be had by its number, and which of them are distinct."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.errors import InputError
from paranmt_hf.util.files import ChecksummedFile, writing
from paranmt_hf.util.progress import Progress

TEXT, OFFSETS, LINES, HASHES, ITEMS = "text.bin", "offsets.bin", "lines.bin", "hashes.bin", "items.bin"
# Sentences that are compared or hashed at once.
STEP = 100_000
# What a column of sentences is, and the numbers of its lines, from 0.
Batch = tuple[np.ndarray, pa.Array]


class Sentences:
    """Sentences in files that are mapped into memory: only what is asked for is read.

    Attributes:
        items: Stored row of each item [item]; an item is a sentence that takes part in the search.

    Args:
        folder: Where `write_sentences` put them.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offsets = _mapped(folder / OFFSETS)
        self._lines = _mapped(folder / LINES)
        self._text = _stored(folder, self._offsets)
        self.items = _mapped(folder / ITEMS)

    def __len__(self) -> int:
        """Number of items."""
        return len(self.items)

    def take(self, items: np.ndarray) -> pa.Array:
        """Get the sentences of some items [item]."""
        rows = self._rows(items)
        starts, ends = self._offsets[rows], self._offsets[rows + 1]
        # Arrow would read from wherever they point.
        if ((starts < 0) | (starts > ends) | (ends > (self._folder / TEXT).stat().st_size)).any():
            raise self._damaged(OFFSETS)
        found = self._text.take(pa.array(rows))
        try:
            found.validate(full=True)
        except pa.ArrowInvalid:
            raise self._damaged(TEXT) from None
        return found

    def lines(self, items: np.ndarray) -> np.ndarray:
        """Get the numbers of the lines that some items first stand in [item], from 0."""
        return np.asarray(self._lines[self._rows(items)])

    def _rows(self, items: np.ndarray) -> np.ndarray:
        """Stored rows [item]."""
        if ((items < 0) | (items >= len(self.items))).any():
            raise InputError(f"{self._folder} is damaged: it names an item that is not there; make it again")
        rows = np.asarray(self.items[items])
        if ((rows < 0) | (rows >= len(self._lines))).any():
            raise self._damaged(ITEMS)
        return rows

    def _damaged(self, name: str) -> InputError:
        return InputError(f"{self._folder / name} is damaged: it does not fit the files beside it; make it again")


@dataclass(frozen=True)
class Counted:
    """What was stored: `lines` sentences, `items` of which take part; and what was dropped before, by reason."""

    lines: int
    items: int
    dropped: dict[str, int] = field(default_factory=dict)


def write_sentences(batches: Iterable[Batch], folder: Path, *, copies: bool) -> Counted:
    """Store sentences, and find out which are distinct.

    Args:
        batches: Numbers of lines and sentences.
        folder: Where to; what is there is overwritten.
        copies: Whether a sentence that stands there several times is as many items; else it is one.
    """
    files = {name: ChecksummedFile(folder / name) for name in (TEXT, OFFSETS, LINES, HASHES)}
    files[OFFSETS].write(np.zeros(1, np.int64).tobytes())
    hashing, end, count = SentenceHashes(), 0, 0
    with Progress("read", unit="lines") as progress:
        for lines, sentences in batches:
            column = sentences.cast(pa.large_string())
            offsets, data = _parts(column)
            files[TEXT].write(data.tobytes())
            files[OFFSETS].write((offsets[1:] + end).tobytes())
            files[LINES].write(lines.astype(np.int64).tobytes())
            files[HASHES].write(hashing.of(column).tobytes())
            end, count = end + int(offsets[-1]), count + len(column)
            progress.advance_to(count)
    for file in files.values():
        file.close()
    items = np.arange(count) if copies else _distinct(folder, count)
    with writing(folder / ITEMS):
        (folder / ITEMS).write_bytes(items.astype(np.int64).tobytes())
    (folder / HASHES).unlink()
    return Counted(count, len(items))


def _distinct(folder: Path, count: int) -> np.ndarray:
    """Find the first row of each distinct sentence [item], ascending.

    Equal sentences have equal hashes, and lie together when rows are sorted by them; each is compared with the first.
    """
    hashes = _mapped(folder / HASHES, np.uint64)
    order = np.argsort(hashes, kind="stable")
    # Of the row in each place, whether it has the hash of the row before it.
    same = np.zeros(count, bool)
    same[1:] = hashes[order[1:]] == hashes[order[:-1]]
    first = np.maximum.accumulate(np.where(same, 0, np.arange(count)))
    text = _stored(folder, _mapped(folder / OFFSETS))
    places = np.flatnonzero(same)
    for start in range(0, len(places), STEP):
        some = places[start : start + STEP]
        pairs = (text.take(pa.array(order[rows])) for rows in (some, first[some]))
        same[some] = pc.equal(*pairs).to_numpy(zero_copy_only=False)
    return np.sort(order[~same])


class SentenceHashes:
    """Hashes of columns of sentences: 64 bits, the sum of a sentence's bytes, each times a factor of its place."""

    def __init__(self) -> None:
        self._factors = np.empty(0, np.uint64)

    def of(self, sentences: pa.Array) -> np.ndarray:
        """Hash sentences [sentence]; equal sentences have equal hashes."""
        offsets, data = _parts(sentences)
        lengths = np.diff(offsets)
        places = np.arange(len(data)) - np.repeat(offsets[:-1], lengths)
        longest = int(lengths.max(initial=0))
        if longest > len(self._factors):
            # A longer draw begins with the shorter one.
            self._factors = np.random.default_rng(0).integers(0, 2**64, longest, np.uint64)
        # Zero bytes count too; sums wrap around, and so do their differences.
        ends = np.zeros(len(data) + 1, np.uint64)
        np.cumsum((data.astype(np.uint64) + 1) * self._factors[places], out=ends[1:])
        return ends[offsets[1:]] - ends[offsets[:-1]]


def _parts(sentences: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Offsets [sentence + 1], which begin at 0, and bytes of a column of sentences without nulls."""
    column = sentences.cast(pa.large_string())
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    content = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return bounds - bounds[0], content[bounds[0] : bounds[-1]]


def _stored(folder: Path, offsets: np.ndarray) -> pa.Array:
    """All stored sentences [row], in files that are mapped into memory."""
    # A file without a byte cannot be mapped.
    text = pa.memory_map(str(folder / TEXT)).read_buffer() if offsets[-1] else pa.py_buffer(b"")
    try:
        return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), text)
    except pa.ArrowInvalid:
        raise InputError(f"{folder / OFFSETS} is damaged: it does not fit {TEXT} beside it; make it again") from None


def _mapped(path: Path, kind: type = np.int64) -> np.ndarray:
    """Map a file of numbers into memory; one without numbers cannot be mapped."""
    return np.memmap(path, kind, "r") if path.stat().st_size else np.empty(0, kind)
