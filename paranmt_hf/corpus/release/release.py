"""The files of corpora: writing, reading and checking them, and fetching them from the Hub."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.reading.arrow_tables import STRINGS, is_number_type, rebatch
from paranmt_hf.corpus.release.column_checksums import ColumnChecksums
from paranmt_hf.corpus.release.record import RELEASE_RECORD, ConfigFiles, ReleaseRecord
from paranmt_hf.corpus.release.schema import (
    COLUMNS,
    OPTIONAL,
    arrow_schema,
    describe_missing,
    row_numbers,
)
from paranmt_hf.corpus.statistics.draws import (
    SAMPLE_ROWS,
    SAMPLE_SEED,
    Sample,
    filtered_ranges,
    in_ranges,
)
from paranmt_hf.corpus.statistics.release_counts import ReleaseCounter
from paranmt_hf.errors import InputError
from paranmt_hf.hub.client import check_download, fetching, is_id, split_revision
from paranmt_hf.util.files import check_regular, checksum
from paranmt_hf.util.parquet import check_unique, open_parquet, plain_types
from paranmt_hf.util.records import read_json

# Names of our columns: those of text, and all.
TEXT = frozenset(column.name for column in COLUMNS if pa.types.is_string(column.type))
NAMES = frozenset(column.name for column in COLUMNS)
# Few enough rows that a stream starts at once and a filter by score reads little, enough to compress well.
ROW_GROUP_ROWS = 20_000
# Folder of each config within a corpus.
FOLDERS = {"default": "data", "filtered": "filtered", "sample": "sample"}


def check_types(schema: pa.Schema, columns: Collection[str], path: Path) -> None:
    """Check the types of columns in a file.

    Our columns of text must hold text, and our other columns numbers, both of any width.

    Args:
        schema: Schema of the file.
        columns: Names of the columns to check; each may occur only once, and those that are missing are ignored.
        path: The file, for errors.
    """
    check_unique(schema, columns, path)
    for field in schema:
        if field.name not in columns:
            continue
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if field.name in TEXT:
            expected, fits = "text", kind in STRINGS
        else:
            expected, fits = "numbers", field.name not in NAMES or is_number_type(kind)
        if not fits:
            raise InputError(
                f"{path}: the column {field.name} holds values of type {field.type}, expected {expected}; write the "
                "file again"
            )


def check_text(table: pa.Table, path: Path, first: int) -> None:
    """Check that our columns of text are UTF-8.

    Args:
        table: Consecutive rows of a file.
        path: The file, for errors.
        first: Index of the first row in the file.
    """
    for name in table.column_names:
        column = table[name]
        if name not in TEXT or _is_valid(column):
            continue
        row = next(row for row in range(len(column)) if not _is_valid(column.slice(row, 1).combine_chunks()))
        raise InputError(
            f"{path}, row (from 0) {first + row}: the column {name} is not UTF-8; write the file again, or import it "
            "with `paranmt import`, which leaves such rows out"
        )


def _is_valid(column: pa.ChunkedArray | pa.Array) -> bool:
    """Whether the values of a column are valid, for text whether it is UTF-8."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


@dataclass
class WrittenRelease:
    """A corpus that was written: the files of its configs, the statistics of `default`, and the schema."""

    configs: dict[str, ConfigFiles]
    statistics: ReleaseCounter
    schema: pa.Schema


def write_files(
    tables: Iterable[pa.Table],
    folder: Path,
    schema: pa.Schema,
    *,
    group_rows: int | None = None,
    max_bytes: int = 500_000_000,
) -> list[Path]:
    """Write tables into Parquet files named like `train-00000-of-00002.parquet`.

    Args:
        tables: The rows.
        folder: Folder of the files, created with the first one.
        schema: Schema of the files.
        group_rows: Number of rows in a row group; `ROW_GROUP_ROWS` if None.
        max_bytes: A file ends where the next row group would probably make it larger than this.

    Returns:
        The files, in order; empty if there are no rows.
    """
    group_rows = group_rows or ROW_GROUP_ROWS
    # With a page index and content-defined chunks, columns that do not change keep their bytes. So a store that works
    # by chunks, as the Hub does, takes only the new scores of a corpus that was scored again.
    # A dictionary pays only for the origin, because neighbouring sentences are hardly ever equal.
    dictionaries = [name for name in schema.names if name == "origin"]
    options: dict[str, Any] = {"use_content_defined_chunking": True, "write_page_index": True}
    options |= {"compression": "zstd", "use_dictionary": dictionaries}
    parts: list[Path] = []
    batches = (batch for table in tables for batch in table.combine_chunks().to_batches())
    groups = rebatch(batches, group_rows)
    for first in groups:
        folder.mkdir(parents=True, exist_ok=True)
        parts.append(folder / f"part-{len(parts):05d}.parquet")
        with parts[-1].open("wb") as file, pq.ParquetWriter(file, schema, **options) as writer:
            for count, group in enumerate(chain([first], groups), 1):
                writer.write_table(pa.Table.from_batches([group]), row_group_size=group_rows)
                # The next row group will be about as large as the mean so far. Each also takes 4 KiB in the footer.
                if (file.tell() / count + 4096) * (count + 1) > max_bytes:
                    break
    named = []
    for index, part in enumerate(parts):
        named.append(part.replace(folder / f"train-{index:05d}-of-{len(parts):05d}.parquet"))
    return named


