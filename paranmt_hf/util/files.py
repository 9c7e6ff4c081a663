"""Atomic files and folders, checks of output paths, and checksums."""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock
from safetensors import SafetensorError

from paranmt_hf.errors import InputError, WriteError
from paranmt_hf.util.machine import is_running
from paranmt_hf.util.packed import DAMAGED, open_packed

AGAIN = "make room and run the same command again"
DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}  # A full disk, an exhausted quota, a limit on the size of files
_OPEN: set[str] = set()  # Names of the files that this process is writing
Names = str | Path | Sequence[str | Path]  # One or more files, folders or ids on the Hub


@contextmanager
def replacing(path: Path, *, doing: str = "save", advice: str = AGAIN, sweep: bool = True) -> Iterator[Path]:
    """Write a file atomically in a `with` block; the former file stays until the block ends.

    Each call writes in a place of its own, a hidden file in the same folder whose name ends in `.tmp`, so that
    processes that write one file at once do not mix; the last one to finish wins. `doing` is the action, for the
    `WriteError`: `cannot save PATH: ...`, and `advice` what to do if there is no room. `sweep` deletes what killed
    processes left of this file, which lists the folder.
    """
    if sweep:
        sweep_killed(path)
    aside = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    _OPEN.add(aside.name)
    try:
        yield aside
        # Else a power cut could leave the new name with nothing behind it.
        # Windows flushes only files that are open for writing.
        with aside.open("r+b") as file:
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException as error:
        with suppress(OSError):
            aside.unlink()
        if (reason := write_failure(error)) is None:
            raise
        raise WriteError(f"cannot {doing} {path}: {reason}; {advise(error, advice)}", path=path) from None
    finally:
        _OPEN.discard(aside.name)


@contextmanager
def new_folder(path: Path, *, advice: str = AGAIN) -> Iterator[Path]:
    """Fill a hidden folder in a `with` block, which is renamed to `path` (missing or empty) at its end."""
    aside = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    with writing(path, advice=advice):
        sweep_killed(path)
        _OPEN.add(aside.name)
        try:
            aside.mkdir(parents=True)
            yield aside
            put_in_place(aside, path)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
            _OPEN.discard(aside.name)


def make_once(folder: Path, make: Callable[[Path], None], *, advice: str = AGAIN) -> Path:
    """Find or create a folder of a cache, which `make` fills: one process creates it, others wait and find it.

    It appears under its name when it is complete; `advice` is what to do if there is no room.
    """
    if not folder.is_dir():
        with writing(folder, advice=advice):
            folder.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(folder.parent.with_suffix(".lock")):
                if not folder.is_dir():
                    with new_folder(folder, advice=advice) as aside:
                        make(aside)
    return folder


def put_in_place(made: Path, path: Path) -> None:
    """Rename a finished folder to a path that is missing or an empty folder."""
    if path.exists():
        path.rmdir()
    made.rename(path)


def sweep_killed(path: Path) -> None:
    """Delete temporary files of killed processes next to a file or folder that they wrote."""
    with suppress(OSError):
        for aside in path.parent.glob(f".{glob.escape(path.name)}.*-*.tmp"):
            process = aside.name.removeprefix(f".{path.name}.").split("-")[0]
            own = process == str(os.getpid())
            if aside.name not in _OPEN and process.isdecimal() and (own or not is_running(int(process))):
                if aside.is_dir():
                    shutil.rmtree(aside, ignore_errors=True)
                else:
                    aside.unlink()


@contextmanager
def writing(path: Path, *, advice: str = AGAIN) -> Iterator[None]:
    """Convert errors of a `with` block that writes a path, or into it, to a `WriteError` with that path."""
    try:
        yield
    except Exception as error:
        if (reason := write_failure(error)) is None:
            raise
        raise WriteError(f"cannot write {path}: {reason}; {advise(error, advice)}") from None


