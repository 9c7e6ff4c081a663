"""Settings as frozen dataclasses: type, range and default of each value are declared once, at its field.

    @dataclass(frozen=True)
    class TrainConfig(Settings):
        margin: Annotated[float, Range(above=0, at_most=2)] = 0.4
        seed: Seed = 1

The section "Attributes:" of the class docstring explains each field. The command line derives its options from both
(`cli/command.py`).
"""

from __future__ import annotations

import numbers
import os
import re
import sys
import types
import typing
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from paranmt_hf.errors import InputError
from paranmt_hf.util.markers import ByContent, Group, PythonOnly, Range, RunOnly
from paranmt_hf.util.wording import brief, perhaps


@dataclass(frozen=True)
class Expected:
    """The values that a field or parameter accepts, from its annotation."""

    # Type of a value: `int`, `float`, `bool`, `str`, `Path`, a `Literal`, `dict`; of several values, of each
    kind: Any
    several: bool = False  # Whether it is a sequence
    optional: bool = False  # Whether None is allowed
    empty: bool = False  # Whether a sequence may be empty: `Sequence[X]` may, `tuple[X, ...]` may not
    range: Range = Range()  # Range of a number
    markers: tuple[Any, ...] = ()  # Other metadata of `Annotated`

    def choices(self) -> tuple[Any, ...]:
        """Values of a `Literal`; empty for other types."""
        return typing.get_args(self.kind) if typing.get_origin(self.kind) is Literal else ()


def expected_of(annotation: Any) -> Expected:  # noqa: ANN401 - any annotation
    """Read an annotation.

    A union that includes text, such as `SentenceEncoder | str | Path`, takes text; a sequence in it, several texts.
    """
    markers: list[Any] = []
    optional = False
    while True:
        if typing.get_origin(annotation) is Annotated:
            annotation, *more = typing.get_args(annotation)
            markers += more
        elif typing.get_origin(annotation) in (types.UnionType, typing.Union):
            parts = typing.get_args(annotation)
            optional = optional or type(None) in parts
            annotation = _of_union([part for part in parts if part is not type(None)])
        else:
            break
    inner: dict[str, Any] = {"kind": annotation}
    origin = typing.get_origin(annotation)
    if origin in (tuple, Sequence, list):
        item = expected_of(typing.get_args(annotation)[0])
        markers += [item.range, *item.markers]
        inner = {"kind": item.kind, "several": True, "empty": origin is not tuple}
    elif origin in (dict, Mapping):
        inner = {"kind": dict}
    ranges = [marker for marker in markers if isinstance(marker, Range)]
    others = tuple(marker for marker in markers if not isinstance(marker, Range))
    return Expected(**inner, optional=optional, range=ranges[0] if ranges else Range(), markers=others)


def _of_union(parts: Sequence[Any]) -> Any:  # noqa: ANN401
    if len(parts) == 1:
        return parts[0]
    if any(typing.get_origin(part) in (Sequence, list, tuple) for part in parts):
        return Sequence[str]
    return next((kind for kind in (str, Path) if kind in parts), parts[0])


@cache
def expected_fields(kind: type) -> dict[str, Expected]:
    """The values that each field of a settings class accepts; cached, because evaluating annotations is slow."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {entry.name: expected_of(hints[entry.name]) for entry in fields(kind)}


class Settings:
    """Base of settings, dataclasses each of whose fields is checked against its type, its choices and its range.

    Paths are accepted as text, and numbers of other libraries (numpy) are converted to Python's. A `tuple[X, ...]`
    holds at least one value, a `Sequence[X]` may be empty; a range is that of each value.
    """

    def __post_init__(self) -> None:
        for name, expected in expected_fields(type(self)).items():  # type: ignore[arg-type]
            value = getattr(self, name)
            plain = checked(name, value, expected)
            if plain is not value:
                # The settings are frozen.
                object.__setattr__(self, name, plain)


def checked(name: str, value: Any, expected: Expected) -> Any:  # noqa: ANN401
    """Convert a value to its plain form, or raise an `InputError` that names it."""
    if value is None and expected.optional:
        return value
    if not expected.several:
        value = _plain(expected.kind, value)
    if reason := _wrong(expected, value):
        raise InputError(f"{name} must be {reason}, was {brief(value)}{_near_choice(expected, value)}", option=name)
    for part in value if expected.several else ():
        if reason := _wrong_item(expected, part):
            near = _near_choice(expected, part)
            raise InputError(f"each of `{name}` must be {reason}, was {brief(part)}{near}", option=name)
    return value


def _near_choice(expected: Expected, value: Any) -> str:  # noqa: ANN401
    """Suggest a choice similar to a wrong one; empty for other types."""
    return perhaps(value, map(str, expected.choices())) if isinstance(value, str) else ""


def read_value(kind: type, name: str, value: Any) -> Any:  # noqa: ANN401
    """Convert a value from a file or the command line to that of a field of a settings class, and check it.

    Text is accepted for every type: `1e-5`, `true`, `none` (which as a text is itself).
    """
    expected = expected_fields(kind)[name]
    return checked(name, parsed(value, expected), expected)


def values_for(
    kinds: Sequence[type], values: Mapping[str, Any] | None, option: str, without: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Distribute values over the settings classes that have a field of their name, converted as `read_value` does.

    Names may have `-` or `_`, and must not be `without`. Errors name the parameter `option` that they are from.
    """
    found: list[dict[str, Any]] = [{} for _ in kinds]
    names = [{entry.name for entry in fields(kind)} - set(without) for kind in kinds]
    for given, value in (values or {}).items():
        name = str(given).replace("-", "_")
        place = next((place for place, known in enumerate(names) if name in known), None)
        if place is None:
            known = [each.replace("_", "-") for each in sorted(set().union(*names))]
            raise InputError(
                f"{option} names {given!r}, which is not one of {', '.join(known)}{perhaps(str(given), known)}",
                option=option,
            )
        found[place][name] = read_value(kinds[place], name, value)
    return found


