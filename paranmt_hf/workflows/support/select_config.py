"""Which rows `paranmt select` keeps: the settings, and their filters in the order in which they decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import get_args

import pyarrow as pa

from paranmt_hf.corpus.copies import Copied, FirstCopies
from paranmt_hf.corpus.filters import DifferentSides, Filter, FromOrigins, HasValue, InRange, LengthLimit
from paranmt_hf.corpus.ranks import Sample, Tenths, parse_parts
from paranmt_hf.corpus.selection import Range
from paranmt_hf.errors import InputError
from paranmt_hf.util.settings import check, seed_setting, setting


@dataclass(frozen=True)
class SelectConfig:
    """Which rows of a release are kept.

    Attributes:
        ranges: Smallest and largest value of columns, both inside; None is no bound.
    """

    tenths: str | None = setting(
        None, "tenths of all rows that are kept, such as 9-10 or 1,3: 1 has the lowest values, 10 the highest"
    )
    by: str = setting("para_score", "column of numbers whose ranks the tenths are of")
    ranges: Mapping[str, Range] = field(default_factory=dict)
    origin: tuple[str, ...] | None = setting(None, "keep rows of these origins")
    min_length: int | None = setting(None, "fewest word tokens on either side", at_least=1)
    max_length: int | None = setting(None, "most word tokens on either side; the paper: 30", at_least=1)
    drop_identical: bool = setting(False, "drop pairs whose sides have the same letters and digits, case aside")
    drop_copies: tuple[str, ...] | None = setting(
        None, "keep only the first row of each pair, reference or translation, exactly as written"
    )
    sample: int | None = setting(
        None, "so many of the rows that are left, drawn by chance; the paper: 5 million", at_least=1
    )
    seed: int = seed_setting(0, "decides which rows are drawn")

    def __post_init__(self) -> None:
        check(self)
        if self.tenths is not None:
            parse_parts(self.tenths)
        for column, (low, high) in self.ranges.items():
            if any(bound is not None and not isfinite(bound) for bound in (low, high)):
                raise InputError(f"a bound of {column} must be a finite number")
            if low is not None and high is not None and low > high:
                raise InputError(f"no {column} is at least {low:g} and at most {high:g}; the range is empty")
        if self.min_length is not None and self.max_length is not None and self.min_length > self.max_length:
            raise InputError(f"min_length {self.min_length} is above max_length {self.max_length}: no row is left")
        if wrong := set(self.drop_copies or ()) - set(get_args(Copied)):
            raise InputError(f"copies can be of {', '.join(get_args(Copied))}, not {', '.join(sorted(wrong))}")

    def filters(self, schema: pa.Schema) -> list[Filter]:
        """Make the filters, in the order in which they decide.

        Args:
            schema: Columns of the release; which of them may hold nulls is what counts.
        """
        filters: list[Filter] = []

        def need(column: str) -> None:
            if column not in schema.names or schema.field(column).nullable:
                filters.append(HasValue(column))

        if self.tenths is not None:
            need(self.by)
            filters.append(Tenths(self.by, parse_parts(self.tenths)))
        for column, (low, high) in self.ranges.items():
            need(column)
            filters.append(InRange(column, low, high))
        if self.origin:
            filters.append(FromOrigins(self.origin))
        if self.min_length is not None or self.max_length is not None:
            filters.append(LengthLimit(self.min_length, self.max_length))
        if self.drop_identical:
            filters.append(DifferentSides())
        filters += [FirstCopies(copied) for copied in get_args(Copied) if copied in (self.drop_copies or ())]
        if self.sample is not None:
            filters.append(Sample(self.sample, self.seed))
        # A column that decides twice lacks a value only once.
        return list({one.reason: one for one in filters}.values())
