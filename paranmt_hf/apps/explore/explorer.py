"""Queries of the page about a corpus: rows, histograms, examples. Uses DuckDB over the Parquet files.

Numeric columns are read from the files each time, which takes hundredths of a second for a million rows. The text is
kept in lower case if it fits into memory, which makes a search five times as fast, and the ids of the rows that
contain the last text are remembered.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, cast, get_args

import pyarrow.parquet as pq

from paranmt_hf.corpus.release.record import ReleaseRecord
from paranmt_hf.corpus.release.release import read_record, release_files
from paranmt_hf.corpus.release.schema import COLUMNS, MOST_RANKS
from paranmt_hf.corpus.statistics.draws import Interval
from paranmt_hf.corpus.statistics.release_counts import EDGES, SCORE_RANGES
from paranmt_hf.errors import InputError
from paranmt_hf.util.optional import require
from paranmt_hf.util.parquet import MEMORY_BYTES, as_table, database

Side = Literal["either", "reference", "translation"]
SIDES = ("reference", "translation")


@dataclass(frozen=True)
class View:
    """Filter of the rows that are shown."""

    # Smallest and largest value of columns, both included; None is no bound. A null is outside.
    ranges: Mapping[str, Interval] = field(default_factory=dict)
    text: str = ""  # What a side contains, upper and lower case alike; empty for anything
    side: Side = "either"  # Which side contains it
    origin: str | None = None  # Where the rows come from, as the column `origin` has it; None for anywhere

    @classmethod
    def parse(cls, items: Iterable[tuple[str, str]], columns: Collection[str]) -> View:
        """Read a view from URL parameters such as `min.para_score=0.4`; other names are ignored."""
        ranges: dict[str, Interval] = {}
        given = {name: value for name, value in items if value}
        for name, value in given.items():
            bound, _, column = name.partition(".")
            if bound not in ("min", "max") or not column:
                continue
            if column not in columns:
                raise InputError(f"{column!r} is not a numeric column of this corpus; it has {', '.join(columns)}")
            low, high = ranges.get(column, (None, None))
            if bound == "min":
                low = _number(name, value)
            else:
                high = _number(name, value)
            ranges[column] = (low, high)
        text = given.get("text", "")
        side = given.get("side", "either")
        if side not in get_args(Side):
            raise InputError(f"side must be one of {', '.join(get_args(Side))}, was {side!r}")
        if len(text) > 1000:
            raise InputError(f"text must have at most 1,000 characters, has {len(text):,}")
        return cls(ranges, text, cast(Side, side), given.get("origin"))

    def condition(self) -> tuple[str, list[float | str]]:
        """The view without its text as an SQL condition with `?`, and the values of its placeholders."""
        parts: list[str] = ["true"]
        values: list[float | str] = []
        for column, bounds in self.ranges.items():
            for sign, bound in zip((">=", "<="), bounds, strict=True):
                # In the precision of the scores: the 0.7 that is shown is the 0.7 that the column holds.
                if bound is not None:
                    parts.append(f'"{column}" {sign} ?::FLOAT')
                    values.append(bound)
        if self.origin is not None:
            parts.append("origin = ?")
            values.append(self.origin)
        return " AND ".join(parts), values

    def sides(self) -> tuple[str, ...]:
        """The columns that are searched for the text."""
        return SIDES if self.side == "either" else (self.side,)


def _number(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{name} must be a number, was {value!r}")
    return number


@dataclass(frozen=True)
class Bins:
    """Bins of equal width."""

    low: float  # Lower edge of the first one
    width: float  # Width of each
    count: int  # How many there are
    open: bool  # Whether the last one also counts what lies above it


def bins_of(lowest: float | None, highest: float | None, usual: float | None, *, whole: bool) -> Bins:
    """Choose at most 40 bins for a column, whose width is 1, 2 or 5 times a power of ten; None where all are null.

    Hardly any row exceeds the value `usual`: a long tail above it is counted in the last bin.
    """
    if lowest is None or highest is None or usual is None:
        return Bins(0.0, 1.0, 1, False)
    # Half of the range is no tail.
    top = float(highest if highest - usual <= usual - lowest else usual)
    exact, width = (top - lowest) / 38, 1.0
    if exact > 0:
        power = 10.0 ** math.floor(math.log10(exact))
        width = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= exact * (1 - 1e-9))
    if whole:
        width = max(1.0, width)
    low = math.floor(lowest / width) * width
    count = max(1, math.floor((top - low) / width) + 1)
    if not whole and count > 1 and math.isclose((count - 1) * width + low, highest):
        # The largest value alone on an edge, such as a score of 1, belongs to the bin below.
        count -= 1
    digits = max(0, 2 - math.floor(math.log10(width)))
    return Bins(round(low, digits), round(width, digits), count, top < highest)


PAGE_ROWS = 50


class Explorer:
    """Queries of a corpus. A context manager; queries of several threads run one after the other.

    Large queries spill to disk. The text is kept in memory if it has at most `text_bytes`.
    """

    def __init__(self, folder: Path, *, config: str = "default", text_bytes: int = MEMORY_BYTES // 2) -> None:
        self._record_file = Path(folder) / ReleaseRecord.FILE
        self._record_bytes = self._record_file.read_bytes() if self._record_file.is_file() else b""
        files = release_files(Path(folder), config)
        self.record: ReleaseRecord = read_record(Path(folder), [config])
        self.config = config
        self.rows_in_all = self.record.configs[config].rows
        # The record may name anything; queries hold names of the schema alone.
        present = pq.read_schema(files[0]).names
        self._shown = [column.name for column in COLUMNS if column.name in present]
        numbers = {column.name for column in COLUMNS if str(column.type).startswith(("int", "float"))} - {"id"}
        self.columns = [name for name in self._shown if name in numbers]
        # What tells a row from all others.
        self._key = f"id * {MOST_RANKS} + rank" if "rank" in present else "id"
        self._database = database(extra="explore")
        self._connection = self._database.__enter__()
        self._read_error = require("duckdb", "explore").Error
        self._table = as_table(files)
        self._lock = threading.Lock()
        # The text in lower case: a query, or a table in memory.
        lower = ", ".join(f"lower({side}) AS {side}" for side in SIDES)
        self._lower = f"(SELECT {self._key} AS key, {lower} FROM {self._table})"
        # What the table `found` was searched for: a text in lower case, and the sides.
        self._found: tuple[str, tuple[str, ...]] | None = None
        self.bins: dict[str, Bins] = {}
        self._keeps_text = self.record.configs[config].bytes <= text_bytes

    def __enter__(self) -> Explorer:
        """Find what values the columns have."""
        with self._reading():
            if self._keeps_text:
                self._connection.execute(f"CREATE TEMP TABLE lower_case AS {self._lower}")
                self._lower = "lower_case"
            types = {column.name: str(column.type) for column in COLUMNS}
            for name in self.columns:
                query = f'SELECT min("{name}"), max("{name}"), quantile_disc("{name}", 0.995) FROM {self._table}'
                self.bins[name] = bins_of(*self._rows(query)[0], whole=not types[name].startswith("float"))
        return self

    def __exit__(self, *error: object) -> None:
        self._database.__exit__(None, None, None)

    def check_unchanged(self) -> None:
        """Reject a corpus that another command has replaced, whose rows would mix with those that were read."""
        with suppress(OSError):
            if self._record_file.read_bytes() == self._record_bytes:
                return
        folder = self._record_file.parent
        raise InputError(f"{folder} was changed while it was read; open it again", path=folder)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Read one after the other, and only the corpus that was opened."""
        with self._lock:
            try:
                yield
            except self._read_error:
                self.check_unchanged()
                raise
            self.check_unchanged()

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, values).fetchall()

    def _condition(self, view: View) -> tuple[str, list[Any]]:
        """Convert a view to an SQL condition, and find the rows that contain its text."""
        condition, values = view.condition()
        if view.origin is not None and "origin" not in self._shown:
            raise InputError("this corpus has no column 'origin'")
        if not view.text:
            return condition, values
        # Upper and lower case alike; a sentence and a text that differ in how an accent is coded differ.
        wanted = (view.text.lower(), view.sides())
        # The page asks several questions about each text.
        if self._found != wanted:
            contains = " OR ".join(f"contains({side}, ?)" for side in view.sides())
            query = f"CREATE OR REPLACE TEMP TABLE found AS SELECT key FROM {self._lower} WHERE {contains}"
            self._connection.execute(query, [wanted[0]] * len(view.sides()))
            self._found = wanted
        return f"{condition} AND {self._key} IN (SELECT key FROM found)", values

    def count(self, view: View) -> int:
        with self._reading():
            condition, values = self._condition(view)
            return int(self._rows(f"SELECT count(*) FROM {self._table} WHERE {condition}", values)[0][0])

    def rows(
        self, view: View, *, sort: str = "id", descending: bool = False, page: int = 0, rows: int = PAGE_ROWS
    ) -> list[dict[str, Any]]:
        """A page of the rows of a view, by a numeric column or `id`; equal values by id, nulls last."""
        if sort not in (*self.columns, "id"):
            raise InputError(f"cannot sort by {sort!r}; this corpus has the numeric columns {', '.join(self.columns)}")
        with self._reading():
            condition, values = self._condition(view)
            order = f'"{sort}" {"DESC" if descending else "ASC"} NULLS LAST, {self._key}'
            # Only the keys are sorted; whole rows are read of those that are shown.
            part = f"ORDER BY {order} LIMIT {rows:d} OFFSET {page * rows:d}"
            query = f"SELECT {self._key} FROM {self._table} WHERE {condition} {part}"
            return self._whole_rows([row[0] for row in self._rows(query, values)])

    def _whole_rows(self, keys: Sequence[int]) -> list[dict[str, Any]]:
        """Read whole rows, in the order of `keys`."""
        if not keys:
            return []
        wanted = ", ".join(str(int(number)) for number in keys)
        names = ", ".join(f'"{name}"' for name in self._shown)
        query = f"SELECT {self._key}, {names} FROM {self._table} WHERE {self._key} IN ({wanted})"
        found = {}
        for key, *values in self._rows(query):
            found[key] = dict(zip(self._shown, values, strict=True))
        return [found[number] for number in keys]

    def histograms(self, view: View) -> dict[str, list[int]]:
        """Count the rows of a view for each of the `bins` of each numeric column; a null counts in none."""
        found = {}
        with self._reading():
            condition, values = self._condition(view)
            for name in self.columns:
                bins = self.bins[name]
                # In 64 bits, as the page of a report computes it too.
                place = f'("{name}"::DOUBLE - {bins.low!r}::DOUBLE) / {bins.width!r}::DOUBLE'
                number = f"least(greatest(floor({place}), 0), {bins.count - 1})"
                known = f'{condition} AND "{name}" IS NOT NULL'
                query = f"SELECT {number} AS bin, count(*) FROM {self._table} WHERE {known} GROUP BY bin"
                found[name] = [0] * bins.count
                for index, count in self._rows(query, values):
                    found[name][int(index)] = count
        return found

    def examples(self, view: View, *, each: int = 5, seed: int = 0) -> list[dict[str, Any]]:
        """Sample rows of each range of the paraphrase score: name, number of rows in the view, and `each` examples."""
        with self._reading():
            condition, values = self._condition(view)
            case = " ".join(f"WHEN para_score <= {edge}::FLOAT THEN {index}" for index, edge in enumerate(EDGES))
            columns = f"{self._key} AS key, CASE {case} ELSE {len(EDGES)} END AS part"
            inner = f"SELECT {columns} FROM {self._table} WHERE {condition}"
            query = f"SELECT part, count(*), arg_min(key, hash(key + {seed:d}), {each:d}) FROM ({inner}) GROUP BY part"
            found = {part: (count, keys) for part, count, keys in self._rows(query, values)}
            ranges = []
            for part, name in enumerate(SCORE_RANGES):
                count, keys = found.get(part, (0, []))
                ranges.append({"range": name, "rows": count, "examples": self._whole_rows(keys)})
            return ranges

    def origins(self) -> dict[str, int]:
        """Count the rows of each origin, the 200 most frequent ones first; empty if the corpus has no such column."""
        if "origin" not in self._shown:
            return {}
        with self._reading():
            query = (
                f"SELECT origin, count(*) AS rows FROM {self._table} WHERE origin IS NOT NULL GROUP BY origin "
                f"ORDER BY rows DESC, origin LIMIT 200"
            )
            return dict(self._rows(query))

    def summary(self) -> Mapping[str, Any]:
        """What is known of the corpus without a query: its record, bins, and origins."""
        return {
            "record": self.record.to_json(),
            "config": self.config,
            "rows": self.rows_in_all,
            "bins": {name: asdict(bins) for name, bins in self.bins.items()},
            "origins": self.origins(),
        }
