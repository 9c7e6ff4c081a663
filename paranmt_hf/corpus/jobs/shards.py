"""Shards and their manifest: the resumable job reads a folder of Parquet shards and writes another.

One input shard gives one output shard. It is written under a temporary name and renamed, then entered into the
manifest with its checksum. So a job that is killed at any moment loses the shards in hand and nothing else,
and the same command continues it. The manifest also holds what determines the output; a job with other settings does
not continue a folder.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.reading.arrow_tables import rebatch
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import checksum, sweep, write_bytes
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import as_json, describe_differences, from_json, read_json

logger = logging.getLogger(__name__)

ReportRows = Callable[[int], None]
Work = Callable[[pa.Table, ReportRows], tuple[pa.Table, dict[str, int]]]


class Stage(Protocol):
    """What a job does to a shard. A stage is a small, hashable value that can be sent to a worker.

    Attributes:
        label: What the stage does, in one word.
        unit: Name of a row in messages that count rows.
        identity: Everything that determines the output, as JSON values.
    """

    @property
    def label(self) -> str: ...

    @property
    def unit(self) -> str: ...

    @property
    def identity(self) -> dict[str, Any]: ...

    def load(self) -> Work:
        """Load models, once in each worker.

        The result turns a shard, and a callback for the rows done so far, into the new shard and the number of rows
        dropped, by reason.
        """


@dataclass(frozen=True)
class Task:
    """One shard to process: its file, the file of its result, and its number of rows."""

    source: Path
    target: Path
    rows: int


@dataclass(frozen=True)
class ShardRecord:
    """The record of a finished shard."""

    rows: int  # Rows of it
    sha256: str  # Checksum of the file
    dropped: dict[str, int]  # Rows that were dropped on the way, by reason


Done = Callable[[Task, ShardRecord], None]
TaskReport = Callable[[Task, int], None]


@dataclass
class Manifest:
    """The inputs of a folder of shards, and its finished shards, in its `manifest.json`."""

    settings: dict[str, Any]  # What determines the content, as JSON values
    complete: bool  # Whether all shards are there
    extra: dict[str, Any]  # Anything else worth keeping, such as the report of the reader
    shards: dict[str, ShardRecord]  # The finished shards by the names of their files
    folder: Path = Path()  # The folder, which is not in the file

    @classmethod
    def open(cls, folder: Path, identity: Mapping[str, Any], *, restart: bool = False) -> Manifest:
        """Open or create the manifest of a folder; with `restart`, an incomplete one restarts with any identity."""
        wanted = as_json(identity)
        path = folder / "manifest.json"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            return cls(wanted, False, {}, {}, folder)
        try:
            manifest = replace(from_json(cls, read_json(path, "a manifest of this program"), path), folder=folder)
        except InputError as error:
            raise InputError(f"{error}; delete {folder} to start again") from None
        if restart and not manifest.complete:
            return cls(wanted, False, {}, {}, folder)
        if differences := describe_differences(manifest.settings, wanted):
            raise InputError(
                f"{folder} was made with other settings: {differences}; "
                "use the former settings, or another output folder, or delete it"
            )
        return manifest

    def save(self) -> None:
        content = {name: value for name, value in vars(self).items() if name != "folder"}
        # Not `asdict`, whose copies would cost more than the writing where shards are many.
        content["shards"] = {name: vars(shard) for name, shard in sorted(self.shards.items())}
        write_bytes(self.folder / "manifest.json", (json.dumps(content, indent=1) + "\n").encode())

    @property
    def rows(self) -> int:
        return sum(shard.rows for shard in self.shards.values())

    @property
    def dropped(self) -> dict[str, int]:
        """Rows dropped in all finished shards, by reason."""
        total = Counter[str]()
        for shard in self.shards.values():
            total.update(shard.dropped)
        return dict(sorted(total.items()))

    @property
    def checksum(self) -> str:
        """SHA-256 over the names and checksums of all shards."""
        listing = "".join(f"{name} {shard.sha256}\n" for name, shard in sorted(self.shards.items()))
        return hashlib.sha256(listing.encode()).hexdigest()

    def paths(self) -> list[Path]:
        """The finished shards in order."""
        return [self.folder / name for name in sorted(self.shards)]

    def forget_damaged(self) -> None:
        """Drop entries whose file is missing or changed, so that those shards are processed again."""
        for name, shard in list(self.shards.items()):
            path = self.folder / name
            if not path.exists() or checksum(path) != shard.sha256:
                logger.warning(f"{path} is missing or damaged and is made again")
                del self.shards[name]
                self.complete = False


def write_shard(table: pa.Table, path: Path, dropped: dict[str, int] | None = None) -> ShardRecord:
    """Write a shard atomically; returns its record, with the numbers of rows that were `dropped` on the way."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="lz4", use_dictionary=False)
    content = sink.getvalue()
    write_bytes(path, content)
    return ShardRecord(table.num_rows, hashlib.sha256(content).hexdigest(), dropped or {})


def cut_into_shards(
    tables: Iterable[pa.Table | pa.RecordBatch],
    folder: Path,
    identity: Mapping[str, Any],
    rows: int,
    *,
    unit: str = "pairs",
    extra: Callable[[], dict[str, Any]] = dict,
) -> Manifest:
    """Cut rows into shards of `rows` rows each, or find them cut; the manifest has no shards if there are no rows.

    Cutting is quick, so an interrupted cut starts again, also with other settings: a corrected file or a changed
    column is not rejected. The `tables`, all with the same columns, are read only if they are not cut yet. `extra`
    says, when all rows have been read, what else the manifest keeps.
    """
    manifest = Manifest.open(folder, {**identity, "rows_per_shard": rows}, restart=True)
    if manifest.complete:
        manifest.forget_damaged()
    if manifest.complete:
        return manifest
    sweep(folder)
    manifest.shards.clear()
    manifest.save()
    with Progress("read", unit=unit) as progress:
        batches = (
            batch
            for table in tables
            for batch in ([table] if isinstance(table, pa.RecordBatch) else table.combine_chunks().to_batches())
        )
        for shard in rebatch(batches, rows):
            name = f"shard-{len(manifest.shards):06d}.parquet"
            manifest.shards[name] = write_shard(pa.Table.from_batches([shard]), folder / name)
            progress.advance_to(manifest.rows)
    manifest.extra, manifest.complete = extra(), True
    manifest.save()
    return manifest


_loaded: dict[tuple[Stage, str], Work] = {}


def run_shard(stage: Stage, task: Task, report: ReportRows) -> ShardRecord:
    """Process one shard; a worker process loads the stage at its first shard."""
    # The identity holds checksums: a model that has changed under the same name is loaded again.
    key = (stage, json.dumps(stage.identity, sort_keys=True))
    if key not in _loaded:
        _loaded.clear()
        _loaded[key] = stage.load()
    # From now on time is that of the work: starting a process and loading a model count for no rate.
    report(0)
    table, dropped = _loaded[key](pq.read_table(task.source), report)
    return write_shard(table, task.target, dropped)
