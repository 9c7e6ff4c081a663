"""The work folder of a result: unfinished work for `OUT` is in `OUT.work`, which one process at a time locks.

The file `run.json` there says which command the work belongs to and what determines the result.
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

# A function that returns whether a work folder holds work that took long.
Holds = Callable[[Path], bool]
LOCK, STATE, RESULT = "lock", "run.json", "result"  # Names in a work folder; the result is made under the last one
SETTINGS = "settings.json"  # File with the settings of a work folder that `continue_with` prepared
CLEARED = {"identity": {"cleared": True}}  # Entry of the state of a work folder that is being emptied
# Windows cannot rename a folder with an open file in it, such as the lock.
RENAMES_OPEN = os.name == "posix"
_FINDING = ContextVar("finding", default=False)


def work_folder(out: Path) -> Path:
    """Return the path of the folder for unfinished work on the result `out`: `OUT.work`."""
    return out.with_name(f"{out.name}.work")


@contextmanager
def only_finding() -> Iterator[None]:
    """Let commands in a `with` block find finished results but make none: if one is missing, raise `NotMadeError`."""
    before = _FINDING.set(True)
    try:
        yield
    finally:
        _FINDING.reset(before)


def check_making(path: Path) -> None:
    """Raise a `NotMadeError` if results are only looked for (`only_finding`); called before `path` is made."""
    if _FINDING.get():
        raise NotMadeError(f"{path} is not made now, because results are only looked for", path=path)


@contextmanager
def locked(work: Path, command: str, identity: Identity, holds: Holds | None) -> Iterator[None]:
    """Lock a work folder for this process in a `with` block; a missing folder is created.

    The lock of a killed process is released by the system. Work of the same command and `identity` is continued if
    `holds` is given, and else begun again. Resumable work of another command is refused. Work of this command with
    another identity is refused if `holds` finds expensive work. Anything else in the folder is removed. For the other
    arguments, and for what an error leaves, see `run`.
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
        # The folder holds long work of another command, or with other settings.
        if known is not None and known != state and known["resumable"]:
            if known["command"] != command:
                raise InputError(
                    f"{work} holds work of `paranmt {known['command']}`, unfinished; let that command finish, "
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
    """Lock a work folder for this process in a `with` block; if another process has it locked, that is an error."""
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
    """Lock the work folder of a finished result for more work on it, in a `with` block, and then remove the folder.

    For the arguments see `run`. If the block raises an error, the folder stays as it would after `run`.
    """
    work = work_folder(out)
    with locked(work, command, as_json(identity), holds):
        yield work
        remove(work)


def _is_unused(work: Path) -> bool:
    """Return whether a work folder holds nothing, or only what an early kill left: the lock, an unfinished state."""
    return work.is_dir() and all(
        path.name == LOCK or (path.name.startswith(f".{STATE}.") and path.suffix == ".tmp") for path in work.iterdir()
    )


def _other_settings(work: Path, found: Identity, wanted: Identity) -> OtherSettingsError:
    """Return the error about unfinished work with other settings."""
    return OtherSettingsError(
        f"{work} holds unfinished work with other settings: {describe_differences(found, wanted)}; give the same "
        "settings to continue, or delete that folder",
        path=work,
    )


def _begin(work: Path, known: dict[str, Any] | None, state: dict[str, Any]) -> None:
    """Write the state of a locked folder, and first remove what other work left there."""
    if known is not None:
        # This state prevents that a later run continues the other work if a kill interrupts `clear`.
        _write_state(work, {**state, **CLEARED})
        clear(work)
    _write_state(work, state)


def _write_state(work: Path, state: Mapping[str, Any]) -> None:
    write_bytes(work / STATE, json.dumps(state).encode())


def state_of(work: Path) -> dict[str, Any] | None:
    """Read the state of a work folder, with `command`, `identity` and `resumable`; None if the folder has no state."""
    if not (path := work / STATE).exists():
        return None
    state = read_json(path, f"the state of a run; delete {work} to start again")
    if not isinstance(state, dict) or not {"command", "resumable", "identity"} <= state.keys():
        raise InputError(f"{path} is damaged: expected the state of a run; delete {work} to start again", path=path)
    return state


def clear(work: Path, keep: Collection[str] = ()) -> None:
    """Empty a locked work folder, except for its lock, its state and the files and folders named in `keep`."""
    for path in work.iterdir():
        if path.name in {LOCK, STATE, *keep}:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def continue_with(work: Path, identity: object, *, keep: Collection[str], holds: Holds) -> None:
    """Prepare a locked work folder for `identity`, if some of its content can be used by other settings too.

    If the identity is not that of the last call, all content but that in `keep` is removed.

    Args:
        work: The work folder.
        identity: What determines the result: a dataclass of settings, or JSON values.
        keep: Names of files and folders that other settings can use.
        holds: Returns whether the other content took long; such content is not removed, and the settings are refused.
    """
    path, wanted = work / SETTINGS, as_json(identity)
    found = read_json(path, f"settings of a run; delete {work} to start again") if path.exists() else wanted
    if found != wanted:
        if holds(work):
            raise _other_settings(work, found, wanted)
        # These settings prevent that a later run continues a part of the work if a kill interrupts `clear`.
        write_bytes(path, json.dumps(CLEARED).encode())
        clear(work, {RESULT, SETTINGS, *keep})
    write_bytes(path, json.dumps(wanted).encode())


def remove(work: Path) -> None:
    """Remove a locked work folder; it is renamed first, so that nothing that looks like work is left by a kill."""
    sweep_killed(work)
    if RENAMES_OPEN:
        gone = work.with_name(f".{work.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
        work.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
    else:
        # The folder itself is removed when its lock is released. If a kill or an open file prevents that, the next run
        # clears the folder.
        with suppress(OSError, WriteError):
            _write_state(work, {**(state_of(work) or {"command": ""}), **CLEARED, "resumable": False})
            clear(work)
            (work / STATE).unlink()


def remove_leftover(out: Path, command: str) -> None:
    """Remove the work folder of a finished result, if it is of this command and no process has it locked."""
    work = work_folder(out)
    sweep_killed(work)
    with suppress(InputError):
        state = state_of(work)
        if state is not None and state["command"] == command:
            with lock(work):
                remove(work)
