"""Runs filters over all rows of a corpus, out of core, so that an interrupted run can be continued."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.release.release import read_tables
from paranmt_hf.corpus.release.schema import key_columns, row_numbers
from paranmt_hf.corpus.selection.filters import Filter, TwoPassFilter
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import write_bytes, writing
from paranmt_hf.util.parquet import open_parquet, read_schema
from paranmt_hf.util.progress import QUIET_SECONDS, Progress
from paranmt_hf.util.records import as_json, from_json, read_json

CHECKPOINT_SECONDS = 20.0  # Seconds after which the state of a pass is saved
BLOCK_ROWS = 1_000_000  # Number of rows whose verdicts are read at once
STATE = "verdicts.json"
# Verdict about a row: the filter that dropped it, counted from 1, or 0 if it is kept; and the number that decided, NaN
# or 0 if there is none.
VERDICT = np.dtype([("filter", np.uint8), ("number", np.float64)])


class ReleaseRows:
    """The rows of the Parquet files of a corpus, in the order of their ids.

    Attributes:
        files: The files.
        rows: Number of rows in all files.
        schema: Their schema.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = list(files)
        self.rows = 0
        for file in self.files:
            with open_parquet(file) as opened:
                self.rows += opened.metadata.num_rows
        self.schema = read_schema(self.files[0])

    def tables(self, columns: Collection[str], *, skip: int = 0) -> Iterator[tuple[int, pa.Table]]:
        """Read some columns, and always the key columns, row group by row group.

        Args:
            columns: Names of the columns.
            skip: Number of rows at the start that are left out; must end where a row group ends.

        Yields:
            Index of the first row of a table among all rows, and the table.

        Raises:
            InputError: If the ids do not ascend.
        """
        place, last = skip, None
        names = list(dict.fromkeys([*key_columns(self.schema.names), *columns]))
        for table in read_tables(self.files, names, skip=skip):
            ids = row_numbers(table)
            if len(ids) and ((ids[1:] <= ids[:-1]).any() or (last is not None and ids[0] <= last)):
                raise InputError(
                    f"the ids of {self.files[0].parent} do not ascend from row to row, as those of a corpus do; "
                    "bring the pairs in with `paranmt import`"
                )
            yield place, table
            place += table.num_rows
            last = ids[-1] if len(ids) else last


class Verdicts:
    """The verdict about each row of a corpus, in a file that later runs continue.

    Args:
        folder: Folder of the file.
        rows: Number of rows of the corpus.
    """

    def __init__(self, folder: Path, rows: int) -> None:
        self.rows = rows
        path = folder / "verdicts"
        with writing(folder):
            path.touch()
            self._file = path.open("r+b", buffering=0)
            self._file.truncate(VERDICT.itemsize * rows)
        self._folder = folder

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def read(self, place: int, count: int) -> np.ndarray:
        """Return the verdicts [row], `VERDICT`, about up to `count` rows from the index `place` on."""
        self._file.seek(VERDICT.itemsize * place)
        return np.frombuffer(bytearray(self._file.read(VERDICT.itemsize * count)), VERDICT)

    def write(self, place: int, verdicts: np.ndarray) -> None:
        """Write the verdicts [row] about consecutive rows from the index `place` on."""
        with writing(self._folder):
            self._file.seek(VERDICT.itemsize * place)
            self._file.write(verdicts.tobytes())

    def forget(self, done: int, place: int) -> None:
        """Keep again the rows, from the index `place` on, that any but the first `done` filters dropped."""
        for start in range(place, self.rows, BLOCK_ROWS):
            verdicts = self.read(start, BLOCK_ROWS)
            later = verdicts["filter"] > done
            if later.any():
                verdicts["filter"][later] = 0
                self.write(start, verdicts)

    def sync(self) -> None:
        """Flush the file to disk, so that it survives a power cut."""
        with writing(self._folder):
            os.fsync(self._file.fileno())

    def counts(self, filters: int) -> list[int]:
        """Return how many rows each of `filters` filters dropped."""
        total = np.zeros(filters + 1, np.int64)
        for start in range(0, self.rows, BLOCK_ROWS):
            total += np.bincount(self.read(start, BLOCK_ROWS)["filter"], minlength=filters + 1)
        return total[1:].tolist()


@dataclass(frozen=True)
class _SelectionState:
    """How far a selection has got, for a later run that continues it."""

    input: dict[str, Any]  # What determines the rows of the corpus
    done: list[dict[str, Any]]  # Identities of the filters that have judged all rows
    judging: list[dict[str, Any]]  # Identities of the filters in the current pass
    rows: int  # Number of rows that the current pass has judged
    seconds: float  # Duration of all work so far


