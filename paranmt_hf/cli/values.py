"""Values of options that come from a file: checked as the command line checks its words."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paranmt_hf.errors import InputError

# Positions and options of the parser itself, which a file cannot set.
SWITCHED_OFF = ("help", "config", "debug")
NAMES: dict[Any, str] = {int: "a whole number", float: "a number", str: "text", Path: "a path"}


def option_name(action: argparse.Action) -> str:
    """Name of an option as a file has it: `batch-size`."""
    return action.dest.replace("_", "-")


def check_values(parser: argparse.ArgumentParser, values: Mapping[Any, Any], where: str) -> dict[str, Any]:
    """Turn the values of a file into those that the command line would give.

    Args:
        parser: The command.
        values: Names of options, with `-` or `_`, and their values; null is the same as nothing.
        where: The file, for the error.

    Returns:
        Values by destination.

    Raises:
        InputError: A name is unknown, or a value of another type.
    """
    known = {action.dest: action for action in parser._actions if action.dest not in SWITCHED_OFF}
    found = {}
    for name, value in values.items():
        action = known.get(str(name).replace("-", "_"))
        if action is None:
            names = ", ".join(sorted({option_name(action) for action in known.values()}))
            raise InputError(f"{where}: `{parser.prog}` has no option {_brief(name)}; it has {names}")
        if value is not None:
            found[action.dest] = _value(action, value, f"{where}: {name}")
    return found


def _value(action: argparse.Action, value: Any, where: str) -> Any:  # noqa: ANN401
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise InputError(f"{where} must be true or false, found {_brief(value)}")
        return value
    if action.nargs in ("+", "*"):
        parts = value if isinstance(value, list) else [value]
        if not parts and action.nargs == "+":
            raise InputError(f"{where} must hold at least one value")
        return [_scalar(action, part, where) for part in parts]
    return _scalar(action, value, where)


def _scalar(action: argparse.Action, value: Any, where: str) -> Any:  # noqa: ANN401
    kind: Any = action.type or str
    if isinstance(value, bool | dict | list) or value is None or (kind is int and not isinstance(value, int)):
        raise InputError(f"{where} must be {_expected(action, kind)}, found {_brief(value)}")
    try:
        # Numbers such as 1e-3 are text to YAML, and a name may look like a number.
        read = kind(value) if kind in (int, float) else kind(str(value))
    except (ValueError, OverflowError, argparse.ArgumentTypeError) as error:
        reason = f"; {error}" if isinstance(error, argparse.ArgumentTypeError) else ""
        raise InputError(f"{where} must be {_expected(action, kind)}, found {_brief(value)}{reason}") from None
    if action.choices is not None and read not in action.choices:
        raise InputError(f"{where} must be {_expected(action, kind)}, found {_brief(value)}")
    return read


def _expected(action: argparse.Action, kind: Any) -> str:  # noqa: ANN401
    if action.choices is not None:
        return f"one of {', '.join(map(str, action.choices))}"
    return NAMES.get(kind, "text")


def _brief(value: object) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
