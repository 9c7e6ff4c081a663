"""Progress of long work: a bar on a terminal, a line in a log now and then elsewhere."""

from __future__ import annotations

import logging
import sys
import threading
import time
from types import TracebackType
from typing import Any

# Seconds between two pictures of a bar.
TICK = 1.0
logger = logging.getLogger(__name__)


class Progress:
    """Counts rows: rate, share done, time left.

    The rate is that of the time since the last report of no row at all: before that, processes started and models were
    loaded.

    Args:
        label: What is being done.
        total: Number of rows, if known.
        done: Rows that an earlier run has done already; they count as done but not for the rate.
        every: Seconds between two lines where there is no terminal.
        unit: What a row is.
        least: Work of fewer seconds gets no line at its end.
        shown: Whether anything is told at all; of several processes at one work, one tells.
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
        """Move the clock of the bar also while no row is reported, which can take minutes."""
        while not self._ended.wait(TICK):
            bar.refresh()

    def advance_to(self, rows: int, note: str = "") -> None:
        """Set the number of rows done so far, those of earlier runs included, and what else to tell."""
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

    def describe(self) -> str:
        """Say how far the work is, in one line."""
        seconds = max(time.monotonic() - self._started, 1e-9)
        rate = (self.rows - self.initial) / seconds
        line = f"{self.label}: {self.rows:,}"
        if self.total:
            line += f" of {self.total:,} ({self.rows / self.total:.0%})"
        line += f", {_few_digits(rate)} {self.unit}/s"
        if self.total and rate > 0:
            line += f", {duration((self.total - self.rows) / rate)} left"
        return f"{line}, {self._note}" if self._note else line

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._ended.set()
            self._bar.close()
        elif self._shown and kind is None:
            seconds = time.monotonic() - self._started
            rows = self.rows - self.initial
            if seconds >= self._least:
                rate = rows / max(seconds, 1e-9)
                logger.info(f"{self.label}: {rows:,} in {duration(seconds)}, {_few_digits(rate)} {self.unit}/s")


def _few_digits(rate: float) -> str:
    """Write a rate: whole from 10 on, below with what is needed to tell slow from slower: `4.2`, `0.15`."""
    return f"{rate:,.0f}" if rate >= 9.95 or rate == 0 else f"{rate:.2g}"


def duration(seconds: float) -> str:
    """Write a number of seconds the way people do: `42 s`, `3 min 05 s`, `2 h 10 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
