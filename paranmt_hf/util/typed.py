"""Values read by their types: one reader for text of the command line, YAML, and JSON.

A type is an annotation: `int`, `float`, `bool`, `str`, `Path`, a `Literal`, a mapping, a list or tuple, a dataclass, a
union of these, or one of them in `Annotated` with a `Range`. A `tuple[X, ...]` holds at least one value, a
`Sequence[X]` may be empty.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
import os
import re
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from paranmt_hf.errors import InputError
from paranmt_hf.util.markers import Range
from paranmt_hf.util.wording import brief, perhaps

Json = Any  # A value of JSON or YAML, or of another type that only its annotation at run time names
Annotation = Any  # A type as Python evaluates it

PLAIN = {int: "a whole number", float: "a number", bool: "true or false", str: "text", Path: "a path"}
NUMBERS = {int: numbers.Integral, float: numbers.Real}
UNIONS = (types.UnionType, typing.Union)
MAPPINGS = (dict, Mapping)
SEQUENCES = (list, tuple, Sequence)
ANY_NUMBER = Range()


def read(kind: Annotation, value: Json, name: str, *, text: bool = False, within: Range = ANY_NUMBER) -> Any:  # noqa: ANN401 - of the type
    """Convert a value to its type, or raise an `InputError` about `name`.

    Numbers of other libraries (numpy) become Python's, and paths may be given as text.

    Args:
        kind: The type; a value of a type that is unknown here is returned as it is.
        value: The value.
        name: What it is called in errors, such as `margin`; keys and places within it are added: `losses[2].step`.
        text: Whether numbers, `true`, `none`, lists of one value and `NAME=VALUE,...` may be given as text, as on the
            command line.
        within: Range of a number, or of each of several.
    """
    origin, inner = typing.get_origin(kind) or kind, typing.get_args(kind)
    if origin is Annotated:
        within = next((marker for marker in inner[1:] if isinstance(marker, Range)), within)
        return read(inner[0], value, name, text=text, within=within)
    if origin in UNIONS:
        return _read_union(inner, value, name, text, within)
    if origin is Literal:
        for choice in inner:
            if value == choice or (text and value == str(choice)):
                return choice
        near = perhaps(value, map(str, inner)) if isinstance(value, str) else ""
        raise mismatch(name, f"one of {', '.join(map(str, inner))}", value, near)
    if origin in MAPPINGS:
        return _read_mapping(inner, value, name, text)
    if origin in SEQUENCES:
        return _read_items(origin, inner, value, name, text, within)
    if dataclasses.is_dataclass(origin):
        return _read_dataclass(typing.cast(type, origin), value, name, text)
    return _read_plain(origin, value, name, text, within)


def mismatch(name: str, expected: str, found: Json, hint: str = "") -> InputError:
    """The error about a value that is not what was expected."""
    option = re.split(r"[.\[]", name)[0]
    return InputError(f"{name or 'the content'} must be {expected}, was {brief(found)}{hint}", option=option or None)


def _read_union(kinds: Sequence[Annotation], value: Json, name: str, text: bool, within: Range) -> Any:  # noqa: ANN401
    """Read a value as the first type that takes it; the error is that of the first one."""
    optional = type(None) in kinds
    if optional and value is None:
        return None
    known = [kind for kind in kinds if is_known(kind)]
    if text:
        if optional and value in ("none", "None", "null") and not {str, Path} & set(kinds):
            return None
        if {str, Path} & set(kinds):
            # A path may hold `=`; only Python gives a mapping where a path may be.
            known = [kind for kind in known if typing.get_origin(kind) not in MAPPINGS]
        # A single word for several values is a list of one.
        known.sort(key=lambda kind: typing.get_origin(kind) not in SEQUENCES)
    elif len(known) + optional < len(kinds):
        return value
    errors = []
    for kind in known:
        try:
            return read(kind, value, name, text=text, within=within)
        except InputError as error:
            errors.append(error)
    raise errors[0]


def is_known(kind: Annotation) -> bool:
    """Whether values of a type can be read."""
    origin = typing.get_origin(kind) or kind
    of_several = (Annotated, Literal, *UNIONS, *MAPPINGS, *SEQUENCES)
    return origin in PLAIN or origin in of_several or dataclasses.is_dataclass(origin)


def _read_mapping(inner: Sequence[Annotation], value: Json, name: str, text: bool) -> dict[str, Any]:
    if text and isinstance(value, str):
        value = named_values(value) or value
    if not isinstance(value, Mapping):
        raise mismatch(name, "NAME=VALUE,NAME=VALUE" if text else "an object", value)
    found = {}
    for key, part in value.items():
        found[key] = read(inner[1], part, _below(name, str(key)), text=text) if inner else part
    return found


def named_values(text: str) -> dict[str, str] | None:
    """Split NAME=VALUE,NAME=VALUE; None if it is something else. A value may hold commas, but not end in one."""
    found = {}
    for part in re.split(r",(?=[^,=]+=)", text):
        name, _, value = (side.strip() for side in part.partition("="))
        if not name or not value or value.endswith(","):
            return None
        found[name] = value
    return found


def _read_items(
    origin: Annotation, inner: Sequence[Annotation], value: Json, name: str, text: bool, within: Range
) -> list[Any] | tuple[Any, ...]:
    if text and not isinstance(value, list | tuple):
        value = [value]
    if not isinstance(value, list | tuple):
        raise mismatch(name, "a list", value)
    kinds = [inner[0] if inner else Any] * len(value)
    if origin is tuple and inner[-1:] != (Ellipsis,):
        kinds = list(inner)
    elif origin is tuple and not value:
        raise mismatch(name, "at least one value", value)
    if len(kinds) != len(value):
        raise mismatch(name, f"a list of {len(kinds)}", value)
    found = []
    for index, (kind, item) in enumerate(zip(kinds, value, strict=True)):
        found.append(read(kind, item, f"{name}[{index}]", text=text, within=within))
    return found if origin is list else tuple(found)


def _read_dataclass(kind: type, value: Json, name: str, text: bool) -> Any:  # noqa: ANN401
    """Make a dataclass of a mapping; keys that it does not have are ignored."""
    if isinstance(value, kind):
        return value
    if not isinstance(value, Mapping):
        raise mismatch(name, "an object", value)
    hints, found = types_of(kind), {}
    for field in dataclasses.fields(kind):
        below = _below(name, field.name)
        if field.name in value:
            found[field.name] = read(hints[field.name], value[field.name], below, text=text)
        elif default_of(field) is dataclasses.MISSING:
            raise InputError(f"it has no {below!r}", option=field.name)
    return kind(**found)


def _below(name: str, key: str) -> str:
    return f"{name}.{key}" if name else key


def _read_plain(kind: Annotation, value: Json, name: str, text: bool, within: Range) -> Any:  # noqa: ANN401
    if kind not in PLAIN:
        return value
    found = value
    if kind in NUMBERS:
        found = _number(kind, value, text)
    elif kind is bool and text and isinstance(value, str):
        found = {"true": True, "false": False}.get(value.lower())
    elif kind is Path and isinstance(value, str):
        found = Path(value)
    elif kind is str and isinstance(value, os.PathLike):
        found = os.fspath(value)
    if not isinstance(found, kind):
        # "a number of at least 1", but "a number above 0" and "a number from 0 to 1".
        of = "of " if str(within).startswith("at ") else ""
        raise mismatch(name, f"{PLAIN[kind]} {of}{within}".rstrip(), value)
    if kind in NUMBERS and found not in within:
        raise mismatch(name, str(within), found)
    return found


def _number(kind: type, value: Json, text: bool) -> int | float | None:
    """Convert text, or a number of any library; None for other values, and for infinity and NaN."""
    is_number = isinstance(value, NUMBERS[kind]) and not isinstance(value, bool)
    if not is_number and not (text and isinstance(value, str)):
        return None
    try:
        number = kind(value)
        return number if math.isfinite(number) else None
    except (ValueError, OverflowError):
        # Floats do not hold every whole number.
        return None


@cache
def types_of(kind: type) -> dict[str, Annotation]:
    """The type of each field of a class; cached, because evaluating annotations is slow."""
    return typing.get_type_hints(kind, include_extras=True)


def default_of(field: dataclasses.Field[Any]) -> Any:  # noqa: ANN401
    """Default of a field; `MISSING` if there is none."""
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


@dataclass(frozen=True)
class Expected:
    """What a field or parameter takes, with all around the type of its values taken off."""

    annotation: Annotation
    kind: Any  # Type of a value, or of each of several: `int`, `str`, a `Literal`, `dict`, a dataclass
    several: bool = False  # Whether it is a sequence
    optional: bool = False  # Whether None is allowed
    range: Range = ANY_NUMBER  # Range of a number
    markers: tuple[Any, ...] = ()  # Other metadata of `Annotated`

    def choices(self) -> tuple[Any, ...]:
        """Values of a `Literal`; empty for other types."""
        return typing.get_args(self.kind) if typing.get_origin(self.kind) is Literal else ()


def expected_of(annotation: Annotation) -> Expected:
    """Take an annotation apart; of a union that has text in it, such as `SentenceEncoder | str`, it takes text."""
    kind = annotation
    several = False
    optional = False
    markers: list[Any] = []
    while True:
        origin, inner = typing.get_origin(kind), typing.get_args(kind)
        if origin is Annotated:
            markers += inner[1:]
            kind = inner[0]
        elif origin in UNIONS:
            optional = optional or type(None) in inner
            kinds = [part for part in inner if part is not type(None)]
            several_of = [part for part in kinds if typing.get_origin(part) in SEQUENCES]
            plain = [part for part in (str, Path) if part in kinds]
            kind = [*several_of, *plain, *kinds][0]
        elif origin in SEQUENCES and not several:
            several, kind = True, inner[0]
        else:
            break
    ranges = [marker for marker in markers if isinstance(marker, Range)]
    others = [marker for marker in markers if not isinstance(marker, Range)]
    kind = dict if origin in MAPPINGS else kind
    return Expected(annotation, kind, several, optional, ranges[0] if ranges else ANY_NUMBER, tuple(others))


@cache
def expected_fields(kind: type) -> dict[str, Expected]:
    """What each field of a dataclass takes."""
    return {field.name: expected_of(types_of(kind)[field.name]) for field in dataclasses.fields(kind)}
