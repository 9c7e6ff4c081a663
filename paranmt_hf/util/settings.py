"""Settings as frozen dataclasses: the type, range and default of each value are declared once, at its field.

    @dataclass(frozen=True)
    class TrainConfig(Settings):
        margin: Annotated[float, Range(above=0, at_most=2)] = 0.4
        seed: Seed = 1

The section "Attributes:" of the class docstring explains each field. The command line derives its options from both
(`cli/command.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from paranmt_hf.errors import InputError
from paranmt_hf.util.markers import ByContent, Group, PythonOnly, RunOnly
from paranmt_hf.util.typed import default_of, expected_fields, read, types_of
from paranmt_hf.util.wording import perhaps


class Settings:
    """Base class of settings: dataclasses that convert and check each field by its type, its choices and its range."""

    def __post_init__(self) -> None:
        kind: Any = type(self)
        types = types_of(kind)
        for field in fields(kind):
            value = read(types[field.name], getattr(self, field.name), field.name)
            # A plain assignment would fail, because the settings are frozen.
            object.__setattr__(self, field.name, value)


def read_value(kind: type, name: str, value: Any) -> Any:  # noqa: ANN401
    """Convert a value from a file or the command line for the field `name` of the settings class `kind`, and check it.

    Text is accepted for every type: `1e-5`, `true`, or `none` for None. For a field of text, `none` stays text.
    """
    return read(types_of(kind)[name], value, name, text=True)


def values_for(
    kinds: Sequence[type], values: Mapping[str, Any] | None, option: str, without: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Distribute named values over settings classes, and convert them as `read_value` does.

    Args:
        kinds: The settings classes. A value goes to the first one that has a field of its name.
        values: Values by name; names may be written with `-` or `_`.
        option: Name of the parameter that the values are from, for errors.
        without: Names of fields that must not be set.

    Returns:
        The values of each class by the names of its fields, in the order of `kinds`.
    """
    index_of_kind: dict[str, int] = {}
    for index, kind in enumerate(kinds):
        for field in fields(kind):
            if field.name not in without:
                index_of_kind.setdefault(field.name, index)
    values_of_kinds: list[dict[str, Any]] = [{} for _ in kinds]
    for given, value in (values or {}).items():
        name = str(given).replace("-", "_")
        if name not in index_of_kind:
            known = [each.replace("_", "-") for each in sorted(index_of_kind)]
            raise InputError(
                f"{option} names {given!r}, which is not one of {', '.join(known)}{perhaps(str(given), known)}",
                option=option,
            )
        index = index_of_kind[name]
        values_of_kinds[index][name] = read_value(kinds[index], name, value)
    return values_of_kinds


def is_recorded(kind: type, name: str) -> bool:
    """Return whether the field `name` of the class `kind` is part of records and identities."""
    return {RunOnly, ByContent}.isdisjoint(expected_fields(kind)[name].markers)


def is_given(settings: Any, name: str) -> bool:  # noqa: ANN401 - settings
    """Return whether a setting differs from its default."""
    return bool(getattr(settings, name) != default_of(type(settings).__dataclass_fields__[name]))


def option_words(given: Any, usual: Any = None) -> list[str]:  # noqa: ANN401 - settings
    """Format settings as words of a command line: those that differ from the settings `usual`, or from the defaults.

    Settings of a group become one option: `--search beams=8,top_p=0.9`. Settings that are None, that change no result,
    or that only Python can set are left out.
    """
    words: list[str] = []
    groups: dict[str, list[str]] = {}
    kind: type = type(given)
    usual = kind() if usual is None else usual
    for name, expected in expected_fields(kind).items():
        value = getattr(given, name)
        if value in (None, getattr(usual, name)) or not is_recorded(kind, name) or PythonOnly in expected.markers:
            continue
        group = next((marker.name for marker in expected.markers if isinstance(marker, Group)), None)
        if group is not None:
            groups.setdefault(group, []).append(f"{name}={_word(value)}")
        else:
            words.append(f"--{name.replace('_', '-')}")
            several = value if isinstance(value, tuple) else [value]
            words += [] if value is True else map(_word, several)
    for name, settings in groups.items():
        words += [f"--{name.replace('_', '-')}", ",".join(settings)]
    return words


def _word(value: object) -> str:
    """Format the value of a setting as it is typed."""
    if value is True:
        return "true"
    return f"{value:g}" if isinstance(value, float) else str(value)