class FilterRun:
    """Runs the rows of a corpus through filters, in the order in which they decide.

    Args:
        source: The rows.
        filters: At most 255 filters.
        input: What determines the rows, as JSON values.
        work: Work folder, which the caller has locked.
    """

    def __init__(self, source: ReleaseRows, filters: Sequence[Filter], input: Mapping[str, Any], work: Path) -> None:
        self.source, self.filters, self.work = source, list(filters), work
        self._input = as_json(input)
        self._identities = [as_json({"reason": one.reason, **one.identity}) for one in filters]
        self._spent, self._started = 0.0, time.monotonic()

    def run(self, verdicts: Verdicts) -> None:
        """Judge all rows, continuing an earlier run in the work folder."""
        done, rows = self._known()
        verdicts.forget(done, rows)
        while done < len(self.filters):
            group = self._next_pass(done)
            self._judge(verdicts, group, rows)
            done, rows = group.stop, 0
            self._save(verdicts, done)

    def _next_pass(self, done: int) -> range:
        """Return the indices of the filters in the next pass over the rows, if the first `done` have finished.

        That is one `TwoPassFilter`, or all filters before the next one.
        """
        stop = done + 1
        if not isinstance(self.filters[done], TwoPassFilter):
            while stop < len(self.filters) and not isinstance(self.filters[stop], TwoPassFilter):
                stop += 1
        return range(done, stop)

    def _judge(self, verdicts: Verdicts, group: range, rows: int) -> None:
        """Apply filters in one pass.

        Args:
            verdicts: The verdicts about all rows, which are updated.
            group: Indices of the filters.
            rows: Number of rows that an earlier run has judged in this pass.
        """
        filters = self.filters[group.start : group.stop]
        # Filters that compare columns with numbers are fast, so progress is named after any other filter.
        label = next((one.task for one in filters if one.task != Filter.task), Filter.task)
        alone = filters[0] if isinstance(filters[0], TwoPassFilter) else None
        spill = self.work / "spill"
        try:
            if alone is not None:
                shutil.rmtree(spill, ignore_errors=True)
                with writing(spill):
                    spill.mkdir()
                alone.prepare(lambda: self._seen(verdicts, alone.columns, f"{label}, first pass"), spill)
            columns = {name for one in filters for name in one.columns}
            saved = time.monotonic()
            with Progress(label, self.source.rows, done=rows, unit="pairs", least=QUIET_SECONDS) as progress:
                for place, table in self.source.tables(columns, skip=rows):
                    self._judge_table(verdicts, group, place, table)
                    progress.advance_to(place + table.num_rows)
                    if alone is None and time.monotonic() - saved > CHECKPOINT_SECONDS:
                        self._save(verdicts, group.start, group, place + table.num_rows)
                        saved = time.monotonic()
        finally:
            shutil.rmtree(spill, ignore_errors=True)

    def _judge_table(self, verdicts: Verdicts, group: range, place: int, table: pa.Table) -> None:
        """Apply filters to the rows of a table that are still kept."""
        table_verdicts = verdicts.read(place, table.num_rows)
        kept = np.flatnonzero(table_verdicts["filter"] == 0)
        rest = table if len(kept) == table.num_rows else table.take(pa.array(kept))
        before = len(kept)
        for index in group:
            if not len(kept):
                break
            verdict = self.filters[index].judge(rest)
            if verdict.kept.all():
                continue
            dropped = kept[~verdict.kept]
            table_verdicts["filter"][dropped] = index + 1
            table_verdicts["number"][dropped] = np.nan if verdict.number is None else verdict.number[~verdict.kept]
            kept, rest = kept[verdict.kept], rest.filter(pa.array(verdict.kept))
        if len(kept) < before:
            verdicts.write(place, table_verdicts)

    def _seen(self, verdicts: Verdicts, columns: Collection[str], label: str) -> Iterator[pa.Table]:
        """Read the columns of the rows that no filter has dropped so far."""
        with Progress(label, self.source.rows, unit="pairs", least=QUIET_SECONDS) as progress:
            for place, table in self.source.tables(columns):
                kept = verdicts.read(place, table.num_rows)["filter"] == 0
                if kept.any():
                    yield table if kept.all() else table.filter(pa.array(kept))
                progress.advance_to(place + table.num_rows)

    def _known(self) -> tuple[int, int]:
        """Return how many filters an earlier run finished, and how many rows it judged in the pass after them."""
        path = self.work / STATE
        if not path.exists():
            return 0, 0
        expected = f"the state of a selection; delete {self.work} to start again"
        state = from_json(_SelectionState, read_json(path, expected), path)
        if state.input != self._input:
            return 0, 0
        self._spent = state.seconds
        pairs = zip(state.done, self._identities, strict=False)
        done = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        if done < len(state.done) or done == len(self.filters):
            return done, 0
        group = self._next_pass(done)
        return done, state.rows if state.judging == self._identities[group.start : group.stop] else 0

    def _save(self, verdicts: Verdicts, done: int, judging: range = range(0), rows: int = 0) -> None:
        """Write the state of the run to disk, after its verdicts."""
        verdicts.sync()
        state = _SelectionState(
            input=self._input,
            done=self._identities[:done],
            judging=self._identities[judging.start : judging.stop],
            rows=rows,
            seconds=self._spent + time.monotonic() - self._started,
        )
        write_bytes(self.work / STATE, json.dumps(as_json(state)).encode())


def took_long(work: Path) -> bool:
    """Whether a work folder holds verdicts that took more than a minute."""
    try:
        return bool(json.loads((work / STATE).read_bytes())["seconds"] > 60)
    except (OSError, ValueError, KeyError, TypeError):
        return False
