"""What is checked of a release before it is published: that its record and its files say the same."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.record import ReleaseRecord
from paranmt_hf.corpus.release import read_record, release_files
from paranmt_hf.corpus.schema import arrow_schema
from paranmt_hf.corpus.statistics import plot_histograms
from paranmt_hf.errors import InputError
from paranmt_hf.util.optional import available
from paranmt_hf.workflows.support.release_card import HISTOGRAMS_PICTURE


def check_release(folder: Path) -> ReleaseRecord:
    """Check a release: its record, and that its files are what the record says.

    Returns:
        The record.

    Raises:
        InputError: It is no whole release of this schema, or its card would say what is not so.
    """
    record = read_record(folder)
    schema = arrow_schema(source="source" in record.columns, origin="origin" in record.columns)
    for name, config in record.configs.items():
        _check_rows(folder, name, config.rows, schema)
    _check_sizes(folder, record)
    return record


def _check_rows(folder: Path, config: str, expected: int, schema: pa.Schema) -> None:
    """Compare the Parquet files of a config with the schema and the record."""
    rows = 0
    for path in release_files(folder, config):
        try:
            file = pq.ParquetFile(path)
        except pa.ArrowException as error:
            raise InputError(f"cannot read {path}: {error}; copy or build {folder} again") from None
        with file:
            rows += file.metadata.num_rows
            if not file.schema_arrow.remove_metadata().equals(schema):
                raise InputError(f"{path} has other columns than the schema of a release; build it again")
    if rows != expected:
        raise InputError(
            f"{folder}: config {config!r} has {rows:,} rows, its record says {expected:,}; build it again"
        )


def _check_sizes(folder: Path, record: ReleaseRecord) -> None:
    """Compare what the card says of sizes with the files."""
    for name, config in record.configs.items():
        if config.file_bytes != sum((folder / path).stat().st_size for path in config.files):
            raise InputError(
                f"{folder}: the record has another size for config {name!r} than its files; build it again"
            )
    if record.statistics.rows != record.configs["default"].rows:
        raise InputError(f"{folder}: the record's statistics are of another number of rows; build it again")


def draw_histograms(record: ReleaseRecord) -> bytes | None:
    """Draw the histograms of a release as a PNG; None without matplotlib."""
    if not available("matplotlib"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        plot_histograms(record.statistics, Path(folder) / HISTOGRAMS_PICTURE)
        return (Path(folder) / HISTOGRAMS_PICTURE).read_bytes()
