"""Compiled functions, threads, progress of long work, and DuckDB over files."""

import contextlib
import importlib
import logging
import os
import re
import subprocess
import sys
import time

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf.util import progress
from paranmt_hf.util.machine import GPU_THREADS, torch_threads
from paranmt_hf.util.parquet import as_table, database
from paranmt_hf.util.progress import Progress, duration

KERNEL = """
from typing import NamedTuple
import numpy as np
from paranmt_hf.util.machine import compiled

class {name}(NamedTuple):
    rows: np.ndarray
    {more}

@compiled()
def total(table):
    return table.rows.sum()
"""


@pytest.mark.slow
def test_a_cache_of_another_version_does_not_hinder(tmp_path, monkeypatch):
    """Whose named tuple has another name, so that the classes in its index of the same function are gone."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)

    def run(name, more, *others):
        (tmp_path / "a_kernel.py").write_text(KERNEL.format(name=name, more=more))
        # numba compares times, too.
        os.utime(tmp_path / "a_kernel.py", (1, 1))
        sys.modules.pop("a_kernel", None)
        importlib.invalidate_caches()
        module = importlib.import_module("a_kernel")
        assert module.total(getattr(module, name)(np.arange(4), *others)) == 6
        return sum(module.total.stats.cache_hits.values())

    assert run("Rows", "") == 0 and run("Rows", "") == 1
    assert run("WeightedRows", "weight: float", 2.0) == 0
    # The first version finds its own files again.
    assert run("Rows", "") == 1


def test_duration():
    seconds = (0.4, 59.4, 59.6, 185, 3599, 7800)
    assert list(map(duration, seconds)) == ["0 s", "59 s", "1 min 00 s", "3 min 05 s", "59 min 59 s", "2 h 10 min"]


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets, in seconds."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize(
    ("rows", "seconds", "text"),
    [(3, 20, "0.15"), (14, 10, "1.4"), (99, 10, "9.9"), (104, 10, "10"), (40_000, 10, "4,000"), (0, 10, "0")],
)
def test_a_slow_rate_is_not_rounded_away(clock, rows, seconds, text):
    bar = Progress("train", None, unit="steps")
    clock[0] += seconds
    bar.advance_to(rows)
    # Without a total nothing is left.
    assert bar.describe() == f"train: {rows:,}, {text} steps/s"


def test_rate_leaves_out_what_was_done_before(clock, caplog):
    caplog.set_level(logging.INFO)
    with Progress("work", 1000, done=400, every=30) as bar:
        clock[0] = 110.0
        bar.advance_to(500)
        assert caplog.text == "", "no line before its time"
        assert bar.describe() == "work: 500 of 1,000 (50%), 10 sentences/s, 50 s left"
        clock[0] = 130.0
        bar.advance_to(700)
        assert "work: 700 of 1,000 (70%), 10 sentences/s, 30 s left" in caplog.text
        clock[0] = 160.0
        bar.advance_to(1000)
    assert "work: 600 in 1 min 00 s, 10 sentences/s" in caplog.text


def test_the_time_until_the_first_row_counts_for_nothing(clock):
    """Workers start for two minutes, then do 10 pairs a second."""
    with Progress("translate", 1100, done=100, every=1e9, unit="pairs") as bar:
        clock[0] = 220.0
        bar.advance_to(100)
        clock[0] = 230.0
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
    # On a busy machine a second may pass unseen.
    assert len(clocks) > 1, said


def test_a_query_over_files_with_any_name(tmp_path):
    folder = tmp_path / "it's"
    folder.mkdir()
    files = [folder / "a.parquet", folder / "b.parquet"]
    for first, path in enumerate(files):
        pq.write_table(pa.table({"id": [first, 10 + first]}), path)
    with database(memory=100_000_000) as connection:
        assert connection.execute(f"SELECT sum(id), count(*) FROM {as_table(files)}").fetchone() == (22, 4)


@pytest.mark.parametrize("name", ["a*b", "a[1]", "x?", "origin=mail"])
def test_a_path_names_that_file_alone_and_no_column(tmp_path, name):
    for folder in ("a1", "aXb", "xy", name):
        (tmp_path / folder).mkdir()
        pq.write_table(pa.table({"origin": [folder]}), tmp_path / folder / "a.parquet")
    with database(memory=100_000_000) as connection:
        query = f"SELECT * FROM {as_table([tmp_path / name / 'a.parquet'])}"
        assert connection.execute(query).fetchall() == [(name,)]


def test_what_does_not_fit_goes_to_disk(tmp_path):
    with database(memory=30_000_000, spill=tmp_path) as connection:
        query = "SELECT count(*) FROM (SELECT DISTINCT hash(i), i FROM range(1000000) t(i))"
        assert connection.execute(query).fetchone() == (1_000_000,)
    assert not list(tmp_path.iterdir())


def test_torch_runs_on_one_thread_in_each_thread_of_a_pool():
    import torch

    before = torch.get_num_threads()
    with torch_threads() as pool:
        assert list(pool.map(lambda _: torch.get_num_threads(), range(8))) == [1] * 8
        assert pool._max_workers == before
    with torch_threads("cuda") as pool:
        assert pool._max_workers == GPU_THREADS
    with torch_threads("mps") as pool:
        assert pool._max_workers == 1
    assert torch.get_num_threads() == before


def test_what_waits_in_a_pool_is_left_after_an_error():
    done = []
    with pytest.raises(KeyboardInterrupt), torch_threads("cuda") as pool:
        found = pool.map(lambda number: done.append(number) or time.sleep(0.01), range(10_000))
        next(found)
        raise KeyboardInterrupt
    assert 0 < len(done) < 10_000
