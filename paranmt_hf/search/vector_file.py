"""Vectors in a file that is written block by block, continues where it stopped, and is mapped into memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.util.files import replacing, write_bytes, writing
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import read_json

Precision = Literal["float32", "float16"]
VECTORS, WRITTEN = "vectors.npy", "vectors.json"
# Sentences of a block.
BLOCK_ROWS = 16_384
# Length of the header that numpy puts before the numbers.
HEADER_BYTES = 128


class Vectors:
    """Vectors [row, dimension] of length 1 (or 0), mapped into memory.

    Args:
        path: A file of numpy.
    """

    def __init__(self, path: Path) -> None:
        self._array = read_array(path, 2, np.float32, np.float16)

    def __len__(self) -> int:
        """Number of vectors."""
        return len(self._array)

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self._array.shape[1])

    def read(self, start: int, stop: int) -> np.ndarray:
        """Copy consecutive vectors [row, dimension], float32."""
        return np.array(self._array[start:stop], np.float32)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Copy some vectors [row, dimension], float32."""
        return np.asarray(self._array[rows], np.float32)


def read_array(path: Path, axes: int, *kinds: type) -> np.ndarray:
    """Map an array of numpy into memory.

    Args:
        path: The file.
        axes: Number of its axes.
        kinds: What its numbers may be.

    Raises:
        OSError: It cannot be read.
    """
    try:
        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError:
        raise
    except Exception as error:  # numpy reads the header with Python's own parser
        reason = " ".join(str(error).split())[:60]
        raise InputError(f"{path} is damaged ({reason}); make it again") from None
    if array.ndim != axes or array.dtype not in kinds:
        raise InputError(f"{path} is damaged: it has {array.ndim} axes of {array.dtype}; make it again")
    return array


def normalised(vectors: np.ndarray) -> np.ndarray:
    """Bring vectors [row, dimension] to length 1; those of zeros stay, and are similar to nothing."""
    # The squares of very small and very large numbers are none of 32 bits.
    exact = np.asarray(vectors, np.float64)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    return np.divide(exact, lengths, out=np.zeros_like(exact), where=lengths != 0).astype(np.float32)


def write_vectors(
    folder: Path, rows: int, encode: Callable[[int, int], np.ndarray], precision: Precision, *, label: str = "encode"
) -> Vectors:
    """Write vectors, going on behind the blocks that are there.

    Args:
        folder: Gets the file, and beside it how many of its vectors are complete.
        rows: Number of vectors, at least 1.
        encode: Gives the vectors of the rows from one number up to another, of length 1.
        precision: Of the file.
        label: What is done, for the progress.
    """
    path, done = folder / VECTORS, _written(folder)
    with Progress(label, rows, done=done) as progress:
        while done < rows:
            stop = min(done + BLOCK_ROWS, rows)
            block = encode(done, stop).astype(precision)
            _write_block(path, block, done, rows)
            write_bytes(folder / WRITTEN, json.dumps({"rows": stop}).encode())
            done = stop
            progress.advance_to(done)
    return Vectors(path)


def _written(folder: Path) -> int:
    """Number of vectors that are complete."""
    path = folder / WRITTEN
    if not path.exists():
        return 0
    known = read_json(path, "how many vectors are complete")
    rows = known.get("rows") if isinstance(known, dict) else None
    if not isinstance(rows, int):
        raise InputError(f"{path} is damaged: it has no number of 'rows'; delete {folder} to begin anew")
    return rows


def _write_block(path: Path, block: np.ndarray, start: int, rows: int) -> None:
    """Write a block [row, dimension] behind the rows that are there; what an interrupted write left goes."""
    with writing(path), path.open("r+b" if start else "wb") as file:
        if not start:
            file.write(header((rows, block.shape[1]), block.dtype))
        file.seek(HEADER_BYTES + start * block.shape[1] * block.itemsize)
        file.truncate()
        file.write(block.tobytes())
        file.flush()


def header(shape: tuple[int, int], kind: np.dtype) -> bytes:
    """What numpy writes before an array, in a fixed number of bytes."""
    described = f"{{'descr': '{kind.str}', 'fortran_order': False, 'shape': {shape}, }}"
    start = b"\x93NUMPY\x01\x00" + (HEADER_BYTES - 10).to_bytes(2, "little")
    return start + described.ljust(HEADER_BYTES - 11).encode() + b"\n"


def write_in_order(vectors: Vectors, order: np.ndarray, path: Path, precision: Precision) -> None:
    """Write vectors in another order [place]: the row that comes to each place."""
    with replacing(path) as aside, aside.open("wb") as file:
        file.write(header((len(order), vectors.dimension), np.dtype(precision)))
        with Progress("sort", len(order), unit="vectors") as progress:
            for start, stop in spans(len(order), BLOCK_ROWS):
                file.write(vectors.take(order[start:stop]).astype(precision).tobytes())
                progress.advance_to(stop)


def spans(count: int, size: int) -> Iterator[tuple[int, int]]:
    """Cut `count` rows into spans of at most `size`: first row, and first row behind."""
    for start in range(0, count, size):
        yield start, min(start + size, count)
