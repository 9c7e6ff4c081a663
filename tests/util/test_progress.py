"""What is said about long work."""

import logging

import pytest

from paranmt_hf.util import progress
from paranmt_hf.util.progress import Progress, duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (185, "3 min 05 s"),
        (3599, "59 min 59 s"),
        (7800, "2 h 10 min"),
    ],
)
def test_duration(seconds, text):
    assert duration(seconds) == text


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


def test_without_total():
    assert "left" not in Progress("read").describe()
