"""Queries of a page about a corpus for rows, histograms and examples, by DuckDB over the Parquet files.

Numeric columns are read from the files for each query, which takes hundredths of a second for a million rows. The text
is kept in memory in lower case if it fits, which makes a search five times as fast. The rows that contain the text of
the last search are remembered.
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
    """A filter: which rows of a corpus are shown."""

    # Smallest and largest value of columns by name, both included; None for no bound. A null is in no range.
    ranges: Mapping[str, Interval] = field(default_factory=dict)
    text: str = ""  # Text that a sentence must contain, ignoring case; empty for no such condition
    side: Side = "either"  # Which sentence of a pair must contain the text
    origin: str | None = None  # Value that the column `origin` must have; None for any

    @classmethod
    def parse(cls, items: Iterable[tuple[str, str]], columns: Collection[str]) -> View:
        """Read a filter from URL parameters such as `min.para_score=0.4` and `text=guitar`.

        Args:
            items: Names and values of the parameters; unknown names are ignored.
            columns: Names of the numeric columns of the corpus; others are rejected.
        """
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
        """Return the filter, except for its text, as an SQL condition with `?`, and the values of its placeholders."""
        parts: list[str] = ["true"]
        values: list[float | str] = []
        for column, bounds in self.ranges.items():
            for sign, bound in zip((">=", "<="), bounds, strict=True):
                # Bounds are compared as float32, the type of scores: 0.7 then equals a score that is shown as 0.7.
                if bound is not None:
                    parts.append(f'"{column}" {sign} ?::FLOAT')
                    values.append(bound)
        if self.origin is not None:
            parts.append("origin = ?")
            values.append(self.origin)
        return " AND ".join(parts), values

    def sides(self) -> tuple[str, ...]:
        """Return the names of the columns that are searched for the text."""
        return SIDES if self.side == "either" else (self.side,)


def _number(name: str, value: str) -> float:
    """Return a URL parameter as a finite number."""
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{name} must be a number, was {value!r}")
    return number


@dataclass(frozen=True)
class Bins:
    """The bins of a histogram, all of one width."""

    low: float  # Lower edge of the first bin
    width: float  # Width of each bin
    count: int  # Number of bins
    open: bool  # Whether the last bin also counts all larger values


def bins_of(lowest: float | None, highest: float | None, usual: float | None, *, whole: bool) -> Bins:
    """Choose at most 40 bins for the values of a column; their width is 1, 2 or 5 times a power of ten.

    Args:
        lowest: Smallest value; None if all values are null, which gives one bin.
        highest: Largest value; None if all values are null.
        usual: Value that hardly any row exceeds; None if all values are null. Larger values are counted in the last
            bin if they reach further above `usual` than `lowest` is below it.
        whole: Whether the values are whole numbers; the width is at least 1 then.
    """
    if lowest is None or highest is None or usual is None:
        return Bins(0.0, 1.0, 1, False)
    top = float(highest if highest - usual <= usual - lowest else usual)
    # Rounding the lower edge down and the bin of the largest value may add one bin each to these 38.
    exact, width = (top - lowest) / 38, 1.0
    if exact > 0:
        power = 10.0 ** math.floor(math.log10(exact))
        width = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= exact * (1 - 1e-9))
    if whole:
        width = max(1.0, width)
    low = math.floor(lowest / width) * width
    count = max(1, math.floor((top - low) / width) + 1)
    if not whole and count > 1 and math.isclose((count - 1) * width + low, highest):
        # If the largest value lies on an edge, such as a score of 1, it belongs to the bin below.
        count -= 1
    digits = max(0, 2 - math.floor(math.log10(width)))
    return Bins(round(low, digits), round(width, digits), count, top < highest)


PAGE_ROWS = 50  # Rows on a page


class Explorer:
    """Queries of a corpus by filters (`View`).

    It is a context manager. Queries from several threads run one after the other. Large queries spill to disk.

    Args:
        folder: Folder of the corpus.
        config: Config of the corpus that is queried.
        text_bytes: Maximum size of the files of the config in bytes for which the text is kept in memory.
    """

    def __init__(self, folder: Path, *, config: str = "default", text_bytes: int = MEMORY_BYTES // 2) -> None:
        self._record_file = Path(folder) / ReleaseRecord.FILE
        self._record_bytes = self._record_file.read_bytes() if self._record_file.is_file() else b""
        files = release_files(Path(folder), config)
        self.record: ReleaseRecord = read_record(Path(folder), [config])
        self.config = config
        self.rows_in_all = self.record.configs[config].rows
        # Names in the record may be anything, so queries use only names of the schema.
        present = pq.read_schema(files[0]).names
        self._shown = [column.name for column in COLUMNS if column.name in present]
        numbers = {column.name for column in COLUMNS if str(column.type).startswith(("int", "float"))} - {"id"}
        self.columns = [name for name in self._shown if name in numbers]
        # An SQL expression that is different for every row.
        self._key = f"id * {MOST_RANKS} + rank" if "rank" in present else "id"
        self._database = database(extra="explore")
        self._connection = self._database.__enter__()
        self._read_error = require("duckdb", "explore").Error
        self._table = as_table(files)
        self._lock = threading.Lock()
        # SQL of the text in lower case: a query of the files or, from `__enter__` on, a table in memory.
        lower = ", ".join(f"lower({side}) AS {side}" for side in SIDES)
        self._lower = f"(SELECT {self._key} AS key, {lower} FROM {self._table})"
        # The search whose rows are in the table `found`: text in lower case, and columns; None before the first one.
        self._searched_for: tuple[str, tuple[str, ...]] | None = None
        self.bins: dict[str, Bins] = {}
        self._keeps_text = self.record.configs[config].bytes <= text_bytes

    def __enter__(self) -> Explorer:
        """Read the text into memory if it fits, and choose the bins of the numeric columns."""
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
        """Raise an error if another command has replaced the corpus since it was opened.

        Otherwise old and new rows would mix.
        """
        with suppress(OSError):
            if self._record_file.read_bytes() == self._record_bytes:
                return
        folder = self._record_file.parent
        raise InputError(f"{folder} was changed while it was read; open it again", path=folder)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Run the queries of a `with` block alone, and raise an error if the corpus was replaced meanwhile."""
        with self._lock:
            try:
                yield
            except self._read_error:
                self.check_unchanged()
                raise
            self.check_unchanged()

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run an SQL query with values for its placeholders, and return its rows."""
        return self._connection.execute(query, values).fetchall()

    def _condition(self, view: View) -> tuple[str, list[Any]]:
        """Convert a filter to an SQL condition and the values of its placeholders.

        The rows that contain its text are searched first, unless the last filter had the same text.
        """
        condition, values = view.condition()
        if view.origin is not None and "origin" not in self._shown:
            raise InputError("this corpus has no column 'origin'")
        if not view.text:
            return condition, values
        # The search ignores case, but not how an accent is coded.
        wanted = (view.text.lower(), view.sides())
        # The result is kept, because the page makes several queries with the same text.
        if self._searched_for != wanted:
            contains = " OR ".join(f"contains({side}, ?)" for side in view.sides())
            query = f"CREATE OR REPLACE TEMP TABLE found AS SELECT key FROM {self._lower} WHERE {contains}"
            self._connection.execute(query, [wanted[0]] * len(view.sides()))
            self._searched_for = wanted
        return f"{condition} AND {self._key} IN (SELECT key FROM found)", values

    def count(self, view: View) -> int:
        """Count the rows that a filter shows."""
        with self._reading():
            condition, values = self._condition(view)
            return int(self._rows(f"SELECT count(*) FROM {self._table} WHERE {condition}", values)[0][0])

    def rows(
        self, view: View, *, sort: str = "id", descending: bool = False, page: int = 0, rows: int = PAGE_ROWS
    ) -> list[dict[str, Any]]:
        """Return one page of the rows that a filter shows, in order; nulls come last.

        Args:
            view: The filter.
            sort: The numeric column, or `id`, by whose values the rows are sorted; rows with equal values by `id`.
            descending: Whether the largest values come first.
            page: Number of the page, from 0.
            rows: Number of rows on a page.

        Returns:
            The values of each row by the names of the columns.
        """
        if sort not in (*self.columns, "id"):
            raise InputError(f"cannot sort by {sort!r}; this corpus has the numeric columns {', '.join(self.columns)}")
        with self._reading():
            condition, values = self._condition(view)
            order = f'"{sort}" {"DESC" if descending else "ASC"} NULLS LAST, {self._key}'
            # Only keys are sorted, and then only the rows of the page are read with all columns.
            limits = f"ORDER BY {order} LIMIT {rows:d} OFFSET {page * rows:d}"
            query = f"SELECT {self._key} FROM {self._table} WHERE {condition} {limits}"
            return self._whole_rows([row[0] for row in self._rows(query, values)])

    def _whole_rows(self, keys: Sequence[int]) -> list[dict[str, Any]]:
        """Read the rows with these keys, with all columns, in the order of `keys`."""
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
        """Count the rows that a filter shows in each of the `bins` of each numeric column; nulls are not counted.

        Returns:
            The count of each bin, by the name of the column.
        """
        found = {}
        with self._reading():
            condition, values = self._condition(view)
            for name in self.columns:
                bins = self.bins[name]
                # The position is computed in 64 bits, as the page of a report computes it.
                position = f'("{name}"::DOUBLE - {bins.low!r}::DOUBLE) / {bins.width!r}::DOUBLE'
                number = f"least(greatest(floor({position}), 0), {bins.count - 1})"
                known = f'{condition} AND "{name}" IS NOT NULL'
                query = f"SELECT {number} AS bin, count(*) FROM {self._table} WHERE {known} GROUP BY bin"
                found[name] = [0] * bins.count
                for index, count in self._rows(query, values):
                    found[name][int(index)] = count
        return found

    def examples(self, view: View, *, each: int = 5, seed: int = 0) -> list[dict[str, Any]]:
        """Sample rows from each range of the paraphrase score.

        Args:
            view: A filter of the rows.
            each: Number of rows from each range.
            seed: Seed of the sample.

        Returns:
            For each range its name (`range`), the number of rows that the filter shows in it (`rows`), and `examples`.
        """
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
        """Count the rows of the 200 most frequent origins, most frequent first; empty without a column `origin`."""
        if "origin" not in self._shown:
            return {}
        with self._reading():
            query = (
                f"SELECT origin, count(*) AS rows FROM {self._table} WHERE origin IS NOT NULL GROUP BY origin "
                f"ORDER BY rows DESC, origin LIMIT 200"
            )
            return dict(self._rows(query))

    def summary(self) -> Mapping[str, Any]:
        """Describe the whole corpus, without any filter: its record, its number of rows, bins and origins."""
        return {
            "record": self.record.to_json(),
            "config": self.config,
            "rows": self.rows_in_all,
            "bins": {name: asdict(bins) for name, bins in self.bins.items()},
            "origins": self.origins(),
        }
