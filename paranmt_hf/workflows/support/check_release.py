"""What is checked of a release before it is published: that its record and its files say the same."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.release import RECORD, read_record, release_files
from paranmt_hf.corpus.schema import arrow_schema
from paranmt_hf.corpus.statistics import plot_histograms
from paranmt_hf.errors import InputError
from paranmt_hf.util.optional import available
from paranmt_hf.util.records import from_json
from paranmt_hf.workflows.build import ReleaseConfig
from paranmt_hf.workflows.support.release_card import PICTURE

# What is read of a release's record: here, and by its card.


@dataclass(frozen=True)
class _Config:
    files: dict[str, str]
    rows: int
    bytes: int
    file_bytes: int
    selection: dict[str, Any]


@dataclass(frozen=True)
class _Example:
    reference: str
    translation: str
    para_score: float


@dataclass(frozen=True)
class _Range:
    range: str
    rows: int
    mean_trigram_overlap: float | None
    mean_length: float | None
    examples: list[_Example]


@dataclass(frozen=True)
class _Statistics:
    rows: int
    mean_reference_length: float | None
    mean_translation_length: float | None
    mean_translation_score: float | None
    ranges: list[_Range]
    histogram: list[int]
    histograms: dict[str, list[int]]


@dataclass(frozen=True)
class _Record:
    name: str
    version: str
    schema_version: str
    license: str | None
    settings: dict[str, Any]
    dropped: dict[str, int]
    columns: list[str]
    configs: dict[str, _Config]
    statistics: _Statistics


def check_release(folder: Path) -> dict[str, Any]:
    """Check a release: its record, and that its files are what the record says.

    Returns:
        The record.

    Raises:
        InputError: It is no whole release of this schema, or its card would say what is not so.
    """
    values = read_record(folder)
    record = from_json(_Record, values, folder / RECORD)
    schema = arrow_schema(source="source" in record.columns, origin="origin" in record.columns)
    for name, config in record.configs.items():
        _check_rows(folder, name, config.rows, schema)
    ReleaseConfig(license=record.license)
    _check_sizes(folder, record)
    return values


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


def _check_sizes(folder: Path, record: _Record) -> None:
    """Compare what the card says of sizes with the files."""
    for name, config in record.configs.items():
        if config.file_bytes != sum((folder / path).stat().st_size for path in config.files):
            raise InputError(
                f"{folder}: the record has another size for config {name!r} than its files; build it again"
            )
    if "default" not in record.configs or record.statistics.rows != record.configs["default"].rows:
        raise InputError(f"{folder}: the record's statistics are of another number of rows; build it again")


def draw_histograms(record: dict[str, Any]) -> bytes | None:
    """Draw the histograms of a release as a PNG; None without matplotlib."""
    if not available("matplotlib"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        plot_histograms(record["statistics"], Path(folder) / PICTURE)
        return (Path(folder) / PICTURE).read_bytes()
