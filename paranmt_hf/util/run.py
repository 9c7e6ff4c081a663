"""The frame of long work: find a finished result, or lock, resume, make it, and rename it when complete.

Work in progress for the result `OUT` lies in `OUT.work`, which one process at a time locks. The file `run.json` there
names the command that it belongs to and what determines the result. A result gets its name when it is complete, and
has a record; the settings of the record are its identity: JSON values with checksums of everything that is read.
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

OLD = "old"
ANOTHER = "choose another path"

# Path of the result of the command that is running, and its options by its name
_OPTIONS: ContextVar[tuple[Path | None, dict[str, dict[str, Any]]]] = ContextVar("options")

R = TypeVar("R", bound=Record)
T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Result(Generic[R]):
    """The result of a command: where it is, its settings and figures, and whether this call made it or found it."""

    folder: Path
    record: R
    fresh: bool

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r}, fresh={self.fresh})"

    def summary(self) -> str:
        """Describe the result for a terminal."""
        return str(self.folder)


@contextmanager
def recording(out: Path | None, command: str, options: Mapping[str, Any]) -> Iterator[None]:
    """Put the options of a command into the record of its result `out`, if it makes one in a `with` block."""
    before = _OPTIONS.set((out, {command: dict(options)}))
    try:
        yield
    finally:
        _OPTIONS.reset(before)


def result_folder(
    out: str | Path, kind: type[Record] | None = None, *, sources: Iterable[str | Path] = (), option: str = "out"
) -> Path:
    """Resolve the folder of a result before the work, and reject one that cannot be written.

    It is new, empty, or with a result whose record is of the `kind`. `sources` are files and folders that the result
    is made from, which it would change if it were inside; `option` is the name of the parameter, for errors.
    """

    def refusal(reason: str) -> InputError:
        return InputError(f"{out} {reason}; {ANOTHER}", option=option, path=folder)

    folder = resolved(out)
    if not folder.name:
        raise refusal("is the root of the file system")
    if folder == Path.cwd():
        raise refusal("is the current folder of this process, which cannot be replaced")
    refuse_inside(folder, sources, option)
    if kind is not None and not is_free(folder):
        _read(folder, kind, kind.read, option)
    return folder


def is_free(out: Path) -> bool:
    """Whether a path is missing or an empty folder."""
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
    keep_work: bool = False,
    rank: int = 0,
    barrier: Callable[[], None] = lambda: None,
) -> T:
    """Find a finished result, or make it: locked, resumed after a kill, and renamed when it is complete.

    If `make` rejects its input, nothing is left, unless the work folder holds what took long. A full disk or a lost
    process keeps the work folder of long work.

    Args:
        out: Folder of the result, or its file if `kind` is a `FileRecord`.
        identity: What determines the result: a dataclass of settings, or JSON values.
        kind: Class of its record, whose settings are the identity.
        make: Gets the work folder and the folder of the result in it, which it fills, or the file, which it writes;
            returns the record, which is written last.
        result: Builds what is returned from the folder, the record, and whether this call made the result.
        command: Name of the command, such as `train`; no other command continues or removes its work.
        holds: Says whether a work folder holds expensive work, so that other settings and errors must not
            remove it. None for short work, which starts again after an interruption.
        read: Reads and checks a finished result, if `kind.read` does not check enough.
        work_identity: What work in progress must agree with, if not the identity.
        keep_result: Whether an interrupted `make` continues what it has in the folder of the result, which is else
            emptied.
        keep_work: Whether the work folder stays.
        rank: Rank of this process among several that make one result; only rank 0 locks and writes, the others call
            `make` alone.
        barrier: Waits for all processes; called when the result is in its place.
    """
    out = result_file(out) if issubclass(kind, FileRecord) else result_folder(out)
    identity, work = as_json(identity), work_folder(out)
    record = find(out, identity, kind, read)
    if record is not None:
        if rank == 0 and not keep_work:
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
        if not keep_work:
            remove(work)
    barrier()
    return result(out, record, fresh)


def _made(work: Path, out: Path, kind: type[Record]) -> Path:
    """Path of the result in a work folder."""
    return work / RESULT / out.name if issubclass(kind, FileRecord) else work / RESULT


def _make(out: Path, work: Path, kind: type[R], make: Callable[[Path, Path], R], *, keep_result: bool) -> R:
    if not keep_result:
        shutil.rmtree(work / RESULT, ignore_errors=True)
    made = _made(work, out, kind)
    record = _write(out, work, made, make)
    with writing(out):
        if issubclass(kind, FileRecord):
            # A kill in between must not leave a file of which nothing says what it is.
            kind.path(made).replace(kind.path(out))
            made.replace(out)
        else:
            put_in_place(made, out)
    return record


def _write(out: Path, work: Path, made: Path, make: Callable[[Path, Path], R]) -> R:
    """Create a result and its record in a work folder; the record has the options of the command that `out` is of."""
    place, options = _OPTIONS.get((None, {}))
    try:
        (work / RESULT).mkdir(exist_ok=True)
        record = make(work, made)
        if out == place:
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
    """Replace a finished result by one made from it; the old one stays until the new one is complete.

    Call `finish_replacing` first, before the old result is read. Arguments as in `run`.
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
    """Finish a `replace_result` that was killed between the renames."""
    work = work_folder(out)
    state = state_of(work)
    if state is None or state["command"] != command or not (work / OLD).exists():
        return
    with lock(work):
        _swap(out, work)


def _swap(out: Path, work: Path) -> None:
    """Rename the new result to the path of the old one; the old one is removed last."""
    with writing(out):
        if not out.exists():
            (work / RESULT).rename(out)
    remove(work)


def find(out: Path, identity: Identity, kind: type[R], read: Callable[[Path], R] | None = None) -> R | None:
    """Read the record of a finished result; None if there is none. A result of other settings is rejected."""
    if is_free(out):
        # A record alone is what a kill left; anything else there is somebody's.
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


def _read(out: Path, kind: type[Record], read: Callable[[Path], R], option: str = "out") -> R:
    if not kind.path(out).exists():
        raise InputError(
            f"{out} exists and was not made by this command; it was left as it is; {ANOTHER}", option=option, path=out
        )
    try:
        return read(out)
    except InputError as error:
        # What is there may be somebody's own.
        raise InputError(f"{error}; {ANOTHER}", option=option, path=out) from None
