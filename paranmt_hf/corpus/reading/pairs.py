"""Training pairs from corpora, Parquet files, files of phrases or the Hub, selected by their scores."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.reading.labels import LABEL, UNLABELLED
from paranmt_hf.corpus.reading.pair_columns import check_given
from paranmt_hf.corpus.reading.pair_files import ERRORS, WantedColumns, is_release, open_pairs
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
        ppdb_score: Files of PPDB: the feature that `min_score` and `max_score` are about, such as PPDB2.0Score.
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
        """Minimum and maximum of each column that selects pairs."""
        ranges: dict[str, Interval] = {}
        if self.min_score is not None or self.max_score is not None:
            ranges["para_score"] = (self.min_score, self.max_score)
        if self.max_overlap is not None:
            ranges["trigram_overlap"] = (None, self.max_overlap)
        if self.min_length is not None or self.max_length is not None:
            low, high = (None if bound is None else float(bound) for bound in (self.min_length, self.max_length))
            ranges |= {f"{side}_length": (low, high) for side in SIDES}
        return ranges


class Pairs:
    """Pairs of one or more sources; can be read repeatedly.

    Sources are corpus folders, files with the columns `reference` and `translation` (docs/formats.md), files of PPDB,
    lists of words and their paraphrases, or datasets on the Hub, by id, which `@` and a revision may follow. No
    side may be one of the `unwanted` sentences, case and punctuation aside: those of the test sets. The seed decides
    which pairs are drawn where there are more than `max_pairs`.

    Pairs whose label is 0, and those without one in a file that has labels, are left out. With `errors_apart`, so are
    pairs that differ in a number or a negation, as the columns `ERRORS` say, and `errors` reads these and those whose
    label is 0. With `all_columns`, the other columns of corpora and Parquet files are read too.

    The `columns` are the names that files other than corpora have for `reference`, `translation`, `label` and
    `para_score`. `option` is the name of the parameter that they come from, for errors; None if there is none.
    """

    unit = "pairs"

    def __init__(
        self,
        sources: Sequence[str | Path],
        selection: PairSelection,
        unwanted: Collection[str] = (),
        *,
        columns: Mapping[str, str] | None = None,
        option: str | None = None,
        seed: int = 1,
        errors_apart: bool = False,
        all_columns: bool = False,
    ) -> None:
        if not sources:
            raise InputError("there is nothing to train on: name a corpus, Parquet files or a dataset on the Hub")
        self._selection, self._seed = selection, seed
        self._total: int | None = None
        self._errors_apart, self._all_columns = errors_apart, all_columns
        self._columns = check_given(columns)
        self._unwanted = plain(pa.array(sorted(unwanted), pa.string())).unique() if unwanted else None
        self._forget_counts()
        names = [str(source) for source in sources]
        wanted = WantedColumns(self._columns, list(selection.ranges), errors_apart, all_columns, option)
        subset, score = selection.subset, selection.ppdb_score
        self._sources = [open_pairs(name, wanted, subset=subset, score=score) for name in names]
        if subset != "default" and all(is_release(name) is False for name in names):
            raise InputError(
                f"`subset` {subset} is for corpora and datasets on the Hub; {', '.join(names)} has no "
                "subsets, so leave it out",
                option="subset",
            )
        if score and not any(source.has_phrases for source in self._sources):
            raise InputError(
                f"`ppdb_score` {score} is for files of PPDB; {', '.join(names)} has none, so leave it out",
                option="ppdb_score",
            )
        if self._columns and not any(source.has_free_columns for source in self._sources):
            raise InputError(
                f"`columns` is for files whose columns have names of their own; {', '.join(names)} has none such, so "
                "leave it out",
                option="columns",
            )

    def _forget_counts(self) -> None:
        self.read = self.unselected = self.without_text = self.wrong = self.contaminated = 0
        self.labelled = self.unlabelled = 0
        self.dropped: dict[str, int] = {}

    @property
    def _reasons(self) -> dict[str, int]:
        return {
            "outside the chosen ranges": self.unselected,
            "without text on a side": self.without_text,
            "different in a number or a negation": self.wrong,
            "labelled as no paraphrases": self.labelled,
            UNLABELLED: self.unlabelled,
            "with an excluded sentence": self.contaminated,
        }

    @property
    def left_out_by(self) -> dict[str, int]:
        """Counts of the pairs that the last reading left out, by reason."""
        dropped = {f"dropped as {reason}": count for reason, count in self.dropped.items()}
        return {f"pairs {reason}": count for reason, count in (self._reasons | dropped).items() if count}

    @property
    def left_out(self) -> str:
        """Describe the pairs that the last reading left out."""
        counts = [f"{count:,} {reason}" for reason, count in (self._reasons | self.dropped).items() if count]
        read = counted(self.read + sum(self.dropped.values()), "pair")
        return f"of {read} left out: {', '.join(counts) or 'none'}"

    @property
    def identity(self) -> dict[str, Any]:
        sources = [source.identity for source in self._sources]
        ranges = {name: list(bounds) for name, bounds in self._selection.ranges.items()}
        unwanted = self._unwanted.to_pylist() if self._unwanted is not None else []
        return {
            "sources": sources,
            "subset": self._selection.subset,
            "ranges": ranges,
            "max_pairs": self._selection.max_pairs,
            "first_pairs": self._selection.first_pairs,
            "drawn_with_seed": self._seed if self._selection.max_pairs is not None else None,
            "unwanted_sentences": len(unwanted),
            "unwanted_checksum": hashlib.sha256("\n".join(sorted(unwanted)).encode()).hexdigest()
            if unwanted
            else None,
            **({"without": list(ERRORS)} if self._errors_apart else {}),
            **({"columns": self._columns} if self._columns else {}),
        }

    def errors(self) -> Iterator[pa.Table]:
        """Read pairs that differ in a number or a negation, or are labelled as no paraphrases; see `batches`.

        Else they are as those that are chosen.
        """
        yield from (table for table in self._chosen(errors=True) if table.num_rows)

    def batches(self) -> Iterator[pa.Table]:
        """Read the chosen pairs: tables with the columns `reference` and `translation`, without nulls in these.

        For `max_pairs` the data are read twice, first to count the pairs of which these are drawn.
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
        """The lottery bound of `draw_bound` for the selected pairs; None for all of them."""
        if self._selection.max_pairs is None:
            return None
        if self._total is None:
            self._total = sum(table.num_rows for table in self._chosen())
        return draw_bound(self._total, self._selection.max_pairs, self._seed)

    def _chosen(self, *, errors: bool = False) -> Iterator[pa.Table]:
        """Read the pairs inside all ranges and without excluded sentences, or those with errors; count the others."""
        self._forget_counts()
        for table in self._tables():
            self.read += table.num_rows
            for side in SIDES:
                # Files hold text as several types, of which Arrow compares only equal ones.
                table = table.set_column(table.column_names.index(side), side, table[side].cast(pa.string()))
            chosen = in_ranges(table, self._selection.ranges)
            kept = table.filter(chosen)
            self.unselected += table.num_rows - kept.num_rows
            whole = kept.filter(pc.and_(*[kept[side].is_valid() for side in SIDES]))
            self.without_text += kept.num_rows - whole.num_rows
            kept = self._paraphrases(whole, errors=errors)
            kept = kept if self._all_columns else kept.select(SIDES)
            if self._unwanted is not None:
                hits = [pc.is_in(plain(kept[side]), self._unwanted) for side in SIDES]
                clean = kept.filter(pc.invert(pc.or_(*hits)))
                self.contaminated += kept.num_rows - clean.num_rows
                kept = clean
            yield kept

    def _paraphrases(self, table: pa.Table, *, errors: bool) -> pa.Table:
        """Exclude pairs that are not paraphrases, by their label or their errors; with `errors`, keep only these."""
        none = pa.array(np.zeros(table.num_rows, bool))
        labels = table[LABEL] if LABEL in table.column_names else pa.array(np.ones(table.num_rows, np.int32))
        unlabelled, other = labels.is_null(), pc.equal(labels.fill_null(1), 0)
        wrong = none
        if self._errors_apart and ERRORS[0] in table.column_names:
            wrong = pc.or_(*[pc.greater(table[name].fill_null(0), 0) for name in ERRORS])
        if errors:
            return table.filter(pc.and_(pc.or_(wrong, other), pc.invert(unlabelled)))
        self.unlabelled += _count(unlabelled)
        self.labelled += _count(other)
        self.wrong += _count(pc.and_(wrong, pc.invert(pc.or_(unlabelled, other))))
        return table.filter(pc.invert(pc.or_(wrong, pc.or_(unlabelled, other))))

    def _tables(self) -> Iterator[pa.Table]:
        """Read the rows of all sources, and count those that cannot be used."""
        for source in self._sources:
            report = Report()
            try:
                yield from source.tables(report)
            finally:
                # Also when the caller has enough pairs and stops.
                for reason, count in report.dropped.items():
                    self.dropped[reason] = self.dropped.get(reason, 0) + count


def _count(mask: pa.Array | pa.ChunkedArray) -> int:
    return int(np.count_nonzero(mask))


def plain(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Reduce sentences [sentence] to their letters and digits in lower case, in words."""
    return pc.utf8_trim_whitespace(letters(column, " "))
