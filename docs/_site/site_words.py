"""Types and defaults of settings and options in words, and each command as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING
from pathlib import Path
from typing import Any

from paranmt_hf.cli.command import Command, Option, as_typed, documentation_of, flag_of, with_flags
from paranmt_hf.cli.table import GROUPS
from paranmt_hf.util.typed import Expected

NAMES = {dict: "NAME=VALUE,...", Path: "path", str: "text", int: "integer", float: "number", bool: "true or false"}


def type_of(expected: Expected) -> str:
    """What a setting accepts: `number, above 0 and at most 2`, `one of max, mix`, `several paths`."""
    if choices := expected.choices():
        return f"{'some' if expected.several else 'one'} of {', '.join(map(str, choices))}"
    name = NAMES.get(expected.kind) or expected.kind.__name__
    name = f"several {name}s" if expected.several else name
    return f"{name}, {expected.range}".removesuffix(", ")


def default_of(value: Any) -> str:  # noqa: ANN401 - any default
    """A default as it is typed; empty for nothing."""
    return "" if value is None or value == () or value == "" else as_typed(value)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _with_flags(text: str, command: Command) -> str:
    """Parameters in backquotes as they are typed, still in backquotes."""
    return with_flags(text, {name: f"`{flag}`" for name, flag in command.flags.items()})


def _row(option: Option, command: Command) -> str:
    default = "required" if option.default is MISSING else default_of(option.default)
    typed = f"`{option.flag}`" if option.group is None else f"`{option.field}`"
    shown = f"`{default}`" if default not in ("", "required") else default
    meaning = _with_flags(option.help, command)
    return f"| {typed} | {_cell(meaning)} | {_cell(type_of(option.expected))} | {_cell(shown)} |\n"


def _table(first: str, options: list[Option], command: Command) -> str:
    rows = "".join(_row(option, command) for option in options)
    return f"| {first} | meaning | type | default |\n|---|---|---|---|\n{rows}\n"


def _options(command: Command) -> Iterator[str]:
    """A table of the options that stand alone, one for each settings class, and one for each group."""
    headings: dict[str, list[Option]] = {}
    for option in command.options:
        if option.group is None:
            headings.setdefault(option.parameter if option.parameter in command.settings else "", []).append(option)
    for name, options in headings.items():
        heading = documentation_of(command.settings[name]).short_description if name else ""
        yield (f"{heading}\n\n" if heading else "") + _table("option", options, command)
    for name, options in command.groups.items():
        help_text = options[0].group.help if options[0].group else ""
        yield f"`{flag_of(name)} NAME=VALUE,...`: {help_text}\n\n" + _table("name", options, command)


def described(command: Command) -> str:
    """A command: what it does, an example, its options."""
    text = documentation_of(command.function)
    parts = [text.short_description or command.summary, text.long_description or ""]
    explained = _with_flags("\n\n".join(filter(None, parts)), command)
    tables = "".join(_options(command))
    return f"### paranmt {command.name}\n\n{explained}\n\n```\n{command.example}\n```\n\n{tables}"


def all_commands() -> str:
    """Every command of `paranmt`, under the headings of `paranmt --help`."""
    parts = []
    for heading, commands in GROUPS.items():
        parts.append(f"## {heading.capitalize()}\n\n")
        rows = (f"| [`{each.name}`](#paranmt-{each.name.replace(' ', '-')}) | {each.summary} |\n" for each in commands)
        parts.append("| command | what it does |\n|---|---|\n" + "".join(rows) + "\n")
        parts += [described(command) for command in commands]
    return "".join(parts)
