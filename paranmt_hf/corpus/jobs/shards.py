"""Folders of Parquet shards, and the manifest that lets a job on them be resumed.

A job reads a folder of shards and writes another; one input shard gives one output shard. An output shard is written
under a temporary name, renamed, and then entered into the manifest with its checksum. So a job that is killed at any
moment loses only the shards in hand, and the same command continues it. The manifest also records what determines
the output, and a job with other settings refuses to continue the folder.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sys
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

# Called with the number of rows of a shard that are done so far.
ReportRows = Callable[[int], None]
# Turns the rows of a shard into new rows and the number of rows dropped, by reason.
Work = Callable[[pa.Table, ReportRows], tuple[pa.Table, dict[str, int]]]


class Stage(Protocol):
    """What a job does to each shard. A stage is a small, hashable value that can be sent to a worker.

    Attributes:
        label: One word that says what the stage does, for progress messages.
        unit: What one row is called in progress messages, such as "pairs".
        identity: Everything that determines the output, as JSON values.
    """

    @property
    def label(self) -> str: ...

    @property
    def unit(self) -> str: ...

    @property
    def identity(self) -> dict[str, Any]: ...

    def load(self) -> Work:
        """Load the models that the stage needs, and return the function that processes a shard.

        Each worker calls this once. The function takes the rows of a shard and a callback for the number of rows done
        so far; it returns the new rows and the number of rows dropped, by reason.
        """


@dataclass(frozen=True)
class Task:
    """One shard to process: its file, the file for the result, and its number of rows."""

    source: Path
    target: Path
    rows: int


@dataclass(frozen=True)
class ShardRecord:
    """What the manifest keeps of a finished shard."""

    rows: int  # Number of rows in the shard
    sha256: str  # SHA-256 of its file, in hexadecimal
    dropped: dict[str, int]  # Number of input rows that the stage dropped, by reason


# Called when a shard is written.
Done = Callable[[Task, ShardRecord], None]
# Called with the number of rows of a shard that are done so far.
TaskReport = Callable[[Task, int], None]


@dataclass
class Manifest:
    """The contents of `manifest.json` in a folder of shards: what determines the shards, and which are finished."""

    settings: dict[str, Any]  # What determines the content, as JSON values
    complete: bool  # Whether all shards are finished
    extra: dict[str, Any]  # Anything else worth keeping, such as the counts of the reader
    shards: dict[str, ShardRecord]  # The finished shards by the names of their files
    folder: Path = Path()  # The folder of the shards; not written into the file

    @classmethod
    def open(cls, folder: Path, identity: Mapping[str, Any], *, restart: bool = False) -> Manifest:
        """Open the manifest of a folder, or make one if there is none.

        Args:
            folder: Folder of the shards; created if it is missing.
            identity: What determines the shards, as JSON values.
            restart: Whether an incomplete manifest is replaced by an empty one, whatever its identity.

        Raises:
            InputError: If the folder was made with another identity, or its manifest cannot be read.
        """
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
        """Write the manifest into its folder."""
        content = {name: value for name, value in vars(self).items() if name != "folder"}
        # `asdict` would copy all records, which costs more than the writing if there are many shards.
        content["shards"] = {name: vars(shard) for name, shard in sorted(self.shards.items())}
        write_bytes(self.folder / "manifest.json", (json.dumps(content, indent=1) + "\n").encode())

    @property
    def rows(self) -> int:
        """Number of rows in all finished shards."""
        return sum(shard.rows for shard in self.shards.values())

    @property
    def dropped(self) -> dict[str, int]:
        """Number of rows dropped in all finished shards, by reason."""
        total = Counter[str]()
        for shard in self.shards.values():
            total.update(shard.dropped)
        return dict(sorted(total.items()))

    @property
    def checksum(self) -> str:
        """SHA-256 over the names and checksums of all finished shards, in hexadecimal."""
        listing = "".join(f"{name} {shard.sha256}\n" for name, shard in sorted(self.shards.items()))
        return hashlib.sha256(listing.encode()).hexdigest()

    def paths(self) -> list[Path]:
        """Return the files of the finished shards, in the order of their names."""
        return [self.folder / name for name in sorted(self.shards)]

    def forget_damaged(self) -> None:
        """Remove the entries of shards whose file is missing or has changed, so that they are processed again."""
        for name, shard in list(self.shards.items()):
            path = self.folder / name
            if not path.exists() or checksum(path) != shard.sha256:
                logger.warning(f"{path} is missing or damaged and is made again")
                del self.shards[name]
                self.complete = False


def write_shard(table: pa.Table, path: Path, dropped: dict[str, int] | None = None) -> ShardRecord:
    """Write rows as a Parquet file, atomically, and return its record.

    Args:
        table: The rows.
        path: File to write.
        dropped: Number of input rows that were dropped, by reason, for the record.
    """
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
    """Cut rows into shards of `rows` rows each, the last perhaps smaller, and return their manifest.

    If the folder holds the shards already, nothing is read. An interrupted cut starts again, because cutting is quick;
    so a corrected file or a changed column is not refused then.

    Args:
        tables: The rows, all with the same columns; without rows the manifest has no shards.
        folder: Folder of the shards.
        identity: What determines the rows, as JSON values.
        rows: Number of rows in a shard.
        unit: What one row is called in progress messages.
        extra: Called after the last row; returns what else the manifest keeps.
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
    """Process one shard, write its result and return the record; a worker process loads the stage only once."""
    # The identity holds checksums, so a model that has changed under the same name is loaded again.
    key = (stage, json.dumps(stage.identity, sort_keys=True))
    if key not in _loaded:
        _loaded.clear()
        _loaded[key] = stage.load()
    # Progress measures its rate from here on, without the time to start the process and load the model.
    report(0)
    table, dropped = _loaded[key](pq.read_table(task.source), report)
    return write_shard(table, task.target, dropped)


def forget_loaded() -> None:
    """Free what this process has loaded to process shards, such as a model on a GPU."""
    _loaded.clear()
    if "torch" in sys.modules:
        sys.modules["torch"].cuda.empty_cache()
