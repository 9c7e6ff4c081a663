"""What a filter of rows is, and the filters that look at one row at a time.

A score is a column; a filter decides by it, and gives each row that it drops its reason. Filters stand in a fixed
order (`workflows/select.py` has it), and each sees only the rows that those before it kept: so every dropped row has
exactly one reason, that of the first filter that drops it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

# Reads the rows that a filter sees, from the first to the last in order of their ids, each time it is called. The
# tables hold the filter's `columns` and `id`.
Rows = Callable[[], Iterator[pa.Table]]


@dataclass(frozen=True)
class Verdict:
    """What a filter says of the rows of a table.

    Attributes:
        kept: Booleans [row].
        number: The number that decided [row], float64, such as the score or the id of the row that this one repeats;
            it is read where `kept` is false. None where there is none.
    """

    kept: np.ndarray
    number: np.ndarray | None = None


class Filter(ABC):
    """Says of each row whether it stays, from that row alone.

    Attributes:
        reason: Why it drops rows, in a few words of plain English that a count can stand before:
            `1,204 with identical sides`.
        columns: Columns of the release that it reads; `id` is always there.
        number: What the number of a verdict is, such as `para_score`; empty where there is none.
    """

    reason: str
    columns: tuple[str, ...]
    number: str = ""

    @property
    @abstractmethod
    def identity(self) -> Mapping[str, Any]:
        """What determines its verdicts, as JSON values: its settings, and checksums of every file that it reads."""

    @abstractmethod
    def judge(self, table: pa.Table) -> Verdict:
        """Judge the next rows."""


class TwoPassFilter(Filter):
    """Says of each row whether it stays after a look at all of them, in memory that does not grow with their number.

    The tables that `judge` is given hold the same rows in the same order as those that `prepare` saw, each once,
    although cut into tables otherwise; so a filter may count rows to know which is which.
    """

    @abstractmethod
    def prepare(self, rows: Rows, work: Path) -> None:
        """Look at all rows before any is judged.

        Args:
            rows: Reads them, as often as it is called.
            work: An empty folder for what does not fit into memory. It goes when all rows are judged.
        """
