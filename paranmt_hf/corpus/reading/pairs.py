"""Training pairs from releases, Parquet files, files of phrases or the Hub, selected by their scores."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paranmt_hf.corpus.draws import Interval, draw_bound, in_ranges, lottery
from paranmt_hf.corpus.reading.inputs import HubDataset
from paranmt_hf.corpus.reading.pair_files import (
    PairFiles,
    check_phrases,
    checksums,
    describe,
    is_parquet,
    is_release,
    language_of,
)
from paranmt_hf.corpus.reading.phrases import LABEL, SCORE, PhraseFiles, features_of, has_entailment
from paranmt_hf.corpus.reading.readers import Reader, Report
from paranmt_hf.corpus.release import FOLDERS, check_types, fetch_release, read_tables, release_files
from paranmt_hf.corpus.schema import ADDED, COSINES, SIDES, describe_missing
from paranmt_hf.errors import InputError
from paranmt_hf.hub.client import is_id, split_revision
from paranmt_hf.text.word_rules import letters
from paranmt_hf.util.files import check_regular
from paranmt_hf.util.parquet import check_unique, open_parquet
from paranmt_hf.util.settings import Count, Range, Settings, Share
from paranmt_hf.util.wording import counted

# Columns that count what of one side the other does not confirm, and which makes the two no paraphrases.
ERRORS = ("number_mismatch", "negation_mismatch")
BATCH_ROWS = 20_000


@dataclass(frozen=True)
class PairSelection(Settings):
    """Which pairs of a corpus are used (ParaNMT-50M, table 5: ranges of the paraphrase score).

    Attributes:
        subset: Config of the release or dataset: all pairs (default), or filtered.
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

    Sources are release folders, Parquet files with the columns `reference` and `translation`, files of PPDB, lists of
    words and their paraphrases, or datasets on the Hub, by id, which `@` and a revision may follow. No side may be one
    of the `unwanted` sentences, case and punctuation aside: those of the test sets. The seed decides which pairs are
    drawn where there are more than `max_pairs`.

    With `errors_apart`, pairs that differ in a number or a negation, as the columns `ERRORS` say, are left out, and
    `errors` reads these, and those that are labelled as no paraphrases. With `all_columns`, the other columns of
    releases and Parquet files are read too.
    """

    unit = "pairs"

    def __init__(
        self,
        sources: Sequence[str | Path],
        selection: PairSelection,
        unwanted: Collection[str] = (),
        *,
        seed: int = 1,
        errors_apart: bool = False,
        all_columns: bool = False,
    ) -> None:
        if not sources:
            raise InputError("there is nothing to train on: name a release, Parquet files or a dataset on the Hub")
        self._selection, self._seed = selection, seed
        self._total: int | None = None
        self._sources = [str(source) for source in sources]
        self._errors_apart, self._all_columns = errors_apart, all_columns
        self._columns = [*SIDES, *selection.ranges, *(ERRORS if errors_apart else ())]
        self._unwanted = plain(pa.array(sorted(unwanted), pa.string())).unique() if unwanted else None
        self._forget_counts()
        self._readers: list[PairFiles | Reader] = [self._reader(source) for source in self._sources]
        subset = selection.subset
        if subset != "default" and all(is_release(source) is False for source in self._sources):
            raise InputError(
                f"`subset` {subset} is for releases and datasets on the Hub; {', '.join(self._sources)} has no "
                "subsets, so leave it out"
            )
        if selection.ppdb_score and not any(isinstance(reader, PhraseFiles) for reader in self._readers):
            raise InputError(
                f"`ppdb_score` {selection.ppdb_score} is for files of PPDB; {', '.join(self._sources)} has none, so "
                "leave it out"
            )

    def _reader(self, source: str) -> PairFiles | Reader:
        path = Path(source).expanduser()
        check_regular(path)
        if is_release(source):
            if self._selection.subset not in FOLDERS:
                raise InputError(f"`subset` must be one of {', '.join(FOLDERS)}, not {self._selection.subset!r}")
            files = release_files(path, self._selection.subset)
        elif path.is_dir():
            files = sorted(path.glob("*.parquet"))
        elif path.suffix == ".parquet" or is_parquet(path):
            files = [path]
        elif path.is_file():
            return self._phrases(path)
        elif is_id(split_revision(source)[0]):
            return self._hub_reader(*split_revision(source))
        else:
            raise InputError(
                f"no pairs {source!r}: expected a release folder, a .parquet file, a file of PPDB, or a dataset "
                "on the Hub like 'organisation/name' or 'organisation/name@v1'"
            )
        if not sum([self._check(file) for file in files]):
            raise InputError(
                f"{', '.join(map(str, files))}: expected pairs, but there are no rows; make the data again"
            )
        if not is_release(source):
            return PairFiles(files, [describe(file) for file in files], released=False)
        known: dict[str, Any] = {"release": path.resolve().name, **language_of(path)}
        known["files"] = checksums(path, files, self._selection.subset)
        return PairFiles(files, known, released=True)

    def _phrases(self, path: Path) -> PhraseFiles:
        """Open a PPDB file or a word list, whose only column is a score."""
        check_phrases(path)
        chosen, score = self._selection, self._selection.ppdb_score
        if columns := chosen.ranges.keys() - {"para_score"}:
            raise InputError(
                f"{path} has phrases and no column {', '.join(sorted(columns))}; leave out the option that needs it, "
                "or make a release first (`paranmt import --format phrases`)"
            )
        if self._errors_apart:
            raise InputError(
                f"{path} has phrases and no columns {', '.join(ERRORS)}; leave out `error_negatives`, or train on a "
                "release that has them"
            )
        if chosen.ranges and score is None:
            names = ", ".join(features_of(path)[:8]) or "none, for it is a list of words"
            raise InputError(
                f"{path}: name the score that the smallest and largest are about with `ppdb_score`; its features are "
                f"{names}"
            )
        return PhraseFiles([path], score=score, label="any" if has_entailment(path) else None)

    def _hub_reader(self, name: str, revision: str | None) -> PairFiles | Reader:
        """Open a dataset on the Hub: a release is downloaded and verified, any other is streamed."""
        subset = self._selection.subset
        if subset in FOLDERS and (fetched := fetch_release(name, revision, subset)) is not None:
            files, commit = fetched
            for file in files:
                self._check(file)
            # A config is a folder of the release.
            language = language_of(files[0].parent.parent) if files else {}
            return PairFiles(files, {"dataset": name, "revision": commit, **language}, released=True)
        columns = {column: column for column in self._columns}
        config = None if subset == "default" else subset
        return HubDataset(name, columns, config=config, revision=revision, numbers=set(self._columns) - set(SIDES))

    def _check(self, file: Path) -> int:
        """Reject a file that cannot be read or lacks a column; return its number of rows."""
        with open_parquet(file) as opened:
            schema, rows = opened.schema_arrow, opened.metadata.num_rows
        if missing := [side for side in SIDES if side not in schema.names]:
            raise InputError(
                f"{file} has no column {', '.join(missing)}; it has {', '.join(sorted(schema.names))}. Rename "
                "them, or name them once: paranmt import FILE --columns reference=...,translation=..."
            )
        missing = [name for name in self._columns if name not in schema.names]
        if set(missing) & set(ADDED):
            raise InputError(describe_missing(file, missing))
        if missing:
            raise InputError(
                f"{file} has no column {', '.join(missing)}; it has {', '.join(sorted(schema.names))}. Score it first "
                "(`paranmt import`), or leave out the option that needs the column"
            )
        check_types(schema, self._columns, file)
        if self._all_columns:
            check_unique(schema, schema.names, file)
        return rows

    def _forget_counts(self) -> None:
        self.read = self.unselected = self.without_text = self.wrong = self.labelled = self.contaminated = 0
        self.dropped: dict[str, int] = {}

    @property
    def _reasons(self) -> dict[str, int]:
        return {
            "outside the chosen ranges": self.unselected,
            "without text on a side": self.without_text,
            "different in a number or a negation": self.wrong,
            "labelled as no paraphrases": self.labelled,
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
        sources = [reader.identity for reader in self._readers]
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
        for table, labelled in self._tables():
            self.read += table.num_rows
            for side in SIDES:
                # Files hold text as several types, of which Arrow compares only equal ones.
                table = table.set_column(table.column_names.index(side), side, table[side].cast(pa.string()))
            chosen = in_ranges(table, self._selection.ranges)
            kept = table.filter(chosen)
            self.unselected += table.num_rows - kept.num_rows
            whole = kept.filter(pc.and_(*[kept[side].is_valid() for side in SIDES]))
            self.without_text += kept.num_rows - whole.num_rows
            kept = self._paraphrases(whole, errors=errors, labelled=labelled)
            kept = kept if self._all_columns else kept.select(SIDES)
            if self._unwanted is not None:
                hits = [pc.is_in(plain(kept[side]), self._unwanted) for side in SIDES]
                clean = kept.filter(pc.invert(pc.or_(*hits)))
                self.contaminated += kept.num_rows - clean.num_rows
                kept = clean
            yield kept

    def _paraphrases(self, table: pa.Table, *, errors: bool, labelled: bool) -> pa.Table:
        """Exclude pairs that are not paraphrases, by their label or their errors; with `errors`, keep only these."""
        bad = pc.equal(pc.fill_null(table[LABEL], 1), 0) if labelled else pa.array(np.zeros(table.num_rows, bool))
        if not self._errors_apart:
            kept = table.filter(pc.invert(bad))
            self.labelled += table.num_rows - kept.num_rows
            return kept
        wrong = pc.or_(*[pc.greater(pc.fill_null(table[name], 0), 0) for name in ERRORS])
        if errors:
            return table.filter(pc.or_(wrong, bad))
        sound = table.filter(pc.invert(pc.or_(wrong, bad)))
        self.wrong += int(np.count_nonzero(wrong))
        self.labelled += table.num_rows - sound.num_rows - int(np.count_nonzero(wrong))
        return sound

    def _tables(self) -> Iterator[tuple[pa.Table, bool]]:
        """Read tables, and whether each has the labels of a release."""
        for reader in self._readers:
            if isinstance(reader, Reader):
                report = Report()
                for batch in reader.batches(report, rows=BATCH_ROWS):
                    table = pa.Table.from_batches([batch])
                    labelled = LABEL in table.column_names
                    scored = SCORE in table.column_names
                    yield table.rename_columns({SCORE: "para_score"}) if scored else table, labelled
                for reason, count in report.dropped.items():
                    self.dropped[reason] = self.dropped.get(reason, 0) + count
            else:
                for table, labelled in self._read_files(reader):
                    for start in range(0, table.num_rows, BATCH_ROWS):
                        yield table.slice(start, BATCH_ROWS), labelled

    def _read_files(self, source: PairFiles) -> Iterator[tuple[pa.Table, bool]]:
        """Read the columns that select pairs, and the label if a release has one; or all columns."""
        for file in source.files:
            names = pq.read_schema(file).names
            labelled = source.released and LABEL in names
            chosen = [*self._columns, LABEL] if labelled else self._columns
            for table in read_tables([file], names if self._all_columns else chosen, checked=chosen):
                yield table, labelled


def plain(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Reduce sentences [sentence] to their letters and digits in lower case, in words."""
    return pc.utf8_trim_whitespace(letters(column, " "))
