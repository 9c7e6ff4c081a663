"""A sample for human evaluation: pairs from each range of the paraphrase score, and statistics of the ranges.

Table 3 of ParaNMT-50M (Wieting & Gimpel 2018). Ranges are given, or have equally many pairs each. A corpus of any size
is read in little memory: its scores once, the text only where sampled pairs are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.release.release import check_text, read_tables
from paranmt_hf.corpus.release.schema import key_columns, row_numbers
from paranmt_hf.corpus.statistics.draws import lottery
from paranmt_hf.errors import InputError
from paranmt_hf.util.markers import Range, Seed
from paranmt_hf.util.parquet import read_schema
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import Record, made_with
from paranmt_hf.util.settings import Settings

TABLE_3_RANGES = (-0.1, 0.2, 0.4, 0.6, 0.8, 1.0)  # Table 3 of ParaNMT-50M (Wieting & Gimpel 2018)
MAX_QUANTILES = 20


@dataclass(frozen=True)
class ScoreRange:
    """Scores above `low` and up to `high` (None: unbounded); both are float32, the type of the column."""

    low: float | None
    high: float | None

    @property
    def label(self) -> str:
        """Label of the range in tables: `(0.2, 0.4]`."""
        if self.low is None:
            return "all" if self.high is None else f"up to {_shown(self.high)}"
        return f"above {_shown(self.low)}" if self.high is None else f"({_shown(self.low)}, {_shown(self.high)}]"


def _shortest(bound: float) -> float:
    """Format a float32 number with the fewest digits that identify it: 0.2."""
    return float(str(np.float32(bound)))


def _shown(bound: float) -> str:
    text = f"{bound:.4g}"
    return text if "." in text else f"{text}.0"


def given_ranges(edges: Sequence[float]) -> list[ScoreRange]:
    """Create a range for each two neighbouring scores."""
    rounded = [_shortest(edge) for edge in edges]
    neighbours = list(zip(rounded, rounded[1:], strict=False))
    if not neighbours or any(low >= high for low, high in neighbours) or not -1 <= rounded[0] <= rounded[-1] <= 1:
        raise InputError(
            f"ranges must be ascending scores from -1 to 1, the bounds of the ranges, or one number from 1 to "
            f"{MAX_QUANTILES}, was {' '.join(f'{edge:g}' for edge in edges)}",
            option="ranges",
        )
    return [ScoreRange(low, high) for low, high in neighbours]


def range_of(scores: np.ndarray, ranges: Sequence[ScoreRange]) -> np.ndarray:
    """Index of the range of each score, both [row]; -1 for NaN and for scores outside the ascending ranges."""
    low = -np.inf if ranges[0].low is None else ranges[0].low
    edges = np.array([low, *(np.inf if part.high is None else part.high for part in ranges)], np.float32)
    # A score equal to an edge belongs to the lower range.
    found = np.searchsorted(edges, scores, side="left") - 1
    found[(found >= len(ranges)) | np.isnan(scores)] = -1
    if ranges[0].low is None:
        found[scores == -np.inf] = 0
    return found


def equal_ranges(scores: np.ndarray, count: int) -> list[ScoreRange]:
    """Split scores [row], float32 without NaN, into `count` ranges; edge k has the rank ceil(k rows / count)."""
    if not len(scores):
        raise InputError("no pair has a paraphrase score, so ranges of equal size cannot be formed")
    ranks = np.array([-(-index * len(scores) // count) - 1 for index in range(1, count)], np.int64)
    found = [_shortest(edge) for edge in np.partition(scores, ranks)[ranks]]
    if len(set(found)) < len(found):
        double = next(edge for edge, after in zip(found, found[1:], strict=False) if edge == after)
        raise InputError(
            f"`ranges` {count}: too many pairs have the score {double:.4g} for {count} ranges with equally many "
            "pairs; give a smaller number, or bounds",
            option="ranges",
        )
    return [ScoreRange(low, high) for low, high in zip([None, *found], [*found, None], strict=True)]


SCORES = ("id", "para_score", "trigram_overlap")
TEXT = ("reference", "translation")


@dataclass(frozen=True)
class AnnotationConfig(Settings):
    """Which pairs are rated.

    Attributes:
        per_range: Number of pairs from each range.
        ranges: Ascending bounds of the ranges of the paraphrase score; or one number, that of ranges with equally many
            pairs each.
        seed: Seed of the sample.
    """

    per_range: Annotated[int, Range(at_least=1, at_most=1000)] = 20
    ranges: tuple[float, ...] = TABLE_3_RANGES
    seed: Seed = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.quantiles is None:
            given_ranges(self.ranges)

    @property
    def quantiles(self) -> int | None:
        """Number of ranges with equally many pairs each; None if their bounds are given."""
        return int(self.ranges[0]) if len(self.ranges) == 1 and self.ranges[0] in range(1, MAX_QUANTILES + 1) else None


@dataclass(frozen=True)
class RangeSummary(ScoreRange):
    """One range of the score, over the whole corpus."""

    pairs: int  # Number of pairs
    mean_overlap: float | None  # Mean trigram overlap, from 0 to 1, of the pairs that have one; None if none has
    std_overlap: float | None  # Its standard deviation (that of all pairs, not of a sample of them)


@dataclass(frozen=True)
class AnnotationItem:
    """A sampled pair; `id` is that of the corpus, `range` the index of its range."""

    id: int
    range: int
    para_score: float
    trigram_overlap: float | None
    reference: str
    translation: str


@dataclass(frozen=True, kw_only=True)
class AnnotationSample(Record):
    """The content of `sample.json`."""

    FILE: ClassVar[str] = "sample.json"
    KIND: ClassVar[str] = "a sample for human evaluation (`paranmt annotate sample`)"

    corpus: str  # Name of the corpus
    pairs: int  # Number of pairs in the corpus
    unscored: int  # Number of pairs without a score
    ranges: list[RangeSummary]  # The ranges, ascending
    items: list[AnnotationItem]  # The sampled pairs, in an order that is independent of their ranges
    checksum: str = ""  # Of what is rated: ranges and items. Answers belong to it.

    def __post_init__(self) -> None:
        content = [
            [[part.low, part.high] for part in self.ranges],
            [list(asdict(item).values()) for item in self.items],
        ]
        checksum = hashlib.sha256(json.dumps(content).encode()).hexdigest()
        if self.checksum not in ("", checksum):
            raise InputError("its pairs are not those of its checksum; it was edited after it was made")
        object.__setattr__(self, "checksum", checksum)

    @property
    def outside(self) -> int:
        """Number of pairs of the corpus that have a score in none of the ranges."""
        return self.pairs - self.unscored - sum(part.pairs for part in self.ranges)


def draw_sample(
    files: Sequence[Path], config: AnnotationConfig, *, corpus: str, settings: dict[str, Any]
) -> AnnotationSample:
    """Sample pairs from each range of the score of a corpus, whose files are given in order."""
    check_columns(files)
    if config.quantiles is None:
        ranges = given_ranges(config.ranges)
    else:
        scores = np.concatenate([_numbers(table, "para_score") for table in read_tables(files, ["para_score"])])
        ranges = equal_ranges(scores[~np.isnan(scores)], config.quantiles)
    counted = _count(files, ranges, config)
    if counted.unscored == counted.rows:
        raise InputError(
            f"{files[0].parent}: none of {counted.rows:,} pairs has a paraphrase score; `paranmt score` computes it"
        )
    summaries = counted.summaries()
    if empty := next((part for part in summaries if not part.pairs), None):
        raise InputError(
            f"{files[0].parent} has no pair whose score is in the range {empty.label} (its scores are from "
            f"{counted.lowest:.4g} to {counted.highest:.4g}); give other `ranges`, or their "
            "number"
        )
    return AnnotationSample(
        settings=settings,
        corpus=corpus,
        pairs=counted.rows,
        unscored=counted.unscored,
        ranges=summaries,
        items=_read_items(files, counted.drawn()),
        **made_with("numpy", "pyarrow"),
    )


def check_columns(files: Sequence[Path]) -> None:
    """Reject files without the columns of a sample."""
    for path in files:
        names = read_schema(path).names
        if missing := [name for name in (*SCORES, *TEXT) if name not in names]:
            raise InputError(
                f"{path} has no column {', '.join(missing)}; `paranmt import` makes a corpus that has all of them"
            )


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    """A column as float32 [row], NaN for null."""
    return table[name].cast(pa.float32()).to_numpy(zero_copy_only=False)


class _Counts:
    """Counts over the corpus, and the pairs with the smallest lottery numbers in each range."""

    def __init__(self, ranges: Sequence[ScoreRange], config: AnnotationConfig) -> None:
        self.ranges, self.config = ranges, config
        self.rows = self.unscored = 0
        self.lowest, self.highest = np.inf, -np.inf
        # Of each range: pairs, pairs with an overlap, sum and sum of squares of the overlap.
        self.sums = np.zeros((4, len(ranges)))
        # Of each range: number in the lottery, row of the corpus, number of the row.
        self.best = [np.empty((3, 0), np.uint64) for _ in ranges]

    def add(self, table: pa.Table) -> None:
        scores = _numbers(table, "para_score")
        overlap = _numbers(table, "trigram_overlap").astype(np.float64)
        known = ~np.isnan(scores)
        found = range_of(scores, self.ranges)
        draws = lottery(row_numbers(table), self.config.seed)
        for index in range(len(self.ranges)):
            inside = np.flatnonzero(found == index)
            here = overlap[inside]
            here = here[~np.isnan(here)]
            self.sums[:, index] += [len(inside), len(here), here.sum(), np.square(here).sum()]
            # Rows in the order of the corpus settle equal numbers, which only equal keys have.
            rows = np.stack([draws[inside], (self.rows + inside).astype(np.uint64)])
            self._keep(index, np.vstack([rows, row_numbers(table)[inside].astype(np.uint64)]))
        if known.any():
            self.lowest = min(self.lowest, float(scores[known].min()))
            self.highest = max(self.highest, float(scores[known].max()))
        self.unscored += int(np.count_nonzero(~known))
        self.rows += table.num_rows

    def _keep(self, index: int, rows: np.ndarray) -> None:
        count = self.config.per_range
        if self.best[index].shape[1] == count:
            rows = rows[:, rows[0] < self.best[index][0, -1]]
        rows = np.hstack([self.best[index], rows])
        self.best[index] = rows[:, np.lexsort((rows[1], rows[0]))[:count]]

    def summaries(self) -> list[RangeSummary]:
        """The ranges over the whole corpus."""
        found = []
        for part, (pairs, known, total, squares) in zip(self.ranges, self.sums.T.tolist(), strict=True):
            mean = total / known if known else None
            deviation = None if mean is None else max(0.0, squares / known - mean**2) ** 0.5
            found.append(RangeSummary(part.low, part.high, int(pairs), _rounded(mean), _rounded(deviation)))
        return found

    def drawn(self) -> np.ndarray:
        """Row of the corpus and range [2, item] of each sampled pair, in random order."""
        columns = [np.vstack([rows, np.full(rows.shape[1], index)]) for index, rows in enumerate(self.best)]
        every = np.hstack(columns).astype(np.uint64)
        # Another draw: the one that chose them is smaller for rare ranges, so it would tell the ranges apart.
        order = np.lexsort((every[1], lottery(every[2], self.config.seed + 1)))
        return every[[1, 3]][:, order].astype(np.int64)


def _count(files: Sequence[Path], ranges: Sequence[ScoreRange], config: AnnotationConfig) -> _Counts:
    total = sum(pq.read_metadata(path).num_rows for path in files)
    counts = _Counts(ranges, config)
    with Progress("drawing pairs", total, unit="pairs") as progress:
        for table in progress.over(read_tables(files, [*key_columns(pq.read_schema(files[0]).names), *SCORES])):
            counts.add(table)
    return counts


def _read_items(files: Sequence[Path], drawn: np.ndarray) -> list[AnnotationItem]:
    """Read the drawn pairs, from the row groups that hold one."""
    rows, ranges = drawn
    found: dict[int, dict[str, Any]] = {}
    first = 0
    for path in files:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                count = file.metadata.row_group(group).num_rows
                inside = rows[(rows >= first) & (rows < first + count)]
                if len(inside):
                    table = file.read_row_group(group, columns=[*SCORES, *TEXT]).take(inside - first)
                    check_text(table, path, 0)
                    found |= dict(zip(inside.tolist(), table.to_pylist(), strict=True))
                first += count
    items = []
    for row, index in zip(rows.tolist(), ranges.tolist(), strict=True):
        values = found[row]
        if any(values[side] is None for side in TEXT):
            raise InputError(
                f"row (from 0) {row} of {files[0].parent} lacks a sentence; `paranmt import` leaves it out"
            )
        items.append(AnnotationItem(**{**values, "range": index}))
    return items


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
