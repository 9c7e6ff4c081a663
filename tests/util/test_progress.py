"""What is said about long work."""

import contextlib
import logging
import os
import re
import subprocess
import sys

import pytest

from paranmt_hf.util import progress
from paranmt_hf.util.progress import Progress, duration


def test_duration():
    seconds = (0.4, 59.4, 59.6, 185, 3599, 7800)
    assert list(map(duration, seconds)) == ["0 s", "59 s", "1 min 00 s", "3 min 05 s", "59 min 59 s", "2 h 10 min"]


@pytest.mark.parametrize(
    ("rows", "seconds", "text"),
    [(3, 20, "0.15"), (14, 10, "1.4"), (99, 10, "9.9"), (104, 10, "10"), (40_000, 10, "4,000"), (0, 10, "0")],
)
def test_a_slow_rate_is_not_rounded_away(monkeypatch, rows, seconds, text):
    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    bar = Progress("train", None, unit="steps")
    now += seconds
    bar.advance_to(rows)
    # Without a total nothing is left.
    assert bar.describe() == f"train: {rows:,}, {text} steps/s"


def test_rate_leaves_out_what_was_done_before(monkeypatch, caplog):
    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    caplog.set_level(logging.INFO)
    with Progress("work", 1000, done=400, every=30) as bar:
        now = 110.0
        bar.advance_to(500)
        assert caplog.text == "", "no line before its time"
        assert bar.describe() == "work: 500 of 1,000 (50%), 10 sentences/s, 50 s left"
        now = 130.0
        bar.advance_to(700)
        assert "work: 700 of 1,000 (70%), 10 sentences/s, 30 s left" in caplog.text
        now = 160.0
        bar.advance_to(1000)
    assert "work: 600 in 1 min 00 s, 10 sentences/s" in caplog.text


def test_the_time_until_the_first_row_counts_for_nothing(monkeypatch):
    """Workers start for two minutes, then do 10 pairs a second."""
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with Progress("translate", 1100, done=100, every=1e9, unit="pairs") as bar:
        now = 120.0
        bar.advance_to(100)
        now = 130.0
        bar.advance_to(200)
        assert bar.describe() == "translate: 200 of 1,100 (18%), 10 pairs/s, 1 min 30 s left"


@pytest.mark.slow
def test_a_bar_on_a_terminal_moves_while_nothing_is_reported():
    pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")
    program = (
        "import time; from paranmt_hf.util import progress; progress.TICK = 0.2\n"
        "with progress.Progress('translate', 1000, unit='pairs') as bar:\n"
        "    bar.advance_to(500); time.sleep(2.5)"
    )
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    subprocess.run([sys.executable, "-c", program], stdout=theirs, stderr=theirs, check=True)
    os.close(theirs)
    said = b""
    with contextlib.suppress(OSError):
        while part := os.read(ours, 65536):
            said += part
    os.close(ours)
    clocks = set(re.findall(r"50%.*?500/1.00k \[(\d\d:\d\d)", said.decode()))
    assert {"00:00", "00:01", "00:02"} <= clocks, said
