"""Records: what a program wrote down as JSON, read back into dataclasses, and what is wrong with a file said.

A record is a dataclass of plain values, lists, dictionaries, tuples and other records. `from_json` builds it from
parsed JSON by the types of its fields.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import types
import typing
from pathlib import Path
from typing import Any, Literal, TypeVar

from paranmt_hf.errors import InputError
from paranmt_hf.util.files import read_text

Record = TypeVar("Record")
NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false", type(None): "nothing (null)"}


def read_json(path: Path, expected: str) -> Any:  # noqa: ANN401 - whatever is there
    """Parse a JSON file.

    Args:
        path: The file.
        expected: What it should hold, for the error.

    Raises:
        InputError: It cannot be read or is not JSON.
    """
    try:
        return json.loads(read_text(path))
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}; expected {expected}") from None
    except (ValueError, RecursionError) as error:
        reason = "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise InputError(f"{path} is damaged: it is not JSON ({reason}); expected {expected}") from None


def from_json(kind: type[Record], values: Any, where: Path | str) -> Record:  # noqa: ANN401
    """Build a record.

    Args:
        kind: The dataclass; a key of the file that it does not have is left out.
        values: Parsed JSON.
        where: The file, for the error.

    Raises:
        InputError: A value is missing or of another type: `FILE is damaged: expected text under 'name', found 3`.
    """
    try:
        found: Record = _read(kind, values, "", where)
    except RecursionError:
        raise InputError(f"{where} is damaged: it is nested too deeply") from None
    return found


def to_json(record: Any) -> Any:  # noqa: ANN401 - a dataclass
    """Turn a record into JSON values, as reading them back would give them."""
    return json.loads(json.dumps(dataclasses.asdict(record)))


def _read(kind: Any, value: Any, key: str, where: Path | str) -> Any:  # noqa: ANN401
    if dataclasses.is_dataclass(kind):
        return _read_record(typing.cast(type, kind), value, key, where)
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return value
    if origin in (types.UnionType, typing.Union):
        return _read_union(inner, value, key, where)
    if origin is Literal:
        if value not in inner:
            raise _wrong(f"one of {', '.join(map(str, inner))}", value, key, where)
        return value
    if origin is dict or kind is dict:
        if not isinstance(value, dict):
            raise _wrong("an object", value, key, where)
        of = inner[1] if inner else Any
        return {name: _read(of, part, f"{key}.{name}" if key else name, where) for name, part in value.items()}
    if origin in (list, tuple) or kind in (list, tuple):
        return _read_items(origin or kind, inner, value, key, where)
    if not _is_plain(kind, value):
        raise _wrong(NAMES[kind], value, key, where)
    return float(value) if kind is float else value


def _read_record(kind: type, values: Any, key: str, where: Path | str) -> Any:  # noqa: ANN401
    if not isinstance(values, dict):
        raise _wrong("an object", values, key, where)
    hints, found = typing.get_type_hints(kind), {}
    for entry in dataclasses.fields(kind):
        name = f"{key}.{entry.name}" if key else entry.name
        if entry.name in values:
            found[entry.name] = _read(hints[entry.name], values[entry.name], name, where)
        elif entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING:
            raise InputError(f"{where} is damaged: it has no {name!r}")
    try:
        return kind(**found)
    except InputError as error:
        # What the record itself says of values that do not fit together.
        raise InputError(f"{where} is damaged: {error}") from None


def _read_union(kinds: tuple[Any, ...], value: Any, key: str, where: Path | str) -> Any:  # noqa: ANN401
    if value is None and type(None) in kinds:
        return None
    errors = []
    for kind in kinds:
        if kind is not type(None):
            try:
                return _read(kind, value, key, where)
            except InputError as error:
                errors.append(error)
    raise errors[0] from None


def _read_items(kind: Any, inner: tuple[Any, ...], value: Any, key: str, where: Path | str) -> Any:  # noqa: ANN401
    if not isinstance(value, list):
        raise _wrong("a list", value, key, where)
    kinds = list(inner) if kind is tuple and inner[-1:] != (Ellipsis,) else [inner[0] if inner else Any] * len(value)
    if len(kinds) != len(value):
        raise _wrong(f"a list of {len(kinds)}", value, key, where)
    return kind(
        _read(of, part, f"{key}[{index}]", where) for index, (of, part) in enumerate(zip(kinds, value, strict=True))
    )


def _is_plain(kind: Any, value: Any) -> bool:  # noqa: ANN401
    if kind is float:
        # A whole number of JSON may be larger than any float.
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _wrong(expected: str, value: Any, key: str, where: Path | str) -> InputError:  # noqa: ANN401
    text = repr(value)
    found = text if len(text) <= 60 else f"{text[:60]}..."
    return InputError(f"{where} is damaged: expected {expected}{f' under {key!r}' if key else ''}, found {found}")
