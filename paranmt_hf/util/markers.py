"""Markers of settings and parameters: their range, and how the command line and records treat them.

They stand in annotations: `margin: Annotated[float, Range(above=0, at_most=2), Advanced] = 0.4`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any


@dataclass(frozen=True)
class Range:
    """Range of a number, or of each number of several: `Annotated[float, Range(above=0, at_most=2)]`.

    Args:
        at_least: Smallest value.
        above: Exclusive lower bound; infinity is not allowed either.
        at_most: Largest value.
    """

    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None

    def __contains__(self, value: float) -> bool:
        return (
            (self.at_least is None or value >= self.at_least)
            # Nothing that must be above a number may be infinite: a margin, a learning rate.
            and (self.above is None or self.above < value < math.inf)
            and (self.at_most is None or value <= self.at_most)
        )

    def __str__(self) -> str:
        """The range in words: `from 0 to 1`, `above 0 and at most 2`; empty without bounds."""
        if self.at_least is not None and self.at_most is not None:
            return f"from {_bound(self.at_least)} to {_bound(self.at_most)}"
        bounds = {"at least": self.at_least, "above": self.above, "at most": self.at_most}
        return " and ".join(f"{name} {_bound(bound)}" for name, bound in bounds.items() if bound is not None)


def _bound(bound: float) -> str:
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"


class Advanced:
    """Marks an option that `--help` leaves out and `--help-all` shows: `Annotated[int, Advanced]`."""


class PythonOnly:
    """Marks a field or parameter that is not an option of the command line: only programs and tests set it."""


class RunOnly:
    """Marks a setting that changes how a command runs, but not its result; records omit it."""


class ByContent:
    """Marks a path whose content determines the result, not its name; only the options in a record have it."""


class Writes:
    """Marks a file that the command writes; the command line replaces only files that the same command wrote."""


class AlsoWrites:
    """Marks a path that the command writes besides its result, and checks itself."""


class Prefixed:
    """Marks a parameter whose settings share field names with others of the command: `--baker-name`.

    The option of the first field is that of the parameter alone: `--baker`.
    """


@dataclass(frozen=True)
class Without:
    """Marks a parameter some of whose settings are not options of the command: `Without("groups", "order")`."""

    fields: tuple[str, ...]

    def __init__(self, *fields: str) -> None:
        object.__setattr__(self, "fields", fields)


@dataclass(frozen=True)
class Group:
    """Marks settings that are given together as one option: `--search beams=8,top_p=0.9`, or a YAML file with them.

    A field is marked with a name and a help text, `Annotated[Count, SEARCH]`. A parameter that is a settings class is
    marked with `Group()`: all its fields, under the name of the parameter and the first paragraph of the class.

    Attributes:
        name: Name of the option.
        help: What the settings are for.
    """

    name: str = ""
    help: str = ""


@dataclass(frozen=True)
class Expands:
    """Marks a parameter whose value is the name of values of other options, such as a recipe.

    Attributes:
        values: Gives the options and their values; those of a file and of the command line replace them.
    """

    values: Callable[[str], Mapping[str, Any]]


# The largest seed that every random number generator in use accepts.
Seed = Annotated[int, Range(at_least=0, at_most=2**32 - 1)]
Count = Annotated[int, Range(at_least=1)]
Share = Annotated[float, Range(at_least=0, at_most=1)]
Cosine = Annotated[float, Range(at_least=-1, at_most=1)]
