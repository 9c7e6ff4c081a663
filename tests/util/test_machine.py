"""Limits of control groups, and sizes of folders."""

from pathlib import Path

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