def write_failure(error: BaseException) -> str | None:
    """Describe in a few words why writing failed; None for an error of another kind."""
    # Messages of torch that replace the system's reason.
    if isinstance(error, RuntimeError) and re.search(
        "PytorchStreamWriter|inline_container|iostream error", str(error)
    ):
        return "torch failed writing a file"
    # Tokenizers raise errors of no class of their own.
    of_tokenizers = type(error) is Exception and "(os error" in str(error)
    if isinstance(error, InputError) or not (of_tokenizers or isinstance(error, OSError | SafetensorError)):
        return None
    return getattr(error, "strerror", None) or str(error).split("\n")[0]


def disk_full(error: BaseException) -> bool:
    """Whether writing failed because the disk is full."""
    return write_failure(error) is not None and (isinstance(error, RuntimeError) or _error_number(error) in DISK_FULL)


def advise(error: BaseException, advice: str) -> str:
    """Advice for an error of writing: the given one if the disk may be full, otherwise to check the path."""
    number = _error_number(error)
    if number is None or number in DISK_FULL:
        return advice
    return "check the path and its permissions, or choose another path"


def _error_number(error: BaseException) -> int | None:
    # Libraries written in Rust give the system's number in their text alone.
    found = re.search(r"(?:\(os error |Os \{ code: )(\d+)", str(error))
    return int(found[1]) if found else getattr(error, "errno", None)


def resolved(path: str | Path) -> Path:
    """Resolve a path, which need not exist."""
    try:
        return Path(path).expanduser().resolve()
    except RuntimeError as error:
        # Links that lead to themselves, or `~NAME` without such a user.
        raise InputError(f"{path} leads nowhere: {error}", path=Path(path)) from None


def check_regular(path: Path) -> None:
    """Reject what cannot be read like a file or folder; missing ones are accepted.

    What a shell makes of `<(zcat FILE)` is a pipe, which can be read only once.
    """
    if path.is_symlink() and not path.exists():
        raise InputError(f"{path} is a link to {path.readlink()}, which cannot be found; check it", path=path)
    if path.exists() and not path.is_dir() and not path.is_file():
        raise InputError(
            f"{path} is a pipe, a socket or a device; expected a file: write what it gives into one", path=path
        )


def existing(files: Iterable[Path]) -> list[Path]:
    """Check that files are there."""
    paths = [Path(path) for path in files]
    if not paths:
        raise InputError("expected at least one file, got none")
    for path in paths:
        check_regular(path)
        if path.is_dir():
            raise InputError(f"{path}: expected a file, but this is a folder; name the files in it", path=path)
        if not path.exists():
            raise InputError(f"{path}: there is no such file", path=path)
    return paths


def sweep(folder: Path) -> None:
    """Remove temporary files that a killed command left in a folder."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)


def read_text(path: Path) -> str:
    """Read a text file in UTF-8; raises `OSError` and `UnicodeDecodeError`."""
    check_regular(path)
    return path.read_text(encoding="utf8")


def parse_json(text: str | bytes) -> Any:  # noqa: ANN401 - whatever is there
    """Parse JSON; raises `ValueError`, also for values nested so deeply that Python does not parse them."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


@contextmanager
def open_lines(path: Path, what: str = "") -> Iterator[BinaryIO]:
    """Open a text file, plain or packed (see `PACKED`), in a `with` block; errors say `what` it is."""
    check_regular(path)
    try:
        with open_packed(path) as lines:
            yield lines
    except DAMAGED as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {f'{what} {path}'.strip()}: {reason}", path=path) from None


