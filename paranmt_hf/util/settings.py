"""Settings as dataclasses: default, range, choices and help text of each stand once, with its field.

The command line is made from the same fields (`cli/options.py`), so a Python user and the command have one default.
"""

from __future__ import annotations

import math
import numbers
import os
import sys
import types
import typing
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, field, fields
from functools import cache
from typing import Any, Literal

from paranmt_hf.errors import InputError


def setting(
    default: Any = MISSING,  # noqa: ANN401
    help: str = "",
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    changes_result: bool = True,
) -> Any:  # noqa: ANN401 - the type is that of the field
    """Make a field of a settings class.

    Args:
        default: Its value where none is given; a field without one is required.
        help: What it does, and its source in the papers.
        at_least: Smallest value.
        above: The value must be larger than this.
        at_most: Largest value.
        changes_result: Whether a result depends on it. If not, it is left out of records and identities.
    """
    limits = {"at_least": at_least, "above": above, "at_most": at_most}
    metadata = {"help": help, **{name: limit for name, limit in limits.items() if limit is not None}}
    if not changes_result:
        metadata["changes_result"] = False
    return field(metadata=metadata) if default is MISSING else field(default=default, metadata=metadata)


# What every generator of random numbers takes.
LARGEST_SEED = 2**32 - 1


def seed_setting(default: int, help: str) -> Any:  # noqa: ANN401
    """Make a field that is a seed."""
    return setting(default, help, at_least=0, at_most=LARGEST_SEED)


def check(settings: Any) -> None:  # noqa: ANN401 - any dataclass
    """Check each field of a settings object against its type, its choices and its range.

    A path is taken for text, and a number of another library (numpy's) for Python's.

    A `tuple[X, ...]` holds at least one value, a `Sequence[X]` may be empty; limits are those of each value.

    Raises:
        InputError: One is out of its range: `NAME must be at least 1, was 0`.
    """
    for entry in fields(settings):
        value = getattr(settings, entry.name)
        plain = _checked(type(settings), entry, value)
        if plain is not value:
            # Settings are frozen for everybody else.
            object.__setattr__(settings, entry.name, plain)


def _checked(kind: type, entry: Field[Any], value: Any) -> Any:  # noqa: ANN401
    """Bring the value of a field into its plain form, or refuse it."""
    expected, optional = plain_type(kind, entry.name)
    if value is None and optional:
        return value
    value = _plain(expected, value)
    if reason := _wrong(expected, value, entry.metadata):
        raise InputError(f"{entry.name} must be {reason}, was {value!r}")
    return value


def read_value(kind: type, name: str, value: Any) -> Any:  # noqa: ANN401
    """Bring a value as a person writes it, perhaps as text, into the form of a setting, and check it as `check` does.

    Args:
        kind: The settings class.
        name: Name of its field.
        value: The value; as text a number as `1e-5`, a switch as `true` or `false`, and nothing as `none`.

    Raises:
        InputError: It is no value of this setting.
    """
    entry = next(entry for entry in fields(kind) if entry.name == name)
    expected, optional = plain_type(kind, name)
    if isinstance(value, str):
        if optional and value.lower() in ("none", "null"):
            value = None
        elif expected is bool:
            value = {"true": True, "false": False}.get(value.lower(), value)
        elif expected in (int, float):
            with suppress(ValueError):
                value = expected(value)
    return _checked(kind, entry, value)


def _plain(kind: Any, value: Any) -> Any:  # noqa: ANN401
    """Bring a value into the form in which JSON has it; one of another kind stays, and is refused."""
    if kind is str and isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, bool):
        return value
    if kind is int and isinstance(value, numbers.Integral):
        return int(value)
    if kind is float and isinstance(value, numbers.Real) and not isinstance(value, int | float):
        return float(value)
    return value


@cache
def _hints(kind: type) -> dict[str, Any]:
    """The types of a class's fields; that they stand there as text makes looking them up slow."""
    return typing.get_type_hints(kind)


def plain_type(kind: type, name: str) -> tuple[Any, bool]:
    """Type of a field without its `None`, and whether it may be None."""
    hint = _hints(kind)[name]
    # `Literal[...] | None` is typing.Union, other `... | None` are types.UnionType.
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        (plain,) = [part for part in typing.get_args(hint) if part is not type(None)]
        return plain, True
    return hint, False


def is_given(settings: object, name: str) -> bool:
    """Tell whether a setting differs from its default."""
    default: Any = next(entry.default for entry in fields(settings) if entry.name == name)  # type: ignore[arg-type]
    return getattr(settings, name) != default


def _wrong(kind: Any, value: Any, limits: typing.Mapping[str, Any]) -> str | None:  # noqa: ANN401
    """Say what a value must be, if it is not that."""
    if typing.get_origin(kind) is Literal:
        allowed = typing.get_args(kind)
        return None if value in allowed else f"one of {', '.join(map(str, allowed))}"
    if kind is bool:
        return None if isinstance(value, bool) else "true or false"
    if kind is str:
        return None if isinstance(value, str) else "text"
    if typing.get_origin(kind) is tuple:
        if not isinstance(value, list | tuple):
            return "several values"
        item = typing.get_args(kind)[0]
        reasons = [_wrong(item, part, limits) for part in value]
        if not value:
            return "at least one value"
        return next((f"values that are each {reason}" for reason in reasons if reason), None)
    if typing.get_origin(kind) is Sequence:
        item = typing.get_args(kind)[0]
        if not isinstance(value, list | tuple):
            return "a list"
        reasons = [_wrong(item, part, limits) for part in value]
        return next((f"a list of values that are each {reason}" for reason in reasons if reason), None)
    if kind is int and (isinstance(value, bool) or not isinstance(value, int)):
        return f"a whole number{described(limits, ' ')}"
    if kind is float and (isinstance(value, bool) or not isinstance(value, int | float) or value != value):
        return f"a number{described(limits, ' ')}"
    if kind is float and isinstance(value, int) and abs(value) > sys.float_info.max:
        return "a number that 64 bits hold"
    if kind in (int, float) and not _inside(value, limits):
        return described(limits)
    return None


def _inside(value: float, limits: typing.Mapping[str, Any]) -> bool:
    low, above, high = (limits.get(name) for name in ("at_least", "above", "at_most"))
    return (
        (low is None or value >= low)
        # Nothing that must be above a number may be infinite: a margin, a learning rate.
        and (above is None or above < value < math.inf)
        and (high is None or value <= high)
    )


def described(limits: typing.Mapping[str, Any], before: str = "") -> str:
    """Say which numbers a setting takes: `from 0 to 1`, `above 0 and at most 2`.

    Args:
        limits: `at_least`, `above` and `at_most`, each where there is one.
        before: What comes before it, where there are any.
    """
    low, above, high = (limits.get(name) for name in ("at_least", "above", "at_most"))
    if low is not None and high is not None:
        return f"{before}from {_spelt(low)} to {_spelt(high)}"
    parts = [f"at least {_spelt(low)}"] if low is not None else []
    parts += [f"above {_spelt(above)}"] if above is not None else []
    parts += [f"at most {_spelt(high)}"] if high is not None else []
    text = " and ".join(parts)
    # `a whole number of at least 1`, but `a whole number above 1`.
    return f"{before}{'of ' if before and text.startswith('at ') else ''}{text}" if parts else ""


def _spelt(limit: float) -> str:
    """Write a limit: `0.5`, `1,000,000`."""
    return f"{limit:,}" if isinstance(limit, int) else f"{limit:g}"
