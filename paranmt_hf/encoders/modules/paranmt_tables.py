"""The tables of averaging encoders as numpy arrays: reading and writing their files, and looking up word n-grams.

It needs no torch, so that `StaticEncoder` and the modules of torch read the same files with the same functions.
"""

from __future__ import annotations

import json
import mmap
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

CONFIG_FILE = "average_config.json"
VOCABULARY_FILE = "vocabulary.json"
WEIGHTS_FILE = "model.safetensors"
PARTS_FILE = "parts.json"
PRECISIONS = ("float32", "float16", "int8", "int4")
LARGEST = {"int8": 127, "int4": 7}  # The integer that the number with the largest magnitude of a row becomes
# numpy's types of the numbers in a file; bfloat16, which numpy lacks, is read as its bits.
TYPES = {"BF16": "<u2", "F16": "<f2", "F32": "<f4", "F64": "<f8", "I8": "i1", "U8": "u1", "I64": "<i8"}
# Names of the tensors: the rows, the scale of each row if it holds integers, and the n-gram buckets that have a row.
WEIGHT, SCALE, HASHES = "embedding.weight", "embedding.scale", "ngrams.hashes"
# Arguments of a module's `load` that say where on the Hub a file is.
HUB_KEYS = ("subfolder", "token", "cache_folder", "revision", "local_files_only")
NOT_FINITE = "{path}: the tensor {name!r} holds a number that is not finite; its training may have diverged"

# Sent2Vec (Pagliardini, Gupta and Jaggi 2018, arXiv:1703.02507), section 2: a sentence is the set of its n-grams,
# those of one word included. The paper leaves the hash open. This is the hash of the authors' program, so that its
# models can be read: the hash of an n-gram is that of the n-gram without its last word, times this factor, plus the id
# of the last word, modulo 2**64.
FACTOR = np.uint64(116049371)
LONGEST = 20  # Maximum number of words of an n-gram
# Up to this number of buckets, rows are looked up in a table with four bytes for each bucket; beyond, by bisection.
DIRECT = 2**25
# The characters that end a word in the authors' program; other white space of Unicode stays inside words.
_BETWEEN = re.compile(r"[ \t\n\v\f\r\0]+")


def load_json(path: Path, expected: type) -> Any:  # noqa: ANN401
    """Read a JSON file that must hold a value of the type `expected`, `list` or `dict`.

    Raises:
        ValueError: The file is missing or damaged, or holds another type; the message has its path.
    """
    try:
        found = json.loads(path.read_text(encoding="utf8"))
    except FileNotFoundError:
        raise ValueError(f"{path} is missing") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged ({error})") from error
    if not isinstance(found, expected):
        raise ValueError(f"{path} is damaged (expected a JSON {'list' if expected is list else 'object'})")
    return found


def read_parts(path: Path) -> list[list[tuple[str, str]]]:
    """Read the list of a combination's modules.

    Returns:
        For each part of the combination, the folder and the class name of each of its modules, in order.

    Raises:
        ValueError: The file is missing or damaged, or a folder leads out of the model.
    """
    parts = []
    for part in load_json(path, list):
        modules = []
        for entry in part:
            if not entry["folder"].replace("_", "").isalnum():
                raise ValueError(f"{path} names the folder {entry['folder']!r}, which is not a plain name")
            modules.append((entry["folder"], entry["type"]))
        parts.append(modules)
    return parts


def read_rows(path: Path, units: Sequence[str], further: str | None = None) -> tuple[np.ndarray, np.ndarray | None]:
    """Read a table from a file of weights into memory.

    Args:
        path: The file.
        units: The units of the first rows.
        further: Name of a tensor with an entry for each row behind those of the units; None if there are no such rows.

    Returns:
        The rows [row, dimension], float32, and the tensor `further`, None if not asked for.

    Raises:
        ValueError: The file is missing or damaged, or its tensors fit neither each other nor the units.
    """
    stored = map_stored(path, units, further)
    return restore(stored), None if further is None else stored[further].copy()


