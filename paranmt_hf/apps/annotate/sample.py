"""A sample for human evaluation: pairs from each range of the paraphrase score, and what the ranges hold.

Table 3 of ParaNMT-50M (Wieting & Gimpel 2018). A corpus of any size is read in little memory: its scores once, the
text only where sampled pairs are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.draws import lottery
from paranmt_hf.corpus.release import check_text, key_columns_of, read_tables
from paranmt_hf.corpus.schema import row_numbers
from paranmt_hf.errors import InputError
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import from_json, read_json, to_json
from paranmt_hf.util.settings import check, seed_setting, setting

# Table 3 of ParaNMT-50M (Wieting & Gimpel 2018).
PAPER = (-0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
HALF = 16


@dataclass(frozen=True)
class ScoreRange:
    """Scores above `low` and up to `high`; None is no bound. Bounds are numbers of float32, as the column is."""

    low: float | None
    high: float | None

    @property
    def label(self) -> str:
        """How a table names it: `(0.2, 0.4]`."""
        if self.low is None:
            return "all" if self.high is None else f"up to {_shown(self.high)}"
        return f"above {_shown(self.low)}" if self.high is None else f"({_shown(self.low)}, {_shown(self.high)}]"


def _shortest(bound: float) -> float:
    """Write a number of float32 with as few digits as tell it from its neighbours: 0.2."""
    return float(str(np.float32(bound)))


def _shown(bound: float) -> str:
    text = f"{bound:.4g}"
    return text if "." in text else f"{text}.0"


def given_ranges(edges: Sequence[float]) -> list[ScoreRange]:
    """Make a range between each two neighbours.

    Args:
        edges: Ascending scores, one more than there are ranges.
    """
    rounded = [_shortest(edge) for edge in edges]
    if len(rounded) < 2 or any(low >= high for low, high in zip(rounded, rounded[1:], strict=False)):
        shown = " ".join(f"{edge:g}" for edge in edges)
        raise InputError(
            f"--ranges must be at least two ascending scores, the bounds of the ranges, was {shown}; the default is "
            f"{' '.join(map(str, PAPER))}"
        )
    return [ScoreRange(low, high) for low, high in zip(rounded, rounded[1:], strict=False)]


def range_of(scores: np.ndarray, ranges: Sequence[ScoreRange]) -> np.ndarray:
    """Find the range of each score.

    Args:
        scores: float32 [row]; NaN where there is none.
        ranges: Neighbours, ascending.

    Returns:
        Index of the range [row]; -1 for a score that is in none.
    """
    low = -np.inf if ranges[0].low is None else ranges[0].low
    edges = np.array([low, *(np.inf if part.high is None else part.high for part in ranges)], np.float32)
    # A score equal to an edge belongs to the lower range.
    found = np.searchsorted(edges, scores, side="left") - 1
    found[(found >= len(ranges)) | np.isnan(scores)] = -1
    if ranges[0].low is None:
        found[scores == -np.inf] = 0
    return found


def equal_ranges(columns: Callable[[], Iterable[np.ndarray]], count: int) -> list[ScoreRange]:
    """Make ranges that hold equally many scores, exactly and in memory that does not grow with the scores.

    The scores are read twice: floats are ordered as their bits are, so that counts of the upper half of the bits say
    which upper half an edge has, and counts of the lower halves below that one the rest.

    Args:
        columns: Gives the scores anew at each call: float32 [row], without NaN.
        count: Number of ranges.

    Returns:
        The ranges; edge k is the score of rank ceil(k * scores / count), from 1.
    """
    upper = np.zeros(1 << HALF, np.int64)
    for scores in columns():
        upper += np.bincount(_keys(scores) >> np.uint32(HALF), minlength=1 << HALF)
    total = int(upper.sum())
    if not total:
        raise InputError("no pair has a paraphrase score, so there is nothing to cut into ranges of equally many")
    ranks = np.array([-(-index * total // count) - 1 for index in range(1, count)], np.int64)
    ends = upper.cumsum()
    halves = np.searchsorted(ends, ranks, side="right")
    lower = {int(half): np.zeros(1 << HALF, np.int64) for half in halves}
    for scores in columns():
        keys = _keys(scores)
        of = keys >> np.uint32(HALF)
        for half, counts in lower.items():
            counts += np.bincount(keys[of == half] & np.uint32((1 << HALF) - 1), minlength=1 << HALF)
    edges = []
    for rank, half in zip(ranks.tolist(), halves.tolist(), strict=True):
        before = int(ends[half] - upper[half])
        edges.append(half << HALF | int(np.searchsorted(lower[half].cumsum(), rank - before, side="right")))
    found = [_shortest(edge) for edge in _scores(np.array(edges, np.uint32))]
    if len(set(found)) < len(found):
        double = next(edge for edge, after in zip(found, found[1:], strict=False) if edge == after)
        raise InputError(
            f"--quantiles {count}: so many pairs have the score {double:.4g} that there are not {count} ranges of "
            "equally many; ask for fewer, or give --ranges"
        )
    return [ScoreRange(low, high) for low, high in zip([None, *found], [*found, None], strict=True)]


def _keys(scores: np.ndarray) -> np.ndarray:
    """Whole numbers [row] that are ordered as the scores are."""
    # One zero, not two.
    bits = (scores.astype(np.float32) + np.float32(0)).view(np.uint32)
    return np.where(bits >> np.uint32(31), ~bits, bits | np.uint32(1 << 31))


def _scores(keys: np.ndarray) -> np.ndarray:
    return np.where(keys >> np.uint32(31), keys & np.uint32((1 << 31) - 1), ~keys).view(np.float32)


SAMPLE_FILE = "sample.json"
SCORES = ("id", "para_score", "trigram_overlap")
TEXT = ("reference", "translation")


@dataclass(frozen=True)
class AnnotationConfig:
    """Which pairs are drawn.

    Attributes:
        per_range: Pairs from each range.
        ranges: Ascending bounds of the ranges.
        quantiles: Number of ranges with equally many pairs each, in place of `ranges`.
        seed: Decides which pairs.
    """

    per_range: int = setting(20, "pairs from each range", at_least=1, at_most=1000)
    ranges: tuple[float, ...] = setting(PAPER, "bounds of the score ranges, ascending", at_least=-1, at_most=1)
    quantiles: int | None = setting(
        None, "in place of --ranges: so many ranges that hold equally many pairs", at_least=1, at_most=20
    )
    seed: int = seed_setting(0, "decides which pairs are drawn")

    def __post_init__(self) -> None:
        check(self)
        given_ranges(self.ranges)
        if self.quantiles is not None and tuple(self.ranges) != PAPER:
            raise InputError("give either --ranges or --quantiles, not both")


@dataclass(frozen=True)
class RangeSummary:
    """One range of the score, over the whole corpus.

    Attributes:
        low: Scores above this; None is no bound.
        high: Scores up to this; None is no bound.
        pairs: Number of pairs.
        mean_overlap: Mean trigram overlap, from 0 to 1, of the pairs that have one; None where none has.
        std_overlap: Its standard deviation (that of all pairs, not of a sample of them).
    """

    low: float | None
    high: float | None
    pairs: int
    mean_overlap: float | None
    std_overlap: float | None

    def __post_init__(self) -> None:
        if (self.mean_overlap is None) != (self.std_overlap is None):
            raise InputError("a range has a mean_overlap or a std_overlap, expected both or none")

    @property
    def label(self) -> str:
        """How a table names the range."""
        return ScoreRange(self.low, self.high).label


@dataclass(frozen=True)
class Item:
    """A pair that was drawn; `id` is that of the corpus, `range` the index of its range."""

    id: int
    range: int
    para_score: float
    trigram_overlap: float | None
    reference: str
    translation: str


@dataclass(frozen=True)
class Sample:
    """The content of `sample.json`.

    Attributes:
        corpus: Name of the release.
        identity: What determined the sample: files with checksums, and the settings.
        pairs: Number of pairs in the corpus.
        unscored: How many of them have no score.
        ranges: The ranges, ascending.
        items: The pairs, in an order that says nothing of their ranges.
        checksum: Over the content that is judged: ranges and items. Answers belong to it.
    """

    corpus: str
    identity: dict[str, Any]
    pairs: int
    unscored: int
    ranges: list[RangeSummary]
    items: list[Item]
    checksum: str = field(default="")

    @property
    def outside(self) -> int:
        """Pairs of the corpus that have a score in none of the ranges."""
        return self.pairs - self.unscored - sum(part.pairs for part in self.ranges)

    def content_checksum(self) -> str:
        """Compute the checksum, in hexadecimal digits."""
        content = [
            [[part.low, part.high] for part in self.ranges],
            [list(asdict(item).values()) for item in self.items],
        ]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def read_sample(folder: Path) -> Sample:
    """Read the sample in a folder."""
    path = folder / SAMPLE_FILE
    if not path.is_file():
        raise InputError(f"{folder} holds no {SAMPLE_FILE}; expected a folder that `paranmt annotate sample` made")
    sample = from_json(Sample, read_json(path, "a sample for human evaluation"), path)
    if sample.checksum != sample.content_checksum():
        raise InputError(
            f"{path} was changed after it was drawn: its pairs are not those of its checksum; draw the sample anew"
        )
    if any(not 0 <= item.range < len(sample.ranges) for item in sample.items):
        raise InputError(f"{path} is damaged: a pair lies in a range that is not there; draw the sample anew")
    return sample


def sample_bytes(sample: Sample) -> bytes:
    """Give the content of `sample.json`."""
    return (json.dumps(to_json(sample), indent=1, ensure_ascii=False) + "\n").encode()


def draw_sample(files: Sequence[Path], config: AnnotationConfig, *, corpus: str, identity: dict[str, Any]) -> Sample:
    """Draw pairs from each range of the score.

    Args:
        files: Parquet files of a release, in order.
        config: Which pairs.
        corpus: Name of the release.
        identity: What determines the sample.
    """
    check_columns(files)
    if config.quantiles is None:
        ranges = given_ranges(config.ranges)
    else:
        ranges = equal_ranges(lambda: _known_scores(files), config.quantiles)
    counted = _count(files, ranges, config)
    if counted.unscored == counted.rows:
        raise InputError(
            f"{files[0].parent}: none of {counted.rows:,} pairs has a paraphrase score; `paranmt score` computes it"
        )
    for part, summary in zip(ranges, counted.summaries(), strict=True):
        if not summary.pairs:
            raise InputError(
                f"{files[0].parent} has no pair whose score is in the range {part.label} (its scores are from "
                f"{counted.lowest:.4g} to {counted.highest:.4g}); give other --ranges, or --quantiles for ranges of "
                "equally many pairs"
            )
    sample = Sample(
        corpus=corpus,
        identity=identity,
        pairs=counted.rows,
        unscored=counted.unscored,
        ranges=counted.summaries(),
        items=_read_items(files, counted.drawn()),
    )
    return Sample(**{**vars(sample), "checksum": sample.content_checksum()})


def check_columns(files: Sequence[Path]) -> None:
    """Check that files have the columns of which a sample is made; one that cannot be read is for its reader."""
    for path in files:
        try:
            names = pq.read_schema(path).names
        except (pa.ArrowInvalid, OSError):
            continue
        if missing := [name for name in (*SCORES, *TEXT) if name not in names]:
            raise InputError(
                f"{path} has no column {', '.join(missing)}; `paranmt import` makes a release that has all of them"
            )


def _known_scores(files: Sequence[Path]) -> Iterator[np.ndarray]:
    for table in read_tables(files, ["para_score"]):
        scores = _numbers(table, "para_score")
        yield scores[~np.isnan(scores)]


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    """A column as float32 [row], NaN for null."""
    return table[name].cast(pa.float32()).to_numpy(zero_copy_only=False)


class _Counts:
    """Counts over the corpus, and of each range the pairs with the smallest numbers in the lottery."""

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
        """Row of the corpus and range [2, item] of each pair that was drawn, in an order by chance."""
        columns = [np.vstack([rows, np.full(rows.shape[1], index)]) for index, rows in enumerate(self.best)]
        every = np.hstack(columns).astype(np.uint64)
        # Another draw: the one that chose them is smaller for rare ranges, so it would tell the ranges apart.
        order = np.lexsort((every[1], lottery(every[2], self.config.seed + 1)))
        return every[[1, 3]][:, order].astype(np.int64)


def _count(files: Sequence[Path], ranges: Sequence[ScoreRange], config: AnnotationConfig) -> _Counts:
    total = sum(pq.read_metadata(path).num_rows for path in files)
    counts = _Counts(ranges, config)
    with Progress("drawing pairs", total, unit="pairs") as progress:
        for table in read_tables(files, list(dict.fromkeys([*key_columns_of(files), *SCORES]))):
            counts.add(table)
            progress.advance_to(counts.rows)
    return counts


def _read_items(files: Sequence[Path], drawn: np.ndarray) -> list[Item]:
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
        items.append(Item(**{**values, "range": index}))
    return items


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
