"""The options of a command next to its result: they repeat the command, and show that a file is its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from paranmt_hf.cli.command import Command
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import replacing, result_file
from paranmt_hf.util.settings import Writes
from paranmt_hf.util.yaml_files import OPTIONS_FILE, as_yaml
from paranmt_hf.version import __version__


@contextmanager
def result_files(command: Command, values: Mapping[str, Any], json_file: Path | None) -> Iterator[None]:
    """Keep the options of a command next to the files that it writes in a `with` block.

    Its files are those of options marked with `Writes`, and that of `--json`. A file that the command did not write
    is refused. The options are there before their file, so that after a kill the same command knows it as its own.
    """
    named = [(option.name, values[option.name]) for option in command.options if Writes in option.expected.markers]
    several = [(name, each) for name, given in named for each in (given if isinstance(given, tuple) else (given,))]
    several += [("json", json_file)]
    # A terminal or a pipe has no options next to it.
    files = [(name, Path(file).expanduser()) for name, file in several if file is not None]
    files = [(name, file) for name, file in files if file.is_file() or not file.exists() or file.is_dir()]
    for name, file in files:
        _check_own(command, file, name)
    new = [file for _, file in files if not file.exists()]
    try:
        for file in new:
            _write_options(command, values, options_file(file, OPTIONS_FILE))
        yield
    except BaseException:
        for file in new:
            if not file.exists():
                options_file(file, OPTIONS_FILE).unlink(missing_ok=True)
        raise
    for _, file in files:
        keep_options(command, values, file, OPTIONS_FILE)


def _check_own(command: Command, file: Path, option: str) -> None:
    """Reject a path where no file can be written, and a file that is not of this command."""
    result_file(file, option=option)
    if not file.exists() or not file.stat().st_size:
        return
    options = options_file(file, OPTIONS_FILE)
    if not options.is_file() or not options.read_bytes().startswith(_head(command).encode()):
        raise InputError(
            f"{file} exists, and `paranmt {command.name}` did not write it; name another file or delete it",
            option=option,
            path=file,
        )


def keep_options(command: Command, values: Mapping[str, Any], result: Path, name: str, *, fresh: bool = True) -> None:
    """Write the options of a command into the folder of its result, or next to its file, so that it can be repeated.

    If the result was there before, so is the file, which is left as it is.
    """
    path = options_file(result, name)
    if not (result.is_dir() or result.is_file()) or (path.exists() and not fresh):
        return
    try:
        _write_options(command, values, path)
    except InputError as error:
        raise InputError(f"{result} is complete; only its options could not be written next to it: {error}") from None


def options_file(result: Path, name: str) -> Path:
    """Path of the options of a result: in its folder, or next to its file."""
    return result / name if result.is_dir() else result.with_name(f"{result.name}.{name}")


def _head(command: Command) -> str:
    return f"# paranmt {command.name} --config "


def _write_options(command: Command, values: Mapping[str, Any], path: Path) -> None:
    head = f"{_head(command)}THIS_FILE --out ... (paranmt-hf {__version__})\n"
    with replacing(path) as aside:
        aside.write_bytes((head + as_yaml(command.kept_values(values))).encode())
