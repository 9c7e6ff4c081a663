"""Markers in the annotations of settings and parameters: a range, or how the command line and records treat them.

For example, `margin: Annotated[float, Range(above=0, at_most=2), Advanced] = 0.4`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any


@dataclass(frozen=True)
class Range:
    """The allowed range of a number, or of each number in a sequence: `Annotated[float, Range(above=0, at_most=2)]`.

    Args:
        at_least: Smallest allowed value; None for no such bound.
        above: Exclusive lower bound; None for no such bound. If it is given, infinity is not allowed either.
        at_most: Largest allowed value; None for no such bound.
    """

    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None

    def __contains__(self, value: float) -> bool:
        return (
            (self.at_least is None or value >= self.at_least)
            # Settings that must be above a number, such as a margin or a learning rate, must be finite too.
            and (self.above is None or self.above < value < math.inf)
            and (self.at_most is None or value <= self.at_most)
        )

    def __str__(self) -> str:
        """Return the range in words: `from 0 to 1`, `above 0 and at most 2`; empty if there is no bound."""
        if self.at_least is not None and self.at_most is not None:
            return f"from {_bound(self.at_least)} to {_bound(self.at_most)}"
        bounds = {"at least": self.at_least, "above": self.above, "at most": self.at_most}
        return " and ".join(f"{name} {_bound(bound)}" for name, bound in bounds.items() if bound is not None)


def _bound(bound: float) -> str:
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"


class Advanced:
    """A marker of an option that only `--help-all` shows, and `--help` leaves out: `Annotated[int, Advanced]`."""


class PythonOnly:
    """A marker of a field or parameter that is no option of the command line: only programs and tests set it."""


class RunOnly:
    """A marker of a setting that changes how a command runs but not its result, such as a number of processes.

    It is left out of the settings that are compared and recorded.
    """


class ByContent:
    """A marker of a path to a file whose content determines the result, whatever its name.

    The path is left out of the recorded settings, which have a checksum of the content instead; it is among the
    recorded options of the command.
    """


class Writes:
    """A marker of the path of a file that the command writes; it replaces only files that the same command wrote."""


class AlsoWrites:
    """A marker of a path that the command writes besides its result; the command itself checks what is there."""


class Prefixed:
    """A marker of a settings parameter whose options begin with the name of the parameter.

    It is for settings that share names of fields with other settings of the command. The fields of a parameter `baker`
    become `--baker-oven`, `--baker-flour`, ...; the option of its first field is `--baker` alone.
    """


@dataclass(frozen=True)
class Without:
    """A marker of a settings parameter that names fields which are not options of the command.

    For example, `Annotated[PairSelection, Without("ppdb_score")]`.
    """

    fields: tuple[str, ...]

    def __init__(self, *fields: str) -> None:
        object.__setattr__(self, "fields", fields)


@dataclass(frozen=True)
class Group:
    """A marker of settings that are given together as one option: `--search beams=8,top_p=0.9`, or a YAML file.

    A single field is marked with a group that has a name and a help text: `Annotated[Count, SEARCH]`. If all fields of
    a settings class form one group, its parameter is marked with `Group()`: the option then has the name of the
    parameter, and its help is the first paragraph of the class docstring.

    Attributes:
        name: Name of the option.
        help: Help text of the option.
    """

    name: str = ""
    help: str = ""


@dataclass(frozen=True)
class Expands:
    """A marker of a parameter whose value names a set of values for other options, such as a recipe.

    Attributes:
        values: Returns the values by the names of their options, given the name of the set. Values from a `--config`
            file and from the command line take precedence over these.
    """

    values: Callable[[str], Mapping[str, Any]]


# The upper bound is the largest seed that every random number generator in use accepts.
Seed = Annotated[int, Range(at_least=0, at_most=2**32 - 1)]
Count = Annotated[int, Range(at_least=1)]
Share = Annotated[float, Range(at_least=0, at_most=1)]
Cosine = Annotated[float, Range(at_least=-1, at_most=1)]
