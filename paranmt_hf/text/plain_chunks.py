"""The memory of chunks of text without compiled loops, for environments without numba."""

from __future__ import annotations

from array import array
from collections import defaultdict
from itertools import chain, count, islice, pairwise

import numpy as np
import pyarrow as pa

from paranmt_hf.text.chunk_memory import ChunkMemory
from paranmt_hf.util.ranges import expand


class PlainChunkMemory(ChunkMemory):
    """Does what `ChunkMemory` does, with equal results, by a dictionary of chunks; not thread-safe."""

    def __init__(self) -> None:
        # A lookup of a new chunk gives it the next number.
        self._numbers: dict[bytes, int] = defaultdict(count().__next__)
        self._tokens, self._starts = array("i"), array("q", [0])

    def __len__(self) -> int:
        return len(self._numbers)

    def numbers(self, text: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        joined = text.tobytes()
        chunks = [list(filter(None, joined[start:stop].split(b" "))) for start, stop in pairwise(bounds.tolist())]
        ends = np.cumsum([0, *map(len, chunks)])
        numbers = map(self._numbers.__getitem__, chain.from_iterable(chunks))
        return np.fromiter(numbers, np.int32, int(ends[-1])), ends

    def without_tokens(self) -> pa.Array:
        new = len(self._numbers) - len(self._starts) + 1
        chunks = [*islice(reversed(self._numbers), new)][::-1]
        return pa.array(chunks, pa.binary()).cast(pa.string())

    def tokens(self, numbers: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        starts = np.asarray(self._starts)
        ids, ends = expand(np.asarray(self._tokens), starts[numbers], np.diff(starts)[numbers])
        return ids, ends[bounds]
