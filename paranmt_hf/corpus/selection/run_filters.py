"""Filters over a whole corpus, out of core, and the file of dropped rows."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import FileIO
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.release.release import read_tables
from paranmt_hf.corpus.release.schema import key_columns, row_numbers
from paranmt_hf.corpus.selection.filters import Filter, TwoPassFilter
from paranmt_hf.errors import InputError, OtherSettingsError
from paranmt_hf.util.files import check_regular, resolved, result_file, write_bytes, writing
from paranmt_hf.util.parquet import open_parquet, read_schema
from paranmt_hf.util.progress import QUIET_SECONDS, Progress
from paranmt_hf.util.records import as_json, from_json, read_json
from paranmt_hf.util.work import work_folder

KEEP_SECONDS = 20.0  # Seconds of a pass after which its verdicts are saved
LONG_SECONDS = 60.0  # Seconds of work after which it is kept if the command fails
BLOCK_ROWS = 1_000_000  # Rows whose bytes are read at once
STATE = "verdicts.json"


class ReleaseRows:
    """The rows of Parquet files in order of their ids."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = list(files)
        self.rows = 0
        for file in self.files:
            with open_parquet(file) as opened:
                self.rows += opened.metadata.num_rows
        self.schema = read_schema(self.files[0])

    def tables(self, columns: Collection[str], *, skip: int = 0) -> Iterator[tuple[int, pa.Table]]:
        """Read columns, and always the key columns; yields the place of each table's first row, from 0, and the table.

        The first `skip` rows are left out: whole tables that an earlier run has read.
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
    """Which filter dropped each row, and the value that decided, in two files that later runs continue."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.rows = rows
        with writing(folder):
            self._codes, self._numbers = (_updated(folder / name) for name in ("codes", "numbers"))
            self._codes.truncate(rows)
            self._numbers.truncate(8 * rows)
        self._folder = folder

    def close(self) -> None:
        self._codes.close()
        self._numbers.close()

    def codes(self, place: int, count: int) -> np.ndarray:
        """Number of the filter, from 1, that dropped each of some rows [row], uint8; 0 if it is kept."""
        return np.frombuffer(_read(self._codes, count, place), np.uint8)

    def numbers(self, place: int, count: int) -> np.ndarray:
        """Value that decided about each of some rows [row], float64; NaN or 0 if there is none."""
        return np.frombuffer(_read(self._numbers, 8 * count, 8 * place), np.float64)

    def write(self, place: int, codes: np.ndarray, numbers: np.ndarray) -> None:
        with writing(self._folder):
            _write(self._codes, codes.tobytes(), place)
            _write(self._numbers, numbers.tobytes(), 8 * place)

    def forget(self, code: int, place: int = 0) -> None:
        """Restore the rows, from a position on, that filters after the one with this code dropped."""
        for start in range(place, self.rows, BLOCK_ROWS):
            codes = self.codes(start, BLOCK_ROWS)
            if (codes > code).any():
                with writing(self._folder):
                    _write(self._codes, np.where(codes > code, 0, codes).astype(np.uint8).tobytes(), start)

    def sync(self) -> None:
        """Flush the files to disk, so that they survive a power cut."""
        with writing(self._folder):
            os.fsync(self._codes.fileno())
            os.fsync(self._numbers.fileno())

    def counts(self, filters: int) -> list[int]:
        total = np.zeros(filters + 1, np.int64)
        for start in range(0, self.rows, BLOCK_ROWS):
            total += np.bincount(self.codes(start, BLOCK_ROWS), minlength=filters + 1)
        return total[1:].tolist()


def _updated(path: Path) -> FileIO:
    """Open a file that is read and written at any place; what it holds stays."""
    path.touch()
    return FileIO(path, "r+")


def _read(file: FileIO, count: int, place: int) -> bytes:
    file.seek(place)
    return file.read(count)


