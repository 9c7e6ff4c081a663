"""The resumable shard job: a folder of Parquet shards in, a folder of Parquet shards out.

One input shard gives one output shard. It is written under a temporary name beside its place and renamed, then entered
into the manifest with its checksum. So a job that is killed at any moment loses the shards in hand and nothing else,
and the same command continues it. The manifest also holds what determines the output; a job with other settings does
not continue a folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.errors import InputError
from paranmt_hf.util.files import checksum, write_bytes

logger = logging.getLogger(__name__)

# Characters of a value that are told.
BRIEF = 100

Report = Callable[[int], None]
Work = Callable[[pa.Table, Report], tuple[pa.Table, dict[str, int]]]


class Stage(Protocol):
    """What a job does to a shard. A stage is a small value that can be sent to a worker, and hashable."""

    @property
    def label(self) -> str:
        """What the stage does, in one word."""
        ...

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that determines the output, as JSON values."""
        ...

    def load(self) -> Work:
        """Load models, once in each worker.

        Returns:
            A function from a shard and a callback for the rows done so far to the new shard and the number of rows
            dropped, by reason.
        """
        ...


@dataclass(frozen=True)
class Task:
    """One shard to do: where it is, where its result goes, how many rows it has."""

    source: Path
    target: Path
    rows: int


@dataclass
class Manifest:
    """What a folder of shards was made from, and which shards are done.

    Attributes:
        folder: The folder; the manifest is its `manifest.json`.
        settings: What determines the content.
        shards: For each finished shard its rows, SHA-256 and dropped rows by reason.
        extra: Anything else worth keeping, such as the report of the reader.
        complete: Whether all shards are there.
    """

    folder: Path
    settings: dict[str, Any]
    shards: dict[str, dict[str, Any]]
    extra: dict[str, Any]
    complete: bool = False

    @classmethod
    def open(cls, folder: Path, settings: Mapping[str, Any], *, restart: bool = False) -> Manifest:
        """Open the manifest of a folder, or start one.

        Args:
            folder: The folder.
            settings: What determines the content.
            restart: Start anew, whatever the settings were, where the folder is not complete.

        Raises:
            InputError: The folder was made with other settings, or its manifest cannot be read.
        """
        # What comes back from the file has been through JSON, so the settings go through it too.
        wanted = json.loads(json.dumps(dict(settings)))
        path = folder / "manifest.json"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            return cls(folder, wanted, {}, {})
        try:
            found = json.loads(path.read_text(encoding="utf8"))
            manifest = cls(folder, found["settings"], found["shards"], found["extra"], found["complete"])
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{path} is not a manifest of this program ({error}); delete {folder} to start anew"
            ) from None
        if restart and not manifest.complete:
            return cls(folder, wanted, {}, {})
        if differences := describe_differences(manifest.settings, wanted):
            raise InputError(
                f"{folder} was made with other settings: {'; '.join(differences)}; "
                "use the former settings, or another output folder, or delete it"
            )
        return manifest

    def save(self) -> None:
        """Write the manifest, so that at every moment either the old or the new one is there."""
        content = {
            "settings": self.settings,
            "complete": self.complete,
            "extra": self.extra,
            "shards": dict(sorted(self.shards.items())),
        }
        write_bytes(self.folder / "manifest.json", (json.dumps(content, indent=1) + "\n").encode())

    @property
    def rows(self) -> int:
        """Rows of all finished shards."""
        return sum(entry["rows"] for entry in self.shards.values())

    @property
    def dropped(self) -> dict[str, int]:
        """Rows dropped in all finished shards, by reason."""
        total: dict[str, int] = {}
        for entry in self.shards.values():
            for reason, count in entry["dropped"].items():
                total[reason] = total.get(reason, 0) + count
        return dict(sorted(total.items()))

    def fingerprint(self) -> str:
        """SHA-256 over the names and checksums of all shards."""
        listing = "".join(f"{name} {entry['sha256']}\n" for name, entry in sorted(self.shards.items()))
        return hashlib.sha256(listing.encode()).hexdigest()

    def paths(self) -> list[Path]:
        """The finished shards in order."""
        return [self.folder / name for name in sorted(self.shards)]

    def forget_damaged(self) -> None:
        """Drop entries whose file is missing or is not the one that was written; those shards are done again."""
        for name, entry in list(self.shards.items()):
            path = self.folder / name
            if not path.exists() or checksum(path) != entry["sha256"]:
                logger.warning(f"{path} is missing or damaged and is made again")
                del self.shards[name]
                self.complete = False


def describe_differences(found: Mapping[str, Any], wanted: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Say where two nested settings differ, one `name: was X, now Y` each."""
    differences = []
    for name in dict.fromkeys([*found, *wanted]):
        old, new = found.get(name), wanted.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            differences += describe_differences(old, new, f"{prefix}{name}.")
        elif old != new:
            was, now = _brief(old), _brief(new)
            differences.append(
                f"{prefix}{name}: " + (f"was {was}, now {now}" if was != now else f"not the same {was}")
            )
    return differences


def _brief(value: object) -> str:
    """Write a value, but no checksum or list of files to its end."""
    text = repr(value)
    return text if len(text) <= BRIEF else f"{text[:BRIEF]}..."


def write_shard(table: pa.Table, path: Path) -> str:
    """Write a shard so that its name never stands for half of it.

    Returns:
        SHA-256 of the file.
    """
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="lz4", use_dictionary=False)
    content = sink.getvalue()
    write_bytes(path, content)
    return hashlib.sha256(content).hexdigest()


_loaded: dict[tuple[Stage, str], Work] = {}


def run_shard(stage: Stage, task: Task, report: Report) -> dict[str, Any]:
    """Do one shard; a worker process loads the stage with its first one.

    Returns:
        The shard's entry in the manifest.
    """
    # The settings hold checksums: a model that has changed under the same name is loaded anew.
    key = (stage, json.dumps(stage.settings, sort_keys=True))
    if key not in _loaded:
        _loaded.clear()
        _loaded[key] = stage.load()
    table, dropped = _loaded[key](pq.read_table(task.source), report)
    digest = write_shard(table, task.target)
    return {"rows": table.num_rows, "sha256": digest, "dropped": dropped}


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for one command; the lock goes with the process, however it ends.

    Raises:
        InputError: Another command is at work in the folder, or the folder is somebody else's.
    """
    if folder.exists() and not (folder / "lock").exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is needed for work in progress and holds something else; move it away")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"another command is at work in {folder}; wait for it, or stop it first") from None
        yield


def sweep(folder: Path) -> None:
    """Remove temporary files that a killed command left in a folder."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)
