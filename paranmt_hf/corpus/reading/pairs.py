"""Pairs for training from corpora, files and datasets on the Hub, selected by their scores and lengths."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.reading.labels import LABEL, UNLABELLED
from paranmt_hf.corpus.reading.pair_columns import WantedColumns, check_given
from paranmt_hf.corpus.reading.pair_files import BATCH_ROWS, open_pairs
from paranmt_hf.corpus.reading.readers import Report
from paranmt_hf.corpus.release.schema import COSINES, SIDES
from paranmt_hf.corpus.statistics.draws import Interval, draw_bound, in_ranges, lottery
from paranmt_hf.errors import InputError
from paranmt_hf.text.word_rules import letters
from paranmt_hf.util.markers import Count, Range, Share
from paranmt_hf.util.settings import Settings
from paranmt_hf.util.wording import counted


@dataclass(frozen=True)
class PairSelection(Settings):
    """Which pairs of a corpus are used (ParaNMT-50M, table 5: ranges of the paraphrase score).

    Attributes:
        subset: Config of the corpus or dataset: all pairs (default), or filtered.
        min_score: Smallest paraphrase score.
        max_score: Largest paraphrase score.
        ppdb_score: For files of PPDB: the feature that `min_score` and `max_score` are about, such as PPDB2.0Score.
        max_overlap: Largest trigram overlap.
        min_length: Minimum number of word tokens on either side.
        max_length: Maximum number of word tokens on either side.
        max_pairs: Maximum number of pairs, sampled at random (`seed`).
        first_pairs: Stop after this number of pairs, in the order of the data.
    """

    subset: str = "default"
    min_score: float | None = None
    max_score: float | None = None
    ppdb_score: str | None = None
    max_overlap: Share | None = None
    min_length: Annotated[int | None, Range(at_least=0)] = None
    max_length: Count | None = None
    max_pairs: Count | None = None
    first_pairs: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("min_score", "max_score"):
            bound = getattr(self, name)
            if self.ppdb_score is None and bound is not None and bound not in COSINES:
                raise InputError(
                    f"{name} must be {COSINES}, was {bound:g}; the feature of PPDB that other values are of is named "
                    "with `ppdb_score`",
                    option=name,
                )
        if self.ppdb_score is not None and self.min_score is None and self.max_score is None:
            raise InputError("ppdb_score says what min_score and max_score are about; give one of these too")
        if self.max_pairs is not None and self.first_pairs is not None:
            raise InputError("give either max_pairs, which are sampled at random, or first_pairs")

    @property
    def ranges(self) -> dict[str, Interval]:
        """Smallest and largest value of each column that selects pairs; None if there is no bound."""
        ranges: dict[str, Interval] = {}
        if self.min_score is not None or self.max_score is not None:
            ranges["para_score"] = (self.min_score, self.max_score)
        if self.max_overlap is not None:
            ranges["trigram_overlap"] = (None, self.max_overlap)
        if self.min_length is not None or self.max_length is not None:
            low, high = (None if bound is None else float(bound) for bound in (self.min_length, self.max_length))
            ranges |= {f"{side}_length": (low, high) for side in SIDES}
        return ranges


# Reasons why pairs are left out, for reports. Readers have more, such as `dropped as empty`.
OUTSIDE, WITHOUT_TEXT = "outside the chosen ranges", "without text on a side"
OTHER, EXCLUDED = "labelled as no paraphrases", "with an excluded sentence"


class Pairs:
    """Pairs of one or more sources, which can be read repeatedly.

    A source is a corpus folder, a file with the columns `reference` and `translation` (docs/formats.md), a file of
    PPDB, a list of words and their paraphrases, or the id of a dataset on the Hub, which `@` and a revision may
    follow.

    In files with labels, only pairs with the label 1 are used.

    Args:
        sources: The sources, which are read one after the other.
        selection: Which pairs are used.
        unwanted: Sentences that no side may be, such as those of test sets; case and punctuation do not matter.
        columns: Names of the columns `reference`, `translation`, `label` and `para_score` in files that are not
            corpora.
        seed: Decides which pairs are sampled if there are more than `max_pairs`.
        all_columns: Whether the other columns of corpora and Parquet files are read too.
        rows: Number of rows that are read at once; the result does not depend on it.
    """

    unit = "pairs"

    def __init__(
        self,
        sources: Sequence[str | Path],
        selection: PairSelection,
        unwanted: Collection[str] = (),
        *,
        columns: Mapping[str, str] | None = None,
        seed: int = 1,
        all_columns: bool = False,
        rows: int = BATCH_ROWS,
    ) -> None:
        if not sources:
            raise InputError("there is nothing to train on: name a corpus, Parquet files or a dataset on the Hub")
        self._selection, self._seed, self._rows = selection, seed, rows
        self._total: int | None = None
        self._all_columns = all_columns
        self._columns = check_given(columns)
        self._unwanted = plain(pa.array(sorted(unwanted), pa.string())).unique() if unwanted else None
        self._forget_counts()
        wanted = WantedColumns(self._columns, list(selection.ranges), all_columns)
        self._sources = [
            open_pairs(str(source), wanted, subset=selection.subset, score=selection.ppdb_score) for source in sources
        ]
        for option, is_given, use in (
            ("subset", selection.subset != "default", "corpora and datasets on the Hub"),
            ("ppdb_score", selection.ppdb_score, "files of PPDB"),
            ("columns", self._columns, "files whose columns have names of their own"),
        ):
            if is_given and not any(option in source.options for source in self._sources):
                names = ", ".join(map(str, sources))
                raise InputError(f"`{option}` is for {use}, and {names} is none; leave it out", option=option)

    def _forget_counts(self) -> None:
        """Set all counts to 0."""
        self.read = 0
        self._left_out = Counter[str](dict.fromkeys((OUTSIDE, WITHOUT_TEXT, OTHER, UNLABELLED, EXCLUDED), 0))

    @property
    def left_out_by(self) -> dict[str, int]:
        """Number of pairs that the last reading left out, by reason."""
        return {f"pairs {reason}": count for reason, count in self._left_out.items() if count}

    @property
    def left_out(self) -> str:
        """A line that says how many pairs the last reading left out, by reason."""
        counts = [f"{count:,} {reason}" for reason, count in self._left_out.items() if count]
        return f"of {counted(self.read, 'pair')} left out: {', '.join(counts) or 'none'}"

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the pairs, as JSON values."""
        selection = self._selection
        unwanted = sorted(self._unwanted.to_pylist()) if self._unwanted is not None else []
        checksum = hashlib.sha256("\n".join(unwanted).encode()).hexdigest() if unwanted else None
        found: dict[str, Any] = {
            "sources": [source.identity for source in self._sources],
            "subset": selection.subset,
            "ranges": {name: list(bounds) for name, bounds in selection.ranges.items()},
            "max_pairs": selection.max_pairs,
            "first_pairs": selection.first_pairs,
            "drawn_with_seed": self._seed if selection.max_pairs is not None else None,
            "unwanted_sentences": len(unwanted),
            "unwanted_checksum": checksum,
        }
        if self._columns:
            found["columns"] = self._columns
        return found

    def batches(self) -> Iterator[pa.Table]:
        """Read the selected pairs as tables with the columns `reference` and `translation`, without nulls.

        With `max_pairs` the sources are read twice, the first time to count the pairs.
        """
        left, bound = self._selection.first_pairs, self._bound()
        seen = 0
        for table in self._chosen():
            kept = table
            if bound is not None:
                numbers = lottery(np.arange(seen, seen + table.num_rows), self._seed)
                kept = table.filter(pa.array(numbers <= np.uint64(bound)))
            seen += table.num_rows
            if left is not None:
                kept = kept.slice(0, min(left, kept.num_rows))
                left -= kept.num_rows
            if kept.num_rows:
                yield kept
            if left == 0:
                return

    def _bound(self) -> int | None:
        """Return the lottery number up to which pairs are sampled (see `draw_bound`); None if all are used."""
        if self._selection.max_pairs is None:
            return None
        if self._total is None:
            self._total = sum(table.num_rows for table in self._chosen())
        return draw_bound(self._total, self._selection.max_pairs, self._seed)

    def _chosen(self) -> Iterator[pa.Table]:
        """Read the paraphrases that are inside all ranges and have no unwanted sentence, and count the others."""
        self._forget_counts()
        for table in self._tables():
            for side in SIDES:
                # Files may hold text in several types, and Arrow compares only texts of the same type.
                table = table.set_column(table.column_names.index(side), side, table[side].cast(pa.string()))
            table = self._without(OUTSIDE, pc.invert(in_ranges(table, self._selection.ranges)), table)
            table = self._without(WITHOUT_TEXT, pc.or_(*(table[side].is_null() for side in SIDES)), table)
            if LABEL in table.column_names:
                table = self._without(UNLABELLED, table[LABEL].is_null(), table)
                table = self._without(OTHER, pc.equal(table[LABEL], 0), table)
            if not self._all_columns:
                table = table.select(SIDES)
            if self._unwanted is not None:
                hits = [pc.is_in(plain(table[side]), self._unwanted) for side in SIDES]
                table = self._without(EXCLUDED, pc.or_(*hits), table)
            yield table

    def _without(self, reason: str, rows: pa.ChunkedArray, table: pa.Table) -> pa.Table:
        """Return a table without the marked rows [pair], which are counted under `reason`."""
        self._left_out[reason] += int(np.count_nonzero(rows))
        return table.filter(pc.invert(rows))

    def _tables(self) -> Iterator[pa.Table]:
        """Read the usable rows of all sources, and count the others by reason."""
        for source in self._sources:
            report = Report()
            try:
                for table in source.tables(report, rows=self._rows):
                    self.read += table.num_rows
                    yield table
            finally:
                # This also happens when the caller has enough pairs and stops.
                for reason, count in report.dropped.items():
                    self._left_out[f"dropped as {reason}"] += count
                    self.read += count


def plain(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Reduce sentences [sentence], string, to their letters and digits in lower case, with one blank between words."""
    return pc.utf8_trim_whitespace(letters(column, " "))
