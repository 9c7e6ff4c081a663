"""Which rows of a release are looked at: ranges of columns, a text that they contain, where they come from."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from paranmt_hf.corpus.selection import Interval
from paranmt_hf.errors import InputError

Side = Literal["either", "reference", "translation"]
MAX_TEXT = 1000


@dataclass(frozen=True)
class View:
    """Rows that are looked at.

    Attributes:
        ranges: Smallest and largest value of columns, both included; None is no bound. A null is outside.
        text: What a side contains, upper and lower case alike; empty for anything.
        side: Which side contains it.
        origin: Where the rows come from, as the column `origin` has it; None for anywhere.
    """

    ranges: Mapping[str, Interval] = field(default_factory=dict)
    text: str = ""
    side: Side = "either"
    origin: str | None = None

    @classmethod
    def parse(cls, items: Iterable[tuple[str, str]], columns: Collection[str]) -> View:
        """Read a view from the parameters of an address, such as `min.para_score=0.4` and `text=guitar`.

        Args:
            items: Names and values; names of other things, and empty values, count for nothing.
            columns: Names of the numeric columns.

        Raises:
            InputError: A column is none of the release's, a bound is no number, a side is none, a text is too long.
        """
        ranges: dict[str, list[float | None]] = {}
        text, side, origin = "", "either", None
        for name, value in items:
            bound, _, column = name.partition(".")
            if not value:
                continue
            if bound in ("min", "max") and column:
                if column not in columns:
                    raise InputError(f"{column!r} is no numeric column of this release; it has {', '.join(columns)}")
                ranges.setdefault(column, [None, None])[bound == "max"] = _number(name, value)
            elif name == "text":
                text = value
            elif name == "side":
                side = value
            elif name == "origin":
                origin = value
        if side not in get_args(Side):
            raise InputError(f"side must be one of {', '.join(get_args(Side))}, was {side!r}")
        if len(text) > MAX_TEXT:
            raise InputError(f"text must have at most {MAX_TEXT:,} characters, has {len(text):,}")
        return cls({name: (low, high) for name, (low, high) in ranges.items()}, text, side, origin)  # type: ignore[arg-type]

    def condition(self) -> tuple[str, list[float | str]]:
        """Write the view without its text as a condition of a query.

        Returns:
            The condition, with a `?` for each value, and the values.
        """
        parts: list[str] = ["true"]
        values: list[float | str] = []
        for column, bounds in self.ranges.items():
            for sign, bound in zip((">=", "<="), bounds, strict=True):
                if bound is not None:
                    # In the precision of the scores: the 0.7 that is shown is the 0.7 that the column holds.
                    parts.append(f'"{column}" {sign} ?::FLOAT')
                    values.append(bound)
        if self.origin is not None:
            parts.append("origin = ?")
            values.append(self.origin)
        return " AND ".join(parts), values

    def sides(self) -> tuple[str, ...]:
        """The columns that the text is looked for in."""
        return ("reference", "translation") if self.side == "either" else (self.side,)


def _number(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{name} must be a number, was {value!r}")
    return number
