"""The program `paranmt`: find the command in the table, call its function, and print its result.

The record of a result holds the options of the command that made it. `--config RECORD` repeats the command.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from paranmt_hf.cli.command import Command, reworded, with_flags
from paranmt_hf.cli.table import COMMANDS, FAMILIES, GROUPS
from paranmt_hf.cli.written_files import recorded_files
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import is_record, resolved, write_result
from paranmt_hf.util.markers import Expands
from paranmt_hf.util.optional import available
from paranmt_hf.util.processes import is_rank_0
from paranmt_hf.util.records import from_json, read_json
from paranmt_hf.util.run import recording
from paranmt_hf.util.wording import in_a_row, perhaps
from paranmt_hf.util.yaml_files import as_yaml, parse_yaml, read_yaml
from paranmt_hf.version import __version__

logger = logging.getLogger(__name__)

PRINTED = Path("-")  # The value of `--json` for printing instead of writing a file


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the words of a command line name, and print its result or its error.

    Args:
        argv: The words after `paranmt`; None for those that the program was started with.

    Returns:
        The exit status: 0, or 1 after an error, 2 if there is no such command, 130 after Ctrl-C.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    logging.getLogger("paranmt_hf").setLevel(logging.INFO if is_rank_0() else logging.WARNING)
    try:
        return _run(words)
    except KeyboardInterrupt:
        print("interrupted; the same command continues what it has kept, or begins again", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The program that reads the output, such as `head`, has ended, so the rest is discarded.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if "--debug" in words:
            raise
        print(f"paranmt: {' '.join(describe_error(error).split())}", file=sys.stderr)
        return 1


def find_command(words: Sequence[str]) -> tuple[Command | None, list[str]]:
    """Find the command that the first one or two words name.

    Returns:
        The command, None if there is none of that name; and the words after its name.
    """
    for count in (2, 1):
        if (name := " ".join(words[:count])) in COMMANDS:
            return COMMANDS[name], list(words[count:])
    return None, list(words)


def _run(words: list[str]) -> int:
    """Run a command, or print the version, the list of commands, or that there is no such command.

    Returns:
        The exit status: 0, or 2 if no command was given or it does not exist.
    """
    command, others = find_command(words)
    first = "".join(words[:1])
    # The commands of the family, if the first word is the name of one.
    below = [each for each in COMMANDS.values() if first in FAMILIES and each.name.startswith(f"{first} ")]
    if command is not None:
        run_command(command, others)
    elif first == "--version":
        print(f"paranmt-hf {__version__}")
    elif set(words[bool(below) :]) <= {"-h", "--help", "--help-all"}:
        print(overview(first, below))
        return 0 if words[bool(below) :] else 2
    else:
        typed = " ".join(words[: 2 if below else 1])
        known = [each.name for each in below] or [*COMMANDS, *FAMILIES]
        listed = f"`paranmt {first}` has {in_a_row(name.split()[1] for name in known)}" if below else ""
        hint = perhaps(typed, {name: f"paranmt {name}" for name in known})
        hint = f"{hint}; {listed}" if listed else hint or "; `paranmt --help` lists all"
        print(f"paranmt: there is no command {typed!r}{hint}", file=sys.stderr)
        return 2
    return 0


def overview(family: str = "", below: Sequence[Command] = ()) -> str:
    """Return the help of `paranmt`, which lists all commands under their headings; or the help of a family.

    Args:
        family: Name of a family of commands, such as `search`; empty for the help of `paranmt`.
        below: Commands of the family.
    """
    if below:
        lines = [f"usage: paranmt {family} COMMAND [options]", "", FAMILIES[family], ""]
        lines += [f"  {command.name.split()[1]:<16} {command.summary}" for command in below]
        return "\n".join([*lines, "", f"example:\n  {below[0].example}"])
    lines = ["usage: paranmt COMMAND [options]", ""]
    lines += ["Paraphrase corpora by back-translation, and sentence encoders trained on them."]
    for heading, commands in GROUPS.items():
        shown = {command.name.split()[0]: command.summary for command in commands}
        if shown:
            lines += ["", f"{heading}:"]
            lines += [f"  {name:<16} {FAMILIES.get(name, summary)}" for name, summary in shown.items()]
    lines += ["", "`paranmt COMMAND --help` shows the options of a command. To begin: paranmt quickstart --out demo"]
    return "\n".join(lines)


def run_command(command: Command, words: Sequence[str]) -> None:
    """Parse the words after the name of a command, call its function, and print its result.

    Errors show parameters as they are typed: `--batch-size`.
    """
    from paranmt_hf.cli.parsing import parse

    try:
        given = file_values(command, words)
        if _given(words, "--out") == "":
            # As a path, the empty text of `--out "$NAME"` with an unset variable would be the current folder.
            raise InputError("out is empty; name what is written", option="out")
        values = parse(command, words, given)
        _check_config(command, words, {name: value for name, value in given.items() if values[name] == value})
    except InputError as error:
        raise reworded(error, command.flags) from error.__cause__
    for text in perform(command, values):
        print(text, flush=True)


def perform(command: Command, values: Mapping[str, Any]) -> Iterator[str]:
    """Call the function of a command, and yield the texts that are printed about its result.

    The options are put into the record of the result, and the result is written to the file of `--json`.

    Args:
        command: The command.
        values: Value of each option by its name, and of `json`: a path, `PRINTED`, or None.
    """
    json_file = None if values.get("json") == PRINTED else values.get("json")
    changed = values.get(command.options[0].name if command.changes_folder else "out")
    try:
        with recorded_files(command, values, json_file) if is_rank_0() else nullcontext():
            with recording(None if changed is None else resolved(changed), command.name, command.kept_values(values)):
                with _options_in_log(command.flags):
                    result = command.call(values)
            if is_rank_0():
                yield from _report(command, values, result, json_file)
    except InputError as error:
        raise reworded(error, command.flags) from error.__cause__


@contextmanager
def _options_in_log(flags: Mapping[str, str]) -> Iterator[None]:
    """Show parameters in messages that the package logs in a `with` block as they are typed: `--batch-size`."""

    def rewrite(record: logging.LogRecord) -> bool:
        if record.name.startswith("paranmt_hf"):
            record.msg = with_flags(record.getMessage(), flags)
            record.args = None
        return True

    handlers = logging.getLogger().handlers
    for handler in handlers:
        handler.addFilter(rewrite)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(rewrite)


def _report(command: Command, values: Mapping[str, Any], result: Any, json_file: Path | None) -> Iterator[str]:  # noqa: ANN401
    """Yield the description of a result, and write it as JSON to the file `json_file`, if it is not None."""
    if isinstance(result, Iterator):
        yield from result
        return
    text = result.summary() if hasattr(result, "summary") else str(result)
    if values.get("json"):
        values_as_text = json.dumps(result.to_json(), indent=2, ensure_ascii=False)
        if json_file is None:
            text = values_as_text
        else:
            write_result(json_file, f"{values_as_text}\n")
            text += f"\nresults: {json_file}"
    if result is not None:
        yield with_flags(text, command.flags)


def file_values(command: Command, words: Sequence[str]) -> dict[str, Any]:
    """Return the values that options have from the file of `--config` and from a named set such as a recipe."""
    values: dict[str, Any] = {}
    if path := _given(words, "--config"):
        values = command.values_of(read_options(Path(path).expanduser(), command.name), path)
    return expanded(command, values, words)


def read_options(path: Path, command: str) -> dict[str, Any]:
    """Read the options of the command named `command` from a YAML file or the record of a result.

    Returns:
        Values as text, by the names of the options as they are written in the file.
    """
    if not is_record(path):
        return read_yaml(path, f"options of `paranmt {command}`, a name and a value each", as_text=True)
    values = read_json(path, "the record of a result")
    recorded = from_json(dict[str, dict[str, Any]], values.get("options", {}), path)
    if command not in recorded:
        others = in_a_row(f"`paranmt {name}`" for name in recorded) if recorded else "no command"
        raise InputError(
            f"{path} has the options of {others}; expected those of `paranmt {command}`", option="config", path=path
        )
    # The values go through YAML to become text, so that those of a record and of a YAML file are converted alike.
    return dict(parse_yaml(as_yaml(recorded[command]), as_text=True))


def _check_config(command: Command, words: Sequence[str], given: Mapping[str, Any]) -> None:
    """Reject a `--config` file that would have the command do what the user must consent to, unless it is typed too.

    Such acts are writing outside of the folder of the file and the current folder, sending text to a server, reporting
    to a service, and the options `TYPED_ONLY`. The user consents to an option by typing it on the command line.

    Args:
        command: The command.
        words: The words after its name.
        given: The values from the file that the command line does not replace.
    """
    config = _given(words, "--config")
    if config is None:
        return
    # The import is here because it loads numpy, which `paranmt doctor` must run without.
    from paranmt_hf.cli.permissions import TYPED_ONLY, Act, acts_of, written_options

    flags = {option.name: option.flag for option in command.options}
    # Arguments without a flag, such as teachers, come first.
    typed = {
        name for name, flag in flags.items() if not flag.startswith("-") and words and not words[0].startswith("-")
    }
    untyped = {
        name: value for name, value in given.items() if name not in typed and _given(words, flags[name]) is None
    }
    written: list[tuple[str, Path]] = []
    for name in written_options(command):
        value = untyped.get(name, ())
        several = value if isinstance(value, tuple) else (value,)
        written += [(name, Path(each).expanduser()) for each in several]
    folders = [Path.cwd(), Path(config).expanduser().resolve().parent]
    acts = acts_of(command, untyped, written, folders)
    acts += [Act(f"sets {name}", name, "outside") for name in TYPED_ONLY if untyped.get(name)]
    for act in acts:
        if act.needs is not None:
            raise InputError(
                f"{config} {act.description}; type {flags[act.option]} on the command line if that is what you want",
                option=act.option,
                path=act.path,
            )


def expanded(command: Command, values: dict[str, Any], words: Sequence[str] = ()) -> dict[str, Any]:
    """Return values of options with those of a named set added, such as a recipe (see `Expands`).

    Args:
        command: The command.
        values: Values by the names of options, which take precedence over those of the set.
        words: Words of the command line, which may name the set too.
    """
    for option in command.options:
        for marker in option.expected.markers:
            chosen = _given(words, option.flag) or values.get(option.name)
            if isinstance(marker, Expands) and chosen:
                values = command.values_of(marker.values(chosen), f"{option.name} {chosen}") | values
    return values


def _given(words: Sequence[str], flag: str) -> str | None:
    """Return the value of an option on the command line, the last one if it is repeated; None if it is not there."""
    value = None
    for index, word in enumerate(words):
        if word == "--":
            break
        if word == flag and index + 1 < len(words):
            value = words[index + 1]
        elif word.startswith(f"{flag}="):
            value = word.partition("=")[2]
    return value


def describe_error(error: Exception) -> str:
    """Return one sentence about an error, for the terminal."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"cannot use {error.filename}: {error.strerror}; check the path and its permissions"
    if isinstance(error, ModuleNotFoundError) and error.name and not available(error.name.partition(".")[0]):
        package = error.name.partition(".")[0]
        return f"this needs the package {package!r}, which is not installed: `pip install paranmt-hf` installs all"
    hint = "" if isinstance(error, OSError) else " (unexpected; --debug shows where)"
    return f"{type(error).__name__}: {error}{hint}"


def show_any_text() -> None:
    """Make the standard streams accept all characters.

    On Windows, files and pipes get UTF-8 instead of an encoding with few characters. Elsewhere, characters that the
    encoding of the terminal lacks are written as escapes.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            encoding = "utf8" if sys.platform == "win32" and not stream.isatty() else None
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


def console_main() -> None:
    """Run the console script `paranmt`, and end the process with its exit status.

    The process ends without finalising the interpreter: threads of Arrow that are still reading sometimes abort the
    process during that, so that a command which succeeded would seem to have failed.
    """
    show_any_text()
    try:
        code = main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
