"""Words of messages: values, counts and suggestions in plain English."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches


def counted(count: int, one: str, several: str = "") -> str:
    """Format a count with its noun: `1 pair`, `2,000 pairs`; `several` is what follows other counts than 1."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


def decimal_point(text: str, otherwise: str) -> str:
    """Advice about text that should be a number: to write a decimal comma as a point, `otherwise` for other text.

    Spreadsheets write a comma in many countries.
    """
    has_comma = re.fullmatch(r"\s*[+-]?\d*,\d+\s*", text)
    return "write decimals with a point, as 0.5" if has_comma else otherwise


def in_a_row(names: Iterable[str]) -> str:
    """List names: `page`, `page and report`, `page, report and table`."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def brief(value: object) -> str:
    """Format a value for an error, in plain words of at most 60 characters."""
    text = in_words(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def in_words(value: object) -> str:
    """Format a value as a person would write it: `none`, `true`, `[1, 2]`, `a=1,b=2`; text has quotation marks."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return ",".join(f"{name}={in_words(part)}" for name, part in value.items()) or "none"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(in_words, value))}]"
    return repr(value) if isinstance(value, str) else str(value)


def perhaps(name: str, known: Iterable[str] | Mapping[str, str]) -> str:
    """Suggest the known name most similar to a mistyped one, case aside: `; perhaps you meant 'word'`; else empty.

    The values of a mapping are what should be typed.
    """
    typed = known if isinstance(known, Mapping) else {each: each for each in known}
    folded = {each.casefold(): what for each, what in typed.items() if each != name}
    near = get_close_matches(name.casefold(), folded, 1)
    return f"; perhaps you meant {folded[near[0]]!r}" if near else ""
