"""Long work on disk: is it finished, were its settings others, is somebody at it, and how its result gets its name.

What is in progress for `OUT` lies in `OUT.work` beside it, which one command at a time holds. A result appears under
its name whole or not at all.

What determines a result is called its identity: JSON values that hold checksums of everything that is read.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from filelock import FileLock, Timeout

from paranmt_hf.errors import InputError
from paranmt_hf.util.files import AGAIN, write_failure

Record = TypeVar("Record")
Identity = dict[str, Any]
LOCK = "lock"
# Characters of a value that are shown.
BRIEF = 100


def work_folder(out: Path) -> Path:
    """Name the folder of the work in progress for a result.

    Raises:
        InputError: The result is the root of the file system.
    """
    if not out.name:
        raise InputError(f"{out} is the root of the file system, which cannot be written anew; name a folder in it")
    return out.with_name(f"{out.name}.work")


def result_folder(out: str | Path) -> Path:
    """Resolve the folder that a result is to get, and refuse one that none can get.

    Raises:
        InputError: It is the root, the folder that the command runs in, or lies below a file.
    """
    folder = Path(out).expanduser().resolve()
    work_folder(folder)
    if folder == Path.cwd():
        raise InputError(
            f"--out {out} is the folder that this command runs in, which cannot be written anew; name a new folder"
        )
    if file := next((parent for parent in folder.parents if parent.exists() and not parent.is_dir()), None):
        raise InputError(f"--out {out} would lie below {file}, which is a file; name another folder")
    return folder


def is_free(out: Path) -> bool:
    """Tell whether a result may get this name: nothing is there, or an empty folder."""
    return not out.exists() or (out.is_dir() and not any(out.iterdir()))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for one command; the lock goes with the process, however it ends.

    Raises:
        InputError: Another command is at work in the folder, or the folder is somebody else's.
    """
    if folder.exists() and not (folder / LOCK).exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is needed for work in progress and holds something else; move it away")
    folder.mkdir(parents=True, exist_ok=True)
    sweep_removed(folder)
    try:
        with FileLock(folder / LOCK, blocking=False):
            yield
    except Timeout:
        raise InputError(f"another command is at work in {folder}; wait for it, or stop it first") from None


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


def clear(folder: Path) -> None:
    """Empty a work folder, but for the lock that this command holds."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LOCK:
            path.unlink()


def as_json(identity: Mapping[str, Any]) -> Identity:
    """Bring an identity into the form in which it comes back from a file."""
    return dict(json.loads(json.dumps(dict(identity))))


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
    record = read(out)
    sweep_removed(work_folder(out))
    if differences := describe_differences(identity_of(record), as_json(identity)):
        raise InputError(
            f"{out} was {made} with other settings: {'; '.join(differences)}; choose another --out or delete it"
        )
    return record


def put_in_place(made: Path, out: Path) -> None:
    """Give a finished folder its name, where nothing is or an empty folder."""
    if out.exists():
        out.rmdir()
    made.rename(out)


@contextmanager
def folder_aside(out: Path, *, doing: str = "write", advice: str = AGAIN, shared: bool = False) -> Iterator[Path]:
    """Let a `with` block fill a folder, which appears whole or not at all.

    Args:
        out: The folder; nothing may be there but an empty folder.
        doing: What is done to it, as the error says it: `cannot write FOLDER: ...`.
        advice: What to do about an error.
        shared: Whether others may make the same folder meanwhile; who comes second drops what it made.

    Yields:
        A new folder beside it, hidden, whose name ends in `.tmp`. What a kill left behind there is removed first; not
        where it is shared, because it may be somebody's who is at work.

    Raises:
        InputError: It cannot be written.
    """
    aside = out.with_name(f".{out.name}.{uuid4().hex}.tmp" if shared else f".{out.name}.tmp")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        yield aside
        try:
            put_in_place(aside, out)
        except OSError:
            if not (shared and out.is_dir()):
                raise
            shutil.rmtree(aside, ignore_errors=True)
    except BaseException as error:
        shutil.rmtree(aside, ignore_errors=True)
        if (reason := write_failure(error)) is None:
            raise
        raise InputError(f"cannot {doing} {out}: {reason}; {advice}") from None


def describe_differences(found: Mapping[str, Any], wanted: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Say where two nested identities differ, one `name: was X, now Y` each."""
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
