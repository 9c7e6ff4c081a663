"""Publishing releases: the check against the record, and the card."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.record import RELEASE_RECORD, ReleaseRecord
from paranmt_hf.corpus.release import read_record, release_files
from paranmt_hf.corpus.release_card import HISTOGRAMS_PICTURE, RELEASE_FILES, release_card
from paranmt_hf.corpus.schema import arrow_schema
from paranmt_hf.corpus.statistics import plot_histograms
from paranmt_hf.errors import InputError
from paranmt_hf.hub.licenses import License
from paranmt_hf.hub.publish import About, Draft, Kind
from paranmt_hf.hub.upload import Content
from paranmt_hf.util.optional import available
from paranmt_hf.util.yaml_files import card_header


def check_release(folder: Path, license: str | None = None) -> ReleaseRecord:
    """Check that the files of a release are those of its record, and its licence.

    Returns:
        The record, under `license` if one is given.
    """
    record = read_record(folder)
    if license is not None:
        record = record.with_license(str(License.parse(license)))
    else:
        _check_license(folder, record)
    schema = arrow_schema(record.columns)
    for name, config in record.configs.items():
        _check_rows(folder, name, config.rows, schema)
    _check_sizes(folder, record)
    return record


def _check_license(folder: Path, record: ReleaseRecord) -> None:
    """Reject a licence that differs between record and card, and one that the Hub does not accept."""
    stated = record.license
    card = card_header(folder / "README.md")
    others = {f"{RELEASE_RECORD} under 'settings.release'": str(record.settings["release"].get("license"))}
    if card:
        others["README.md"] = str(License.of_header(card))
    for place, other in others.items():
        if other != stated:
            raise InputError(
                f"{folder / RELEASE_RECORD} states the licence {stated!r} and {place} {other!r}, so one was edited; "
                "undo that, or give the one that holds as `license`",
                option="license",
            )
    try:
        License.parse(stated)
    except InputError as error:
        raise InputError(
            f"{folder} is under the licence {stated!r}, which the Hub does not accept: {error}", option="license"
        ) from None


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
    """Compare the sizes on the card with the files."""
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


def draft_release(folder: Path, about: About, results: Sequence[Any] = ()) -> Draft:
    """Check a release and list the files to publish, under the licence of `about` if it states one."""
    record = check_release(folder, about.license)
    files: dict[str, Content] = {path: folder / path for config in record.configs.values() for path in config.files}
    built = ReleaseRecord.parse(folder, str(folder))
    # As it is in the folder, unless it is published under another licence.
    files[RELEASE_RECORD] = folder / RELEASE_RECORD if record == built else record.to_bytes()
    picture = draw_histograms(record)
    if picture:
        files[HISTOGRAMS_PICTURE] = picture

    def card(repository: str, version: str | None) -> str:
        notes = about.notes or ""
        return release_card(record, picture=bool(picture), repository=repository, version=version, notes=notes)

    return Draft(
        files,
        card,
        release_card(built, picture=(folder / HISTOGRAMS_PICTURE).exists()),
        f"Release of {record.statistics.rows:,} pairs",
        missing=[] if picture else ["the histograms as a picture: pip install 'paranmt-hf[plots]'"],
        checksums={path: checksum for config in record.configs.values() for path, checksum in config.files.items()},
    )


RELEASE = Kind(
    "a release",
    "dataset",
    "load_dataset",
    owns=lambda path: bool(RELEASE_FILES.fullmatch(path)),
    draft=draft_release,
)
