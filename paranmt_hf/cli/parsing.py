"""Parse the command line of a command, or show its help, with tyro.

tyro gets a flat dataclass for each group of options instead of the settings themselves, so that values of a file are
defaults, and settings are made only when all their values are known.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, field, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Optional

import tyro

from paranmt_hf.cli.command import Command, Option, as_written, documentation_of, with_flags
from paranmt_hf.util.settings import checked, parsed


def parse(command: Command, given_words: Sequence[str], file_values: Mapping[str, Any]) -> dict[str, Any]:
    """Parse a command line.

    Args:
        command: The command.
        given_words: What follows the name of the command.
        file_values: Values that replace defaults, from a file or the name of a recipe.

    Returns:
        The value of each option, by its name, and of `json`, `config` and `debug`.
    """
    words = ["--help" if word == "--help-all" else word for word in given_words]
    # Hidden options are unknown to tyro: they are left out only if the help is all that is asked for.
    brief = "--help-all" not in given_words and not {"-h", "--help"}.isdisjoint(words)
    groups: dict[str, list[Option]] = {"": []}
    for option in command.options:
        if not (brief and option.advanced):
            groups.setdefault(option.parameter if option.parameter in command.settings else "", []).append(option)
    parts: list[tuple[str, Any]] = []
    for name, options in groups.items():
        own = [_tyro_field(option, file_values, command.flags) for option in options]
        made = make_dataclass(name or "own", own, kw_only=True)
        made.__doc__ = documentation_of(command.settings[name]).short_description if name else None
        parts.append((name or "own", made if name else Annotated[made, tyro.conf.arg(name="")]))
    parts.append(("general", make_dataclass("general", _general(command.writes_json), kw_only=True)))
    line: Any = tyro.cli(
        make_dataclass("arguments", parts, kw_only=True),
        prog=f"paranmt {command.name}",
        description=_description(command, brief),
        args=words,
        config=(tyro.conf.OmitArgPrefixes,),
    )
    found: dict[str, Any] = {option.name: file_values.get(option.name, option.default) for option in command.options}
    for name, _ in parts:
        found |= vars(getattr(line, name))
    return _checked(command, found)


def _checked(command: Command, values: dict[str, Any]) -> dict[str, Any]:
    """Check all values against their options."""
    for option in command.options:
        value = values[option.name]
        if option.expected.several and not value:
            if option.default is MISSING:
                print(f"paranmt {command.name}: {option.flag} is missing; see --help", file=sys.stderr)
                raise SystemExit(2)
            values[option.name] = option.default
        elif value is not None:
            values[option.name] = checked(option.name, parsed(value, option.expected), option.expected)
    return values


def _description(command: Command, brief: bool) -> str:
    text = documentation_of(command.function)
    parts = [text.short_description or command.summary]
    if text.long_description and not brief:
        parts.append(text.long_description)
    hidden = sum(option.advanced for option in command.options)
    if brief and hidden:
        parts.append(f"--help-all shows {hidden} more options.")
    parts.append(f"example:\n  {command.example}")
    return with_flags("\n\n".join(parts), command.flags)


def _tyro_field(option: Option, file_values: Mapping[str, Any], flags: Mapping[str, str]) -> tuple[str, Any, Any]:
    """A field of the dataclass from which tyro makes its parser."""
    expected = option.expected
    default = file_values.get(option.name, option.default)
    kind: Any = str if expected.kind is dict else expected.kind
    if expected.several:
        if default is not MISSING:
            # tyro narrows the type to that of a default.
            default = tuple(float(each) if kind is float else each for each in default or ())
        kind = tuple[kind, ...]
    elif expected.optional or default is None:
        kind = Optional[kind]  # noqa: UP045 - a `Literal` has no `|`
    if isinstance(default, dict):
        default = as_written(default)
    text = with_flags(option.help, flags)
    if expected.kind is float and str(expected.range):
        text = f"{text.removesuffix('.')}; {expected.range}."
    hint: Any = lambda label: f"(default: {label})"  # noqa: E731
    if default is MISSING:
        hint = "(required)"
    elif default is False or default in (None, (), ""):
        hint = ""
    configuration = tyro.conf.arg(name=option.name, help=text, metavar=_metavar(option), help_behavior_hint=hint)
    markers = [tyro.conf.Positional] if option.positional else []
    made: Any = field() if default is MISSING else field(default=default)
    return option.name, Annotated[(kind, configuration, *markers)], made


def _metavar(option: Option) -> str | None:
    expected = option.expected
    if expected.kind is bool:
        return None
    if option.positional:
        name = option.flag
    elif choices := expected.choices():
        name = f"{{{','.join(map(str, choices))}}}"
    else:
        name = {int: "INT", float: "FLOAT", Path: "PATH", dict: "NAME=VALUE,..."}.get(expected.kind, "TEXT")
    return f"{name} [{name} ...]" if expected.several else name


def _general(writes_json: bool) -> list[tuple[str, Any, Any]]:
    """Options of every command."""

    def option(name: str, kind: Any, default: Any, help: str) -> tuple[str, Any, Any]:  # noqa: ANN401
        hint = tyro.conf.arg(name=name, help=help, help_behavior_hint="", metavar=None if kind is bool else "FILE")
        return name, Annotated[kind, hint, tyro.conf.FlagCreatePairsOff], field(default=default)

    config = "Options by their names, such as the paranmt.yaml next to a result; the command line replaces them."
    result = [option("json", Path | None, None, "Write the result into this file.")] if writes_json else []
    return [
        *result,
        option("config", Path | None, None, config),
        option("debug", bool, False, "Show the traceback of an error."),
        option("help_all", bool, False, "Show this help with all options."),
    ]
