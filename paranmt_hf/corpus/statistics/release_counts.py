"""Statistics of a corpus, computed in one pass: rows per score range, overlap, lengths, examples.

The ranges are those of table 3 of ParaNMT-50M (Wieting & Gimpel 2018), whose first one is (-0.1, 0.2]; lower
scores count in it here.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.release.record import Example, RangeRecord, StatisticsRecord
from paranmt_hf.corpus.release.schema import row_numbers
from paranmt_hf.corpus.scoring.repetitions import REPEATED_WORDS
from paranmt_hf.corpus.statistics.draws import SAMPLE_SEED, lottery
from paranmt_hf.util.optional import available

EDGES = (0.2, 0.4, 0.6, 0.8)
RANGES = ("[-1.0, 0.2]", "(0.2, 0.4]", "(0.4, 0.6]", "(0.6, 0.8]", "(0.8, 1.0]")
BINS = 40
EXAMPLES = 3
# Lowest and highest value, and number of bins, of the histograms besides that of the score; what lies outside counts
# in the outermost bin.
HISTOGRAMS = {
    "trigram_overlap": (0.0, 1.0, 20),
    "length": (0.0, 60.0, 30),
    "translation_score": (-3.0, 0.0, 30),
}
LABELS = {
    "para_score": "paraphrase score",
    "trigram_overlap": "trigram overlap",
    "length": "tokens of a sentence (the last bar: 58 and more)",
    "translation_score": "translation score (the first bar: -2.9 and less)",
}


@dataclass
class _Range:
    """Counts of one range of the paraphrase score."""

    rows: int = 0
    overlap_sum: float = 0.0
    overlap_rows: int = 0
    tokens: int = 0
    examples: list[tuple[int, dict[str, Any]]] = field(default_factory=list)


class Statistics:
    """Running counts over tables with the columns of the schema; examples do not depend on the order of the rows."""

    def __init__(self) -> None:
        self.rows = 0
        self.histogram = np.zeros(BINS, np.int64)
        self._histograms = {name: np.zeros(bins, np.int64) for name, (_, _, bins) in HISTOGRAMS.items()}
        self._ranges = [_Range() for _ in RANGES]
        self._tokens = np.zeros(2, np.int64)
        self._score_sum, self._score_rows = 0.0, 0
        self._mismatches: dict[str, int] = {}
        self._sentences: int | None = None
        self._last_id: int | None = None

    def add(self, table: pa.Table) -> None:
        """Count the rows of a table."""
        scores = table["para_score"].to_numpy()
        overlap = table["trigram_overlap"].to_numpy(zero_copy_only=False)
        lengths = [table[f"{side}_length"].to_numpy() for side in ("reference", "translation")]
        self.rows += table.num_rows
        self.histogram += np.histogram(scores, BINS, (-1, 1))[0]
        self._tokens += [length.sum(dtype=np.int64) for length in lengths]
        self._count("trigram_overlap", overlap[~np.isnan(overlap)])
        self._count("length", np.concatenate(lengths))
        if "translation_score" in table.column_names:
            self._add_quality(table["translation_score"].to_numpy(zero_copy_only=False))
        self._add_added(table)
        self._add_sentences(table)
        # A score equal to an edge belongs to the lower range, compared in the column's own precision.
        range_of = np.searchsorted(np.array(EDGES, np.float32), scores, side="left")
        draws = lottery(row_numbers(table), SAMPLE_SEED)
        for index, part in enumerate(self._ranges):
            inside = np.flatnonzero(range_of == index)
            if len(inside):
                self._add_range(part, table, inside, overlap[inside], lengths, draws)

    def _add_added(self, table: pa.Table) -> None:
        """Update the counts of optional columns."""
        for name in table.column_names:
            if name.endswith("_mismatch") or name == REPEATED_WORDS:
                found = int(np.count_nonzero(table[name].to_numpy()))
                self._mismatches[name] = self._mismatches.get(name, 0) + found

    def _add_sentences(self, table: pa.Table) -> None:
        """Count the ids of a corpus with several hypotheses, in ascending order."""
        if "rank" not in table.column_names or not table.num_rows:
            return
        ids = table["id"].to_numpy()
        self._sentences = (self._sentences or 0) + int(np.count_nonzero(np.diff(ids))) + int(ids[0] != self._last_id)
        self._last_id = int(ids[-1])

    def _add_quality(self, scores: np.ndarray) -> None:
        known = scores[~np.isnan(scores)]
        self._count("translation_score", known)
        self._score_sum += float(known.sum(dtype=np.float64))
        self._score_rows += len(known)

    def _count(self, name: str, values: np.ndarray) -> None:
        low, high, bins = HISTOGRAMS[name]
        self._histograms[name] += np.histogram(values.clip(low, high), bins, (low, high))[0]

    def _add_range(
        self, part: _Range, table: pa.Table, inside: np.ndarray, overlap: np.ndarray, lengths: list, draws: np.ndarray
    ) -> None:
        part.rows += len(inside)
        part.overlap_sum += float(np.nansum(overlap, dtype=np.float64))
        part.overlap_rows += int(np.count_nonzero(~np.isnan(overlap)))
        part.tokens += int(sum(length[inside].sum(dtype=np.int64) for length in lengths))
        best = inside[np.argsort(draws[inside], kind="stable")[:EXAMPLES]]
        rows = table.select(["reference", "translation", "para_score"]).take(best).to_pylist()
        part.examples += zip(draws[best].tolist(), rows, strict=True)
        part.examples = sorted(part.examples, key=lambda example: example[0])[:EXAMPLES]

    def summary(self) -> StatisticsRecord:
        return StatisticsRecord(
            rows=self.rows,
            mean_reference_length=float(round(self._tokens[0] / max(1, self.rows), 2)),
            mean_translation_length=float(round(self._tokens[1] / max(1, self.rows), 2)),
            mean_translation_score=_rounded(self._score_sum / self._score_rows if self._score_rows else None),
            ranges=[_summary_of(name, part) for name, part in zip(RANGES, self._ranges, strict=True)],
            histogram=self.histogram.tolist(),
            histograms={name: counts.tolist() for name, counts in self._histograms.items()},
            mismatches=dict(self._mismatches),
            sentences=self._sentences,
        )


def _summary_of(name: str, part: _Range) -> RangeRecord:
    return RangeRecord(
        range=name,
        rows=part.rows,
        mean_trigram_overlap=_rounded(part.overlap_sum / part.overlap_rows if part.overlap_rows else None),
        mean_length=_rounded(part.tokens / 2 / part.rows if part.rows else None, 1),
        examples=[Example(**row) for _, row in part.examples],
    )


def _rounded(value: float | None, digits: int = 4) -> float | None:
    return None if value is None else round(value, digits)


def text_histogram(histogram: list[int], width: int = 50) -> str:
    """Draw the histogram of the paraphrase score with characters, one line for each 0.1."""
    counts = np.array(histogram).reshape(-1, 2).sum(axis=1)
    largest = max(1, int(counts.max()))
    first = int(np.flatnonzero(counts)[0]) if counts.any() else 0
    lines = []
    for index in range(first, len(counts)):
        bar = "#" * round(width * int(counts[index]) / largest)
        low = index / 10 - 1
        lines.append(f"{low:5.1f} to {low + 0.1:4.1f} | {bar:<{width}} {counts[index]:,}")
    return "\n".join(lines)


def plot_histograms(statistics: StatisticsRecord) -> bytes | None:
    """Draw the histograms of a corpus as a PNG; None if matplotlib (extra `plots`) is missing."""
    if not available("matplotlib"):
        return None
    from matplotlib.figure import Figure

    panels = {"para_score": (statistics.histogram, -1.0, 1.0)}
    for name, (low, high, _) in HISTOGRAMS.items():
        counts = statistics.histograms.get(name, [])
        if any(counts):
            panels[name] = (counts, low, high)
    rows = -(-len(panels) // 2)
    figure = Figure(figsize=(9, 2.8 * rows), layout="constrained")
    for position, (name, (counts, low, high)) in enumerate(panels.items(), 1):
        axes = figure.add_subplot(rows, min(2, len(panels)), position)
        edges = np.linspace(low, high, len(counts) + 1)
        width = (high - low) / len(counts)
        axes.bar(edges[:-1], counts, width=width, align="edge", color="#4472c4", edgecolor="white", linewidth=0.5)
        first = float(edges[int(np.flatnonzero(counts)[0])]) if any(counts) else low
        axes.set_xlim(min(0.0, first) if name == "para_score" else low, high)
        axes.set_xlabel(LABELS[name])
        axes.set_ylabel("sentences" if name == "length" else "pairs")
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.spines[["top", "right"]].set_visible(False)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110, metadata={"Software": None})
    return picture.getvalue()
