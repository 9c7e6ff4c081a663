"""Records of files that a command writes to a given path, such as those of `--json` and `--write`.

The record says which command wrote the file, so that files of other origin are not replaced, and has the options with
which `--config` repeats the command.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from paranmt_hf.cli.command import Command
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import is_record, result_file, sweep_killed, write_bytes
from paranmt_hf.util.markers import Writes
from paranmt_hf.util.records import FileRecord, made_with


@dataclass(frozen=True, kw_only=True)
class WrittenFileRecord(FileRecord):
    """The record of a file that a command wrote.

    Its `settings` are empty, unless `paranmt run` wrote the file: then they say what the file was made from.
    """

    KIND: ClassVar[str] = "a file that a command wrote"


@contextmanager
def recorded_files(command: Command, values: Mapping[str, Any], json_file: Path | None) -> Iterator[None]:
    """Write the records of the files that a command writes in a `with` block.

    These are the files of options marked with `Writes`, and that of `--json`. An existing file that the command did
    not write is refused. The record of a new file is written before the file, so that after a kill the same command
    recognises the file as its own.

    Args:
        command: The command.
        values: Values by the names of options.
        json_file: The file of `--json`; None if there is none.
    """
    files = _files_of(command, values, json_file)
    for option, file in files:
        _check_own(command, file, option)
        if file in [WrittenFileRecord.path(other) for _, other in files]:
            raise InputError(
                f"{file} is needed for the record of another file of this command; name another file",
                option=option,
                path=file,
            )
    record = WrittenFileRecord(settings={}, options={command.name: command.kept_values(values)}, **made_with())
    new = [file for _, file in files if not file.exists()]
    try:
        for _, file in files:
            sweep_killed(record.path(file))
        for file in new:
            write_bytes(record.path(file), record.to_bytes())
        yield
    except BaseException:
        for file in new:
            if not file.exists():
                record.path(file).unlink(missing_ok=True)
        raise
    for _, file in files:
        if file.is_file():
            record.write(file)


def _files_of(command: Command, values: Mapping[str, Any], json_file: Path | None) -> list[tuple[str, Path]]:
    """Return the files that a command writes: the name of the option and the path of each.

    Terminals and pipes are left out, because they get no record.
    """
    found: list[tuple[str, Any]] = [("json", json_file)]
    for option in command.options:
        if Writes in option.expected.markers:
            given = values[option.name]
            found += [(option.name, file) for file in (given if isinstance(given, tuple) else (given,))]
    files = [(option, Path(file).expanduser()) for option, file in found if file is not None]
    return [(option, file) for option, file in files if file.is_file() or not file.exists() or file.is_dir()]


def _check_own(command: Command, file: Path, option: str) -> None:
    """Reject a path where no file can be written, and an existing file that this command did not write.

    An empty file may be replaced.
    """
    result_file(file, option=option)
    path = WrittenFileRecord.path(file)
    if path.exists() and not is_record(path):
        raise InputError(
            f"{path} is needed for the record of this file and holds something else; move it away",
            option=option,
            path=path,
        )
    if not file.exists() or not file.stat().st_size:
        return
    if not path.exists() or command.name not in WrittenFileRecord.read(file).options:
        raise InputError(
            f"{file} exists, and `paranmt {command.name}` did not write it; name another file",
            option=option,
            path=file,
        )
