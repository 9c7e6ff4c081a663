"""Store sentences and their vectors on disk, with random access, and the checkpoints of searches."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.reading.readers import DOCUMENT
from paranmt_hf.errors import InputError
from paranmt_hf.text.identity import first_equal, hash_texts
from paranmt_hf.text.tokens import text_bytes
from paranmt_hf.util.files import ChecksummedFile, replacing, write_bytes, writing
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import read_json

TEXT, OFFSETS, LINES, ITEMS = "text.bin", "offsets.bin", "lines.bin", "items.bin"


class StoredSentences:
    """The sentences that `write_sentences` wrote into a folder, in memory-mapped files.

    Every sentence of the source has a row. An item is a sentence that takes part in the search: without copies, the
    first row of each distinct sentence. `items` is the row of each item [item].
    """

    def __init__(self, folder: Path) -> None:
        self._lines = _mapped(folder / LINES)
        offsets, text = _mapped(folder / OFFSETS), _mapped(folder / TEXT, np.uint8)
        self._text = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(text))
        self.items = _mapped(folder / ITEMS) if (folder / ITEMS).exists() else np.arange(len(offsets) - 1)

    def __len__(self) -> int:
        return len(self.items)

    def take(self, items: np.ndarray) -> pa.Array:
        """Return the sentences of the given items, in their order."""
        return self.rows(self.items[items])

    def rows(self, rows: np.ndarray) -> pa.Array:
        """Return the sentences of the given rows, in their order."""
        return self._text.take(pa.array(rows))

    def lines(self, items: np.ndarray) -> np.ndarray:
        """Return the line of the source, from 0, where each given item occurs first."""
        return np.asarray(self._lines[self.items[items]])


def _mapped(path: Path, kind: type = np.int64) -> np.ndarray:
    """Memory-map a file of numbers as a vector; an empty file, which cannot be mapped, gives an empty array."""
    return np.memmap(path, kind, "r") if path.stat().st_size else np.empty(0, kind)


@dataclass(frozen=True)
class Counted:
    """Numbers of stored and dropped sentences."""

    lines: int  # Stored sentences, copies included
    items: int  # Stored sentences that take part in the search
    dropped: dict[str, int] = field(default_factory=dict)  # Lines or pairs that were not stored, by reason


def write_sentences(batches: Iterable[pa.RecordBatch], folder: Path, *, copies: bool) -> Counted:
    """Store sentences with their line numbers, and find the items, the sentences that take part in the search.

    Args:
        batches: Batches with the columns `sentence` and `id`, the line number from 0; if there is a column `document`,
            it has the line number.
        folder: Folder of the files.
        copies: Whether each occurrence of a sentence is an item; otherwise only the first is.
    """
    files = {name: ChecksummedFile(folder / name) for name in (TEXT, OFFSETS, LINES)}
    files[OFFSETS].write(np.zeros(1, np.int64).tobytes())
    hashes = [np.empty(0, np.uint64)]
    end, count = 0, 0
    with Progress("read", unit="lines") as progress:
        for batch in batches:
            column = batch["sentence"].cast(pa.large_string())
            data, offsets = text_bytes(column)
            files[TEXT].write(data.tobytes())
            files[OFFSETS].write((offsets[1:] + end).tobytes())
            lines = batch[DOCUMENT if DOCUMENT in batch.schema.names else "id"]
            files[LINES].write(lines.to_numpy().astype(np.int64).tobytes())
            if not copies:
                hashes.append(hash_texts(column))
            end += int(offsets[-1])
            count += len(column)
            progress.advance_to(count)
    for file in files.values():
        file.close()
    if copies:
        items = np.arange(count)
    else:
        (folder / ITEMS).unlink(missing_ok=True)
        items = np.flatnonzero(first_equal(np.concatenate(hashes), StoredSentences(folder).rows) < 0)
    write_bytes(folder / ITEMS, items.astype(np.int64).tobytes())
    return Counted(count, len(items))


Precision = Literal["float32", "float16"]
VECTORS, WRITTEN = "vectors.npy", "vectors.json"
BLOCK_ROWS = 16_384  # Number of vectors that are encoded, or written, at once
HEADER_BYTES = 128  # Length of the header of an npy file


class Vectors:
    """A memory-mapped npy file of vectors [row, dimension], which methods return in float32.

    A vector has length 1, or is all zeros for a sentence without a word that the encoder knows.
    """

    def __init__(self, path: Path) -> None:
        self._array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)

    def __len__(self) -> int:
        return len(self._array)

    @property
    def dimension(self) -> int:
        """Number of dimensions of a vector."""
        return int(self._array.shape[1])

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return a copy of the vectors of the rows from `start` up to `stop` [row, dimension]."""
        return np.array(self._array[start:stop], np.float32)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return a copy of the vectors of the given rows [row, dimension], in their order."""
        return np.asarray(self._array[rows], np.float32)


def normalised(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors [row, dimension] to length 1, float32; vectors of zeros stay, and are similar to nothing."""
    # In single precision, squares of very large numbers would overflow, and of very small ones vanish.
    exact = np.asarray(vectors, np.float64)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    return np.divide(exact, lengths, out=np.zeros_like(exact), where=lengths != 0).astype(np.float32)