def _write(file: FileIO, content: bytes, place: int) -> None:
    file.seek(place)
    file.write(content)


@dataclass(frozen=True)
class _SelectionState:
    """The state of a selection in progress."""

    input: dict[str, Any]  # What determines the rows
    done: list[dict[str, Any]]  # Identities of the filters that have judged all rows
    judging: list[dict[str, Any]]  # Identities of the filters of the current pass
    rows: int  # Number of rows that these have judged
    seconds: float  # Duration of all work so far


class Judging:
    """Runs the rows of a corpus through at most 255 filters, in the order in which they decide.

    `input` is what determines the rows, as JSON values; the caller has locked the folder of the verdicts.
    """

    def __init__(self, source: ReleaseRows, filters: Sequence[Filter], input: Mapping[str, Any], work: Path) -> None:
        self.source, self.filters, self.work = source, list(filters), work
        self._input = as_json(input)
        self._identities = [as_json({"reason": one.reason, **one.identity}) for one in filters]
        self._spent, self._started = 0.0, time.monotonic()

    def run(self, verdicts: Verdicts) -> None:
        done, rows = self._known()
        verdicts.forget(done, rows)
        for group in self._groups(done):
            self._judge(verdicts, group, rows)
            rows = 0
            self._save(verdicts, group[-1] + 1)

    def _groups(self, done: int) -> Iterator[list[int]]:
        """Group the unfinished filters by passes over the rows."""
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
        """Apply filters in one pass, starting at a row."""
        filters = [self.filters[index] for index in group]
        # Filters that compare columns with numbers are fast next to all others.
        label = next((one.task for one in filters if one.task != Filter.task), Filter.task)
        spill = self.work / "spill"
        try:
            if isinstance(filters[0], TwoPassFilter):
                shutil.rmtree(spill, ignore_errors=True)
                with writing(spill):
                    spill.mkdir()
                filters[0].prepare(lambda: self._seen(verdicts, filters[0].columns, f"{label}, first pass"), spill)
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
        """Number of filters that an earlier run finished, and of rows judged in the current pass."""
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
        group = next(self._groups(done), [])
        same = done == len(state.done) and state.judging == [self._identities[index] for index in group]
        return done, state.rows if same else 0

    def _save(self, verdicts: Verdicts, done: int, judging: Sequence[int] = (), rows: int = 0) -> None:
        verdicts.sync()
        state = _SelectionState(
            input=self._input,
            done=self._identities[:done],
            judging=[self._identities[index] for index in judging],
            rows=rows,
            seconds=self._spent + time.monotonic() - self._started,
        )
        write_bytes(self.work / STATE, json.dumps(as_json(state)).encode())


def took_long(work: Path) -> bool:
    """Whether a work folder holds expensive verdicts."""
    try:
        return bool(json.loads((work / STATE).read_bytes())["seconds"] > LONG_SECONDS)
    except (OSError, ValueError, KeyError, TypeError):
        return False


_TEXT = pa.dictionary(pa.int8(), pa.string())
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("reference", pa.string(), nullable=False),
        pa.field("translation", pa.string(), nullable=False),
        pa.field("reason", _TEXT, nullable=False),
        # What decided, such as a score, a number of tokens or the id of the row that this one repeats; and its name.
        pa.field("number", pa.float64()),
        pa.field("number_is", _TEXT),
    ]
)
# The evaluation item that a row resembles, and the file that it is from, if a filter explains.
ITEM_FIELDS = [pa.field("item", pa.string()), pa.field("item_set", pa.string())]
SELECTION = b"paranmt_selection"  # Key of the file's metadata for the selection that dropped the rows