def map_stored(path: Path, units: Sequence[str], further: str | None = None) -> dict[str, np.ndarray]:
    """Map the tensors of a table from a file of weights, so that processes that use the same file share its memory.

    Arguments and errors are those of `read_rows`.

    Returns:
        The tensors that `restore` takes, and the tensor `further`, by name. bfloat16 becomes float32 in memory.
    """
    try:
        # safetensors checks that the head describes the file, so that the places in it can be used.
        with safe_open(path, "np"):
            pass
        with path.open("rb") as file:
            # A copy-on-write map, because compiled loops are made for arrays that may be written to. Nothing does.
            # Windows cannot replace a file that is mapped, so it is read there.
            on_windows = os.name == "nt"
            mapped = bytearray(file.read()) if on_windows else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except FileNotFoundError:
        raise ValueError(f"{path} is missing") from None
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path} is damaged ({error})") from error
    begin = 8 + int.from_bytes(mapped[:8], "little")
    head = json.loads(mapped[8:begin])
    names = [WEIGHT] if further is None else [WEIGHT, further]
    if head.get(WEIGHT, {}).get("dtype") in ("I8", "U8"):
        names.append(SCALE)
    for name in names:
        if name not in head:
            raise ValueError(f"{path} lacks the tensor {name!r}")
        entry, dimensions = head[name], 2 if name == WEIGHT else 1
        if entry["dtype"] not in TYPES:
            raise ValueError(
                f"{path}: the tensor {name!r} has numbers of the type {entry['dtype']}, not {', '.join(TYPES)}"
            )
        if len(entry["shape"]) != dimensions or 0 in entry["shape"][1:]:
            raise ValueError(
                f"{path}: the tensor {name!r} has the shape {entry['shape']}, not {dimensions} dimensions"
            )
    stored = {name: _tensor(mapped, begin, head[name]) for name in names}
    more = 0 if further is None else len(stored[further])
    rows = len(stored[WEIGHT])
    if len(stored.get(SCALE, stored[WEIGHT])) != rows:
        raise ValueError(f"{path} is damaged ({len(stored[SCALE])} scales for {rows} rows)")
    if len(units) + more != rows:
        raise ValueError(f"{path} and the vocabulary do not belong together: {unequal(len(units), more, rows)}")
    for name, tensor in stored.items():
        with np.errstate(invalid="ignore"):
            # A sum in float64 is finite exactly if all values are, because float32 values cannot overflow it; and it
            # needs no copy of them.
            if tensor.dtype.kind == "f" and not np.isfinite(tensor.sum(dtype=np.float64)):
                raise ValueError(NOT_FINITE.format(path=path, name=name))
    return stored