def write_release(tables: Iterable[pa.Table], folder: Path, *, optional: Collection[str] = ()) -> WrittenRelease:
    """Write the Parquet files of a corpus, with the configs `default`, `filtered` and `sample`.

    There is no config `filtered` if it would have no rows.

    Args:
        tables: Rows with the columns of the schema, in the order of their ids.
        folder: Folder of the corpus. The caller renames it when it is complete.
        optional: The optional columns that are written.

    Raises:
        InputError: If there are no rows.
    """
    schema = arrow_schema(optional)
    statistics, sample = ReleaseCounter(), Sample(SAMPLE_ROWS, SAMPLE_SEED)
    scores: list[np.ndarray] = []

    def every_row() -> Iterator[pa.Table]:
        for table in tables:
            rows = table.select(schema.names).cast(schema)
            statistics.add(rows)
            sample.add(rows)
            scores.append(rows["para_score"].to_numpy())
            yield rows

    default = _write_config(folder, "default", every_row(), schema)
    if not statistics.rows:
        raise InputError(
            "no pairs are left to release: every line was dropped; see the counts above for the reasons. The same "
            "command will find the same: change the input or the settings, or delete the work folder to start again"
        )
    configs = {"default": default}
    ranges = filtered_ranges(np.concatenate(scores))
    scores.clear()
    written = read_tables([folder / path for path in default.files])
    filtered = _write_config(folder, "filtered", (table.filter(in_ranges(table, ranges)) for table in written), schema)
    # `datasets` cannot stream a config without rows, so that is left out.
    if filtered.rows:
        filtered.selection = {name: list(bounds) for name, bounds in ranges.items()}
        configs["filtered"] = filtered
    drawn = sample.table()
    drawn = drawn.take(pa.array(np.argsort(row_numbers(drawn)))).combine_chunks()
    configs["sample"] = _write_config(folder, "sample", [drawn], schema)
    configs["sample"].selection = {"rows": len(drawn), "seed": SAMPLE_SEED}
    return WrittenRelease(configs, statistics, schema)


def _write_config(folder: Path, config: str, tables: Iterable[pa.Table], schema: pa.Schema) -> ConfigFiles:
    """Write the files of one config, and return their checksums and sizes."""
    written, sums = ConfigFiles(), ColumnChecksums()

    def counted() -> Iterator[pa.Table]:
        for table in tables:
            written.rows += table.num_rows
            written.bytes += table.nbytes
            sums.add(table)
            yield table

    for path in write_files(counted(), folder / FOLDERS[config], schema):
        written.files[path.relative_to(folder).as_posix()] = checksum(path)
        written.file_bytes += path.stat().st_size
    written.columns = sums.digests()
    return written


@dataclass(frozen=True)
class FoundRelease:
    """A corpus in a folder or on the Hub; one config of it was fetched and checked against the record."""

    name: str  # Name of the folder, or id on the Hub
    files: list[Path]  # Parquet files of the config, in order
    record: ReleaseRecord  # Record of the corpus
    identity: dict[str, Any]  # What determines the rows: checksums of the files, or id and commit on the Hub


def find_release(corpus: str | Path, config: str = "default") -> FoundRelease:
    """Find a corpus and check the files of one config; a corpus on the Hub is downloaded.

    Args:
        corpus: Folder, or id on the Hub, which `@` and a revision may follow.
        config: Name of the config.

    Raises:
        InputError: If there is no such corpus, or it is damaged.
    """
    folder = Path(corpus).expanduser()
    name, revision = split_revision(str(corpus))
    if folder.exists() or not is_id(name):
        files, record = release_files(folder, config), read_record(folder, [config])
        return FoundRelease(folder.resolve().name, files, record, {"files": record.configs[config].files})
    found = fetch_release(name, revision, config)
    if found is None:
        raise InputError(f"dataset {name!r} is not a corpus of this program; `paranmt import` makes one of it")
    return found