class DroppedRows:
    """Writes the file of dropped rows, which the caller renames when it is complete.

    The checksum `selection` is that of what determines the selection; `ranked` rows have their `rank` next to their
    id.
    """

    def __init__(self, path: Path, filters: Sequence[Filter], selection: str, *, ranked: bool = False) -> None:
        self._reasons = pa.array([one.reason for one in filters], pa.string())
        names = list(dict.fromkeys(one.number for one in filters if one.number))
        self._names = pa.array(names, pa.string())
        self._name_of = np.array([names.index(one.number) if one.number else -1 for one in filters], np.int8)
        fields = [*SCHEMA][:1] + [pa.field("rank", pa.int32(), nullable=False)] * ranked + [*SCHEMA][1:]
        self._explaining = {number: one for number, one in enumerate(filters) if one.explains}
        fields += ITEM_FIELDS * bool(self._explaining)
        self._schema = pa.schema(fields, {SELECTION: selection.encode()})
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd")

    def close(self) -> None:
        self._writer.close()

    def add(self, table: pa.Table, codes: np.ndarray, numbers: np.ndarray) -> None:
        """Add the dropped rows of a table, given the number of the filter (0: kept) and what decided [row]."""
        chosen = np.flatnonzero(codes)
        if not len(chosen):
            return
        filters = codes[chosen].astype(np.int8) - 1
        rows = table.select([*key_columns(self._schema.names), "reference", "translation"]).take(pa.array(chosen))
        names = self._name_of[filters]
        known = (names >= 0) & ~np.isnan(numbers[chosen])
        columns = [
            *rows.columns,
            pa.DictionaryArray.from_arrays(filters, self._reasons),
            pa.array(numbers[chosen], mask=~known),
            pa.DictionaryArray.from_arrays(pa.array(names, mask=~known), self._names),
            *(self._items(rows, filters) if self._explaining else []),
        ]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema))

    def _items(self, rows: pa.Table, filters: np.ndarray) -> Iterator[pa.Array]:
        """The columns of items and sets for dropped rows, given the filter of each [row]."""
        found: list[tuple[str | None, str | None]] = [(None, None)] * rows.num_rows
        for number, one in self._explaining.items():
            chosen = np.flatnonzero(filters == number)
            for row, explanation in zip(chosen.tolist(), one.explain(rows.take(pa.array(chosen))), strict=True):
                found[row] = explanation
        for field, values in zip(ITEM_FIELDS, zip(*found, strict=True), strict=True):
            yield pa.array(values, pa.string()).cast(field.type)


def selection_of(path: Path) -> str | None:
    """Checksum of the selection that dropped the rows of a file; None if the file does not exist."""
    check_regular(path)
    if not path.exists():
        return None
    try:
        metadata = pq.read_schema(path).metadata or {}
    except (pa.ArrowInvalid, OSError):
        metadata = {}
    if SELECTION not in metadata:
        raise InputError(f"{path} exists and holds no dropped rows; choose another file or move it away", path=path)
    return str(metadata[SELECTION].decode("ascii", "replace"))


def dropped_lines(rows: int, dropped: Iterable[tuple[str, int]]) -> list[str]:
    """A table of the rows that each reason dropped, in order of application, and of those that it left."""
    lines = [f"  {'dropped':>12} {'left':>12}", f"  {'':>12} {rows:>12,}"]
    for reason, count in dropped:
        rows -= count
        lines.append(f"  {count:>12,} {rows:>12,}  {reason}")
    return lines


def dropped_file(path: str | Path | None, source: Path, out: Path, selection: str) -> Path | None:
    """Check the place of a file of dropped rows, given the source of the rows and the checksum of the selection."""
    if path is None:
        return None
    file = resolved(path, "keep_dropped")
    if file.is_relative_to(out) or file.is_relative_to(work_folder(out)):
        raise InputError(f"{path} is inside the result {out}; name a file elsewhere", option="keep_dropped")
    result_file(file, [".parquet"], sources=[source], option="keep_dropped")
    if selection_of(file) not in (None, selection):
        raise OtherSettingsError(
            f"{file} holds rows that another selection dropped; choose another file or delete it",
            option="keep_dropped",
            path=file,
        )
    return file
