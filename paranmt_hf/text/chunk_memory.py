"""The distinct chunks of text between blanks: one walk over the bytes of a column gives each chunk its number.

Sentences are split by remembering how each distinct chunk was split, and most chunks of a text were met before. Bytes
of the chunks are kept one after another, with a hash table over them (open addressing, linear probing).
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paranmt_hf.util.machine import compiled

BLANK = ord(" ")
# The constants of the hash function FNV-1a (Fowler, Noll and Vo).
BASIS, PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
HALF = np.uint64(32)  # Number of bits of a half of a hash
LOW = np.uint64(0xFFFFFFFF)


class ChunkTable(NamedTuple):
    """Distinct chunks, numbered in the order in which they first occurred."""

    text: np.ndarray  # Their bytes, one after another, and free room [byte], uint8
    bounds: np.ndarray  # Bounds of each chunk in `text`, and free room [chunk + 1], int64
    # The hash table, at most half full [slot], uint64: the high half is that of the chunk's hash, the low half is the
    # chunk's number + 1. Free slots are 0.
    slots: np.ndarray


@compiled()
def _hash(text: np.ndarray, start: int, stop: int) -> np.uint64:
    """Compute the hash of the bytes from `start` up to, but without, `stop`."""
    code = BASIS
    for position in range(start, stop):
        code = (code ^ np.uint64(text[position])) * PRIME
    return code


@compiled()
def _slot_of(text: np.ndarray, start: int, stop: int, code: np.uint64, chunks: ChunkTable) -> np.uint64:
    """Find the slot of a chunk, given by its bounds in `text` and its hash, or the free slot that it would get."""
    mask, tag, length = np.uint64(len(chunks.slots) - 1), code >> HALF, stop - start
    slot = (code ^ tag) & mask
    while chunks.slots[slot] != 0:
        if chunks.slots[slot] >> HALF == tag:
            number = np.int64(chunks.slots[slot] & LOW) - 1
            begin = chunks.bounds[number]
            if chunks.bounds[number + 1] - begin == length:
                same = 0
                while same < length and chunks.text[begin + same] == text[start + same]:
                    same += 1
                if same == length:
                    return slot
        slot = (slot + np.uint64(1)) & mask
    return slot


@compiled()
def _find_chunks(
    text: np.ndarray, bounds: np.ndarray, chunks: ChunkTable
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Look up the chunks of texts.

    Returns:
        The number of each chunk, -1 if it is new [chunk], int32; the bounds of the texts in it [text + 1], int64; and
        the start and the end of each new chunk in `text` [new chunk, 2], int64.
    """
    # There are no more chunks than blanks and ends of texts. Arrays for each byte would take longer to get.
    most = len(bounds)
    for byte in text:
        most += byte == BLANK
    numbers, ends = np.empty(most, np.int32), np.zeros(len(bounds), np.int64)
    new = np.empty((most, 2), np.int64)
    found, missing = 0, 0
    for index in range(len(bounds) - 1):
        position, stop = bounds[index], bounds[index + 1]
        while position < stop:
            if text[position] == BLANK:
                position += 1
                continue
            # As `_hash`, in the loop that looks for the end of the chunk.
            start, code = position, BASIS
            while position < stop and text[position] != BLANK:
                code = (code ^ np.uint64(text[position])) * PRIME
                position += 1
            entry = chunks.slots[_slot_of(text, start, position, code, chunks)]
            numbers[found] = np.int64(entry & LOW) - 1
            found += 1
            if entry == 0:
                new[missing, 0], new[missing, 1] = start, position
                missing += 1
        ends[index + 1] = found
    return numbers[:found], ends, new[:missing]


@compiled()
def _add_chunks(
    text: np.ndarray, new: np.ndarray, chunks: ChunkTable, count: int
) -> tuple[np.ndarray, ChunkTable, int]:
    """Number new chunks, given by start and end in `text` [chunk, 2]; each may occur several times among them.

    Returns:
        The number of each chunk [chunk], int32; all chunks; and how many there are.
    """
    numbers = np.empty(len(new), np.int32)
    for index in range(len(new)):
        start, stop = new[index]
        code = _hash(text, start, stop)
        slot = _slot_of(text, start, stop, code, chunks)
        if chunks.slots[slot] == 0:
            chunks = _with_room(chunks, count, stop - start)
            begin = chunks.bounds[count]
            chunks.text[begin : begin + stop - start] = text[start:stop]
            count += 1
            chunks.bounds[count] = begin + stop - start
            chunks.slots[slot] = code >> HALF << HALF | np.uint64(count)
            if 2 * count > len(chunks.slots):
                chunks = _with_larger_table(chunks, count)
                slot = _slot_of(text, start, stop, code, chunks)
        numbers[index] = np.int64(chunks.slots[slot] & LOW) - 1
    return numbers, chunks, count


