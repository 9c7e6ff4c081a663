"""Work in progress: the lock, what differs, how a result gets its name."""

import pytest

from paranmt_hf.errors import InputError
from paranmt_hf.util.work import describe_differences, folder_aside, locked


def test_second_command_is_told(tmp_path):
    with locked(tmp_path), pytest.raises(InputError, match="another command is at work"), locked(tmp_path):
        pass


def test_differences_are_named():
    found = {"translator": {"beam": 12, "model": "a"}, "seed": 1}
    wanted = {"translator": {"beam": 4, "model": "a"}, "license": "mit", "seed": 1}
    assert describe_differences(found, wanted) == ["translator.beam: was 12, now 4", "license: was None, now 'mit'"]
    assert describe_differences(found, found) == []
    long = {"files": ["a name of a file, and what is in it, " + "0" * 64]}
    assert describe_differences(long, {"files": ["b"]}) == [
        f"files: was ['a name of a file, and what is in it, {'0' * 61}..., now ['b']"
    ]
    assert describe_differences(long, {"files": [long["files"][0] + "1"]}) == [
        f"files: not the same ['a name of a file, and what is in it, {'0' * 61}..."
    ]


def test_who_comes_second_drops_its_folder(tmp_path):
    out = tmp_path / "out"
    with folder_aside(out, shared=True) as first, folder_aside(out, shared=True) as second:
        assert first != second
        (first / "a").write_text("first")
        (second / "a").write_text("second")
    # The inner block ends first.
    assert (out / "a").read_text() == "second"
    assert list(tmp_path.iterdir()) == [out]


def test_a_folder_that_is_taken_is_told(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").write_text("theirs")
    with (
        pytest.raises(InputError, match="cannot write .*out: .*; make room"),
        folder_aside(tmp_path / "out") as aside,
    ):
        (aside / "a").write_text("ours")
    assert (tmp_path / "out" / "a").read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]
