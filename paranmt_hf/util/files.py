"""Atomic writing of files and folders, checks of paths, and checksums."""

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

AGAIN = "make room and run the same command again"  # The usual advice where the disk is full
DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}  # A full disk, an exhausted quota, a limit on the size of files
_OPEN: set[str] = set()  # Names of the temporary files and folders that this process is writing
Names = str | Path | Sequence[str | Path]  # One or more files, folders or ids on the Hub


@contextmanager
def replacing(path: Path, *, doing: str = "save", advice: str = AGAIN, sweep: bool = True) -> Iterator[Path]:
    """Write a file atomically in a `with` block; the former file stays until the block ends.

    The block is given the path of a temporary file to write: a hidden file in the same folder, whose name ends in
    `.tmp`. At the end of the block it gets the name `path`. Each call has a temporary file of its own, so processes
    that write one file at the same time do not mix their bytes; the last one to finish wins.

    Args:
        path: The file to write or replace.
        doing: Verb for the error: `cannot save PATH: ...`.
        advice: What the error tells the user to do if the disk is full.
        sweep: Whether to delete temporary files of `path` that killed processes left. This lists the folder.

    Raises:
        WriteError: If writing fails; the former file then stays.
    """
    if sweep:
        sweep_killed(path)
    aside = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    _OPEN.add(aside.name)
    try:
        yield aside
        # Without flushing, a power cut could leave an empty file under the new name.
        # The file is opened for writing because Windows flushes no others.
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
    """Fill a hidden folder in a `with` block; at the end of the block it is renamed to `path`.

    `path` must be missing or an empty folder; `advice` is what an error tells the user to do if the disk is full.
    """
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
    """Return a folder of a cache, and create it if it is missing; other processes wait meanwhile and then find it.

    Args:
        folder: The folder, which exists under this name only when it is complete.
        make: Fills the new folder, whose temporary path it is given.
        advice: What an error tells the user to do if the disk is full.
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
    """Rename the finished folder `made` to `path`, which must be missing or an empty folder."""
    if path.exists():
        path.rmdir()
    made.rename(path)


def sweep_killed(path: Path) -> None:
    """Delete the temporary files and folders that killed processes left next to `path` when they wrote it."""
    with suppress(OSError):
        for aside in path.parent.glob(f".{glob.escape(path.name)}.*-*.tmp"):
            process = aside.name.removeprefix(f".{path.name}.").split("-")[0]
            is_this = process == str(os.getpid())
            if aside.name not in _OPEN and process.isdecimal() and (is_this or not is_running(int(process))):
                if aside.is_dir():
                    shutil.rmtree(aside, ignore_errors=True)
                else:
                    aside.unlink()


@contextmanager
def writing(path: Path, *, advice: str = AGAIN) -> Iterator[None]:
    """Convert errors of writing in a `with` block to a `WriteError` that names `path`, the file or folder written.

    `advice` is what the error tells the user to do if the disk is full. Errors of other kinds are not changed.
    """
    try:
        yield
    except Exception as error:
        if (reason := write_failure(error)) is None:
            raise
        raise WriteError(f"cannot write {path}: {reason}; {advise(error, advice)}") from None


def write_failure(error: BaseException) -> str | None:
    """Return in a few words why writing failed; None if the error is not about writing."""
    # The messages of torch replace those of the system.
    if isinstance(error, RuntimeError) and re.search(
        "PytorchStreamWriter|inline_container|iostream error", str(error)
    ):
        return "torch failed writing a file"
    # The library tokenizers raises plain `Exception`.
    of_tokenizers = type(error) is Exception and "(os error" in str(error)
    if isinstance(error, InputError) or not (of_tokenizers or isinstance(error, OSError | SafetensorError)):
        return None
    return getattr(error, "strerror", None) or str(error).split("\n")[0]


def disk_full(error: BaseException) -> bool:
    """Return whether an error means that writing failed because the disk is full, or a quota is exhausted."""
    return write_failure(error) is not None and (isinstance(error, RuntimeError) or _error_number(error) in DISK_FULL)


def advise(error: BaseException, advice: str) -> str:
    """Return what the user can do about an error of writing: `advice` if the disk may be full, else check the path."""
    number = _error_number(error)
    if number is None or number in DISK_FULL:
        return advice
    return "check the path and its permissions, or choose another path"


def _error_number(error: BaseException) -> int | None:
    """Return the number of the system's error, as in `errno`; None if the error has none."""
    # Libraries written in Rust give the number of the system's error only in the message.
    found = re.search(r"(?:\(os error |Os \{ code: )(\d+)", str(error))
    return int(found[1]) if found else getattr(error, "errno", None)


def resolved(path: str | Path) -> Path:
    """Make a path absolute, with `~` and links resolved; it need not exist."""
    try:
        return Path(path).expanduser().resolve()
    except RuntimeError as error:
        # A link leads to itself, or there is no user NAME of `~NAME`.
        raise InputError(f"{path} leads nowhere: {error}", path=Path(path)) from None


def check_regular(path: Path) -> None:
    """Reject broken links, pipes, sockets and devices; a path that does not exist is accepted.

    A pipe, such as a shell makes of `<(zcat FILE)`, is rejected because it can be read only once.
    """
    if path.is_symlink() and not path.exists():
        raise InputError(f"{path} is a link to {path.readlink()}, which cannot be found; check it", path=path)
    if path.exists() and not path.is_dir() and not path.is_file():
        raise InputError(
            f"{path} is a pipe, a socket or a device; expected a file: write what it gives into one", path=path
        )


