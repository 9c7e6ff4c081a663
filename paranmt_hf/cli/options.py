"""Command-line options that are made from the dataclasses of the settings."""

from __future__ import annotations

import argparse
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from typing import Any

Configure = Callable[[argparse.ArgumentParser], Callable[[argparse.Namespace], None]]


def add_options(parser: argparse.ArgumentParser, kind: type, *, leave_out: Sequence[str] = ()) -> None:
    """Make a command-line option of every field of a dataclass; default and help stand with the field."""
    hints = typing.get_type_hints(kind)
    for entry in fields(kind):
        if entry.name in leave_out:
            continue
        flag = f"--{entry.name.replace('_', '-')}"
        settings: dict[str, Any] = {"help": entry.metadata.get("help", ""), "dest": entry.name}
        hint = hints[entry.name]
        # `Literal[...] | None` is typing.Union, other `... | None` are types.UnionType.
        if typing.get_origin(hint) in (types.UnionType, typing.Union):
            hint = next(part for part in typing.get_args(hint) if part is not type(None))
        if hint is bool:
            parser.add_argument(flag, action="store_true", **settings)
            continue
        if typing.get_origin(hint) is typing.Literal:
            settings["choices"] = typing.get_args(hint)
        else:
            settings["type"] = hint
        if entry.default is not MISSING and entry.default not in (None, 0) and "default" not in settings["help"]:
            settings["help"] += f" (default: {entry.default})"
        required = entry.default is MISSING and entry.default_factory is MISSING
        default = None if required else entry.default
        parser.add_argument(flag, default=default, required=required, metavar=None, **settings)


def from_options(kind: type, arguments: argparse.Namespace, **given: Any) -> Any:  # noqa: ANN401
    """Make a dataclass of parsed options."""
    values = {entry.name: getattr(arguments, entry.name) for entry in fields(kind) if hasattr(arguments, entry.name)}
    return kind(**{**values, **given})


def columns(text: str) -> dict[str, str]:
    """Parse `source=3,reference=translation.en`."""
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(name.strip() and column.strip() for name, _, column in pairs):
        raise argparse.ArgumentTypeError(f"expected NAME=COLUMN,NAME=COLUMN like source=1,reference=2, found {text!r}")
    return {name.strip(): column.strip() for name, _, column in pairs}
