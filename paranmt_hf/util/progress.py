"""Progress of long work: a bar on a terminal, or else regular lines in the log."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


TICK = 1.0  # Seconds between two updates of a bar
QUIET_SECONDS = 5.0  # A pass over data that takes less time gets no line in the log; for `least` of `Progress`
logger = logging.getLogger(__name__)


class Progress:
    """A counter of finished rows that shows their rate, the finished share and the remaining time.

    It is a context manager: the bar is closed, or the last line logged, at the end of its `with` block. The rate is
    measured from the last call `advance_to(done)` on, because before it processes start and models load.

    Args:
        label: Name of the work, at the start of each line.
        total: Number of all rows, those of earlier runs included; None if unknown.
        done: Number of rows that an earlier run finished; they do not count for the rate.
        every: Seconds between two lines of the log.
        unit: What the rows are, in the plural, such as `sentences`.
        least: No last line is logged if the work took fewer seconds than this.
        shown: Whether to show anything; of several processes only one does.
    """

    def __init__(
        self,
        label: str,
        total: int | None = None,
        *,
        done: int = 0,
        every: float = 30.0,
        unit: str = "sentences",
        least: float = 0.0,
        shown: bool = True,
    ) -> None:
        self.label, self.total, self.initial, self.rows, self.unit = label, total, done, done, unit
        self._note, self._least, self._shown = "", least, shown
        self._every, self._started, self._last = every, time.monotonic(), time.monotonic()
        self._bar: Any = None
        if shown and sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(total=total, initial=done, desc=label, unit=f" {unit}", unit_scale=True)
            self._ended = threading.Event()
            threading.Thread(target=self._tick, args=(self._bar,), daemon=True).start()

    def _tick(self, bar: Any) -> None:  # noqa: ANN401 - a bar of tqdm
        """Redraw the bar regularly, so that its clock goes on when no row is reported for minutes."""
        while not self._ended.wait(TICK):
            bar.refresh()

    def advance_to(self, rows: int, note: str = "") -> None:
        """Set the number of finished rows, which includes those of earlier runs, and a note that is shown with it."""
        self._note = note
        if rows == self.initial:
            self._started = time.monotonic()
            if self._bar is not None:
                self._bar.unpause()
                self._bar.start_t = self._bar._time()
        if self._bar is not None:
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(rows - self.rows)
        self.rows = rows
        if self._shown and self._bar is None and rows > self.initial and time.monotonic() - self._last >= self._every:
            self._last = time.monotonic()
            logger.info(self.describe())

    def over(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yield the given tables, and count the rows of each one when the caller asks for the next."""
        for table in tables:
            yield table
            self.advance_to(self.rows + table.num_rows)

    def describe(self) -> str:
        """Return the progress as one line: finished rows and share, rate, remaining time, note."""
        rate = self._rate(self.rows)
        line = f"{self.label}: {self.rows:,}"
        if self.total:
            line += f" of {self.total:,} ({self.rows / self.total:.0%})"
        line += f", {_few_digits(rate)} {self.unit}/s"
        if self.total and rate > 0:
            line += f", {duration((self.total - self.rows) / rate)} left"
        return f"{line}, {self._note}" if self._note else line

    def _rate(self, rows: int) -> float:
        return (rows - self.initial) / max(time.monotonic() - self._started, 1e-9)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if self._bar is not None:
            self._ended.set()
            self._bar.close()
        elif self._shown and kind is None:
            if (seconds := time.monotonic() - self._started) >= self._least:
                rate, rows = _few_digits(self._rate(self.rows)), self.rows - self.initial
                logger.info(f"{self.label}: {rows:,} in {duration(seconds)}, {rate} {self.unit}/s")


def _few_digits(rate: float) -> str:
    """Format a rate as a whole number from 10 on, and with two digits below: `1,234`, `4.2`, `0.15`."""
    return f"{rate:,.0f}" if rate >= 9.95 or rate == 0 else f"{rate:.2g}"


def duration(seconds: float) -> str:
    """Format a number of seconds: `42 s`, `3 min 05 s`, `2 h 10 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
