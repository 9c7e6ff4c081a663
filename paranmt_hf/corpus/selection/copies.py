"""Exact copies: rows whose sentences came already, letter by letter; the first one by id stays.

Two independent hashes of 64 bits stand for the sentences. They go into files by the first hash, each of which fits
into memory; a file is sorted, and what repeats goes, with the id of the first, into files by its row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.selection.filters import Rows, TwoPassFilter, Verdict
from paranmt_hf.util.files import writing
from paranmt_hf.util.optional import require

Copied = Literal["pair", "reference", "translation"]
SIDES: dict[Copied, tuple[str, ...]] = {
    "pair": ("reference", "translation"),
    "reference": ("reference",),
    "translation": ("translation",),
}
# Files by hash. At 100 million rows each holds 50 MB.
PARTS = 64
# Rows of a block: the repeated ones of each are in a file.
BLOCK_ROWS = 1_000_000
# Bytes that wait before a file is written.
WAITING_BYTES = 32_000_000


class _Spill:
    """Rows of integers, sorted into numbered files."""

    def __init__(self, folder: Path, label: str, width: int) -> None:
        self._folder, self._label, self._width = folder, label, width
        self._waiting: dict[int, list[np.ndarray]] = {}
        self._bytes = 0

    def add(self, parts: np.ndarray, records: np.ndarray) -> None:
        """Add records [record, field] to the files that `parts` [record] names."""
        order = np.argsort(parts, kind="stable")
        records, parts = records[order], parts[order]
        bounds = np.flatnonzero(np.diff(parts, prepend=-1, append=-1))
        for start, stop in zip(bounds[:-1], bounds[1:], strict=True):
            self._waiting.setdefault(int(parts[start]), []).append(records[start:stop])
        self._bytes += records.nbytes
        if self._bytes > WAITING_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        with writing(self._folder):
            for part, blocks in self._waiting.items():
                with self._path(part).open("ab") as file:
                    for block in blocks:
                        file.write(block.tobytes())
        self._waiting, self._bytes = {}, 0

    def take(self, part: int) -> np.ndarray:
        """Read the records of a file [record, field] in the order in which they came, and remove it."""
        path = self._path(part)
        if not path.exists():
            return np.empty((0, self._width), np.uint64)
        records = np.fromfile(path, np.uint64).reshape(-1, self._width)
        path.unlink()
        return records

    def _path(self, part: int) -> Path:
        return self._folder / f"{self._label}-{part:06d}"


class FirstCopies(TwoPassFilter):
    """Drops a row whose pair, reference or translation came already, and keeps the first one by id.

    Args:
        copied: What is compared, exactly as it is written.
    """

    number = "id of the first"

    def __init__(self, copied: Copied) -> None:
        self.copied = copied
        self.columns = SIDES[copied]
        self.reason = f"with the {copied} of an earlier row"

    @property
    def identity(self) -> Mapping[str, Any]:
        """Its settings."""
        return {"filter": "copies", "of": self.copied}

    def prepare(self, rows: Rows, work: Path) -> None:
        """Hash all rows and find what repeats."""
        hashed, self._repeated = _Spill(work, "hashed", 4), _Spill(work, "repeated", 2)
        seen = 0
        for first, second, ids in self._hashes(rows):
            numbers = np.arange(seen, seen + len(ids), dtype=np.uint64)
            seen += len(ids)
            hashed.add(
                (first % PARTS).astype(np.int64), np.stack([first, second, numbers, ids.astype(np.uint64)], axis=1)
            )
        hashed.flush()
        for part in range(PARTS):
            repeated = _repeated(hashed.take(part))
            self._repeated.add((repeated[:, 0] // BLOCK_ROWS).astype(np.int64), repeated)
        self._repeated.flush()
        # The rows are known by their place from here on.
        self.columns = ()
        self._seen, self._block, self._first = 0, -1, np.empty(0, np.int64)

    def _hashes(self, rows: Rows) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        duckdb = require("duckdb", "select")
        names = ", ".join(self.columns)
        shifted = ", ".join(f"'|' || {name}" for name in self.columns)
        with duckdb.connect(config={"threads": 1}) as connection:
            for table in rows():
                connection.register("rows_of_a_release", table)
                query = f"SELECT hash({names}) AS first, hash({shifted}) AS second FROM rows_of_a_release"
                hashes = connection.execute(query).fetchnumpy()
                yield np.asarray(hashes["first"]), np.asarray(hashes["second"]), table["id"].to_numpy()

    def judge(self, table: pa.Table) -> Verdict:
        """Judge the next rows."""
        firsts = np.empty(table.num_rows, np.int64)
        done = 0
        while done < table.num_rows:
            block, offset = divmod(self._seen, BLOCK_ROWS)
            if block != self._block:
                self._block, self._first = block, np.full(BLOCK_ROWS, -1, np.int64)
                repeated = self._repeated.take(block).astype(np.int64)
                self._first[repeated[:, 0] % BLOCK_ROWS] = repeated[:, 1]
            count = min(table.num_rows - done, BLOCK_ROWS - offset)
            firsts[done : done + count] = self._first[offset : offset + count]
            done, self._seen = done + count, self._seen + count
        return Verdict(firsts < 0, firsts.astype(np.float64))


def _repeated(records: np.ndarray) -> np.ndarray:
    """Find what repeats.

    Args:
        records: Two hashes, the row's number and its id [row, field], in order of the numbers.

    Returns:
        Number of each row that repeats another, and the id of the first of these [row, field].
    """
    order = np.argsort(records[:, 0], kind="stable")
    ordered = records[order]
    same = ordered[1:, 0] == ordered[:-1, 0]
    if (same & (ordered[1:, 1] != ordered[:-1, 1])).any():
        # Different sentences of one first hash: once in ten thousand corpora.
        ordered = records[np.lexsort((records[:, 1], records[:, 0]))]
        same = ordered[1:, 0] == ordered[:-1, 0]
    same = np.concatenate([[False], same & (ordered[1:, 1] == ordered[:-1, 1])])[: len(ordered)]
    first = np.maximum.accumulate(np.where(same, 0, np.arange(len(ordered))))
    return np.stack([ordered[same, 2], ordered[first[same], 3]], axis=1)
