"""Parsing of the command line of a command, and its help, with the library tyro.

tyro is given a flat dataclass for each box of the help, not the settings classes. For it all values are text, except
switches; they are converted afterwards as values from files are, so that both have the same errors.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, field, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Optional

import tyro

from paranmt_hf.cli.command import Command, Option, as_written, documentation_of, flag_of, with_flags
from paranmt_hf.errors import InputError
from paranmt_hf.util.typed import named_values
from paranmt_hf.util.wording import counted
from paranmt_hf.util.yaml_files import read_yaml

# Name, annotation, and default of a field in a dataclass for tyro.
TyroField = tuple[str, Any, Any]


def parse(command: Command, given_words: Sequence[str], file_values: Mapping[str, Any]) -> dict[str, Any]:
    """Parse the words after the name of a command; show the help and exit if they ask for it.

    Args:
        command: The command.
        given_words: The words.
        file_values: Values by the names of options, from a `--config` file or a recipe, which replace the defaults.

    Returns:
        The value of each option by its name, and of the general options, such as `json`, `config` and `debug`.
    """
    words = _tyro_words(command, given_words)
    # Advanced options are hidden by not telling tyro of them, so this is done only if the short help is all it shows.
    brief = "--help-all" not in given_words and not {"-h", "--help"}.isdisjoint(words)
    boxes = list(_boxes(command, file_values, brief))
    line: Any = tyro.cli(
        _dataclass("arguments", boxes),
        prog=f"paranmt {command.name}",
        description=_description(command, brief),
        args=words,
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.HelptextFromCommentsOff),
    )
    found: dict[str, Any] = {option.name: file_values.get(option.name, option.default) for option in command.options}
    for name, _ in boxes:
        found |= vars(getattr(line, name))
    for group in command.groups:
        if text := found.pop(group, None):
            found |= command.values_of_group(group, *_settings_of_group(group, text))
    for option in command.options:
        value = found[option.name]
        if option.expected.several and not value:
            if option.default is MISSING:
                _exit_mistyped(command, f"{option.flag} is missing; see --help")
            found[option.name] = option.default
        elif value is not None:
            found[option.name] = option.read(value)
    return found


def _tyro_words(command: Command, given_words: Sequence[str]) -> list[str]:
    """Convert the words of a command line to the form that tyro accepts; exit if a setting of a group is misplaced."""
    switches = {"--help-all": "--help"}
    for option in command.options:
        opposite = f"--no{flag_of(option.name)[1:]}"
        if option.group is not None:
            for word in given_words:
                if (typed := word.partition("=")[0]) in (flag_of(option.name), opposite):
                    _exit_mistyped(command, f"{typed} is given as {option.flag}=VALUE")
        elif option.expected.kind is bool and option.expected.optional:
            # tyro has no switches that may be left unset, so these are options with the values `true` and `false`.
            switches |= {option.flag: f"{option.flag}=true", opposite: f"{option.flag}=false"}
    return [switches.get(word, word) for word in given_words]


def _exit_mistyped(command: Command, reason: str) -> None:
    """Print what is wrong with a command line, and exit with the status 2."""
    print(f"paranmt {command.name}: {reason}", file=sys.stderr)
    raise SystemExit(2)


def _boxes(command: Command, file_values: Mapping[str, Any], brief: bool) -> Iterator[tuple[str, Any]]:
    """Yield the title and the dataclass for tyro of each box of the help.

    The boxes are: the parameters of the command itself, each settings class, and the general options.
    """
    options_of: dict[str, list[TyroField]] = {"": []}
    for option in command.options:
        if option.group is None and not (brief and option.advanced):
            box = option.parameter if option.parameter in command.settings else ""
            options_of.setdefault(box, []).append(_option_field(option, file_values, command.help_of(option)))
    shown = command.typed(advanced=not brief)
    for group in command.groups:
        if group in shown:
            options_of[""].append(_group_field(group, command, brief))
    for parameter, options in options_of.items():
        if parameter:
            title = parameter
            if parameter == "config":
                name = command.settings[parameter].__name__.removesuffix("Config")
                title = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
            made = _dataclass(title, options)
            made.__doc__ = documentation_of(command.settings[parameter]).short_description
            yield title, made
        else:
            yield "own", Annotated[_dataclass("own", options), tyro.conf.arg(name="")]
    general: list[TyroField] = []
    if command.writes_json:
        general.append(_general_field("json", Path | None, "Write the result into this file; - prints it.", "FILE"))
    config = "Options from a YAML file or from the record of a result; the command line replaces them."
    general += [
        _general_field("config", Path | None, config, "FILE"),
        _general_field("debug", bool, "Show the traceback of an error."),
        _general_field("help_all", bool, "Show this help with all options."),
    ]
    yield "general", _dataclass("general", general)


def _dataclass(name: str, options: Sequence[tuple[str, Any] | TyroField]) -> Any:  # noqa: ANN401 - a class without a static type
    """Create a dataclass for tyro.

    Its module is `builtins`, so that tyro does not search for its source code, which does not exist, for help texts.
    """
    return make_dataclass(name, options, kw_only=True, namespace={"__module__": "builtins"})


def _settings_of_group(group: str, text: str) -> tuple[Mapping[Any, Any], str]:
    """Return the settings of a group as text by name, and where they are from, for errors.

    Args:
        group: Name of the group.
        text: What was typed: `NAME=VALUE,...`, or the path of a YAML file.
    """
    if "=" not in text:
        expected = f"settings of {flag_of(group)}, a name and a value each"
        return read_yaml(Path(text).expanduser(), expected, as_text=True), text
    found = named_values(text)
    if found is None:
        raise InputError(f"{group} must be NAME=VALUE,NAME=VALUE or a YAML file, was {text!r}", option=group)
    return found, flag_of(group)


def _description(command: Command, brief: bool) -> str:
    """Return the text above the options in the help: docstring (if `brief`, its first paragraph) and example."""
    text = documentation_of(command.function)
    parts = [text.short_description or command.summary]
    if text.long_description and not brief:
        parts.append(text.long_description)
    hidden = sum(option.advanced for option in command.options)
    if brief and hidden:
        parts.append(f"--help-all shows {counted(hidden, 'more option')}.")
    parts.append(f"example:\n  {command.example}")
    return with_flags("\n\n".join(parts), command.flags)


def _option_field(option: Option, file_values: Mapping[str, Any], text: str) -> TyroField:
    """Return the field of a dataclass for tyro that stands for an option, with the help `text`."""
    expected = option.expected
    default = file_values.get(option.name, option.default)
    kind: Any = str
    if expected.several:
        kind = tuple[str, ...]
        default = default if default is MISSING else tuple(str(as_written(each)) for each in default or ())
    elif expected.kind is bool and not expected.optional:
        kind = bool
    elif default not in (None, MISSING):
        default = str(as_written(default))
    if not expected.several and (expected.optional or default is None):
        kind = Optional[kind]  # noqa: UP045
    if expected.kind is float and str(expected.range):
        text = f"{text.removesuffix('.')}; {expected.range}."
    shown: Any = lambda label: f"(default: {label})"  # noqa: E731
    if default is MISSING:
        shown = "(required)"
    elif default is False or default in (None, (), ""):
        shown = ""
    configuration = tyro.conf.arg(name=option.name, help=text, metavar=_metavar(option), help_behavior_hint=shown)
    markers = [tyro.conf.Positional] if option.positional else []
    made: Any = field() if default is MISSING else field(default=default)
    return option.name, Annotated[(kind, configuration, *markers)], made


def _group_field(group: str, command: Command, brief: bool) -> TyroField:
    """Return the field for a group of settings; its help lists them, only by name if `brief`."""
    options = command.groups[group]
    lines = [options[0].group.help if options[0].group else ""]
    if brief:
        lines[0] += f" Any of {', '.join(option.field for option in options)}."
    for option in [] if brief else options:
        line = f"{option.field}: {command.help_of(option).removesuffix('.')}"
        if option.default not in (None, (), "", MISSING, False):
            line += f" (default: {as_written(option.default)})"
        lines.append(line)
    hint = tyro.conf.arg(name=group, help="\n".join(lines), metavar="NAME=VALUE,...", help_behavior_hint="")
    return group, Annotated[Optional[str], hint], field(default=None)  # noqa: UP045


def _metavar(option: Option) -> str | None:
    """Return what the help shows for the value of an option, such as `INT` or `{a,b}`; None for a plain switch."""
    expected = option.expected
    if expected.kind is bool:
        return f"| --no{option.flag[1:]}" if expected.optional else None
    if option.positional:
        name = option.flag
    elif choices := expected.choices():
        name = f"{{{','.join(map(str, choices))}}}"
    else:
        name = {int: "INT", float: "FLOAT", Path: "PATH", dict: "NAME=VALUE,..."}.get(expected.kind, "TEXT")
    return f"{name} [{name} ...]" if expected.several else name


def _general_field(name: str, kind: Any, text: str, metavar: str | None = None) -> TyroField:  # noqa: ANN401
    hint = tyro.conf.arg(name=name, help=text, help_behavior_hint="", metavar=metavar)
    return name, Annotated[kind, hint, tyro.conf.FlagCreatePairsOff], field(default=False if kind is bool else None)
