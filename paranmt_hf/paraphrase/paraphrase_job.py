"""What the commands that paraphrase many sentences share: shards that continue, and the record beside a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from paranmt_hf.corpus.jobs.cutting import cut_into_shards
from paranmt_hf.corpus.jobs.shards import Manifest
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import check_result_path, check_suffix, checksum, write_bytes
from paranmt_hf.util.records import Identity, describe_differences, from_json, read_json
from paranmt_hf.util.run import work_folder
from paranmt_hf.util.work import keep_identity, locked, remove, remove_leftover
from paranmt_hf.version import __version__

Made = TypeVar("Made")
# Lines that make one unit of work: a kill loses no more than those in hand.
SHARD_ROWS = 1000


@dataclass(frozen=True)
class FileRecord:
    """The content of the JSON file beside a result: what determined it, what it holds, its checksum."""

    version: str
    settings: dict[str, Any]
    figures: dict[str, Any]
    sha256: str


def record_path(out: Path) -> Path:
    """Where the record of a result is."""
    return out.with_name(f"{out.name}.json")


def result_file(out: str | Path, suffixes: tuple[str, ...]) -> Path:
    """Check the name of a result, before the work whose result it is.

    Raises:
        InputError: It cannot be written there, or its name does not say what it is.
    """
    path = Path(out).expanduser()
    check_result_path(path, "--out")
    check_suffix(path, "--out", suffixes)
    return path


def make_once(
    kind: Callable[..., Made],
    out: Path,
    identity: Identity,
    make: Callable[[Path], dict[str, Any]],
    *,
    command: str,
    doing: str,
) -> Made:
    """Make a file with its record beside it, or find it as it was made before.

    Args:
        kind: Makes what is returned, of the file, its figures by their names, and `fresh`.
        out: The file.
        identity: What determines it.
        make: Writes the file into the work folder, under its name, and returns its figures as JSON values.
        command: The command that does this.
        doing: What it does, for messages.

    Raises:
        InputError: Something else is there.
    """
    record = made_before(out, identity, command)
    fresh = record is None
    if record is None:
        work = work_folder(out)
        with locked(work, command, worth=holds_shards):
            keep_identity(work, identity, worth=holds_shards, doing=doing)
            record = put_with_record(work / out.name, out, identity, make(work))
            remove(work)
    try:
        return kind(out, **record.figures, fresh=fresh)
    except TypeError:
        raise InputError(f"{record_path(out)} is no record of what `paranmt {command}` writes; move it away") from None


def made_before(out: Path, identity: Identity, command: str) -> FileRecord | None:
    """Find a result that was made already.

    Args:
        out: The file.
        identity: What determines it.
        command: Whose work folder may be left over.

    Returns:
        Its record; None where there is no such file.

    Raises:
        InputError: Something else is there.
    """
    path, advice = record_path(out), "choose another --out, or move it away"
    if not out.exists():
        # A kill between the two leaves a record alone, which is written again; anything else is somebody's.
        if path.exists():
            from_json(FileRecord, read_json(path, "the record of a file of this program"), path)
        return None
    if not path.is_file():
        raise InputError(f"{out} exists, and no {path.name} beside it says what it is; {advice}")
    record = from_json(FileRecord, read_json(path, "the record of a file of this program"), path)
    if differences := describe_differences(record.settings, identity):
        raise InputError(f"{out} was made with other settings: {differences}; {advice}")
    if checksum(out) != record.sha256:
        raise InputError(f"{out} is not as it was written; {advice}")
    remove_leftover(out, command)
    return record


def put_with_record(made: Path, out: Path, identity: Identity, figures: dict[str, Any]) -> FileRecord:
    """Give a file its name, and its record beside it.

    Args:
        made: The file in the work folder, where its record is written, too: what a kill leaves of it goes with that.
        out: Its name.
        identity: What determines it.
        figures: What it holds.
    """
    record = FileRecord(__version__, identity, figures, checksum(made))
    write_bytes(record_path(made), f"{json.dumps(asdict(record), indent=1, ensure_ascii=False)}\n".encode())
    # The record first: a file is known by it.
    record_path(made).replace(record_path(out))
    made.replace(out)
    return record


def holds_shards(work: Path) -> bool:
    """Tell whether a work folder holds shards that are done."""
    return any((work / "output").glob("*.parquet"))


def cut_shards(tables: Iterator[pa.Table], folder: Path, identity: Identity) -> Manifest:
    """Cut tables into shards, unless that was done.

    Args:
        tables: The rows.
        folder: Of the shards.
        identity: What determines the rows.

    Returns:
        Their manifest; without shards where there is no row.
    """
    return cut_into_shards(tables, folder, identity, SHARD_ROWS, unit="lines")
