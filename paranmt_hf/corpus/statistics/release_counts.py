"""The statistics in the record of a corpus, computed in one pass: histograms, means, score ranges with examples.

The ranges of the paraphrase score are those of table 3 of ParaNMT-50M (Wieting & Gimpel 2018). The first one is (-0.1,
0.2] there; here it includes all lower scores.
"""

from __future__ import annotations

import io
from collections import Counter

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.release.record import Example, RangeRecord, StatisticsRecord
from paranmt_hf.corpus.release.schema import COUNTED
from paranmt_hf.corpus.statistics.draws import SAMPLE_SEED, Sample
from paranmt_hf.util.optional import available

# Upper ends of all score ranges but the last.
EDGES = (0.2, 0.4, 0.6, 0.8)
SCORE_RANGES = ("[-1.0, 0.2]", "(0.2, 0.4]", "(0.4, 0.6]", "(0.6, 0.8]", "(0.8, 1.0]")
# Lower end, upper end and number of bins of each histogram; values outside count in the outermost bins.
HISTOGRAMS = {
    "para_score": (-1.0, 1.0, 40),
    "trigram_overlap": (0.0, 1.0, 20),
    "length": (0.0, 60.0, 30),
    "translation_score": (-3.0, 0.0, 30),
}


class _Mean:
    """A running mean, which leaves out NaN."""

    def __init__(self) -> None:
        self._sum, self._count = 0.0, 0

    def add(self, values: np.ndarray) -> None:
        """Add values [value]."""
        self._sum += float(np.nansum(values, dtype=np.float64))
        self._count += int(np.count_nonzero(~np.isnan(values)))

    def rounded(self, digits: int) -> float | None:
        """Return the mean so far, rounded to a number of digits; None without values."""
        return round(self._sum / self._count, digits) if self._count else None


class _ScoreRange:
    """Running figures of the pairs in one range of the paraphrase score."""

    def __init__(self) -> None:
        self.overlap, self.length, self.examples = _Mean(), _Mean(), Sample(3, SAMPLE_SEED)

    def record(self, name: str) -> RangeRecord:
        """Return the entry of the range in the record."""
        rows = self.examples.seen
        pairs = self.examples.table().select(["reference", "translation", "para_score"]).to_pylist() if rows else []
        return RangeRecord(
            range=name,
            rows=rows,
            mean_trigram_overlap=self.overlap.rounded(4),
            mean_length=self.length.rounded(1),
            examples=[Example(**pair) for pair in pairs],
        )


class ReleaseCounter:
    """Running statistics of tables with the columns of the schema.

    The examples do not depend on the order of the rows. Where sentences have several hypotheses, rows with equal ids
    must be next to each other.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._histograms = {name: np.zeros(bins, np.int64) for name, (_, _, bins) in HISTOGRAMS.items()}
        self._ranges = [_ScoreRange() for _ in SCORE_RANGES]
        self._reference_length, self._translation_length, self._translation_score = _Mean(), _Mean(), _Mean()
        self._mismatches = Counter[str]()
        self._sentences = 0
        self._last_id = -1

    def add(self, table: pa.Table) -> None:
        """Add the rows of a table to the statistics."""
        scores = table["para_score"].to_numpy()
        overlap = table["trigram_overlap"].to_numpy(zero_copy_only=False)
        lengths = [table[f"{side}_length"].to_numpy() for side in ("reference", "translation")]
        self.rows += table.num_rows
        self._count("para_score", scores)
        self._count("trigram_overlap", overlap)
        self._count("length", np.concatenate(lengths))
        self._reference_length.add(lengths[0])
        self._translation_length.add(lengths[1])
        if "translation_score" in table.column_names:
            known = table["translation_score"].to_numpy(zero_copy_only=False)
            self._count("translation_score", known)
            self._translation_score.add(known)
        for name in table.column_names:
            if name in COUNTED:
                self._mismatches[name] += int(np.count_nonzero(table[name].to_numpy()))
        if "rank" in table.column_names:
            # A sentence may continue from the table before; ids ascend, so then it is the last of that.
            ids = table["id"].to_numpy()
            self._sentences += len(np.unique(ids)) - int(len(ids) > 0 and ids[0] == self._last_id)
            self._last_id = ids[-1] if len(ids) else self._last_id
        # A score equal to an edge belongs to the lower range; edges are compared in the precision of the column.
        range_of = np.searchsorted(np.array(EDGES, np.float32), scores, side="left")
        for index, score_range in enumerate(self._ranges):
            rows = np.flatnonzero(range_of == index)
            score_range.overlap.add(overlap[rows])
            score_range.length.add((lengths[0][rows] + lengths[1][rows]) / 2)
            score_range.examples.add(table, rows)

    def _count(self, name: str, values: np.ndarray) -> None:
        """Add values [value] to a histogram; NaN is left out."""
        low, high, bins = HISTOGRAMS[name]
        known = values[~np.isnan(values)]
        self._histograms[name] += np.histogram(known.clip(low, high), bins, (low, high))[0]

    def summary(self) -> StatisticsRecord:
        """Return the statistics of all rows so far, of which there must be at least one."""
        histograms = {name: counts.tolist() for name, counts in self._histograms.items()}
        return StatisticsRecord(
            rows=self.rows,
            mean_reference_length=self._reference_length.rounded(2) or 0.0,
            mean_translation_length=self._translation_length.rounded(2) or 0.0,
            mean_translation_score=self._translation_score.rounded(4),
            ranges=[one.record(name) for name, one in zip(SCORE_RANGES, self._ranges, strict=True)],
            histogram=histograms.pop("para_score"),
            histograms=histograms,
            mismatches=dict(self._mismatches),
            sentences=self._sentences or None,
        )


def text_histogram(histogram: list[int], width: int = 50) -> str:
    """Draw the histogram of the paraphrase score with characters, one line for each 0.1 and bars up to `width`."""
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
    """Draw the histograms of a corpus, and return the picture as PNG; None without matplotlib (extra `plots`)."""
    if not available("matplotlib"):
        return None
    from matplotlib.figure import Figure

    histograms = {"para_score": statistics.histogram, **statistics.histograms}
    # Corpora of earlier versions and of imported pairs lack some of these histograms.
    labels = {
        "para_score": "paraphrase score",
        "trigram_overlap": "trigram overlap",
        "length": "tokens of a sentence (the last bar: 58 and more)",
        "translation_score": "translation score (the first bar: -2.9 and less)",
    }
    drawn = [name for name in HISTOGRAMS if any(histograms.get(name, [])) or name == "para_score"]
    rows = -(-len(drawn) // 2)
    figure = Figure(figsize=(9, 2.8 * rows), layout="constrained")
    for position, name in enumerate(drawn, 1):
        low, high, bins = HISTOGRAMS[name]
        counts = histograms[name]
        axes = figure.add_subplot(rows, min(2, len(drawn)), position)
        edges = np.linspace(low, high, bins + 1)
        width = (high - low) / bins
        axes.bar(edges[:-1], counts, width=width, align="edge", color="#4472c4", edgecolor="white", linewidth=0.5)
        if name == "para_score" and any(counts):
            low = min(0.0, float(edges[np.flatnonzero(counts)[0]]))
        axes.set_xlim(low, high)
        axes.set_xlabel(labels[name])
        axes.set_ylabel("sentences" if name == "length" else "pairs")
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.spines[["top", "right"]].set_visible(False)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110, metadata={"Software": None})
    return picture.getvalue()
