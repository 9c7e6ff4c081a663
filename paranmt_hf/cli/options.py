"""Command-line options that are made from the dataclasses of the settings."""

from __future__ import annotations

import argparse
import typing
from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from paranmt_hf.errors import InputError
from paranmt_hf.util.settings import described, plain_type

# Options of a scorer, whose fields are called otherwise: other settings of a command have a name and a device too.
SCORER_OPTIONS = {"name": "scorer", "revision": "scorer_revision", "device": "scorer_device"}
DATA_HELP = (
    "release folders, Parquet files with the columns reference and translation, files of PPDB (plain or .gz), lists "
    "of words and their paraphrases, or datasets on the Hub"
)


def add_options(
    parser: argparse._ActionsContainer,
    kind: type,
    *,
    only: Collection[str] | None = None,
    leave_out: Collection[str] = (),
    names: Mapping[str, str] | None = None,
) -> None:
    """Make a command-line option of every field of a dataclass; default and help stand with the field.

    Args:
        parser: Gets the options.
        kind: The dataclass.
        only: Fields that get an option; all of them if left out.
        leave_out: Fields without an option.
        names: Options of another name than their field: `{"name": "scorer"}` makes `--scorer` of the field `name`.
    """
    for entry in fields(kind):
        if entry.name in leave_out or (only is not None and entry.name not in only):
            continue
        name = (names or {}).get(entry.name, entry.name)
        flag = f"--{name.replace('_', '-')}"
        settings: dict[str, Any] = {"help": entry.metadata.get("help", ""), "dest": name}
        hint, _ = plain_type(kind, entry.name)
        if hint is bool:
            add_switch(parser, flag, dest=name, help=settings["help"])
            continue
        if typing.get_origin(hint) is typing.Literal:
            settings["choices"] = typing.get_args(hint)
        elif typing.get_origin(hint) is tuple:
            settings |= {"type": typing.get_args(hint)[0], "nargs": "+"}
        else:
            settings["type"] = hint
        if entry.default is not MISSING and entry.default is not None and "(default:" not in settings["help"]:
            shown = " ".join(map(str, entry.default)) if isinstance(entry.default, tuple) else entry.default
            settings["help"] += f" (default: {shown})"
        if hint is float and "at_most" in entry.metadata:
            settings["help"] += f"; {described(entry.metadata)}"
        required = entry.default is MISSING and entry.default_factory is MISSING
        default = None if required else entry.default
        parser.add_argument(flag, default=default, required=required, metavar=None, **settings)


def add_exclude(parser: argparse._ActionsContainer) -> None:
    """Add `--exclude` of paraphrasers: evaluation sets whose sentences are in no pair."""
    parser.add_argument(
        "--exclude",
        type=Path,
        nargs="+",
        default=[],
        help="folders or files of evaluation sets (STS, SentEval, any text): leave out pairs with their sentences",
    )


def add_switch(parser: argparse._ActionsContainer, flag: str, *, dest: str, help: str) -> None:
    """Add an option that is on or off, and its hidden opposite, which turns off what a file turns on."""
    parser.add_argument(flag, action="store_true", dest=dest, help=help)
    parser.add_argument(f"--no-{flag[2:]}", action="store_false", dest=dest, help=argparse.SUPPRESS, default=False)


def from_options(
    kind: type,
    arguments: argparse.Namespace,
    names: Mapping[str, str] | None = None,
    **given: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Make a dataclass of parsed options; `names` as for `add_options`.

    Raises:
        InputError: A value is out of its range; the option is called as the user calls it.
    """
    values = {}
    for entry in fields(kind):
        name = (names or {}).get(entry.name, entry.name)
        if hasattr(arguments, name):
            value = getattr(arguments, name)
            values[entry.name] = tuple(value) if isinstance(value, list) else value
    try:
        return kind(**{**values, **given})
    except InputError as error:
        field, middle, reason = str(error).partition(" must be ")
        if middle and field in (names or {}):
            raise InputError(f"{(names or {})[field]}{middle}{reason}") from None
        raise
