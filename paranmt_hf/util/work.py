"""Long work on disk: is it finished, were its settings others, is somebody at it, and how its result gets its name.

What is in progress for `OUT` lies in `OUT.work` beside it, which one command at a time holds. A result appears under
its name whole or not at all.

A work folder says which command it belongs to, in its file `command`; no other command takes it or removes it.

What determines a result is called its identity: JSON values that hold checksums of everything that is read.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from paranmt_hf.errors import InputError, LostProcessError, WriteError
from paranmt_hf.util.files import AGAIN, advise, write_bytes, write_failure, writing
from paranmt_hf.util.records import Identity, as_json, describe_differences, read_json
from paranmt_hf.util.run import Holds, is_free, put_in_place, result_folder, work_folder

Record = TypeVar("Record")
LOCK, OWNER = "lock", "command"


def refuse_inside(out: Path, *sources: Path) -> None:
    """Refuse a result inside a folder that it is made from; see `result_folder`."""
    result_folder(out, sources=sources)


@contextmanager
def locked(folder: Path, command: str, *, worth: Holds) -> Iterator[None]:
    """Hold a work folder for one command; the lock goes with the process, however it ends.

    A command that refuses its input leaves no folder behind, unless what lies there took long to make.

    Args:
        folder: The folder; made where it is not there.
        command: Name of the command, such as `train`, to which the folder belongs from now on.
        worth: Says whether what lies in the folder took long to make.

    Raises:
        InputError: Another command is at work in the folder, it belongs to another one, or is somebody else's.
    """
    if folder.exists() and owner_of(folder) is None and not _is_unused(folder):
        raise InputError(f"{folder} is needed for work in progress and holds something else; move it away")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    sweep_removed(folder)
    try:
        with FileLock(folder / LOCK, blocking=False):
            _take(folder, command)
            try:
                yield
            except InputError as error:
                if folder.exists() and not (isinstance(error, WriteError | LostProcessError) or worth(folder)):
                    remove(folder)
                raise
    except Timeout:
        raise InputError(f"another command is at work in {folder}; wait for it, or stop it first") from None


def _take(folder: Path, command: str) -> None:
    """Write down whose a folder is, or refuse one that belongs to another command."""
    owner = owner_of(folder)
    if owner is None:
        write_bytes(folder / OWNER, command.encode())
    elif owner != command:
        raise InputError(
            f"{folder} holds work of `paranmt {owner}`, unfinished or kept; let that command finish, or delete that "
            "folder or move it away"
        )


def owner_of(folder: Path) -> str | None:
    """Name of the command that a work folder belongs to; None where it does not say so."""
    try:
        return (folder / OWNER).read_text(encoding="utf8") or None
    except (OSError, UnicodeDecodeError):
        return None


def _is_unused(folder: Path) -> bool:
    """Tell whether a folder holds at most what a kill at the very beginning leaves: a lock, half a file."""
    return folder.is_dir() and all(
        path.name == LOCK or (path.name.startswith(f".{OWNER}.") and path.suffix == ".tmp")
        for path in folder.iterdir()
    )


def keep_identity(folder: Path, identity: Identity, *, worth: Holds, doing: str) -> None:
    """Write down in a work folder what determines the result, or refuse to go on with something else.

    Args:
        folder: The work folder; it is emptied where it is of other settings and nothing in it took long to make.
        identity: What determines the result.
        worth: Says whether what lies in the folder took long to make.
        doing: What is done there, for the error: `training`.

    Raises:
        InputError: The folder holds work with other settings, or what it says of them is damaged.
    """
    path = folder / "settings.json"
    if path.exists():
        expected = f"the settings of a run; delete {folder} to begin anew"
        known = read_json(path, expected)
        if not isinstance(known, dict):
            raise InputError(f"{path} is damaged: it holds no object; expected {expected}")
        differences = describe_differences(known, identity)
        if not differences:
            return
        if worth(folder):
            raise InputError(
                f"{folder} holds unfinished {doing} with other settings: {differences}; give the same ones "
                "to go on, or delete that folder"
            )
        # A corrected command must not be refused for the sake of what is made again in no time. The settings go last:
        # after a kill meanwhile nothing of the former ones may be taken for what the next run made.
        clear(folder, last=path.name)
    write_bytes(path, json.dumps(identity).encode())


def remove_leftover(out: Path, command: str) -> None:
    """Remove the work folder of a finished result where a kill at the very end, or the user's wish, left it.

    Not one of another command, or one in which a command is at work.
    """
    work = work_folder(out)
    sweep_removed(work)
    if owner_of(work) == command:
        with suppress(InputError), locked(work, command, worth=lambda folder: True):
            remove(work)


def remove(folder: Path) -> None:
    """Remove a work folder: its name first, so that a kill meanwhile leaves nothing that looks like work."""
    sweep_removed(folder)
    gone = _gone(folder)
    folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def sweep_removed(folder: Path) -> None:
    """Delete what a kill in the middle of `remove` left."""
    shutil.rmtree(_gone(folder), ignore_errors=True)


def _gone(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.gone")


def clear(folder: Path, *, last: str | None = None) -> None:
    """Empty a work folder, but for the lock that this command holds, and its name.

    Args:
        folder: The work folder.
        last: What is removed last, so that a kill meanwhile leaves it.
    """
    for path in sorted(folder.iterdir(), key=lambda path: path.name == last):
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in (LOCK, OWNER):
            path.unlink()


def finished(
    out: Path,
    identity: Mapping[str, Any],
    read: Callable[[Path], Record],
    identity_of: Callable[[Record], Mapping[str, Any]],
    *,
    made: str,
) -> Record | None:
    """Find a result that was made already.

    Args:
        out: Its folder.
        identity: What determines the result that is asked for.
        read: Reads the record in the folder; an `InputError` of its goes to the caller.
        identity_of: What determined the result that is there.
        made: How such a result comes about, for the error: `built`, `trained`.

    Returns:
        The record of the result; None where there is nothing yet.

    Raises:
        InputError: Something else is there, or a result of other settings.
    """
    if is_free(out):
        return None
    try:
        record = read(out)
    except InputError as error:
        raise error if "--out" in str(error) else InputError(f"{error}; choose another --out") from None
    sweep_removed(work_folder(out))
    _sweep_aside(out)
    if differences := describe_differences(identity_of(record), as_json(identity)):
        raise InputError(f"{out} was {made} with other settings: {differences}; choose another --out or delete it")
    return record


@contextmanager
def folder_aside(out: Path, *, doing: str = "write", advice: str = AGAIN) -> Iterator[Path]:
    """Let a `with` block fill a folder, which appears whole or not at all.

    Args:
        out: The folder; nothing may be there but an empty folder.
        doing: What is done to it, as the error says it: `cannot write FOLDER: ...`.
        advice: What to do where there is no room.

    Yields:
        A new folder beside it, hidden, whose name ends in `.tmp`. What a kill left behind there is removed first.

    Raises:
        InputError: It cannot be written, or another command is writing it.
    """
    aside = _aside(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with _alone(out):
            try:
                shutil.rmtree(aside, ignore_errors=True)
                aside.mkdir()
                yield aside
                put_in_place(aside, out)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
    except BaseException as error:
        if (reason := write_failure(error)) is None:
            raise
        raise WriteError(f"cannot {doing} {out}: {reason}; {advise(error, advice)}") from None


def _aside(out: Path) -> Path:
    return out.with_name(f".{out.name}.tmp")


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Hold a result for one command while it is written aside."""
    lock = out.with_name(f".{out.name}.lock")
    try:
        with FileLock(lock, blocking=False):
            try:
                yield
            finally:
                with suppress(OSError):
                    lock.unlink()
    except Timeout:
        raise InputError(f"another command is writing {out}; wait for it, or stop it first") from None


def _sweep_aside(out: Path) -> None:
    """Delete what a kill at the very end of `folder_aside` left; not where a command is at it."""
    if _aside(out).exists() or out.with_name(f".{out.name}.lock").exists():
        with suppress(InputError, OSError), _alone(out):
            shutil.rmtree(_aside(out), ignore_errors=True)
