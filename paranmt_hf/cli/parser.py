"""The parser of a command: its own help with an example, and options from a file."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from paranmt_hf.cli.values import SWITCHED_OFF, check_values, option_name
from paranmt_hf.errors import InputError
from paranmt_hf.util.yaml_files import OPTIONS_FILE, as_yaml, read_yaml
from paranmt_hf.version import __version__

# What a command does with its parsed options.
Run = Callable[[argparse.Namespace], None]
# Gives the options that a name such as that of a recipe stands for.
Expand = Callable[[str], Mapping[str, Any]]
# What is not written down with a result: where it lies, and what changes nothing of it.
NOT_KEPT = {"out", "final", "config", "debug", "help", "json", "engine", "workers", "threads", "gpus", "keep_work"} | {
    "checkpoint_seconds",
    "report_to",
    "estimate",
    "teacher_cache",
}


class CommandParser(argparse.ArgumentParser):
    """A parser whose options can also stand in a file, and which shows an example."""

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401
        super().__init__(
            *args, **{"allow_abbrev": False, "formatter_class": argparse.RawDescriptionHelpFormatter, **options}
        )
        # Options that name a set of defaults, and what gives these.
        self.expansions: dict[str, Expand] = {}
        # Those that decide the result of this command, though they decide nothing of others'.
        self.decisive: set[str] = set()
        self._takes_file = False

    def finish(self, run: Run, example: str) -> None:
        """Add what every command has, after its own options.

        Args:
            run: What the command does.
            example: A command line.
        """
        common = self.add_argument_group("every command")
        common.add_argument(
            "--config",
            type=Path,
            metavar="FILE.yaml",
            help=f"options by their names, such as the {OPTIONS_FILE} beside a result; the command line counts more, "
            "and --no-NAME turns off what the file turns on",
        )
        common.add_argument("--debug", action="store_true", help="show the traceback of an error")
        self.show_example(example)
        self._takes_file = True
        self.usage = f"{self.prog} {' '.join(self._required())} [options]"
        self.set_defaults(run=run, command_parser=self)

    def _required(self) -> list[str]:
        """What must be given, as the usage line has it."""
        words = []
        for action in self._actions:
            plain = action.dest.upper()
            several = f"{plain} [{plain} ...]" if action.nargs == "+" else f"[{plain} ...]"
            value = several if action.nargs in ("+", "*") else plain
            if not action.option_strings:
                words.append(value)
            elif action.required:
                words.append(f"{action.option_strings[0]} {value}")
        return words

    def kinds(self, title: str) -> argparse._SubParsersAction[CommandParser]:
        """Make room for commands below this one, such as `paranmt publish`.

        Args:
            title: What they are, in one upper-case word.
        """
        return self.add_subparsers(dest="kind", required=True, metavar=title, parser_class=CommandParser)

    def show_example(self, example: str) -> None:
        """Show a command line below the options."""
        self.epilog = f"example:\n  {example}"

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # noqa: ANN401
        """Take values from the file of `--config`, and from what the name of a recipe stands for, as defaults."""
        words = [] if args is None else list(args)
        path = _given(words, "--config") if self._takes_file else None
        values: dict[str, Any] = {}
        if path is not None:
            where = f"options of `{self.prog}`"
            values = check_values(self, read_yaml(Path(path).expanduser(), f"{where}, a name and a value each"), path)
        for name in self.expansions:
            chosen = _given(words, f"--{name}") or values.get(name)
            if chosen:
                self._expand(name, chosen, values)
        for action in self._actions:
            if action.dest in values and action.dest not in SWITCHED_OFF:
                action.default, action.required = values[action.dest], False
                if not action.option_strings and action.nargs in (None, "+"):
                    action.nargs = "?" if action.nargs is None else "*"
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            # Here, so that the usage shown is that of the command below `paranmt` which does not know them.
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown

    def _expand(self, name: str, chosen: str, values: dict[str, Any]) -> None:
        """Add what a name stands for to the values; what is missing then, the command itself asks for."""
        action = next(action for action in self._actions if action.dest == name)
        if action.choices is None or chosen in action.choices:
            for other, value in check_values(self, dict(self.expansions[name](chosen)), f"{name} {chosen}").items():
                values.setdefault(other, value)
            for action in self._actions:
                action.required = False


def _given(words: Sequence[str], flag: str) -> str | None:
    """Value of an option on the command line, the last one."""
    value = None
    for index, word in enumerate(words):
        if word == "--":
            break
        if word == flag and index + 1 < len(words):
            value = words[index + 1]
        elif word.startswith(f"{flag}="):
            value = word.partition("=")[2]
    return value


def resolved_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """All options of a command as `--config` takes them, but for those that decide nothing of the result."""
    parser: CommandParser = arguments.command_parser
    values = {}
    for action in parser._actions:
        value = getattr(arguments, action.dest, None)
        if action.dest in NOT_KEPT - parser.decisive or value is None or value == []:
            continue
        values[option_name(action)] = _as_given(value)
    return values


def _as_given(value: Any) -> Any:  # noqa: ANN401
    """A value as a person writes it."""
    if isinstance(value, list | tuple):
        return [_as_given(part) for part in value]
    if isinstance(value, dict):
        return ",".join(f"{name}={column}" for name, column in value.items())
    return os.fspath(value) if isinstance(value, Path) else value


def is_first() -> bool:
    """Whether this process is the one that tells, of those that `torchrun` or `accelerate launch` started."""
    return os.environ.get("RANK", "0") == "0"


def keep_options(arguments: argparse.Namespace, result: Path, *, name: str = OPTIONS_FILE, fresh: bool = True) -> None:
    """Write the options of a command beside its result, so that `--config` can repeat it.

    Args:
        arguments: The parsed options.
        result: A folder, into which they go, or a file, beside which they lie.
        name: Name of the file in a folder.
        fresh: Whether the result was made just now; else a file that is there stays.
    """
    from paranmt_hf.util.files import replacing

    path = result / name if result.is_dir() else result.with_name(f"{result.name}.{OPTIONS_FILE}")
    if not (result.is_dir() or result.is_file()) or (path.exists() and not fresh):
        return
    if not is_first():
        return
    head = f"# {arguments.command_parser.prog} --config THIS_FILE --out ... (paranmt-hf {__version__})\n"
    text = head + as_yaml(resolved_options(arguments))
    try:
        with replacing(path) as aside:
            aside.write_bytes(text.encode())
    except InputError as error:
        raise InputError(f"{result} is complete; only its options could not be written beside it: {error}") from None
