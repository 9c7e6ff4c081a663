"""Filters over all rows of a release: what each says of a row is kept in files, a byte and a number for each row.

Filters that look at one row at a time judge together in one pass; one that takes two passes has a pass of its own.
What is finished stays when the work is stopped; the next run begins with the first filter that is another one.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.filters import Filter, TwoPassFilter
from paranmt_hf.corpus.release import read_tables
from paranmt_hf.corpus.schema import key_columns, row_numbers
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import write_bytes, writing
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import from_json, read_json, to_json
from paranmt_hf.util.work import as_json

# Seconds of a pass after which what is judged is worth keeping.
KEEP_SECONDS = 20.0
# Work of so many seconds is kept when a command is refused.
LONG_SECONDS = 60.0
# Rows whose bytes are read at once.
BLOCK_ROWS = 1_000_000
# A pass that takes less is not worth a line.
QUIET_SECONDS = 5.0
STATE = "verdicts.json"


def _metadata(file: Path) -> pq.FileMetaData:
    try:
        return pq.read_metadata(file)
    except pa.ArrowInvalid:
        raise InputError(f"{file} is no Parquet file, or cut off; copy it or build the release again") from None


class ReleaseRows:
    """The rows of Parquet files in order of their ids.

    Args:
        files: The files in order.

    Raises:
        InputError: One of them is damaged.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = list(files)
        found = [_metadata(file) for file in self.files]
        self.rows = sum(metadata.num_rows for metadata in found)
        self.schema = found[0].schema.to_arrow_schema()

    def tables(self, columns: Collection[str], *, skip: int = 0) -> Iterator[tuple[int, pa.Table]]:
        """Read columns, `id` always among them, and `rank` where there is one.

        Args:
            columns: Their names.
            skip: Number of rows that a former run has read: whole tables.

        Yields:
            The place of the table's first row, from 0, and the table.

        Raises:
            InputError: A file cannot be read, or the ids do not ascend.
        """
        place, last = skip, None
        names = list(dict.fromkeys([*key_columns(self.schema.names), *columns]))
        for table in read_tables(self.files, names, skip=skip):
            ids = row_numbers(table)
            if len(ids) and ((ids[1:] <= ids[:-1]).any() or (last is not None and ids[0] <= last)):
                raise InputError(
                    f"the ids of {self.files[0].parent} do not ascend from row to row, as those of a release do; "
                    "bring the pairs in with `paranmt import`"
                )
            yield place, table
            place += table.num_rows
            last = ids[-1] if len(ids) else last


class Verdicts:
    """By which filter each row was dropped, and the number that decided; in two files that grow with the rows.

    Args:
        folder: Where the files are; those of a former run go on.
        rows: Number of rows.
    """

    def __init__(self, folder: Path, rows: int) -> None:
        self.rows = rows
        with writing(folder):
            self._codes, self._numbers = (
                os.open(folder / name, os.O_RDWR | os.O_CREAT, 0o666) for name in ("codes", "numbers")
            )
            os.truncate(self._codes, rows)
            os.truncate(self._numbers, 8 * rows)
        self._folder = folder

    def __enter__(self) -> Verdicts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._codes)
        os.close(self._numbers)

    def codes(self, place: int, count: int) -> np.ndarray:
        """Read of some rows by which filter, from 1, each was dropped [row], uint8; 0 where it is kept."""
        return np.frombuffer(os.pread(self._codes, count, place), np.uint8)

    def numbers(self, place: int, count: int) -> np.ndarray:
        """Read of some rows the number that decided [row], float64; NaN or 0 where none did."""
        return np.frombuffer(os.pread(self._numbers, 8 * count, 8 * place), np.float64)

    def write(self, place: int, codes: np.ndarray, numbers: np.ndarray) -> None:
        """Write codes [row] and numbers [row]."""
        with writing(self._folder):
            os.pwrite(self._codes, codes.tobytes(), place)
            os.pwrite(self._numbers, numbers.tobytes(), 8 * place)

    def forget(self, code: int, place: int = 0) -> None:
        """Take rows back, from a place on, that were dropped by a filter after that of a code."""
        for start in range(place, self.rows, BLOCK_ROWS):
            codes = self.codes(start, min(BLOCK_ROWS, self.rows - start))
            if (codes > code).any():
                with writing(self._folder):
                    os.pwrite(self._codes, np.where(codes > code, 0, codes).astype(np.uint8).tobytes(), start)

    def sync(self) -> None:
        """See to it that what is written outlives a power cut."""
        with writing(self._folder):
            os.fsync(self._codes)
            os.fsync(self._numbers)

    def counts(self, filters: int) -> list[int]:
        """Count the rows that each of so many filters dropped."""
        total = np.zeros(filters + 1, np.int64)
        for start in range(0, self.rows, BLOCK_ROWS):
            codes = self.codes(start, min(BLOCK_ROWS, self.rows - start))
            total += np.bincount(codes, minlength=filters + 1)[: filters + 1]
        return total[1:].tolist()


@dataclass(frozen=True)
class _State:
    """How far a selection is.

    Attributes:
        input: What determines the rows.
        done: Identities of the filters that have judged all rows.
        judging: Identities of those at work.
        rows: Number of rows that these have judged.
        seconds: How long all of it took.
    """

    input: dict[str, Any]
    done: list[dict[str, Any]]
    judging: list[dict[str, Any]]
    rows: int
    seconds: float


