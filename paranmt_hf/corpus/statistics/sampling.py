"""Seeded samples of the sentences of corpora of any kind and size, in one pass and the memory of the sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.reading.arrow_tables import is_saved_dataset
from paranmt_hf.corpus.reading.formats import open_table
from paranmt_hf.corpus.reading.plain_text import PlainText
from paranmt_hf.corpus.reading.readers import LineFiles, Report, TableFiles
from paranmt_hf.corpus.release.record import RELEASE_RECORD, ReleaseRecord
from paranmt_hf.corpus.release.release import FOLDERS, checked_files, key_columns_of, read_tables
from paranmt_hf.corpus.release.schema import row_numbers
from paranmt_hf.corpus.statistics.draws import lottery
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import resolved
from paranmt_hf.util.parquet import read_schema

EXTRAS = ("para_score", "origin")  # Columns of a sample in addition to the sentence, if the corpus has them
COLUMN_NAMES = ("reference", "translation", *EXTRAS)  # What `columns` can name
MAX_ORIGINS = 100  # A longer table would be unreadable
SLACK = 10_000  # A sample is cut down when it has grown by a half, or by this many rows


@dataclass
class Corpus:
    """Sentences to measure: those of a corpus, of a table, or of text with a sentence on each line."""

    path: Path  # As it was given
    columns: tuple[str, ...]  # Which of `EXTRAS` it has
    text: Path | None = None  # The file, where it is one of lines
    report: Report = field(default_factory=Report)  # What was read and dropped, by the last reading
    language: str | None = None  # ISO 639-1 code, where a corpus names it
    _reader: LineFiles | TableFiles | None = None
    _files: tuple[Path, ...] = ()
    _side: str = "reference"

    @property
    def has_free_columns(self) -> bool:
        """Whether its columns may have any name, as in tables that are not a corpus."""
        return isinstance(self._reader, TableFiles)

    def batches(self) -> Iterator[pa.RecordBatch | pa.Table]:
        """Read the rows: `id` (int64, unique for each row), `sentence` (string), and `columns`."""
        self.report = Report()
        if self._reader is not None:
            for batch in self._reader.batches(self.report):
                yield batch.rename_columns(["id", "sentence", *self.columns])
            return
        for table in read_tables(self._files, [*key_columns_of(self._files), self._side, *self.columns]):
            self.report.read += table.num_rows
            self.report.kept += table.num_rows
            columns = [pa.chunked_array([row_numbers(table)]), *(table[name] for name in (self._side, *self.columns))]
            yield pa.table(columns, names=["id", "sentence", *self.columns])


def numbered_pairs(table: pa.Table) -> pa.Table:
    """Give the pairs of a corpus a unique number each as `id`, for samples."""
    columns = [pa.chunked_array([row_numbers(table)]), table["reference"], table["translation"]]
    return pa.table(columns, names=["id", "reference", "translation"])


def open_corpus(
    path: str | Path, *, side: str = "reference", columns: Mapping[str, str] | None = None, by_origin: bool = False
) -> Corpus:
    """Detect the kind of a corpus and open it.

    It is a corpus; the folder of one of its configs, or another folder of Parquet files; or a file of any format with
    columns, which `columns` names if they are called otherwise than in the schema; or a text file with a sentence on
    each line, which has no `side`.
    """
    path = Path(path).expanduser()
    wanted = EXTRAS if by_origin else EXTRAS[:1]
    if path.is_dir() and ((path / RELEASE_RECORD).is_file() or (path / FOLDERS["default"]).is_dir()):
        files = checked_files(path)
        found = tuple(name for name in wanted if name in read_schema(files[0]).names)
        return Corpus(path, found, language=_language_of(path), _files=tuple(files), _side=side)
    columns = columns or {}
    files = sorted(path.glob("*.parquet")) if path.is_dir() and not is_saved_dataset(path) else [path]
    if not files:
        raise InputError(f"{path} is neither a corpus nor a folder of Parquet files; name one")
    tables = [open_table(file, columns.values()) for file in files]
    if isinstance(tables[0], PlainText):
        return Corpus(path, (), text=path, _reader=LineFiles({"sentence": path}))
    names = tables[0].names
    if side not in columns and side not in names:
        raise InputError(
            f"{path} has no column {side}; it has {', '.join(names)}. Say which it is: `columns` {side}=NAME"
        )
    found = tuple(name for name in wanted if name in columns or name in names)
    where = {name: columns.get(name, name) for name in (side, *found)}
    numbers = [name for name in found if name == "para_score"]
    reader = TableFiles(tables, where, numbers=numbers, optional=found)
    return Corpus(path, found, language=_language_of(path), _reader=reader)


def _language_of(path: Path) -> str | None:
    """The language of the corpus that a path is in; None without a record."""
    path = resolved(path)
    # A corpus, the folder of one of its configs, or a file in that.
    for folder in (path, *path.parents[:2]):
        if (folder / RELEASE_RECORD).is_file():
            return ReleaseRecord.read(folder).language
    return None


class Sample:
    """A random sample of the added rows: those whose ids have the smallest lottery numbers.

    It does not depend on how the rows come in; a smaller sample of the same seed is the beginning of a larger one.
    """

    def __init__(self, count: int, seed: int) -> None:
        self.seen = 0
        self._count, self._seed = count, seed
        self._tables: list[pa.Table] = []
        self._draws: list[np.ndarray] = []
        self._held = 0
        self._bound: np.uint64 | None = None

    @property
    def held(self) -> int:
        return self._held

    def add(self, rows: pa.Table | pa.RecordBatch) -> None:
        self.seen += rows.num_rows
        draws = lottery(rows["id"].to_numpy(), self._seed)
        if self._bound is not None:
            chosen = np.flatnonzero(draws <= self._bound)
            rows, draws = rows.take(pa.array(chosen)), draws[chosen]
        if not rows.num_rows:
            return
        self._tables.append(rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows]))
        self._draws.append(draws)
        self._held += rows.num_rows
        if self._held > self._count + min(self._count // 2, SLACK):
            self._cut()

    def _cut(self) -> None:
        """Keep the rows with the smallest numbers, in their order."""
        draws = np.concatenate(self._draws)
        order = np.argsort(draws, kind="stable")[: self._count]
        self._tables = [pa.concat_tables(self._tables).take(pa.array(order)).combine_chunks()]
        self._draws = [draws[order]]
        self._held = len(order)
        if self._held == self._count:
            self._bound = draws[order[-1]]

    def table(self) -> pa.Table:
        """Return the sampled rows in the order of their numbers; there must be at least one."""
        self._cut()
        return self._tables[0]


def draw(
    corpus: Corpus, count: int, seed: int, *, limit: int | None = None, progress: Callable[[int], None] | None = None
) -> dict[str | None, Sample]:
    """Sample `count` rows of a corpus, and of each of its origins if these are read; the corpus is read once.

    The sample of the corpus is under None, those of its origins follow by name, and rows without an origin are under
    "". All samples together hold at most `limit` rows; `progress` is called with the number of rows read so far.
    """
    whole, origins = Sample(count, seed), dict[str, Sample]()
    for rows in corpus.batches():
        names = [name for name in rows.schema.names if name != "origin"]
        whole.add(rows.select(names))
        if "origin" in rows.schema.names:
            column = pc.fill_null(rows["origin"], "")
            for origin in pc.unique(column).to_pylist():
                chosen = rows.filter(pc.equal(column, origin)).select(names)
                origins.setdefault(origin, Sample(count, seed)).add(chosen)
            _check_origins(corpus, origins, limit)
        if progress is not None:
            progress(whole.seen)
    if not whole.seen:
        raise InputError(f"{corpus.path} has no rows that could be measured: {corpus.report.describe()}")
    return {None: whole, **dict(sorted(origins.items()))}


def _check_origins(corpus: Corpus, samples: Mapping[str, Sample], limit: int | None) -> None:
    if len(samples) > MAX_ORIGINS:
        raise InputError(
            f"{corpus.path} has more than {MAX_ORIGINS} origins, such as {next(iter(samples))!r}; a table by origin "
            "is for a few sources"
        )
    if limit is not None and sum(sample.held for sample in samples.values()) > limit:
        raise InputError(
            f"{corpus.path} has at least {len(samples):,} origins, whose samples hold more than {limit:,} rows "
            "together; take smaller ones (`sample`)"
        )