def decode_line(line: bytes, path: Path, number: int) -> str:
    """Decode a line as UTF-8; the error names the file and the number of the line, from 1."""
    try:
        return line.decode("utf8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}, line {number}: expected UTF-8, found the byte {line[error.start]:#04x} at position "
            f"{error.start + 1}; convert the file to UTF-8"
        ) from None


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    check_regular(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class ChecksummedFile:
    """Writes a file and computes its SHA-256; a former file is replaced."""

    def __init__(self, path: Path) -> None:
        self._path, self._digest = path, hashlib.sha256()
        with writing(path):
            self._file = path.open("wb")

    def write(self, content: bytes | memoryview) -> None:
        """Append bytes."""
        with writing(self._path):
            self._file.write(content)
        self._digest.update(content)

    def close(self) -> str:
        """Close the file when it is on the disk; returns the checksum."""
        with writing(self._path), self._file:
            self._file.flush()
            os.fsync(self._file.fileno())
        return self._digest.hexdigest()


def share_weights(folder: Path) -> None:
    """Set the permissions of weights to those of their folder, because safetensors may make them private."""
    for path in folder.rglob("*.safetensors"):
        path.chmod(path.parent.stat().st_mode & 0o666)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    with replacing(path, sweep=False) as aside:
        aside.write_bytes(content)


def shown_path(path: Path) -> str:
    """Format a path as a person would type it: relative to the working directory, if it is below."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, FileNotFoundError):  # The second where the result replaced the working directory itself.
        return str(path)


def result_file(
    out: str | Path, suffixes: Sequence[str] = (), *, sources: Iterable[str | Path] = (), option: str = "out"
) -> Path:
    """Resolve the path of a result before the work, and reject one that cannot be written.

    Its name ends in one of `suffixes`, if there are any. `sources` are folders that the result is made from, which it
    would change if it were inside; `option` is the name of the parameter, for errors.
    """

    def refusal(reason: str) -> InputError:
        return InputError(f"{out} {reason}", option=option, path=file)

    file = resolved(out)
    if file.is_dir():
        raise refusal("is a folder; name a file")
    if not file.parent.is_dir():
        raise refusal(f"cannot be written: there is no folder {file.parent}; make it first")
    if suffixes and not (file.suffix and file.name.lower().endswith(tuple(suffixes))):
        raise refusal(f"does not say what it holds: expected a name that ends in {' or '.join(suffixes)}")
    if is_record(file):
        raise refusal("is the record of a result, which must not be replaced; name another file")
    refuse_inside(file, sources, option)
    return file


def is_record(file: Path) -> bool:
    """Whether a file is the record of a result; one next to its result is named after it."""
    return bool(record_values(file))


def record_values(content: Path | bytes) -> dict[str, Any]:
    """The values of the record of a result; empty for other files."""
    with suppress(OSError, ValueError):
        if isinstance(content, Path):
            content = content.read_bytes() if content.suffix == ".json" else b""
        # Others, such as large tokenizers, are not parsed.
        values = parse_json(content) if b'"paranmt_hf"' in content else None
        if isinstance(values, dict) and {"settings", "machine", "paranmt_hf"} <= values.keys():
            return values
    return {}


def refuse_inside(out: Path, sources: Iterable[str | Path], option: str) -> None:
    """Reject a resolved path inside a folder that is an input of the result."""
    for source in (Path(source).expanduser() for source in sources):
        if source.is_dir() and source.resolve() in out.parents:
            raise InputError(
                f"{out} is inside {source}, which it is made from; choose another path", option=option, path=out
            )


def write_result(path: Path, text: str) -> None:
    """Write a requested text: to a file atomically, to a terminal or a pipe directly."""
    if path.exists() and not path.is_file():
        # Next to a terminal or a pipe, such as /dev/stdout, nothing can be written.
        with writing(path):
            path.write_text(text, encoding="utf8", newline="\n")
    else:
        # The target of a link is replaced, not the link.
        with replacing(resolved(path)) as aside:
            aside.write_text(text, encoding="utf8", newline="\n")


def source_name(source: str | Path) -> str:
    """Name a file or folder without its parents; other names, such as Hub ids, are unchanged."""
    path = Path(source).expanduser()
    if not path.exists():
        return str(source)
    return path.name if path.name not in ("", "..") else path.resolve().name


def listed(names: Names | None) -> list[str | Path]:
    """Wrap a single name in a list."""
    return [names] if isinstance(names, str | Path) else list(names or ())
