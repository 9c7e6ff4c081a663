"""Seeded samples of the sentences of corpora of any kind and size, in one pass and the memory of the sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.reading.arrow_tables import is_saved_dataset
from paranmt_hf.corpus.reading.formats import open_table
from paranmt_hf.corpus.reading.plain_text import PlainText
from paranmt_hf.corpus.reading.readers import LineFiles, Report, TableFiles
from paranmt_hf.corpus.release.record import RELEASE_RECORD, ReleaseRecord
from paranmt_hf.corpus.release.release import FOLDERS, checked_files, read_tables
from paranmt_hf.corpus.release.schema import key_columns, row_numbers
from paranmt_hf.corpus.statistics.draws import Sample
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import resolved
from paranmt_hf.util.parquet import read_schema

EXTRAS = ("para_score", "origin")  # Columns of a sample in addition to the sentence, if the corpus has them
COLUMN_NAMES = ("reference", "translation", *EXTRAS)  # What `columns` can name
MAX_ORIGINS = 100  # A longer table would be unreadable


@dataclass(frozen=True)
class MeasuredCorpus:
    """Sentences to measure: those of a corpus, of a table, or of text with a sentence on each line."""

    path: Path  # As it was given
    columns: tuple[str, ...]  # Which of `EXTRAS` it has
    # Reads `id` (int64, unique for each row), `sentence` (string), and `columns`, and counts in a report
    batches: Callable[[Report], Iterator[pa.RecordBatch | pa.Table]]
    text: Path | None = None  # The file, if it is one of lines
    language: str | None = None  # ISO 639-1 code, if a corpus names it
    has_free_columns: bool = False  # Whether its columns may have any name, as in tables that are not a corpus


def numbered_pairs(table: pa.Table) -> pa.Table:
    """Give the pairs of a corpus a unique number each as `id`, for samples."""
    columns = [pa.chunked_array([row_numbers(table)]), table["reference"], table["translation"]]
    return pa.table(columns, names=["id", "reference", "translation"])


def open_corpus(
    path: str | Path, *, side: str = "reference", columns: Mapping[str, str] | None = None, by_origin: bool = False
) -> MeasuredCorpus:
    """Detect the kind of a corpus and open it.

    It is a corpus; the folder of one of its configs, or another folder of Parquet files; or a file of any format with
    columns, which `columns` names if they are called otherwise than in the schema; or a text file with a sentence on
    each line, which has no `side`.
    """
    path, columns = Path(path).expanduser(), columns or {}
    wanted = EXTRAS if by_origin else EXTRAS[:1]
    if path.is_dir() and ((path / RELEASE_RECORD).is_file() or (path / FOLDERS["default"]).is_dir()):
        return _open_release(path, side, wanted)
    files = sorted(path.glob("*.parquet")) if path.is_dir() and not is_saved_dataset(path) else [path]
    if not files:
        raise InputError(f"{path} is neither a corpus nor a folder of Parquet files; name one")
    tables = [open_table(file, columns.values()) for file in files]
    if isinstance(tables[0], PlainText):
        return MeasuredCorpus(path, (), LineFiles({"sentence": path}).batches, text=path)
    names = tables[0].names
    if side not in columns and side not in names:
        raise InputError(
            f"{path} has no column {side}; it has {', '.join(names)}. Say which it is: `columns` {side}=NAME"
        )
    found = tuple(name for name in wanted if name in columns or name in names)
    where = {"sentence": columns.get(side, side)} | {name: columns.get(name, name) for name in found}
    reader = TableFiles(tables, where, numbers={"para_score"} & set(found), optional=found)
    return MeasuredCorpus(path, found, reader.batches, language=_language_of(path), has_free_columns=True)


def _open_release(path: Path, side: str, wanted: Sequence[str]) -> MeasuredCorpus:
    files = checked_files(path)
    names = read_schema(files[0]).names
    found = tuple(name for name in wanted if name in names)

    def batches(report: Report) -> Iterator[pa.Table]:
        for table in read_tables(files, [*key_columns(names), side, *found]):
            report.read += table.num_rows
            report.kept += table.num_rows
            columns = [pa.chunked_array([row_numbers(table)]), *(table[name] for name in (side, *found))]
            yield pa.table(columns, names=["id", "sentence", *found])

    return MeasuredCorpus(path, found, batches, language=_language_of(path))


def _language_of(path: Path) -> str | None:
    """The language of the corpus that a path is in; None without a record."""
    path = resolved(path)
    # A corpus, the folder of one of its configs, or a file in that.
    for folder in (path, *path.parents[:2]):
        if (folder / RELEASE_RECORD).is_file():
            return ReleaseRecord.read(folder).language
    return None


def draw(
    corpus: MeasuredCorpus,
    count: int,
    seed: int,
    *,
    limit: int | None = None,
    report: Report | None = None,
    progress: Callable[[int], None] = lambda rows: None,
) -> dict[str | None, Sample]:
    """Sample `count` rows of a corpus, and of each of its origins if these are read; the corpus is read once.

    The sample of the corpus is under None, those of its origins follow by name, and rows without an origin are under
    "". All samples together hold at most `limit` rows; `progress` is called with the number of rows read so far.
    """
    whole, origins, report = Sample(count, seed), dict[str, Sample](), report or Report()
    for rows in corpus.batches(report):
        whole.add(rows)
        if "origin" in rows.schema.names:
            column = pc.fill_null(rows["origin"], "")
            for origin in pc.unique(column).to_pylist():
                places = np.flatnonzero(pc.equal(column, origin).to_numpy(zero_copy_only=False))
                origins.setdefault(origin, Sample(count, seed)).add(rows, places)
            if len(origins) > MAX_ORIGINS or (limit and sum(sample.held for sample in origins.values()) > limit):
                raise InputError(
                    f"{corpus.path} has at least {len(origins):,} origins, such as {next(iter(origins))!r}; a table "
                    f"by origin is for at most {MAX_ORIGINS}, whose samples together fit into memory (`sample`)"
                )
        progress(whole.seen)
    if not whole.seen:
        raise InputError(f"{corpus.path} has no rows that could be measured: {report.describe()}")
    return {None: whole, **dict(sorted(origins.items()))}
