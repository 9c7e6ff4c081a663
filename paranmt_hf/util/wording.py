"""Formatting for messages: values, counts, lists and suggestions in plain English."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches


def counted(count: int, one: str, several: str = "") -> str:
    """Format a count with its noun: `1 pair`, `2,000 pairs`.

    Args:
        count: The count.
        one: The noun in the singular.
        several: The noun in the plural, if it is not the singular with an `s`.
    """
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


def decimal_point(text: str, otherwise: str) -> str:
    """Return advice about text that should have been a number.

    If it is a number with a decimal comma, as spreadsheets of many countries write it, the advice is to use a point;
    for any other text it is `otherwise`.
    """
    has_comma = re.fullmatch(r"\s*[+-]?\d*,\d+\s*", text)
    return "write decimals with a point, as 0.5" if has_comma else otherwise


def in_a_row(names: Iterable[str]) -> str:
    """Join names into a list in words: `page`, `page and report`, `page, report and table`."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def brief(value: object) -> str:
    """Format a value for an error as `in_words` does, cut off after 60 characters."""
    text = in_words(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def in_words(value: object) -> str:
    """Format a value as a person would write it: `none`, `true`, `[1, 2]`, `a=1,b=2`, and text in quotation marks."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return ",".join(f"{name}={in_words(part)}" for name, part in value.items()) or "none"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(in_words, value))}]"
    return repr(value) if isinstance(value, str) else str(value)


def perhaps(name: str, known: Iterable[str] | Mapping[str, str]) -> str:
    """Suggest the known name most similar to a mistyped one: `; perhaps you meant 'word'`.

    Args:
        name: The mistyped name; upper and lower case count as equal.
        known: The names to choose from. If it is a mapping, its keys are the names and its values what is suggested.

    Returns:
        The end of a sentence; empty if no known name is similar.
    """
    suggestions = known if isinstance(known, Mapping) else {each: each for each in known}
    folded = {each.casefold(): suggestion for each, suggestion in suggestions.items() if each != name}
    near = get_close_matches(name.casefold(), folded, 1)
    return f"; perhaps you meant {folded[near[0]]!r}" if near else ""