def parsed(value: Any, expected: Expected) -> Any:  # noqa: ANN401
    """Convert text to the expected type; invalid text is returned unchanged, and `checked` reports it."""
    text = expected.kind in (str, Path)
    if isinstance(value, str) and expected.optional and not text and value.lower() in ("none", "null"):
        return None
    if expected.several:
        values = value if isinstance(value, list | tuple) else [value]
        return tuple(_parsed(part, expected) for part in values)
    return _parsed(value, expected)


def named_values(text: str) -> dict[str, str] | None:
    """Split NAME=VALUE,NAME=VALUE; None if it is something else. A value may hold commas, but not end in one."""
    parts = (part.partition("=") for part in re.split(r",(?=[^,=]+=)", text))
    pairs = [(name.strip(), value.strip()) for name, _, value in parts]
    good = all(name and value and not value.endswith(",") for name, value in pairs)
    return dict(pairs) if good else None


def _parsed(value: Any, expected: Expected) -> Any:  # noqa: ANN401
    if not isinstance(value, str):
        return value
    kind: Any = expected.kind
    if kind is bool:
        return {"true": True, "false": False}.get(value.lower(), value)
    if kind in (int, float):
        with suppress(ValueError):
            return kind(value)
    if kind is Path:
        return Path(value)
    if kind is dict:
        return named_values(value) or value
    return next((choice for choice in expected.choices() if str(choice) == value), value)


def _plain(kind: Any, value: Any) -> Any:  # noqa: ANN401
    """Convert a value to its JSON form; a value of another type is unchanged, and `_wrong` reports it."""
    if kind is str and isinstance(value, os.PathLike):
        return os.fspath(value)
    if kind is Path and isinstance(value, str):
        return Path(value)
    if isinstance(value, bool):
        return value
    if kind is int and isinstance(value, numbers.Integral):
        return int(value)
    if kind is float and isinstance(value, numbers.Real) and not isinstance(value, int | float):
        return float(value)
    return value


def _wrong(expected: Expected, value: Any) -> str | None:  # noqa: ANN401
    """Describe what a value must be; None if it is valid, apart from the items of several."""
    if not expected.several:
        return _wrong_item(expected, value)
    if not isinstance(value, list | tuple):
        return "a list" if expected.empty else "several values"
    if not value and not expected.empty:
        return "at least one value"
    return None


def _wrong_item(expected: Expected, value: Any) -> str | None:  # noqa: ANN401, PLR0911
    kind, number = expected.kind, isinstance(value, int | float) and not isinstance(value, bool)
    if choices := expected.choices():
        return None if value in choices else f"one of {', '.join(map(str, choices))}"
    if kind in _NAMES:
        return None if isinstance(value, kind) else _NAMES[kind]
    if kind is int and not (number and isinstance(value, int)):
        return f"a whole number{_after(expected.range)}"
    if kind is float and (not number or value != value):
        return f"a number{_after(expected.range)}"
    if kind is float and isinstance(value, int) and abs(value) > sys.float_info.max:
        return "a number that 64 bits hold"
    if kind in (int, float) and value not in expected.range:
        return str(expected.range)
    return None


_NAMES = {bool: "true or false", str: "text", Path: "a path", dict: "NAME=VALUE,NAME=VALUE"}


def _after(range: Range) -> str:
    """Format the range after a noun: `a whole number of at least 1`, but `a whole number above 1`."""
    text = str(range)
    return f" {'of ' if text.startswith('at ') else ''}{text}" if text else ""


def is_recorded(kind: type, name: str) -> bool:
    """Whether a field is part of records and identities."""
    return {RunOnly, ByContent}.isdisjoint(expected_fields(kind)[name].markers)


def is_given(settings: object, name: str) -> bool:
    """Whether a setting differs from its default."""
    default: Any = next(entry.default for entry in fields(settings) if entry.name == name)  # type: ignore[arg-type]
    return getattr(settings, name) != default


def option_words(given: Any, usual: Any = None) -> list[str]:  # noqa: ANN401 - settings
    """Format the settings that differ from the usual ones, by default the defaults, as words of a command line.

    Settings of a group are one option; those that change no result are left out.
    """
    words: list[str] = []
    groups: dict[str, list[str]] = {}
    kind: type = type(given)
    usual = kind() if usual is None else usual
    for name, expected in expected_fields(kind).items():
        value = getattr(given, name)
        if value in (None, getattr(usual, name)) or not is_recorded(kind, name) or PythonOnly in expected.markers:
            continue
        text = f"{value:g}" if isinstance(value, float) else "true" if value is True else str(value)
        group = next((marker.name for marker in expected.markers if isinstance(marker, Group)), None)
        if group is not None:
            groups.setdefault(group, []).append(f"{name}={text}")
        else:
            words += [f"--{name.replace('_', '-')}", *([] if value is True else [text])]
    return words + [word for name, own in groups.items() for word in (f"--{name.replace('_', '-')}", ",".join(own))]