def write_encoded(
    folder: Path,
    rows: int,
    encode: Callable[[int, int], np.ndarray],
    precision: Precision,
    *,
    block_rows: int = BLOCK_ROWS,
) -> Vectors:
    """Encode rows and write their vectors, continuing after the rows that an earlier run wrote.

    A second file says how many vectors are complete.

    Args:
        folder: Folder of both files.
        rows: Number of rows.
        encode: Called with a first row and an end; returns the vectors of the rows between [row, dimension].
        precision: Number format of the file.
        block_rows: Number of rows that are encoded at once.
    """
    path, counted = folder / VECTORS, folder / WRITTEN
    done = int(read_json(counted, "how many vectors are complete")["rows"]) if counted.exists() else 0
    with Progress("encode", rows, done=done) as progress:
        while done < rows:
            stop = min(done + block_rows, rows)
            block = encode(done, stop).astype(precision)
            with writing(path), path.open("r+b" if done else "wb") as file:
                if not done:
                    _write_header(file, (rows, block.shape[1]), block.dtype)
                # An interrupted run may have written a part of this block, which is cut off.
                file.seek(HEADER_BYTES + done * block.shape[1] * block.itemsize)
                file.truncate()
                file.write(block.tobytes())
                # Without this, a power cut could leave fewer vectors than the second file says.
                file.flush()
                os.fsync(file.fileno())
            write_bytes(counted, json.dumps({"rows": stop}).encode())
            done = stop
            progress.advance_to(done)
    return Vectors(path)


def _write_header(file: IO[bytes], shape: tuple[int, int], kind: np.dtype) -> None:
    """Write the header of an npy file; it has `HEADER_BYTES` bytes whatever the number of rows."""
    np.lib.format.write_array_header_1_0(file, {"descr": kind.str, "fortran_order": False, "shape": shape})


def write_in_order(vectors: Vectors, order: np.ndarray, path: Path, precision: Precision) -> None:
    """Write vectors in another order; `order` is the row of `vectors` for each row of the new file."""
    with replacing(path) as aside, aside.open("wb") as file:
        _write_header(file, (len(order), vectors.dimension), np.dtype(precision))
        with Progress("sort", len(order), unit="vectors") as progress:
            for start, stop in spans(len(order), BLOCK_ROWS):
                file.write(vectors.take(order[start:stop]).astype(precision).tobytes())
                progress.advance_to(stop)


def spans(count: int, size: int) -> Iterator[tuple[int, int]]:
    """Split the numbers below `count` into spans of at most `size`, and yield the start and the end of each.

    >>> list(spans(5, 2))
    [(0, 2), (2, 4), (4, 5)]
    """
    for start in range(0, count, size):
        yield start, min(start + size, count)


def save_progress(path: Path, arrays: Mapping[str, np.ndarray], state: Mapping[str, Any]) -> None:
    """Write a checkpoint, arrays and a state of JSON values, atomically."""
    from safetensors.numpy import save_file

    with replacing(path) as aside:
        save_file(dict(arrays), aside, {"state": json.dumps(state)})


def read_progress(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read the arrays and the state that `save_progress` wrote; both are empty if there is no file."""
    from safetensors import SafetensorError, safe_open

    if not path.exists():
        return {}, {}
    try:
        with safe_open(path, "np") as file:
            state = json.loads(file.metadata()["state"])
            return {name: file.get_tensor(name) for name in file.keys()}, state  # noqa: SIM118
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is damaged ({error}); delete its folder to start again", path=path) from None
