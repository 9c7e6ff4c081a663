"""Limits of control groups, sizes of folders, and compiled loops."""

import importlib
import os
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from paranmt_hf.util.machine import core_limit, folder_size, free_space, memory_limit


@pytest.mark.parametrize(
    ("text", "limit"), [("150000 100000", 1.5), ("max 100000", None), ("", None), ("-1 100000", None), ("x y", None)]
)
def test_cores_of_a_control_group(tmp_path, text, limit):
    (tmp_path / "cpu.max").write_text(text + "\n")
    assert core_limit(tmp_path) == limit


def test_control_groups_of_version_1(tmp_path):
    assert core_limit(tmp_path) is None and memory_limit(tmp_path) is None
    for name in ("cpu", "memory"):
        (tmp_path / name).mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("400000\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert core_limit(tmp_path) == 4 and memory_limit(tmp_path) is None
    (tmp_path / "memory.max").write_text("2147483648\n")
    assert memory_limit(tmp_path) == 2 << 30


def test_limits_of_the_own_group_and_of_those_around_it(tmp_path):
    own, group = tmp_path / "own", tmp_path / "system.slice" / "job_7" / "step_0"
    group.mkdir(parents=True)
    own.write_text("0::/system.slice/job_7/step_0\n")
    assert core_limit(tmp_path, own) is None and memory_limit(tmp_path, own) is None
    # As Slurm sets them: a job's memory is that of all its steps together.
    (group.parent / "memory.max").write_text("1000000\n")
    (group / "memory.max").write_text("max\n")
    (group / "cpu.max").write_text("200000 100000\n")
    (tmp_path / "cpu.max").write_text("300000 100000\n")
    assert core_limit(tmp_path, own) == 2 and memory_limit(tmp_path, own) == 1000000
    # The path is one outside the container, where it is not to be seen.
    own.write_text("0::/../other/deep\n")
    assert core_limit(tmp_path, own) == 3 and memory_limit(tmp_path, own) is None


def test_own_groups_of_version_1(tmp_path):
    own = tmp_path / "own"
    own.write_text("5:memory:/slurm/job_1\n4:cpu,cpuacct:/slurm/job_2\n1:name=systemd:/a:b\n")
    for name in ("memory/slurm/job_1", "memory/slurm/job_2", "cpu/slurm/job_2"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "memory/slurm/job_1/memory.limit_in_bytes").write_text("5000\n")
    (tmp_path / "memory/slurm/job_2/memory.limit_in_bytes").write_text("4000\n")
    (tmp_path / "cpu/slurm/job_2/cpu.cfs_quota_us").write_text("50000\n")
    (tmp_path / "cpu/slurm/job_2/cpu.cfs_period_us").write_text("100000\n")
    assert memory_limit(tmp_path, own) == 5000 and core_limit(tmp_path, own) == 0.5


@pytest.mark.parametrize("name", [b"\xff", b"x" * 300])
def test_groups_of_any_name(tmp_path, name):
    """One that is no text, and one that the system refuses to look at."""
    own = tmp_path / "own"
    own.write_bytes(b"0::/" + name + b"\n")
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    assert core_limit(tmp_path, own) == 1.5 and memory_limit(tmp_path, own) is None


def test_the_size_of_a_folder(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "one").write_bytes(b"x" * 1000)
    (tmp_path / "a" / "b" / "two").write_bytes(b"x" * 234)
    # A link counts nothing, also one that leads in a circle.
    (tmp_path / "a" / "b" / "loop").symlink_to(tmp_path / "a")
    assert folder_size(tmp_path, 60) == (1234, True)
    assert folder_size(tmp_path, -1)[1] is False
    assert folder_size(tmp_path / "none", 60) == (0, True)
    assert free_space(tmp_path / "none" / "there") > 0 and free_space(Path("/")) > 0


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
