"""The work folder of a result: what is in progress for `OUT` lies in `OUT.work`, which one process at a time locks.

The file `run.json` there names the command that it belongs to and what determines the result.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from paranmt_hf.errors import InputError, LostProcessError, NotMadeError, OtherSettingsError, WriteError
from paranmt_hf.util.files import sweep_killed, write_bytes, writing
from paranmt_hf.util.records import Identity, as_json, describe_differences, read_json

# Says whether a work folder holds what took long to make.
Holds = Callable[[Path], bool]
LOCK, STATE, RESULT = "lock", "run.json", "result"
SETTINGS = "settings.json"  # Of a work folder in which other settings may continue
CLEARED = {"identity": {"cleared": True}}  # Of a work folder that is being emptied
# Windows renames no folder with an open file in it, such as the lock.
RENAMES_OPEN = os.name == "posix"
_FINDING = ContextVar("finding", default=False)


def work_folder(out: Path) -> Path:
    """Path of the folder for the work in progress of a result."""
    return out.with_name(f"{out.name}.work")


@contextmanager
def only_finding() -> Iterator[None]:
    """Find results in a `with` block and make none: where there is anything to do, that is a `NotMadeError`."""
    before = _FINDING.set(True)
    try:
        yield
    finally:
        _FINDING.reset(before)


def check_making(path: Path) -> None:
    """Raise a `NotMadeError` before anything is written, if results are only looked for."""
    if _FINDING.get():
        raise NotMadeError(f"{path} is not made now, because results are only looked for", path=path)


@contextmanager
def locked(work: Path, command: str, identity: Identity, holds: Holds | None) -> Iterator[None]:
    """Lock a work folder, created if missing, for one process; the lock of a killed process is released.

    Work in progress must agree with `identity`; for the other arguments see `run`.
    """
    check_making(work)
    if work.exists() and not (work / STATE).exists() and not _is_unused(work):
        raise InputError(f"{work} is needed for work in progress and holds something else; move it away", path=work)
    with writing(work):
        work.mkdir(parents=True, exist_ok=True)
    sweep_killed(work)
    with lock(work):
        state = {"command": command, "resumable": holds is not None, "identity": identity}
        known = state_of(work)
        # Long work of another command, or with other settings.
        if known is not None and known != state and known["resumable"]:
            if known["command"] != command:
                raise InputError(
                    f"{work} holds work of `paranmt {known['command']}`, unfinished or kept; let that command finish, "
                    "or delete that folder or move it away",
                    path=work,
                )
            if holds is not None and holds(work):
                raise _other_settings(work, known["identity"], identity)
        try:
            if known != state or holds is None:
                _begin(work, known, state)
            yield
        except BaseException as error:
            refused = isinstance(error, InputError) and not isinstance(error, WriteError | LostProcessError)
            if work.exists() and (holds is None or (refused and not holds(work))):
                remove(work)
            raise


@contextmanager
def lock(work: Path) -> Iterator[None]:
    """Lock a work folder for one process."""
    held = FileLock(work / LOCK, blocking=False)
    try:
        held.acquire()
    except Timeout:
        raise InputError(f"another process is working in {work}; wait for it, or stop it first", path=work) from None
    try:
        yield
    finally:
        held.release()
        if not RENAMES_OPEN and _is_unused(work):
            shutil.rmtree(work, ignore_errors=True)


@contextmanager
def working(out: Path, command: str, identity: object, holds: Holds) -> Iterator[Path]:
    """Lock the work folder of a result for further work on it, and remove it at the end; arguments as in `run`."""
    work = work_folder(out)
    with locked(work, command, as_json(identity), holds):
        yield work
        remove(work)


def _is_unused(work: Path) -> bool:
    """Whether a folder holds at most the remains of a kill at the very beginning: a lock, an incomplete file."""
    return work.is_dir() and all(
        path.name == LOCK or (path.name.startswith(f".{STATE}.") and path.suffix == ".tmp") for path in work.iterdir()
    )


def _other_settings(work: Path, found: Identity, wanted: Identity) -> OtherSettingsError:
    return OtherSettingsError(
        f"{work} holds unfinished work with other settings: {describe_differences(found, wanted)}; give the same "
        "settings to continue, or delete that folder",
        path=work,
    )


def _begin(work: Path, known: dict[str, Any] | None, state: dict[str, Any]) -> None:
    """Write the owner and purpose of a locked folder, and remove the remains of other work."""
    if known is not None:
        # So that a kill in the middle of the next line does not leave half of what these settings determine.
        _write_state(work, {**state, **CLEARED})
        clear(work)
    _write_state(work, state)


def _write_state(work: Path, state: Mapping[str, Any]) -> None:
    write_bytes(work / STATE, json.dumps(state).encode())


def state_of(work: Path) -> dict[str, Any] | None:
    """Read the state of a work folder; None without one."""
    if not (path := work / STATE).exists():
        return None
    state = read_json(path, f"the state of a run; delete {work} to start again")
    if not isinstance(state, dict) or not {"command", "resumable", "identity"} <= state.keys():
        raise InputError(f"{path} is damaged: expected the state of a run; delete {work} to start again", path=path)
    return state


def clear(work: Path, keep: Collection[str] = ()) -> None:
    """Empty a locked work folder; its lock, its state and the names in `keep` stay."""
    for path in work.iterdir():
        if path.name in {LOCK, STATE, *keep}:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def continue_with(work: Path, identity: object, *, keep: Collection[str], holds: Holds) -> None:
    """Continue in a locked work folder whose entries `keep` serve other settings too.

    If the settings changed since the last call, the other entries are removed; if these hold what took long, that is
    refused.
    """
    path, wanted = work / SETTINGS, as_json(identity)
    found = read_json(path, f"settings of a run; delete {work} to start again") if path.exists() else wanted
    if found != wanted:
        if holds(work):
            raise _other_settings(work, found, wanted)
        # A kill inside `clear` leaves a part of the work, with which no settings may continue.
        write_bytes(path, json.dumps(CLEARED).encode())
        clear(work, {RESULT, SETTINGS, *keep})
    write_bytes(path, json.dumps(wanted).encode())


def remove(work: Path) -> None:
    """Remove a locked work folder; it is renamed first, so that a kill leaves nothing that looks like work."""
    sweep_killed(work)
    if RENAMES_OPEN:
        gone = work.with_name(f".{work.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
        work.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
    else:
        # The folder itself goes when its lock is released. A kill, or a file that is still open, leaves a folder that
        # the next run clears.
        with suppress(OSError, WriteError):
            _write_state(work, {**(state_of(work) or {"command": ""}), **CLEARED, "resumable": False})
            clear(work)
            (work / STATE).unlink()


def remove_leftover(out: Path, command: str) -> None:
    """Remove the work folder of a finished result, unless another command or a running process owns it."""
    work = work_folder(out)
    sweep_killed(work)
    with suppress(InputError):
        state = state_of(work)
        if state is not None and state["command"] == command:
            with lock(work):
                remove(work)
