"""The steps common to all long work: find a finished result, or lock, resume and make it, and rename it when complete.

Unfinished work for the result `OUT` is in the folder `OUT.work`, which one process at a time locks. In it, the file
`run.json` says which command the work belongs to and what determines the result. A result gets its name when it is
complete, and has a record. The settings in the record are the identity of the result: JSON values, with checksums of
all input.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from paranmt_hf.errors import InputError, OtherSettingsError, WriteError
from paranmt_hf.util.files import (
    AGAIN,
    checksum,
    disk_full,
    put_in_place,
    refuse_inside,
    resolved,
    result_file,
    write_failure,
    writing,
)
from paranmt_hf.util.records import FileRecord, Identity, Record, as_json, describe_differences
from paranmt_hf.util.work import RESULT, Holds, lock, locked, remove, remove_leftover, state_of, work_folder

OLD = "old"  # Name in the work folder of a result that is being replaced
ANOTHER = "choose another path"

# Path of the result of the command that is running, and its options by the name of the command
_OPTIONS: ContextVar[tuple[Path | None, dict[str, dict[str, Any]]]] = ContextVar("options")

R = TypeVar("R", bound=Record)
T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Result(Generic[R]):
    """The result of a command.

    Attributes:
        folder: Folder of the result, or its file if the result is a single file.
        record: Record of the result, with its settings and figures.
        fresh: Whether this call made the result; False if it was finished before.
    """

    folder: Path
    record: R
    fresh: bool

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r}, fresh={self.fresh})"

    def summary(self) -> str:
        """Return what the command line prints about the result."""
        return str(self.folder)


@contextmanager
def recording(out: Path | None, command: str, options: Mapping[str, Any]) -> Iterator[None]:
    """Record the options of a command in its result: in a `with` block, the record of a result at `out` gets them.

    Results that are made at other paths meanwhile do not get them.
    """
    before = _OPTIONS.set((out, {command: dict(options)}))
    try:
        yield
    finally:
        _OPTIONS.reset(before)


def result_folder(out: str | Path, kind: type[Record] | None = None, *, sources: Iterable[str | Path] = ()) -> Path:
    """Return the absolute path of the folder of a result; reject one that cannot be written, before any work is done.

    Args:
        out: The path as given.
        kind: Class of the record of the result. The folder must be missing, empty, or hold a result with such a
            record. None if it is not checked here what the folder holds.
        sources: Input files and folders of the result. It must not lie inside one, because it would change it.
    """

    def refusal(reason: str) -> InputError:
        return InputError(f"{out} {reason}; {ANOTHER}", option="out", path=folder)

    folder = resolved(out)
    if not folder.name:
        raise refusal("is the root of the file system")
    if folder == Path.cwd():
        raise refusal("is the current folder of this process, which cannot be replaced")
    refuse_inside(folder, sources, "out")
    if kind is not None and not is_free(folder):
        _read(folder, kind, kind.read)
    return folder


def is_free(out: Path) -> bool:
    """Return whether a path is missing or an empty folder, so that a result can be put there."""
    return not out.exists() or (out.is_dir() and not any(out.iterdir()))


def run(
    out: str | Path,
    identity: object,
    kind: type[R],
    make: Callable[[Path, Path], R],
    *,
    result: Callable[[Path, R, bool], T],
    command: str,
    holds: Holds | None = None,
    read: Callable[[Path], R] | None = None,
    work_identity: object = None,
    keep_result: bool = False,
    rank: int = 0,
    barrier: Callable[[], None] = lambda: None,
) -> T:
    """Return a finished result if it exists, or else make it.

    The work folder is locked meanwhile. After a kill the next call continues the work in it. The result is renamed to
    `out` when it is complete. If a result or unfinished work with other settings is there, it is refused.

    If `make` raises an `InputError`, the work folder is removed, unless `holds` says that it holds expensive work. A
    full disk or a lost process keeps the work folder of long work. Other exceptions, such as Ctrl-C, do too.

    Args:
        out: Folder of the result, or its file if `kind` is a `FileRecord`.
        identity: What determines the result: a dataclass of settings, or JSON values.
        kind: Class of the record of the result; the settings in the record are `identity`.
        make: Makes the result, and returns its record, which `run` then writes. It is called with two paths: the work
            folder, and a folder of the result inside it, to be filled (or a file, to be written).
        result: Builds the return value from the path of the result, its record, and whether this call made it.
        command: Name of the command, such as `train`. No other command continues or removes its work.
        holds: Returns whether a work folder holds expensive work, which other settings and errors must not remove.
            None for short work, which begins again after an interruption.
        read: Reads and checks a finished result, and returns its record; None if `kind.read` checks enough.
        work_identity: What unfinished work must agree with, if that is not `identity`.
        keep_result: Whether `make` continues what an interrupted call left in the folder of the result. By default
            that folder is emptied first.
        rank: Rank of this process among several that make one result together. Only rank 0 locks and writes; the
            others only call `make`.
        barrier: Waits for all processes. It is called when the result is in its place.
    """
    out = result_file(out) if issubclass(kind, FileRecord) else result_folder(out)
    identity, work = as_json(identity), work_folder(out)
    record = find(out, identity, kind, read)
    if record is not None:
        if rank == 0:
            remove_leftover(out, command)
        return result(out, record, False)
    if rank:
        make(work, _made(work, out, kind))
        barrier()
        return result(out, (read or kind.read)(out), True)
    with locked(work, command, identity if work_identity is None else as_json(work_identity), holds):
        # Another process may have finished it in the meantime.
        record = find(out, identity, kind, read)
        fresh = record is None
        if record is None:
            record = _make(out, work, kind, make, keep_result=keep_result)
        remove(work)
    barrier()
    return result(out, record, fresh)


def _made(work: Path, out: Path, kind: type[Record]) -> Path:
    """Return the path in a work folder at which the result `out` is made."""
    return work / RESULT / out.name if issubclass(kind, FileRecord) else work / RESULT


def _make(out: Path, work: Path, kind: type[R], make: Callable[[Path, Path], R], *, keep_result: bool) -> R:
    """Make a result in its work folder, and rename it to `out`."""
    if not keep_result:
        shutil.rmtree(work / RESULT, ignore_errors=True)
    made = _made(work, out, kind)
    record = _write(out, work, made, make)
    with writing(out):
        if issubclass(kind, FileRecord):
            # The record is moved first, so that a kill in between does not leave a file without its record.
            kind.path(made).replace(kind.path(out))
            made.replace(out)
        else:
            put_in_place(made, out)
    return record


def _write(out: Path, work: Path, made: Path, make: Callable[[Path, Path], R]) -> R:
    """Make a result and its record in a work folder; the record gets the options of the command (see `recording`)."""
    recorded_out, options = _OPTIONS.get((None, {}))
    try:
        (work / RESULT).mkdir(exist_ok=True)
        record = make(work, made)
        if out == recorded_out:
            record = replace(record, options=record.options | options)
        return record.write(made)
    except Exception as error:
        if not disk_full(error):
            raise
        raise WriteError(f"cannot write {work}: {write_failure(error)}; {AGAIN}", path=work) from None


def replace_result(
    out: Path,
    identity: object,
    kind: type[R],
    make: Callable[[Path, Path], R],
    *,
    result: Callable[[Path, R, bool], T],
    command: str,
    holds: Holds,
) -> T:
    """Replace a finished result by one that is made from it; the old one stays until the new one is complete.

    `finish_replacing` must be called before the old result is read. For the arguments see `run`.
    """
    work = work_folder(out)
    with locked(work, command, as_json(identity), holds):
        shutil.rmtree(work / RESULT, ignore_errors=True)
        record = _write(out, work, work / RESULT, make)
        with writing(out):
            out.rename(work / OLD)
        _swap(out, work)
    return result(out, record, True)


def finish_replacing(out: Path, command: str) -> None:
    """Finish a `replace_result` of this command that was killed between its two renames; do nothing otherwise."""
    work = work_folder(out)
    state = state_of(work)
    if state is None or state["command"] != command or not (work / OLD).exists():
        return
    with lock(work):
        _swap(out, work)


def _swap(out: Path, work: Path) -> None:
    """Rename the new result in the work folder to `out`; then remove the work folder, which holds the old result."""
    with writing(out):
        if not out.exists():
            (work / RESULT).rename(out)
    remove(work)


def find(out: Path, identity: Identity, kind: type[R], read: Callable[[Path], R] | None = None) -> R | None:
    """Read the record of a finished result; None if there is none.

    Args:
        out: Folder of the result, or its file if `kind` is a `FileRecord`.
        identity: What determines the wanted result; a result with another identity is rejected.
        kind: Class of the record.
        read: Reads and checks the result; None for `kind.read`.
    """
    if is_free(out):
        # A record without its file is what a kill left. Reading it rejects any other file of that name.
        if issubclass(kind, FileRecord) and kind.path(out).exists():
            _read(out, kind, kind.read)
        return None
    record = _read(out, kind, read or kind.read)
    if differences := describe_differences(record.identity, identity):
        raise OtherSettingsError(
            f"{out} was made with other settings: {differences}; {ANOTHER} or delete it",
            option="out",
            path=out,
        )
    if isinstance(record, FileRecord) and record.sha256 != checksum(out):
        raise InputError(f"{out} is not as it was written; {ANOTHER}", option="out", path=out)
    return record


def _read(out: Path, kind: type[Record], read: Callable[[Path], R]) -> R:
    """Read a finished result; reject files that this command did not make, and name another path in errors."""
    if not kind.path(out).exists():
        raise InputError(
            f"{out} exists and was not made by this command; it was left as it is; {ANOTHER}", option="out", path=out
        )
    try:
        return read(out)
    except InputError as error:
        # The folder may hold something of the user's, so the error advises another path rather than to delete it.
        raise InputError(f"{error}; {ANOTHER}", option="out", path=out) from None