def existing(files: Iterable[Path]) -> list[Path]:
    """Return the paths of input files; reject an empty list, missing files, folders, and all but regular files."""
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
    """Delete all temporary files, `.*.tmp`, that a killed command left in a folder."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)


def read_text(path: Path) -> str:
    """Read a text file in UTF-8; raises `OSError` and `UnicodeDecodeError`."""
    check_regular(path)
    return path.read_text(encoding="utf8")


def parse_json(text: str | bytes) -> Any:  # noqa: ANN401 - whatever is there
    """Parse JSON.

    Raises:
        ValueError: If the text is not JSON, or is nested more deeply than Python can parse.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


@contextmanager
def open_lines(path: Path, what: str = "") -> Iterator[BinaryIO]:
    """Open a text file for reading bytes in a `with` block; it may be packed, as by gzip (see `PACKED`).

    `what` describes the file in errors: `cannot read WHAT PATH: ...`.
    """
    check_regular(path)
    try:
        with open_packed(path) as lines:
            yield lines
    except DAMAGED as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {f'{what} {path}'.strip()}: {reason}", path=path) from None


def decode_line(line: bytes, path: Path, number: int) -> str:
    """Decode a line as UTF-8; the error names its file `path` and its `number`, counted from 1."""
    try:
        return line.decode("utf8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}, line {number}: expected UTF-8, found the byte {line[error.start]:#04x} at position "
            f"{error.start + 1}; convert the file to UTF-8"
        ) from None


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    check_regular(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class ChecksummedFile:
    """A new file whose SHA-256 is computed while it is written; a former file at `path` is overwritten."""

    def __init__(self, path: Path) -> None:
        self._path, self._digest = path, hashlib.sha256()
        with writing(path):
            self._file = path.open("wb")

    def write(self, content: bytes | memoryview) -> None:
        """Append bytes to the file."""
        with writing(self._path):
            self._file.write(content)
        self._digest.update(content)

    def close(self) -> str:
        """Flush the file to the disk and close it; return its SHA-256, in hexadecimal."""
        with writing(self._path), self._file:
            self._file.flush()
            os.fsync(self._file.fileno())
        return self._digest.hexdigest()


def share_weights(folder: Path) -> None:
    """Give the weights in a folder its permissions to read and write, because safetensors may make them private."""
    for path in folder.rglob("*.safetensors"):
        path.chmod(path.parent.stat().st_mode & 0o666)


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to a file atomically; a former file is replaced."""
    with replacing(path, sweep=False) as aside:
        aside.write_bytes(content)


def shown_path(path: Path) -> str:
    """Format a path as a person would type it: relative to the working directory if the path is inside it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, FileNotFoundError):  # There is no working directory if a result has replaced it.
        return str(path)


def result_file(
    out: str | Path, suffixes: Sequence[str] = (), *, sources: Iterable[str | Path] = (), option: str = "out"
) -> Path:
    """Return the absolute path of a result file; reject a path that cannot be written, before any work is done.

    Args:
        out: The path as given.
        suffixes: Endings one of which the name must have; empty for any name.
        sources: Inputs of the result. It must not lie inside one that is a folder, because it would change it.
        option: Name of the parameter that `out` is from, for errors.
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
    """Return whether a file is the record of a result."""
    return bool(record_values(file))


def record_values(content: Path | bytes) -> dict[str, Any]:
    """Return the JSON values of the record of a result, given as a path or as its bytes; empty for any other file."""
    with suppress(OSError, ValueError):
        if isinstance(content, Path):
            content = content.read_bytes() if content.suffix == ".json" else b""
        # Other JSON files, such as large tokenizers, are not parsed.
        values = parse_json(content) if b'"paranmt_hf"' in content else None
        if isinstance(values, dict) and {"settings", "machine", "paranmt_hf"} <= values.keys():
            return values
    return {}


def refuse_inside(out: Path, sources: Iterable[str | Path], option: str) -> None:
    """Reject the resolved path `out` of a result if it is inside one of its `sources`, its input files and folders."""
    for source in (Path(source).expanduser() for source in sources):
        if source.is_dir() and source.resolve() in out.parents:
            raise InputError(
                f"{out} is inside {source}, which it is made from; choose another path", option=option, path=out
            )


def write_result(path: Path, text: str) -> None:
    """Write `text` to `path`: atomically to a file, directly to a terminal or a pipe."""
    if path.exists() and not path.is_file():
        # No temporary file can be written next to a terminal or a pipe, such as /dev/stdout.
        with writing(path):
            path.write_text(text, encoding="utf8", newline="\n")
    else:
        # If the path is a link, its target is replaced, and the link stays.
        with replacing(resolved(path)) as aside:
            aside.write_text(text, encoding="utf8", newline="\n")


def source_name(source: str | Path) -> str:
    """Return the name of a file or folder without its parents; return other names, such as Hub ids, unchanged."""
    path = Path(source).expanduser()
    if not path.exists():
        return str(source)
    return path.name if path.name not in ("", "..") else path.resolve().name


def listed(names: Names | None) -> list[str | Path]:
    """Return names as a list: a single name becomes a list of one, None an empty list."""
    return [names] if isinstance(names, str | Path) else list(names or ())