def release_files(folder: Path, config: str = "default", *, option: str = "config") -> list[Path]:
    """Return the Parquet files of one config of a corpus, in order.

    Args:
        folder: Folder of the corpus.
        config: Name of the config.
        option: Parameter that names the config, for errors.

    Raises:
        InputError: If there is no such config, or a file is missing.
    """
    if config not in FOLDERS:
        raise InputError(f"{option} must be one of {', '.join(FOLDERS)}, was {config!r}", option=option)
    check_regular(folder)
    if not folder.is_dir():
        found = "is a file" if folder.is_file() else "does not exist"
        raise InputError(f"{folder} {found}; expected the folder of a corpus", path=folder)
    place = folder / FOLDERS[config]
    check_regular(place)
    files = sorted(place.glob("train-*-of-*.parquet"))
    if not files:
        raise InputError(
            f"{folder} is not a corpus, the folder that `paranmt build` or `paranmt import` writes: {place} holds no "
            "train-*.parquet; name a corpus, or a file in the folder",
            path=folder,
        )
    expected = int(files[0].stem.rsplit("-", 1)[1])
    if len(files) != expected:
        raise InputError(f"{place} holds {len(files)} of {expected} Parquet files; copy it again", path=folder)
    return files


def checked_files(folder: Path, config: str = "default") -> list[Path]:
    """Return the Parquet files of one config of a corpus, in order.

    They are checked against the record, if there is one.
    """
    files = release_files(folder, config)
    if (folder / RELEASE_RECORD).is_file():
        read_record(folder, [config])
    return files


def read_record(folder: Path, configs: Collection[str] | None = None) -> ReleaseRecord:
    """Read the `build.json` of a corpus, and check the files of `configs` (all if left out) against it."""
    record = ReleaseRecord.read(folder)
    for name, config in record.configs.items():
        if configs and name not in configs:
            continue
        present = {path.relative_to(folder).as_posix(): path for path in release_files(folder, name)}
        damaged = sorted(present.keys() ^ config.files.keys())
        damaged = damaged or [path for path, file in present.items() if checksum(file) != config.files[path]]
        if damaged:
            raise InputError(f"{folder / damaged[0]} is not as {RELEASE_RECORD} says; copy or build {folder} again")
    return record


def fetch_release(name: str, revision: str | None, config: str = "default") -> FoundRelease | None:
    """Download one config of a corpus from the Hub, and check its files against the record.

    An interrupted download continues, and files in the cache of the client are not downloaded again.

    Args:
        name: Id of the dataset.
        revision: Branch, tag or commit; None for the main branch.
        config: Name of the config.

    Returns:
        The corpus, or None if the dataset is not a corpus of this package.

    Raises:
        InputError: If the corpus lacks the config, or a file is damaged.
    """
    from huggingface_hub import HfApi, snapshot_download

    with fetching(name, "dataset", revision):
        info = HfApi().dataset_info(name, revision=revision)
        if RELEASE_RECORD not in {sibling.rfilename for sibling in info.siblings or []}:
            return None
        options = {"repo_type": "dataset", "revision": info.sha}
        folder = Path(snapshot_download(name, allow_patterns=[RELEASE_RECORD], **options))
        if "schema_version" not in read_json(folder / RELEASE_RECORD, "the record of a dataset"):
            return None
        record = ReleaseRecord.read(folder, f"dataset {name!r}")
        if config not in record.configs:
            raise InputError(f"dataset {name!r} has the configs {', '.join(record.configs)}, not {config!r}")
        snapshot_download(name, allow_patterns=[f"{FOLDERS[config]}/*.parquet"], **options)
    files = release_files(folder, config)
    try:
        read_record(folder, [config])
    except InputError:
        # If a download failed, an error about the download says more than one about the corpus.
        for path in files:
            check_download(path, name)
        raise
    return FoundRelease(name, files, record, {"dataset": name, "revision": str(info.sha)})


def read_tables(
    files: Iterable[Path],
    columns: Sequence[str] | None = None,
    *,
    skip: int = 0,
    checked: Sequence[str] | None = None,
) -> Iterator[pa.Table]:
    """Read Parquet files of corpora, one row group at a time.

    Args:
        files: The files.
        columns: Names of the columns to read; None for all, of which those that every corpus has must be there.
        skip: Number of rows to skip at the start; must end where a row group ends.
        checked: Columns whose types must be those of the schema; None for all that are read.

    Raises:
        InputError: If a column is missing, or a type or text is wrong.
    """
    for path in files:
        with open_parquet(path) as file:
            needed = set(columns) if columns else {column.name for column in COLUMNS if not column.optional}
            if missing := sorted(needed - set(file.schema_arrow.names)):
                # A file without the columns that every corpus has is of another kind; other columns can be made.
                strange = "" if set(missing) <= OPTIONAL else "; it is not part of a corpus"
                raise InputError(f"{describe_missing(path, missing)}{strange}")
            check_types(file.schema_arrow, checked or columns or file.schema_arrow.names, path)
            first = 0
            for group in range(file.num_row_groups):
                rows = file.metadata.row_group(group).num_rows
                if skip and skip >= rows:
                    skip -= rows
                else:
                    table = file.read_row_group(group, columns=columns)
                    table = plain_types(table)
                    check_text(table, path, first)
                    yield table
                first += rows
