"""Conversion of values to the types of their annotations: of text from the command line, of YAML, and of JSON.

A type is an annotation: `int`, `float`, `bool`, `str`, `Path`, a `Literal`, a mapping, a list or tuple, a dataclass, a
union of these, or one of them in `Annotated` with a `Range`. A `tuple[X, ...]` must hold at least one value; a
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

Json = Any  # A value of JSON or YAML, or one that Python code gives for a field of another type
Annotation = Any  # A type annotation after evaluation, such as `int` or `Sequence[str] | None`

PLAIN = {int: "a whole number", float: "a number", bool: "true or false", str: "text", Path: "a path"}
NUMBERS = {int: numbers.Integral, float: numbers.Real}
UNIONS = (types.UnionType, typing.Union)
MAPPINGS = (dict, Mapping)
SEQUENCES = (list, tuple, Sequence)
ANY_NUMBER = Range()


def read(kind: Annotation, value: Json, name: str, *, text: bool = False, within: Range = ANY_NUMBER) -> Any:  # noqa: ANN401 - of the type
    """Convert a value to a type, or raise an `InputError` about `name`.

    Numbers of other libraries, such as numpy, become numbers of Python. Paths may be given as text.

    Args:
        kind: The type. For types that this module does not know, the value is returned as it is.
        value: The value.
        name: Name of the value in errors, such as `margin`. Keys and indices within it are added: `losses[2].step`.
        text: Whether values may be given as text, as on the command line: numbers, `true`, `none`, one word for a list
            of one, and `NAME=VALUE,...` for a mapping.
        within: Allowed range of a number, or of each number in a sequence.
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
    """Return the error `NAME must be EXPECTED, was FOUND`, with `hint` at its end."""
    option = re.split(r"[.\[]", name)[0]
    return InputError(f"{name or 'the content'} must be {expected}, was {brief(found)}{hint}", option=option or None)


def _read_union(kinds: Sequence[Annotation], value: Json, name: str, text: bool, within: Range) -> Any:  # noqa: ANN401
    """Convert a value to the first type of a union that accepts it; if none does, raise the error of the first one."""
    optional = type(None) in kinds
    if optional and value is None:
        return None
    known = [kind for kind in kinds if is_known(kind)]
    if text:
        if optional and value in ("none", "None", "null") and not {str, Path} & set(kinds):
            return None
        if {str, Path} & set(kinds):
            # A path may hold `=`, so text is a path here and no mapping; mappings are given from Python.
            known = [kind for kind in known if typing.get_origin(kind) not in MAPPINGS]
        # Sequences come first, so that a single word becomes a list of one.
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
    """Return whether `read` can convert values to a type."""
    origin = typing.get_origin(kind) or kind
    of_several = (Annotated, Literal, *UNIONS, *MAPPINGS, *SEQUENCES)
    return origin in PLAIN or origin in of_several or dataclasses.is_dataclass(origin)


def _read_mapping(inner: Sequence[Annotation], value: Json, name: str, text: bool) -> dict[str, Any]:
    """Convert a mapping, or as text `NAME=VALUE,...`, and each of its values."""
    if text and isinstance(value, str):
        value = named_values(value) or value
    if not isinstance(value, Mapping):
        raise mismatch(name, "NAME=VALUE,NAME=VALUE" if text else "an object", value)
    found = {}
    for key, part in value.items():
        found[key] = read(inner[1], part, _below(name, str(key)), text=text) if inner else part
    return found


def named_values(text: str) -> dict[str, str] | None:
    """Split `NAME=VALUE,NAME=VALUE` into a mapping; return None for any other text.

    A value may contain commas but not end in one: `a=1,2,b=3` gives `{"a": "1,2", "b": "3"}`.
    """
    found = {}
    for entry in re.split(r",(?=[^,=]+=)", text):
        name, _, value = (side.strip() for side in entry.partition("="))
        if not name or not value or value.endswith(","):
            return None
        found[name] = value
    return found


def _read_items(
    origin: Annotation, inner: Sequence[Annotation], value: Json, name: str, text: bool, within: Range
) -> list[Any] | tuple[Any, ...]:
    """Convert a list or tuple and each of its values; as text, a single value becomes a list of one."""
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
    """Build a dataclass from a mapping; keys that it does not have are ignored."""
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
    """Return the name in errors of the value `key` inside the value `name`: `losses.step`."""
    return f"{name}.{key}" if name else key


def _read_plain(kind: Annotation, value: Json, name: str, text: bool, within: Range) -> Any:  # noqa: ANN401
    """Convert a value to a type of `PLAIN`, and check its range; for other types return it as it is."""
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
    """Convert text or a number of any library to `int` or `float`; None for other values, infinity and NaN."""
    is_number = isinstance(value, NUMBERS[kind]) and not isinstance(value, bool)
    if not is_number and not (text and isinstance(value, str)):
        return None
    try:
        number = kind(value)
        return number if math.isfinite(number) else None
    except (ValueError, OverflowError):
        # The text is no number, or a whole number is too large for a float.
        return None


@cache
def types_of(kind: type) -> dict[str, Annotation]:
    """Return the type of each field of a class by its name; cached, because evaluating annotations is slow."""
    return typing.get_type_hints(kind, include_extras=True)


def default_of(field: dataclasses.Field[Any]) -> Any:  # noqa: ANN401
    """Return the default of a dataclass field, or `dataclasses.MISSING` if it has none."""
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


@dataclass(frozen=True)
class Expected:
    """What values a field or parameter accepts: its annotation taken apart.

    For example, of `Annotated[Sequence[int] | None, Range(above=0), Advanced]` the kind is `int`; it accepts several
    values and None.
    """

    annotation: Annotation
    kind: Any  # Type of the value, or of each value of a sequence: `int`, `str`, a `Literal`, `dict`, a dataclass
    several: bool = False  # Whether a sequence of values is accepted
    optional: bool = False  # Whether None is accepted
    range: Range = ANY_NUMBER  # Allowed range of a number
    markers: tuple[Any, ...] = ()  # Metadata of `Annotated` other than the range

    def choices(self) -> tuple[Any, ...]:
        """Return the values of a `Literal`; empty for other types."""
        return typing.get_args(self.kind) if typing.get_origin(self.kind) is Literal else ()


def expected_of(annotation: Annotation) -> Expected:
    """Take an annotation apart into what it accepts.

    Of a union, a sequence type counts if there is one, else `str` or `Path`, else the first type: for
    `SentenceEncoder | str` the kind is `str`, which is what the command line can give.
    """
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
    """Return what each field of a dataclass accepts, by the name of the field."""
    return {field.name: expected_of(types_of(kind)[field.name]) for field in dataclasses.fields(kind)}