@compiled()
def _with_room(chunks: ChunkTable, count: int, length: int) -> ChunkTable:
    """Return chunks with room for one more, of `length` bytes."""
    text, bounds, slots = chunks
    if bounds[count] + length > len(text):
        text = np.concatenate((text, np.empty(len(text) + length, np.uint8)))
    if count + 1 == len(bounds):
        bounds = np.concatenate((bounds, np.empty(len(bounds), np.int64)))
    return ChunkTable(text, bounds, slots)


@compiled()
def _with_larger_table(chunks: ChunkTable, count: int) -> ChunkTable:
    """Return chunks with a hash table of twice the size."""
    slots = np.zeros(2 * len(chunks.slots), np.uint64)
    mask = np.uint64(len(slots) - 1)
    for number in range(count):
        code = _hash(chunks.text, chunks.bounds[number], chunks.bounds[number + 1])
        slot = (code ^ code >> HALF) & mask
        while slots[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = code >> HALF << HALF | np.uint64(number + 1)
    return ChunkTable(chunks.text, chunks.bounds, slots)


@compiled()
def _tokens_of(
    numbers: np.ndarray, bounds: np.ndarray, tokens: np.ndarray, starts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Replace the chunks of texts by their tokens.

    Args:
        numbers: Number of each chunk of the texts [chunk].
        bounds: Bounds of the texts in `numbers` [text + 1].
        tokens: Ids of the tokens of each numbered chunk, one chunk after another [token], int32.
        starts: Start of each numbered chunk in `tokens`, and the end of the last one [numbered chunk + 1].

    Returns:
        The ids of the tokens of the texts [token], int32, and the bounds of the texts in them [text + 1], int64.
    """
    ends = np.zeros(len(bounds), np.int64)
    for index in range(len(bounds) - 1):
        ends[index + 1] = ends[index]
        for place in range(bounds[index], bounds[index + 1]):
            number = numbers[place]
            ends[index + 1] += starts[number + 1] - starts[number]
    ids, position = np.empty(ends[-1], np.int32), 0
    for number in numbers:
        for token in range(starts[number], starts[number + 1]):
            ids[position] = tokens[token]
            position += 1
    return ids, ends


class ChunkMemory:
    """The distinct chunks of columns of text, numbered in the order in which they first occur, and their tokens.

    Not thread-safe.
    """

    def __init__(self) -> None:
        self._chunks = ChunkTable(np.empty(1024, np.uint8), np.zeros(256, np.int64), np.zeros(512, np.uint64))
        self._count = 0
        # The ids of the tokens of chunk i are _tokens[_starts[i]:_starts[i + 1]].
        self._tokens, self._starts = array("i"), array("q", [0])

    def __len__(self) -> int:
        return self._count

    def numbers(self, text: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of each chunk of some texts, and number those that are new.

        Args:
            text: Bytes of the texts, one after another [byte], uint8.
            bounds: Bounds of each text in `text` [text + 1], int64.

        Returns:
            The numbers [chunk], int32, and the bounds of the texts in them [text + 1], int64.
        """
        numbers, ends, new = _find_chunks(text, bounds, self._chunks)
        if len(new):
            added, self._chunks, self._count = _add_chunks(text, new, self._chunks, self._count)
            numbers[numbers < 0] = added
        return numbers, ends

    def without_tokens(self) -> pa.Array:
        """Return the chunks whose tokens are not known yet [chunk], string."""
        bounds = self._chunks.bounds[len(self._starts) - 1 : self._count + 1]
        offsets = (bounds - bounds[0]).astype(np.int32)
        text = self._chunks.text[bounds[0] : bounds[-1]].copy()
        return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(text))

    def add_tokens(self, ids: np.ndarray, ends: np.ndarray) -> None:
        """Keep the tokens of the chunks of `without_tokens`.

        Args:
            ids: Ids of the tokens of each chunk, one chunk after another [token], int32.
            ends: End of each chunk in `ids` [chunk], int64.
        """
        self._tokens.frombytes(ids.tobytes())
        self._starts.frombytes((self._starts[-1] + ends).tobytes())

    def tokens(self, numbers: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the tokens of texts, given by the result of `numbers`.

        Returns:
            The ids of the tokens [token], int32, and the bounds of the texts in them [text + 1], int64.
        """
        return _tokens_of(numbers, bounds, np.asarray(self._tokens), np.asarray(self._starts))