def _tensor(mapped: mmap.mmap | bytearray, begin: int, entry: dict[str, Any]) -> np.ndarray:
    """Return a tensor of a mapped file, without reading it unless it is bfloat16.

    Args:
        mapped: The file.
        begin: Number of bytes before the tensors.
        entry: What the head of the file says about the tensor.
    """
    start, end = entry["data_offsets"]
    kind = np.dtype(TYPES[entry["dtype"]])
    values = np.frombuffer(mapped, kind, (end - start) // kind.itemsize, begin + start)
    if entry["dtype"] == "BF16":
        # A bfloat16 is the upper half of a float32.
        values = (values.astype(np.uint32) << 16).view(np.float32)
    # Files of other programs may begin a tensor at any byte; such a tensor is copied.
    return np.require(values, requirements="A").reshape(entry["shape"])


def unequal(units: int, further: int, rows: int) -> str:
    """Return the error message for a table whose number of rows does not fit its units."""
    more = f" and {further} more" if further else ""
    return f"a vocabulary of {units} units needs as many rows{more}, was {rows} rows"


def check_precision(precision: str, dimension: int) -> None:
    """Check that rows of this dimension can be stored in a precision.

    Raises:
        ValueError: There is no such precision, or it needs an even dimension.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, was {precision!r}")
    if precision == "int4" and dimension % 2:
        raise ValueError(f"int4 needs an even number of dimensions, was {dimension}")


def store(rows: np.ndarray, precision: str) -> dict[str, np.ndarray]:
    """Convert rows [row, dimension] to the tensors that are stored, by name.

    `int8` and `int4` divide each row by its scale and round. Two numbers of `int4` share a byte, the first in its
    lower half, so the dimension must be even.
    """
    if precision not in LARGEST:
        return {WEIGHT: np.ascontiguousarray(rows, precision)}
    largest = LARGEST[precision]
    scale = np.maximum(np.abs(rows).max(axis=1) / np.float32(largest), np.finfo(np.float32).tiny)
    integers = np.clip(np.round(rows / scale[:, None]), -largest, largest).astype(np.int8)
    return {WEIGHT: integers if precision == "int8" else pack(integers), SCALE: scale}


def pack(integers: np.ndarray) -> np.ndarray:
    """Pack each two integers from -7 to 7 [row, dimension], int8, into a byte [row, dimension / 2], uint8."""
    halves = integers.view(np.uint8)
    return halves[:, ::2] & 15 | halves[:, 1::2] << 4


def unpack(packed: np.ndarray) -> np.ndarray:
    """Undo `pack`, and return the integers [row, dimension], int8."""
    halves = np.stack([packed << 4, packed], axis=2).reshape(len(packed), -1).view(np.int8)
    # Shifting a signed number to the right repeats its sign bit.
    return halves >> 4


# The two numbers of each byte that `pack` makes, float32, as one complex number, which is copied as a whole.
_PAIRS = unpack(np.arange(256, dtype=np.uint8)[:, None]).astype(np.float32).view(np.complex64).ravel()


def restore(stored: dict[str, np.ndarray]) -> np.ndarray:
    """Convert stored tensors to rows [row, dimension], float32, which share no memory with them."""
    weight, scale = stored[WEIGHT], stored.get(SCALE)
    rows = np.empty((len(weight), dimension_of(weight)), np.float32)
    # In parts, because `widen` makes an index with eight bytes of each byte.
    for begin in range(0, len(weight), 1024):
        part = slice(begin, begin + 1024)
        widen(weight[part], None if scale is None else scale[part], rows[part])
    return rows


def dimension_of(weight: np.ndarray) -> int:
    """Return the number of dimensions of stored rows."""
    return weight.shape[1] * (2 if weight.dtype.kind == "u" else 1)


def widen(weight: np.ndarray, scale: np.ndarray | None, out: np.ndarray) -> None:
    """Convert some stored rows to float32.

    Args:
        weight: The rows as they are stored [row, stored width].
        scale: Scale of each row [row]; None if they hold no integers.
        out: Where the rows are written [row, dimension], float32.
    """
    if weight.dtype.kind == "u":
        _PAIRS.take(weight, out=out.view(np.complex64), mode="clip")
    else:
        out[:] = weight
    if scale is not None:
        out *= scale[:, None]


def can_hold(rows: np.ndarray, precision: str) -> bool:
    """Whether storing rows [row, dimension], float32, in a precision and restoring them gives the same rows.

    Differences of a few roundings of float32 are ignored.
    """
    if precision == "float32":
        return True
    tolerance = 4 * np.finfo(np.float32).eps * np.abs(rows).max(axis=1, initial=0)
    difference = np.abs(restore(store(rows, precision)) - rows)
    return bool((difference <= tolerance[:, None]).all())


def blank_tokens(text: str) -> list[str]:
    """Split one text at white space and nowhere else, as the authors' program does."""
    return [token for token in _BETWEEN.split(text) if token]


def ngram_buckets(rows: np.ndarray, offsets: np.ndarray, order: int, buckets: int) -> tuple[np.ndarray, np.ndarray]:
    """Hash the n-grams of two to `order` words of every sentence; none crosses the end of a sentence.

    The hash of the words i to j begins with the id of word i; each further word turns h into h * 116049371 + id modulo
    2**64. The bucket is the hash modulo the number of buckets.

    Args:
        rows: The id of each word [word], without words that have none.
        offsets: Bounds of the sentences in them [sentence + 1].
        order: Number of words of the longest n-grams.
        buckets: Number of buckets.

    Returns:
        The bucket of each n-gram [n-gram], int64, ordered by its first word and then by its length, and the bounds of
        the sentences in them [sentence + 1].
    """
    lengths = np.diff(offsets)
    order = min(order, int(lengths.max(initial=0)))
    if order < 2:
        return np.empty(0, np.int64), np.zeros(len(offsets), np.int64)
    ids = rows.astype(np.uint64)
    # Number of words from each word to the end of its sentence, itself included: the longest n-gram that begins there.
    longest = np.repeat(offsets[1:], lengths) - np.arange(len(rows))
    bucket_of = np.empty((len(rows), order - 1), np.int64)
    hashed = ids
    for size in range(2, order + 1):
        hashed = hashed[:-1] * FACTOR + ids[size - 1 :]
        bucket_of[: len(hashed), size - 2] = hashed % np.uint64(buckets)
    exists = longest[:, None] >= np.arange(2, order + 1)
    ends = np.concatenate([[0], np.cumsum(np.minimum(longest, order) - 1)])
    return bucket_of[exists], ends[offsets]


def known_rows(rows: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Remove units at row 0, which have no row of their own, from rows [unit] and bounds [sentence + 1]."""
    known = rows != 0
    return rows[known], np.concatenate([[0], np.cumsum(known)])[offsets]


@dataclass(frozen=True, eq=False)
class NgramTable:
    """The n-grams that have a row; their rows follow those of the words.

    Attributes:
        order: Number of words of the longest n-grams; 1 where there are only words.
        buckets: Number of buckets that n-grams are hashed into.
        hashes: The buckets that have a row [n-gram row], int64, ascending.
        first: Row of the first of these buckets.
    """

    order: int
    buckets: int
    hashes: np.ndarray
    first: int

    @cached_property
    def _row_of(self) -> np.ndarray:
        """Row of each bucket [bucket], int32; 0 if it has none."""
        rows = np.zeros(self.buckets, np.int32)
        rows[self.hashes] = np.arange(self.first, self.first + len(self.hashes), dtype=np.int32)
        return rows

    def look_up(self, buckets: np.ndarray) -> np.ndarray:
        """Look up the row of each bucket [bucket], int32; 0 if it has none."""
        if len(self.hashes) == self.buckets:
            return (buckets + self.first).astype(np.int32)
        if self.buckets <= DIRECT:
            return self._row_of[buckets]
        if not len(self.hashes):
            return np.zeros(len(buckets), np.int32)
        found = np.minimum(np.searchsorted(self.hashes, buckets), len(self.hashes) - 1)
        return np.where(self.hashes[found] == buckets, found + self.first, 0).astype(np.int32)

    def bags(self, rows: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Look up the rows that are averaged for each sentence: its known words, then its n-grams that have a row.

        Args:
            rows: Row of each word [word]; 0 if it is unknown.
            offsets: Bounds of the sentences in them [sentence + 1].

        Returns:
            Rows of all sentences [unit], int32, and the bounds of the sentences in them [sentence + 1], int64.
        """
        words, ends = known_rows(rows, offsets)
        buckets, bounds = ngram_buckets(words, ends, self.order, self.buckets)
        ngrams, bounds = known_rows(self.look_up(buckets), bounds)
        joined = np.empty(len(words) + len(ngrams), np.int32)
        # A sentence's words follow the words and n-grams of earlier sentences; its n-grams follow its words.
        joined[np.arange(len(words)) + np.repeat(bounds[:-1], np.diff(ends))] = words
        joined[np.arange(len(ngrams)) + np.repeat(ends[1:], np.diff(bounds))] = ngrams
        return joined, ends + bounds
