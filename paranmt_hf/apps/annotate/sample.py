"""A sample for human evaluation: pairs from each range of the paraphrase score, and statistics of the ranges.

See table 3 of ParaNMT-50M (Wieting & Gimpel 2018). The bounds of the ranges are given, or are chosen so that all of
them have equally many pairs. The scores of all pairs are held in memory (16 bytes for each pair), and the text of the
sampled ones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
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

MAX_QUANTILES = 20


@dataclass(frozen=True)
class ScoreRange:
    """The range of the scores above `low` and up to `high`; None for no bound.

    The bounds are float32 numbers, because this is the type of the score column.
    """

    low: float | None
    high: float | None

    @property
    def label(self) -> str:
        """The range as tables show it: `(0.2, 0.4]`, `above 0.8`."""
        if self.low is None and self.high is None:
            return "all"
        if self.low is None:
            return f"up to {_shown(self.high)}"
        if self.high is None:
            return f"above {_shown(self.low)}"
        return f"({_shown(self.low)}, {_shown(self.high)}]"


def _shown(bound: float | None) -> str:
    """Format a bound of a range with at most four digits: `0.2`, `1.0`."""
    text = f"{bound:.4g}"
    return text if "." in text else f"{text}.0"


def _shortest(bound: float) -> float:
    """Return the decimal number with the fewest digits that is equal to `bound` in float32: 0.2, not 0.2000000030."""
    return float(str(np.float32(bound)))


def given_ranges(edges: Sequence[float]) -> list[ScoreRange]:
    """Return the ranges between neighbouring `edges`: 3 edges give 2 ranges; edges that do not ascend are rejected."""
    rounded = [_shortest(edge) for edge in edges]
    ascending = len(rounded) > 1 and rounded == sorted(set(rounded))
    if not ascending or rounded[0] < -1 or rounded[-1] > 1:
        raise InputError(
            f"ranges must be ascending scores from -1 to 1, the bounds of the ranges, or one number from 1 to "
            f"{MAX_QUANTILES}, was {' '.join(f'{edge:g}' for edge in edges)}",
            option="ranges",
        )
    return [ScoreRange(low, high) for low, high in pairwise(rounded)]


def range_of(scores: np.ndarray, ranges: Sequence[ScoreRange]) -> np.ndarray:
    """Find the range of each score.

    Args:
        scores: Scores [row], float32.
        ranges: The ranges, ascending.

    Returns:
        Index of the range of each score [row]; -1 for NaN and for scores outside of all ranges.
    """
    found = np.full(len(scores), -1)
    for index, score_range in enumerate(ranges):
        inside = ~np.isnan(scores)
        if score_range.low is not None:
            inside &= scores > np.float32(score_range.low)
        # A score equal to an edge belongs to the lower range.
        if score_range.high is not None:
            inside &= scores <= np.float32(score_range.high)
        found[inside] = index
    return found


def equal_ranges(scores: np.ndarray, count: int) -> list[ScoreRange]:
    """Choose `count` ranges with equally many scores each.

    Args:
        scores: Scores [row], float32 without NaN.
        count: Number of ranges. The edge between range k and the next one is the score of rank ceil(k * rows / count).
    """
    ranks = -(-np.arange(1, count) * len(scores) // count) - 1
    edges = [_shortest(edge) for edge in np.partition(scores, ranks)[ranks]]
    for edge, following in pairwise(edges):
        if edge == following:
            raise InputError(
                f"`ranges` {count}: too many pairs have the score {edge:.4g} for {count} ranges with equally many "
                "pairs; give a smaller number, or bounds",
                option="ranges",
            )
    return [ScoreRange(low, high) for low, high in pairwise([None, *edges, None])]


# Columns of a corpus that a sample needs.
SCORES = ("id", "para_score", "trigram_overlap")
TEXT = ("reference", "translation")


@dataclass(frozen=True)
class AnnotationConfig(Settings):
    """Which pairs are rated.

    Attributes:
        per_range: Number of pairs from each range.
        ranges: Ascending bounds of the ranges of the paraphrase score; or one number, how many ranges with equally
            many pairs to make.
        seed: Seed of the sample.
    """

    per_range: Annotated[int, Range(at_least=1, at_most=1000)] = 20
    ranges: tuple[float, ...] = (-0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
    seed: Seed = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.quantiles is None:
            given_ranges(self.ranges)

    @property
    def quantiles(self) -> int | None:
        """The number of ranges with equally many pairs each; None if the bounds of the ranges are given."""
        if len(self.ranges) == 1 and self.ranges[0] in range(1, MAX_QUANTILES + 1):
            return int(self.ranges[0])
        return None


@dataclass(frozen=True)
class RangeSummary(ScoreRange):
    """A range of the score, with statistics of all pairs of the corpus in it."""

    pairs: int  # Number of pairs
    mean_overlap: float | None  # Mean trigram overlap, from 0 to 1, of the pairs that have one; None if none has
    std_overlap: float | None  # Standard deviation of the overlap, as of a whole population; None if no pair has one


@dataclass(frozen=True)
class AnnotationItem:
    """A sampled pair: its columns in the corpus, such as `id`, and in `range` the index of its range."""

    id: int
    range: int
    para_score: float
    trigram_overlap: float | None
    reference: str
    translation: str


@dataclass(frozen=True, kw_only=True)
class AnnotationSample(Record):
    """A sample for human evaluation, stored as `sample.json`."""

    FILE: ClassVar[str] = "sample.json"
    KIND: ClassVar[str] = "a sample for human evaluation (`paranmt annotate sample`)"

    corpus: str  # Name of the corpus
    pairs: int  # Number of pairs in the corpus
    unscored: int  # Number of pairs in the corpus without a score
    ranges: list[RangeSummary]  # The ranges, ascending
    items: list[AnnotationItem]  # The sampled pairs, in an order that is independent of their ranges
    # SHA-256 of ranges and items; a file of answers names it, because the answers fit this sample only
    checksum: str = ""

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
        """The number of pairs of the corpus whose score is in none of the ranges."""
        return self.pairs - self.unscored - sum(part.pairs for part in self.ranges)


def draw_sample(
    files: Sequence[Path], config: AnnotationConfig, *, corpus: str, settings: dict[str, Any]
) -> AnnotationSample:
    """Sample pairs from each range of the paraphrase score of a corpus.

    Args:
        files: Parquet files of the corpus, in order.
        config: Which pairs are sampled.
        corpus: Name of the corpus.
        settings: Settings for the record.
    """
    folder = files[0].parent
    numbers, scores, overlaps = _read_columns(files)
    known = ~np.isnan(scores)
    if not known.any():
        raise InputError(f"{folder}: none of {len(known):,} pairs has a paraphrase score; `paranmt score` computes it")
    if config.quantiles is None:
        ranges = given_ranges(config.ranges)
    else:
        ranges = equal_ranges(scores[known], config.quantiles)
    found = range_of(scores, ranges)
    summaries = []
    drawn = []
    for index, part in enumerate(ranges):
        rows = np.flatnonzero(found == index)
        if not len(rows):
            raise InputError(
                f"{folder} has no pair whose score is in the range {part.label} (its scores are from "
                f"{np.nanmin(scores):.4g} to {np.nanmax(scores):.4g}); give other `ranges`, or a number"
            )
        summaries.append(_summary(part, overlaps[rows]))
        order = np.argsort(lottery(numbers[rows], config.seed), kind="stable")
        drawn.append(rows[order[: config.per_range]])
    # The pairs are ordered by another draw. The numbers of the first draw would reveal the ranges: in a range with
    # many pairs, the smallest numbers, which are sampled, are smaller.
    rows = np.sort(np.concatenate(drawn))
    rows = rows[np.argsort(lottery(numbers[rows], config.seed + 1), kind="stable")]
    return AnnotationSample(
        settings=settings,
        corpus=corpus,
        pairs=len(known),
        unscored=int(np.count_nonzero(~known)),
        ranges=summaries,
        items=_read_items(files, rows, found[rows]),
        **made_with("numpy", "pyarrow"),
    )


def _read_columns(files: Sequence[Path]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read three columns of all pairs, each of shape [row], with NaN for null, from files that must have all columns.

    Returns:
        The number that identifies a pair in random draws; its paraphrase score and its trigram overlap, float32.
    """
    for path in files:
        names = read_schema(path).names
        missing = [name for name in (*SCORES, *TEXT) if name not in names]
        if missing:
            raise InputError(
                f"{path} has no column {', '.join(missing)}; `paranmt import` makes a corpus that has all of them"
            )
    columns = [*key_columns(pq.read_schema(files[0]).names), *SCORES]
    numbers, scores, overlaps = [], [], []
    total = sum(pq.read_metadata(path).num_rows for path in files)
    with Progress("drawing pairs", total, unit="pairs") as progress:
        for table in progress.over(read_tables(files, columns)):
            numbers.append(row_numbers(table))
            scores.append(table["para_score"].cast(pa.float32()).to_numpy(zero_copy_only=False))
            overlaps.append(table["trigram_overlap"].cast(pa.float32()).to_numpy(zero_copy_only=False))
    return np.concatenate(numbers), np.concatenate(scores), np.concatenate(overlaps)


def _summary(part: ScoreRange, overlaps: np.ndarray) -> RangeSummary:
    """Return a range of the score with statistics of its pairs, from their overlaps [row], NaN for unknown ones."""
    known = overlaps[~np.isnan(overlaps)].astype(np.float64)
    if not len(known):
        return RangeSummary(part.low, part.high, len(overlaps), None, None)
    mean = round(float(known.mean()), 6)
    return RangeSummary(part.low, part.high, len(overlaps), mean, round(float(known.std()), 6))


def _read_items(files: Sequence[Path], rows: np.ndarray, ranges: np.ndarray) -> list[AnnotationItem]:
    """Read the pairs of a sample; only row groups that hold one are read.

    Args:
        files: Parquet files of the corpus, in order.
        rows: Row of each sampled pair in the corpus [item].
        ranges: Index of the range of each sampled pair [item].
    """
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
        items.append(AnnotationItem(**values, range=index))
    return items