class Judging:
    """Sends the rows of a release through filters.

    Args:
        source: The rows.
        filters: In the order in which they decide, at most 255.
        input: What determines the rows, as JSON values.
        work: Folder of the verdicts, which the caller holds.
    """

    def __init__(self, source: ReleaseRows, filters: Sequence[Filter], input: Mapping[str, Any], work: Path) -> None:
        self.source, self.filters, self.work = source, list(filters), work
        self._input = as_json(input)
        self._identities = [as_json({"reason": one.reason, **one.identity}) for one in filters]
        self._spent, self._started = 0.0, time.monotonic()

    def run(self, verdicts: Verdicts) -> None:
        """Judge all rows, going on with what a former run left.

        Raises:
            InputError: A row or a file is not what it should be, or a sample is larger than what is left.
        """
        done, rows = self._known()
        verdicts.forget(done, rows)
        for group in self._groups(done):
            self._judge(verdicts, group, rows)
            rows = 0
            self._save(verdicts, group[-1] + 1)

    def _groups(self, done: int) -> Iterator[list[int]]:
        """Cut the filters that are not done into those that share a pass."""
        group: list[int] = []
        for index in range(done, len(self.filters)):
            alone = isinstance(self.filters[index], TwoPassFilter)
            if group and (alone or isinstance(self.filters[group[-1]], TwoPassFilter)):
                yield group
                group = []
            group.append(index)
        if group:
            yield group

    def _judge(self, verdicts: Verdicts, group: Sequence[int], rows: int) -> None:
        """Let filters judge in one pass, from a row on."""
        filters = [self.filters[index] for index in group]
        label = f"rows {filters[0].reason}" + (f" and {len(filters) - 1} other reasons" if len(filters) > 1 else "")
        spill = self.work / "spill"
        try:
            if isinstance(filters[0], TwoPassFilter):
                shutil.rmtree(spill, ignore_errors=True)
                with writing(spill):
                    spill.mkdir()
                filters[0].prepare(
                    lambda: self._seen(verdicts, filters[0].columns, f"look: {filters[0].reason}"), spill
                )
            kept_at = time.monotonic()
            with Progress(label, self.source.rows, done=rows, unit="pairs", least=QUIET_SECONDS) as progress:
                for place, table in self.source.tables({name for one in filters for name in one.columns}, skip=rows):
                    self._judge_table(verdicts, group, place, table)
                    progress.advance_to(place + table.num_rows)
                    if time.monotonic() - kept_at > KEEP_SECONDS and not isinstance(filters[0], TwoPassFilter):
                        self._save(verdicts, group[0], group, place + table.num_rows)
                        kept_at = time.monotonic()
        finally:
            shutil.rmtree(spill, ignore_errors=True)

    def _judge_table(self, verdicts: Verdicts, group: Sequence[int], place: int, table: pa.Table) -> None:
        codes = verdicts.codes(place, table.num_rows).copy()
        numbers = None
        left = np.flatnonzero(codes == 0)
        rest = table if len(left) == table.num_rows else table.take(pa.array(left))
        for index in group:
            if not len(left):
                break
            verdict = self.filters[index].judge(rest)
            if verdict.kept.all():
                continue
            dropped = left[~verdict.kept]
            codes[dropped] = index + 1
            if numbers is None:
                numbers = verdicts.numbers(place, table.num_rows).copy()
            numbers[dropped] = np.nan if verdict.number is None else verdict.number[~verdict.kept]
            left, rest = left[verdict.kept], rest.filter(pa.array(verdict.kept))
        if numbers is not None:
            verdicts.write(place, codes, numbers)

    def _seen(self, verdicts: Verdicts, columns: Collection[str], label: str) -> Iterator[pa.Table]:
        """Read the rows that no filter has dropped so far."""
        with Progress(label, self.source.rows, unit="pairs", least=QUIET_SECONDS) as progress:
            for place, table in self.source.tables(columns):
                kept = verdicts.codes(place, table.num_rows) == 0
                if kept.any():
                    yield table if kept.all() else table.filter(pa.array(kept))
                progress.advance_to(place + table.num_rows)

    def _known(self) -> tuple[int, int]:
        """How many filters a former run has finished, and how many rows the next pass has behind it."""
        path = self.work / STATE
        if not path.exists():
            return 0, 0
        expected = f"the state of a selection; delete {self.work} to begin anew"
        state = from_json(_State, read_json(path, expected), path)
        if state.input != self._input:
            return 0, 0
        self._spent = state.seconds
        pairs = zip(state.done, self._identities, strict=False)
        done = next((index for index, (old, new) in enumerate(pairs) if old != new), None)
        if done is None:
            done = min(len(state.done), len(self._identities))
        group = next(self._groups(done), [])
        same = done == len(state.done) and state.judging == [self._identities[index] for index in group]
        return done, state.rows if same else 0

    def _save(self, verdicts: Verdicts, done: int, judging: Sequence[int] = (), rows: int = 0) -> None:
        verdicts.sync()
        state = _State(
            input=self._input,
            done=self._identities[:done],
            judging=[self._identities[index] for index in judging],
            rows=rows,
            seconds=self._spent + time.monotonic() - self._started,
        )
        write_bytes(self.work / STATE, json.dumps(to_json(state)).encode())


def took_long(work: Path) -> bool:
    """Tell whether a work folder holds verdicts that took long."""
    try:
        return bool(json.loads((work / STATE).read_bytes())["seconds"] > LONG_SECONDS)
    except (OSError, ValueError, KeyError, TypeError):
        return False
