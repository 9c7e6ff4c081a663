"""Filters of rows that repeat an earlier one, exactly or nearly; the first row by id is kept."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.selection.filters import Rows, TwoPassFilter, Verdict, mapped, one_array
from paranmt_hf.corpus.selection.minhash import ColumnFile
from paranmt_hf.corpus.selection.near_duplicates import Likeness, NearDuplicateSearch
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.util.files import writing
from paranmt_hf.util.optional import require
from paranmt_hf.util.progress import QUIET_SECONDS, Progress

Compared = Literal["pair", "reference", "translation"]
SIDES: dict[Compared, tuple[str, ...]] = {
    "pair": ("reference", "translation"),
    "reference": ("reference",),
    "translation": ("translation",),
}
# Repeated rows that are written at once.
BLOCK_ROWS = 1_000_000
# Files of copies by hash. At 100 million rows each has 50 MB.
PARTS = 64
# Bytes that wait before they are written.
WAITING_BYTES = 32_000_000


class FirstIsKept(TwoPassFilter):
    """Drops rows that repeat an earlier row; a subclass finds them."""

    @abstractmethod
    def find_repeats(self, rows: Rows, work: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield positions of rows that repeat another, ascending [repeat], and ids of the repeated rows [repeat]."""

    def prepare(self, rows: Rows, work: Path) -> None:
        """Find the rows that repeat another."""
        paths = [work / "places", work / "firsts"]
        with writing(work), paths[0].open("wb") as places, paths[1].open("wb") as firsts:
            for place, first in self.find_repeats(rows, work):
                places.write(place.astype(np.int64).tobytes())
                firsts.write(first.astype(np.int64).tobytes())
        self._places, self._firsts = map(mapped, paths)
        # From here on, rows are recognised by their place.
        self.columns, self._seen = (), 0

    def judge(self, table: pa.Table) -> Verdict:
        """Judge the next rows."""
        start, stop = np.searchsorted(self._places, [self._seen, self._seen + table.num_rows])
        firsts = np.full(table.num_rows, -1, np.int64)
        firsts[self._places[start:stop] - self._seen] = self._firsts[start:stop]
        self._seen += table.num_rows
        return Verdict(firsts < 0, firsts.astype(np.float64))


class _Spill:
    """Rows of 64-bit unsigned integers, distributed over numbered files."""

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
        """Write the buffered records."""
        for part, blocks in self._waiting.items():
            with (self._folder / f"{self._label}-{part:06d}").open("ab") as file:
                file.writelines(block.tobytes() for block in blocks)
        self._waiting, self._bytes = {}, 0

    def take(self, part: int) -> np.ndarray:
        """Read the records of a file [record, field] in the order of writing, and delete it."""
        path = self._folder / f"{self._label}-{part:06d}"
        records = np.fromfile(path, np.uint64) if path.exists() else np.empty(0, np.uint64)
        path.unlink(missing_ok=True)
        return records.reshape(-1, self._width)


class FirstCopies(FirstIsKept):
    """Drops a row with the pair, reference or translation of an earlier one, exactly as written.

    Two independent hashes of 64 bits represent the sentences. They go into files by the first hash, each of which fits
    into memory, and what repeats goes into files by its place, with the id of the first.
    """

    def __init__(self, compared: Compared) -> None:
        self.compared = compared
        reason = f"with the {compared} of an earlier row"
        super().__init__("copies", reason, SIDES[compared], "id of the first", of=compared)

    def find_repeats(self, rows: Rows, work: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Hash all rows and find the repeated hashes."""
        hashed, repeated = _Spill(work, "hashed", 4), _Spill(work, "repeated", 2)
        seen = 0
        for one, other, ids in self._hashes(rows):
            places = np.arange(seen, seen + len(ids), dtype=np.uint64)
            seen += len(ids)
            hashed.add((one % PARTS).astype(np.int64), np.stack([one, other, places, ids.astype(np.uint64)], axis=1))
        hashed.flush()
        for part in range(PARTS):
            found = repeated_records(hashed.take(part))
            repeated.add((found[:, 0] // BLOCK_ROWS).astype(np.int64), found)
        repeated.flush()
        for block in range(-(-seen // BLOCK_ROWS)):
            found = repeated.take(block).astype(np.int64)
            order = np.argsort(found[:, 0])
            yield found[order, 0], found[order, 1]

    def _hashes(self, rows: Rows) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        duckdb = require("duckdb", "select")
        names = ", ".join(self.columns)
        shifted = ", ".join(f"'|' || {name}" for name in self.columns)
        # One thread keeps the order of the rows.
        with duckdb.connect(config={"threads": 1}) as connection:
            for table in rows():
                connection.register("rows_of_a_release", table)
                query = f"SELECT hash({names}) AS one, hash({shifted}) AS other FROM rows_of_a_release"
                hashes = connection.execute(query).fetchnumpy()
                yield np.asarray(hashes["one"]), np.asarray(hashes["other"]), table["id"].to_numpy()


def repeated_records(records: np.ndarray) -> np.ndarray:
    """Find the repeated records.

    Args:
        records: Two hashes, the row's place and its id [row, field], in order of the places.

    Returns:
        Place of each row that repeats another, and the id of the first of these [row, field].
    """
    order = np.argsort(records[:, 0], kind="stable")
    ordered = records[order]
    same = ordered[1:, 0] == ordered[:-1, 0]
    if (same & (ordered[1:, 1] != ordered[:-1, 1])).any():
        # Different sentences with the same first hash: once in ten thousand corpora.
        ordered = records[np.lexsort((records[:, 1], records[:, 0]))]
        same = ordered[1:, 0] == ordered[:-1, 0]
    same = np.concatenate([[False], same & (ordered[1:, 1] == ordered[:-1, 1])])[: len(ordered)]
    first = np.maximum.accumulate(np.where(same, 0, np.arange(len(ordered))))
    return np.stack([ordered[same, 2], ordered[first[same], 3]], axis=1)


class FirstOfLike(FirstIsKept):
    """Drops a row whose pair, reference or translation is similar to that of an earlier row that is kept."""

    def __init__(
        self,
        compared: Compared,
        likeness: Likeness,
        language: str = ENGLISH,
        encoder: NamedEncoder | None = None,
    ) -> None:
        self._likeness, self._language, self._encoder = likeness, language, encoder
        reason = f"with the {compared} nearly that of an earlier row"
        settings = {"of": compared, **vars(likeness), "language": language}
        if encoder is not None:
            settings["encoder"] = encoder.identity
        super().__init__("near-duplicates", reason, SIDES[compared], "id of the kept row", **settings)

    def find_repeats(self, rows: Rows, work: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Find the rows that are similar to an earlier one."""
        encoder = self._encoder.load() if self._encoder else None
        search = NearDuplicateSearch(work, self._likeness, self._language, encoder)
        ids = ColumnFile(work / "ids", np.int64)
        for table in rows():
            search.add([one_array(table[name]) for name in self.columns])
            ids.append(table["id"].to_numpy())
        with Progress(f"compare: {self.reason}", unit="steps", least=QUIET_SECONDS) as progress:
            repeats = search.repeats(partial(_show, progress))
        places = np.flatnonzero(repeats >= 0)
        for start in range(0, len(places), BLOCK_ROWS):
            block = places[start : start + BLOCK_ROWS]
            yield block, ids.take(repeats[block])
        ids.close()


def _show(progress: Progress, done: int, total: int) -> None:
    progress.total = total
    progress.advance_to(done)
