"""Seeded samples of the sentences of corpora of any kind and size, read once; only the samples are in memory."""

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
from paranmt_hf.corpus.release.record import RELEASE_RECORD, language_of
from paranmt_hf.corpus.release.release import FOLDERS, checked_files, read_tables
from paranmt_hf.corpus.release.schema import key_columns, row_numbers
from paranmt_hf.corpus.statistics.draws import Sample
from paranmt_hf.errors import InputError
from paranmt_hf.util.parquet import read_schema

EXTRAS = ("para_score", "origin")  # Columns that a sample has besides the sentence, if the corpus has them
COLUMN_NAMES = ("reference", "translation", *EXTRAS)  # Columns whose names in files the user can give
MAX_ORIGINS = 100  # Largest number of origins, for which there is a row each in the table


@dataclass(frozen=True)
class MeasuredCorpus:
    """Sentences to measure: those of a corpus, of a file with columns, or of text with a sentence on each line."""

    path: Path  # The path that the user gave
    columns: tuple[str, ...]  # The columns of `EXTRAS` that are read
    # Reads `id` (int64, different for each row), `sentence` (string) and `columns`, and counts rows in the report
    batches: Callable[[Report], Iterator[pa.RecordBatch | pa.Table]]
    text: Path | None = None  # The file if it has a sentence on each line; otherwise None
    language: str | None = None  # ISO 639-1 code if the record of a corpus names it; otherwise None
    has_free_columns: bool = False  # Whether its columns may have any name, as in files that are not of a corpus


def open_corpus(
    path: str | Path, *, side: str = "reference", columns: Mapping[str, str] | None = None, by_origin: bool = False
) -> MeasuredCorpus:
    """Find out what kind of corpus a path is, and open it.

    Args:
        path: A corpus; the folder of one of its configs or another folder of Parquet files; a file of any format with
            columns; or a text file with a sentence on each line.
        side: Which sentence of each pair is read; ignored for text files.
        columns: Names of the columns in files that do not use ours.
        by_origin: Whether the column `origin` is read.

    Raises:
        InputError: If the path is none of these, or lacks the column.
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
    return MeasuredCorpus(path, found, reader.batches, language=language_of(path), has_free_columns=True)


def _open_release(path: Path, side: str, wanted: Sequence[str]) -> MeasuredCorpus:
    """Open a side of a corpus, with those of the `wanted` columns that it has."""
    files = checked_files(path)
    names = read_schema(files[0]).names
    found = tuple(name for name in wanted if name in names)

    def batches(report: Report) -> Iterator[pa.Table]:
        for table in read_tables(files, [*key_columns(names), side, *found]):
            report.read += table.num_rows
            report.kept += table.num_rows
            columns = [pa.chunked_array([row_numbers(table)]), *(table[name] for name in (side, *found))]
            yield pa.table(columns, names=["id", "sentence", *found])

    return MeasuredCorpus(path, found, batches, language=language_of(path))


def draw(
    corpus: MeasuredCorpus,
    count: int,
    seed: int,
    *,
    limit: int | None = None,
    report: Report | None = None,
    progress: Callable[[int], None] = lambda rows: None,
) -> dict[str | None, Sample]:
    """Sample rows of a corpus, and of each of its origins if these are read; the corpus is read once.

    Args:
        corpus: The corpus.
        count: Number of rows in each sample.
        seed: Seed of the samples.
        limit: Largest number of rows in the samples of all origins together; None for no limit.
        report: Counts the rows that are read.
        progress: Called with the number of rows read so far.

    Returns:
        The sample of the corpus under None, then those of its origins, sorted by name; rows without an origin are
        under "".

    Raises:
        InputError: If there are no rows, too many origins, or more rows than `limit` in the samples of the origins.
    """
    whole, origins, report = Sample(count, seed), dict[str, Sample](), report or Report()
    for rows in corpus.batches(report):
        whole.add(rows)
        if "origin" in rows.schema.names:
            column = pc.fill_null(rows["origin"], "")
            for origin in pc.unique(column).to_pylist():
                indices = np.flatnonzero(pc.equal(column, origin).to_numpy(zero_copy_only=False))
                origins.setdefault(origin, Sample(count, seed)).add(rows, indices)
            if len(origins) > MAX_ORIGINS or (limit and sum(sample.held for sample in origins.values()) > limit):
                raise InputError(
                    f"{corpus.path} has at least {len(origins):,} origins, such as {next(iter(origins))!r}; a table "
                    f"by origin is for at most {MAX_ORIGINS}, whose samples together fit into memory (`sample`)"
                )
        progress(whole.seen)
    if not whole.seen:
        raise InputError(f"{corpus.path} has no rows that could be measured: {report.describe()}")
    return {None: whole, **dict(sorted(origins.items()))}
