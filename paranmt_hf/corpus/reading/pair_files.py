"""Sources of pairs: what kind a file, a folder or a dataset is, how it is read, and what identifies it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.reading.arrow_tables import ParquetTable, is_saved_dataset
from paranmt_hf.corpus.reading.formats import find_format, open_table
from paranmt_hf.corpus.reading.hub_dataset import FILE_SUFFIXES, HubDataset, is_on_hub
from paranmt_hf.corpus.reading.labels import LABEL, check_label_names, paraphrase_labels
from paranmt_hf.corpus.reading.pair_columns import WantedColumns, pair_columns, unknown_columns
from paranmt_hf.corpus.reading.phrases import SCORE, PhraseFiles, features_of, has_entailment, holds_sentences, is_list
from paranmt_hf.corpus.reading.plain_text import PlainText
from paranmt_hf.corpus.reading.readers import Reader, Report, TableFiles
from paranmt_hf.corpus.release.record import RELEASE_RECORD, ReleaseRecord
from paranmt_hf.corpus.release.release import (
    FOLDERS,
    check_text,
    check_types,
    fetch_release,
    read_record,
    release_files,
)
from paranmt_hf.corpus.release.schema import SIDES
from paranmt_hf.errors import InputError
from paranmt_hf.hub.client import split_revision
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.util.files import check_regular, checksum
from paranmt_hf.util.parquet import check_unique, open_parquet, plain_types, read_schema

logger = logging.getLogger(__name__)
BATCH_ROWS = 20_000  # Number of rows that are read at once by default


@dataclass(frozen=True)
class ParquetPairs:
    """Parquet files of pairs, whose rows are read as they are."""

    # The columns to read from each file: our name of each column, and its name in the file
    columns: Mapping[Path, Mapping[str, str]]
    everything: bool  # Whether all other columns are read too
    identity: Any  # Everything that determines the rows, as JSON values
    options: tuple[str, ...]  # Those of `subset`, `ppdb_score` and `columns` that the source can use

    def tables(self, report: Report, *, rows: int = BATCH_ROWS) -> Iterator[pa.Table]:
        """Read tables of at most `rows` rows under our names, labels as int32; `report` is not used."""
        for file, columns in self.columns.items():
            first = 0
            with open_parquet(file) as opened:
                names = {theirs: name for name, theirs in columns.items()}
                if self.everything:
                    # A column that has one of our names, but is not the column meant by it, is not read.
                    kept = [name for name in opened.schema_arrow.names if name in names or name not in columns]
                    names = {name: names.get(name, name) for name in kept}
                for batch in opened.iter_batches(rows, columns=list(names)):
                    table = pa.Table.from_batches([batch])
                    table = plain_types(table.rename_columns([names[name] for name in table.column_names]))
                    check_text(table, file, first)
                    if LABEL in columns:
                        labels = paraphrase_labels(table[LABEL].chunk(0), f"{file}, row (from 0) ", first, file)
                        table = table.set_column(table.column_names.index(LABEL), LABEL, labels)
                    first += table.num_rows
                    yield table


def _columns_of(files: Sequence[Path], wanted: WantedColumns) -> dict[Path, dict[str, str]]:
    """Find the columns to read from Parquet files, and check their types.

    Args:
        files: The files, which must have rows.
        wanted: Which columns are wanted.

    Returns:
        For each file, our name of each column and its name in the file.

    Raises:
        InputError: If a column is missing or of a wrong type, or there are no rows.
    """
    found: dict[Path, dict[str, str]] = {}
    for file in files:
        table, schema = ParquetTable.open(file), read_schema(file)
        columns = {name: table.names[table.position(theirs)] for name, theirs in pair_columns(table, wanted).items()}
        if inside := [theirs for theirs in columns.values() if theirs not in schema.names]:
            raise unknown_columns(file, schema.names, inside)
        if wanted.everything:
            check_unique(schema, schema.names, file)
        renamed = [schema.field(theirs).with_name(name) for name, theirs in columns.items() if name != LABEL]
        check_types(pa.schema(renamed), list(columns), file)
        if LABEL in columns:
            check_label_names(table.label_names(columns[LABEL]), columns[LABEL], file)
        found[file] = columns
    if not any(pq.read_metadata(file).num_rows for file in files):
        raise InputError(
            f"{', '.join(map(str, files))}: expected pairs, but there are no rows; make the data again", path=files[0]
        )
    return found


class ReadPairs:
    """Pairs from a reader: phrases, files with columns, or a dataset on the Hub that is not a corpus.

    Args:
        reader: Reads the pairs.
        options: Those of `subset`, `ppdb_score` and `columns` that the source can use.
    """

    def __init__(self, reader: Reader, options: tuple[str, ...]) -> None:
        self._reader, self.options = reader, options

    @property
    def identity(self) -> dict[str, object]:
        """Everything that determines the rows, as JSON values."""
        return self._reader.identity

    def tables(self, report: Report, *, rows: int = BATCH_ROWS) -> Iterator[pa.Table]:
        """Read tables of at most `rows` rows; `report` counts the rows that are left out."""
        for batch in self._reader.batches(report, rows=rows):
            table = pa.Table.from_batches([batch])
            if isinstance(self._reader, PhraseFiles):
                # The score of PPDB becomes the paraphrase score. Phrases without an entailment relation, or merely
                # related ones, count as paraphrases.
                table = table.rename_columns(["para_score" if name == SCORE else name for name in table.column_names])
                if LABEL in table.column_names:
                    index = table.column_names.index(LABEL)
                    table = table.set_column(index, LABEL, table[LABEL].fill_null(1))
            yield table


def open_pairs(
    source: str, wanted: WantedColumns, *, subset: str = "default", score: str | None = None
) -> ParquetPairs | ReadPairs:
    """Find out what kind of source of pairs this is, and open it.

    Args:
        source: A corpus, a folder of Parquet files or one such file, another file with columns, a file of phrases, or
            the id of a dataset on the Hub, which `@` and a revision may follow.
        wanted: Which columns are read.
        subset: Config of a corpus or dataset.
        score: Feature of PPDB that is the score of phrases.

    Raises:
        InputError: If the source is none of these, or lacks a column.
    """
    path = Path(source).expanduser()
    check_regular(path)
    if is_saved_dataset(path):
        return _open_table(path, wanted)
    if path.is_dir() and ((path / RELEASE_RECORD).exists() or not any(path.glob("*.parquet"))):
        return _open_release(path, wanted, subset)
    if path.is_dir():
        return _open_parquet(sorted(path.glob("*.parquet")), wanted)
    if is_on_hub(source):
        return _open_hub(*split_revision(source), wanted, subset)
    if not path.exists() and path.suffix.lower() not in FILE_SUFFIXES:
        raise InputError(
            f"no pairs {source!r}: expected a corpus folder, a file with columns such as TSV, CSV or Parquet, a file "
            "of PPDB, or a dataset on the Hub like 'organisation/name' or 'organisation/name@v1'",
            path=path,
        )
    kind = find_format(path)
    if kind is PlainText:
        return ReadPairs(_open_phrases(path, wanted, score), ("ppdb_score",))
    if kind is ParquetTable and set(wanted.given.values()) <= set(read_schema(path).names):
        return _open_parquet([path], wanted)
    return _open_table(path, wanted)


def _open_release(path: Path, wanted: WantedColumns, subset: str) -> ParquetPairs:
    """Open the folder of a corpus.

    The record has a checksum for each column. So the identity, which names only the columns that are read, stays the
    same if the corpus gets another column later.
    """
    files = release_files(path, subset, option="subset")
    columns = _columns_of(files, replace(wanted, given={}))
    identity: dict[str, Any] = {"release": path.resolve().name}
    if not (path / RELEASE_RECORD).is_file():
        identity["files"] = {file.relative_to(path).as_posix(): checksum(file) for file in files}
        return ParquetPairs(columns, wanted.everything, identity, ("subset",))
    record = read_record(path, [subset])
    identity |= _language_of(record)
    config = record.configs[subset]
    names = sorted(set().union(*columns.values()))
    if wanted.everything or not set(names) <= config.columns.keys():
        identity["files"] = dict(config.files)
    else:
        identity["columns"] = {name: config.columns[name] for name in names}
    return ParquetPairs(columns, wanted.everything, identity, ("subset",))


def _language_of(record: ReleaseRecord) -> dict[str, str]:
    """Return the entry `language` for the identity of a corpus; empty for English, which identities do not name."""
    return {} if record.language == ENGLISH else {"language": record.language}


def _open_parquet(files: Sequence[Path], wanted: WantedColumns) -> ParquetPairs:
    """Open Parquet files that are not a corpus.

    Their identity has the content and not the date, so that a copy of a file counts as the same.
    """
    columns = _columns_of(files, wanted)
    identity = []
    for file in files:
        size, rows = file.stat().st_size, pq.read_metadata(file).num_rows
        identity.append(f"{file.name} {size} bytes, {rows} rows, sha256:{checksum(file)}")
    return ParquetPairs(columns, wanted.everything, identity, ("columns",))


def _open_table(path: Path, wanted: WantedColumns) -> ReadPairs:
    """Open a file of any format with columns, other than a Parquet file with the right columns."""
    table = open_table(path, wanted.given.values() or SIDES)
    columns = pair_columns(table, wanted)
    numbers = columns.keys() - {*SIDES, LABEL}
    return ReadPairs(TableFiles([table], columns, numbers=numbers, optional=numbers), ("columns",))


def _open_phrases(path: Path, wanted: WantedColumns, score: str | None) -> PhraseFiles:
    """Open a file of PPDB or a word list.

    Raises:
        InputError: If the file seems to hold sentences, or `wanted` needs columns that it lacks.
    """
    if holds_sentences(path):
        raise InputError(
            f"{path} seems to hold single sentences; expected pairs, such as a corpus, a file of PPDB, or a list "
            "with a word and its paraphrases on each line. For single sentences there is `paranmt train-sent2vec`",
            path=path,
        )
    if is_list(path):
        # Almost any text could be such a list, so the log says how it is read.
        logger.info(f"{path} is read as a list: on each line a word, and behind it its paraphrases")
    if columns := set(wanted.numbers) - {"para_score"}:
        raise InputError(
            f"{path} has phrases and no column {', '.join(sorted(columns))}; leave out the option that needs it, "
            "or make a corpus first (`paranmt import --format phrases`)",
            path=path,
        )
    if wanted.numbers and score is None:
        names = ", ".join(features_of(path)[:8]) or "none, for it is a list of words"
        raise InputError(
            f"{path}: name the score that the smallest and largest are about with `ppdb_score`; its features are "
            f"{names}",
            option="ppdb_score",
            path=path,
        )
    return PhraseFiles([path], score=score, label="any" if has_entailment(path) else None)


def _open_hub(name: str, revision: str | None, wanted: WantedColumns, subset: str) -> ParquetPairs | ReadPairs:
    """Open a dataset on the Hub: a corpus is downloaded and checked, any other dataset is streamed."""
    if subset in FOLDERS and (found := fetch_release(name, revision, subset)) is not None:
        own = _columns_of(found.files, replace(wanted, given={}))
        return ParquetPairs(own, wanted.everything, found.identity | _language_of(found.record), ("subset",))
    config = None if subset == "default" else subset
    known = HubDataset(name, {}, config=config, revision=revision).column_names()
    columns = wanted.among(known)
    if missing := [column for column in columns.values() if column.split(".")[0] not in known]:
        raise unknown_columns(name, known, missing)
    numbers = columns.keys() - {*SIDES, LABEL}
    reader = HubDataset(name, columns, config=config, revision=revision, numbers=numbers)
    return ReadPairs(reader, ("subset", "columns"))


def languages(data: Mapping[str, Any]) -> list[str]:
    """Return the codes (ISO 639-1) of the languages in an identity of pairs, sorted; empty if all are English."""
    named = set()
    for source in data["sources"]:
        # Identities of corpora have a name, or an id and revision on the Hub; those of other datasets have a kind.
        if isinstance(source, Mapping) and "kind" not in source and source.keys() & {"release", "revision"}:
            named.add(str(source.get("language", ENGLISH)))
    # `paranmt distill` states the languages of text here.
    if "language" in data:
        named.update(map(str, data["language"]))
    return [] if named <= {ENGLISH} else sorted(named)
