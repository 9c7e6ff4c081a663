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

from paranmt_hf.cli.command import Command, Option, as_written, documentation_of, flag_of, with_flags
from paranmt_hf.errors import InputError
from paranmt_hf.util.settings import checked, named_values, parsed
from paranmt_hf.util.wording import counted
from paranmt_hf.util.yaml_files import read_yaml


def parse(command: Command, given_words: Sequence[str], file_values: Mapping[str, Any]) -> dict[str, Any]:
    """Parse what follows the name of a command into the value of each option, and of `json`, `config` and `debug`.

    Values from a file or the name of a recipe replace defaults.
    """
    _refuse_settings_of_groups(command, given_words)
    flags = _flags_with_values(command)
    words = ["--help" if word == "--help-all" else flags.get(word, word) for word in given_words]
    # Hidden options are unknown to tyro: they are left out only if the help is all that is asked for.
    brief = "--help-all" not in given_words and not {"-h", "--help"}.isdisjoint(words)
    headings: dict[str, list[Option]] = {"": []}
    for option in command.options:
        if option.group is None and not (brief and option.advanced):
            headings.setdefault(option.parameter if option.parameter in command.settings else "", []).append(option)
    parts: list[tuple[str, Any]] = []
    for name, options in headings.items():
        own = [_tyro_field(option, file_values, command.help_of(option)) for option in options]
        if not name:
            shown = command.typed(advanced=not brief)
            own += [_group_field(group, command, brief) for group in command.groups if group in shown]
        made = _made(name or "own", own)
        made.__doc__ = documentation_of(command.settings[name]).short_description if name else None
        parts.append((name or "own", made if name else Annotated[made, tyro.conf.arg(name="")]))
    parts.append(("general", _made("general", _general(command.writes_json))))
    line: Any = tyro.cli(
        _made("arguments", parts),
        prog=f"paranmt {command.name}",
        description=_description(command, brief),
        args=words,
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.HelptextFromCommentsOff),
    )
    found: dict[str, Any] = {option.name: file_values.get(option.name, option.default) for option in command.options}
    for name, _ in parts:
        found |= vars(getattr(line, name))
    for group in command.groups:
        if text := found.pop(group, None):
            found |= command.values_of_group(group, *_settings_of(group, text))
    return _checked(command, found)


def _made(name: str, own: Sequence[tuple[str, Any] | tuple[str, Any, Any]]) -> Any:  # noqa: ANN401 - a class without a static type
    """A dataclass in whose source, which there is not, tyro looks for no documentation."""
    return make_dataclass(name, own, kw_only=True, namespace={"__module__": "builtins"})


def _refuse_settings_of_groups(command: Command, words: Sequence[str]) -> None:
    """Explain how a setting of a group is given, if it is typed as an option."""
    for word in words:
        typed = word.partition("=")[0]
        for option in command.options:
            if option.group is not None and typed in (flag_of(option.name), f"--no{flag_of(option.name)[1:]}"):
                flag = flag_of(option.group.name)
                print(f"paranmt {command.name}: {typed} is given as {flag} {option.field}=VALUE", file=sys.stderr)
                raise SystemExit(2)


def _flags_with_values(command: Command) -> dict[str, str]:
    """Both flags of a switch that may be left open, and the value that each gives it: tyro knows no such switches."""
    flags = {}
    for option in command.options:
        if option.expected.kind is bool and option.expected.optional and option.group is None:
            flags[option.flag] = f"{option.flag}=True"
            flags[_opposite(option)] = f"{option.flag}=False"
    return flags


def _opposite(option: Option) -> str:
    return f"--no{option.flag[1:]}"


def _settings_of(group: str, text: str) -> tuple[Mapping[Any, Any], str]:
    """The settings of a group from the command line or a YAML file, and where they are from, for errors."""
    if "=" not in text:
        expected = f"settings of {flag_of(group)}, a name and a value each"
        return read_yaml(Path(text).expanduser(), expected, as_text=True), text
    if (found := named_values(text)) is None:
        raise InputError(f"{group} must be NAME=VALUE,NAME=VALUE or a YAML file, was {text!r}", option=group)
    return found, flag_of(group)


def _checked(command: Command, values: dict[str, Any]) -> dict[str, Any]:
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
        parts.append(f"--help-all shows {counted(hidden, 'more option')}.")
    parts.append(f"example:\n  {command.example}")
    return with_flags("\n\n".join(parts), command.flags)


def _tyro_field(option: Option, file_values: Mapping[str, Any], text: str) -> tuple[str, Any, Any]:
    """A field of the dataclass from which tyro makes its parser; all but switches are text, which `_checked` reads."""
    expected = option.expected
    default = file_values.get(option.name, option.default)
    kind: Any = bool if expected.kind is bool and not expected.optional else str
    if expected.several:
        kind = tuple[str, ...]
        default = default if default is MISSING else tuple(str(as_written(each)) for each in default or ())
    elif kind is str and default not in (None, MISSING):
        default = str(as_written(default))
    if not expected.several and (expected.optional or default is None):
        kind = Optional[kind]  # noqa: UP045
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


def _group_field(group: str, command: Command, brief: bool) -> tuple[str, Any, Any]:
    """A field of tyro's dataclass for the settings that are given together."""
    options = command.groups[group]
    described = options[0].group
    text = described.help if described else ""
    if brief:
        text += f" Any of {', '.join(option.field for option in options)}."
    else:
        lines = []
        for option in options:
            default = (
                "" if option.default in (None, (), "", MISSING, False) else f" (default: {as_written(option.default)})"
            )
            lines.append(f"{option.field}: {command.help_of(option).removesuffix('.')}{default}")
        text = "\n".join([text, *lines])
    hint = tyro.conf.arg(name=group, help=text, metavar="NAME=VALUE,...", help_behavior_hint="")
    return group, Annotated[Optional[str], hint], field(default=None)  # noqa: UP045


def _metavar(option: Option) -> str | None:
    expected = option.expected
    if expected.kind is bool:
        return f"| {_opposite(option)}" if expected.optional else None
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

    config = "Options from a YAML file or from the record of a result; the command line replaces them."
    result = (
        [option("json", Path | None, None, "Write the result into this file; - prints it.")] if writes_json else []
    )
    return [
        *result,
        option("config", Path | None, None, config),
        option("debug", bool, False, "Show the traceback of an error."),
        option("help_all", bool, False, "Show this help with all options."),
    ]
