"""Files that appear whole or not at all."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors import SafetensorError

from paranmt_hf import InputError
from paranmt_hf.errors import WriteError
from paranmt_hf.util.files import (
    ChecksummedFile,
    check_regular,
    checksum,
    new_folder,
    replacing,
    resolved,
    result_file,
    write_bytes,
    writing,
)
from tests.refused import refused
from tests.toys import full_disk


def test_what_cannot_be_read_like_a_file(tmp_path):
    """A link to nothing, and a pipe; a link to a file is the file."""
    (tmp_path / "text").touch()
    for name, target in (("nowhere", "missing"), ("file", "text")):
        (tmp_path / name).symlink_to(tmp_path / target)
    os.mkfifo(tmp_path / "pipe")
    for name in ("nowhere", "pipe"):
        with refused(path=tmp_path / name):
            check_regular(tmp_path / name)
    for name in ("file", "text", "missing", "."):
        check_regular(tmp_path / name)
    assert resolved(tmp_path / "file") == tmp_path / "text"


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with replacing(path) as aside:
        assert aside.parent == tmp_path and aside.name.startswith(".file.") and aside.suffix == ".tmp"
        aside.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_two_that_write_one_file_do_not_mix(tmp_path):
    """Two `vectors distill` at once left a file with mixed dimensions."""
    path = tmp_path / "file"
    with replacing(path) as first, first.open("w") as one:
        one.write("one")
        one.flush()
        with replacing(path) as second:
            second.write_text("2")
            one.write(" one")
        assert path.read_text() == "2"
    assert path.read_text() == "one one" and [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_what_killed_processes_left_is_deleted(tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from paranmt_hf.util.files import replacing\n"
        "with replacing(Path(sys.argv[1])) as aside: aside.write_text('half'); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "file")]).returncode == -9
    (left,) = tmp_path.iterdir()
    left.with_name(f".file.{os.getpid()}-00000000.tmp").touch()
    # Those of other files, and of processes that are running, are not.
    others = [".file.txt.1-0.tmp", f".file.{os.getppid()}-00000000.tmp", ".file.tmp"]
    for name in others:
        (tmp_path / name).touch()
    with replacing(tmp_path / "file") as aside:
        aside.write_bytes(b"new")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted([*others, "file"])


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, InputError])
def test_other_errors_pass_and_nothing_is_left(tmp_path, error):
    (tmp_path / "file").write_text("old")
    with pytest.raises(error), replacing(tmp_path / "file") as aside:
        aside.write_text("half")
        raise error("mine")
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("file", "old")]


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        SafetensorError("No space left on device"),
        Exception("No space left on device (os error 28)"),
    ],
)
def test_a_full_disk_is_told(tmp_path, error):
    options = {"doing": "write the thing", "advice": "buy another one"}
    with refused(path=tmp_path / "file"), replacing(tmp_path / "file", **options) as aside:
        aside.write_text("half")
        raise error
    assert not list(tmp_path.iterdir())


def test_bytes_and_a_limit_of_the_system(tmp_path):
    path = tmp_path / "file"
    write_bytes(path, b"x" * 400)
    with full_disk(500), refused(path=path, kind=WriteError):
        write_bytes(path, b"y" * 4000)
    assert path.read_bytes() == b"x" * 400
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_is_not_there(tmp_path):
    with refused(path=tmp_path / "no/file"):
        write_bytes(tmp_path / "no" / "file", b"")
    (tmp_path / "folder").mkdir()
    with refused(path=tmp_path / "folder"):
        write_bytes(tmp_path / "folder", b"")
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def test_a_path_is_named_where_it_cannot_be_written(tmp_path):
    with refused(kind=WriteError):
        with writing(Path("a/b")):
            raise OSError(28, "No space left on device")
    with pytest.raises(KeyError), writing(Path("a/b")):
        raise KeyError("mine")
    with refused(kind=WriteError):
        ChecksummedFile(tmp_path / "no" / "file")


@pytest.mark.parametrize(
    ("error", "advised"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), True),
        (OSError(errno.EPERM, "Operation not permitted"), False),
        (PermissionError(errno.EACCES, "Permission denied"), False),
        (OSError(errno.EROFS, "Read-only file system"), False),
        (SafetensorError("I/O error: No space left on device (os error 28)"), True),
        (SafetensorError("I/O error: Permission denied (os error 13)"), False),
        (RuntimeError("PytorchStreamWriter failed"), True),
    ],
)
def test_room_helps_only_where_there_is_none(error, advised):
    with refused(kind=WriteError) as caught, writing(Path("a")):
        raise error
    assert ("make room" in str(caught.value)) == advised


def test_a_file_with_its_checksum(tmp_path):
    (tmp_path / "file").write_text("something longer that was there")
    file = ChecksummedFile(tmp_path / "file")
    file.write(b"one")
    file.write(memoryview(b" two"))
    assert file.close() == checksum(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"one two"


def test_a_full_disk_under_a_file_with_its_checksum():
    file = ChecksummedFile(Path("/dev/full"))
    with refused(kind=WriteError):
        file.write(bytes(1_000_000))


def test_a_folder_appears_whole(tmp_path):
    out = tmp_path / "out"
    left = tmp_path / f".out.{os.getpid()}-0.tmp"
    left.mkdir()
    (left / "left by a kill").touch()
    (tmp_path / "out").mkdir()
    with new_folder(out) as aside:
        (aside / "a").write_text("1")
        assert not list(out.iterdir())
    assert [path.name for path in tmp_path.iterdir()] == ["out"] and (out / "a").read_text() == "1"
    with refused(kind=WriteError), new_folder(out) as aside:
        (aside / "b").touch()
    for error in (KeyboardInterrupt, RuntimeError, InputError):
        with pytest.raises(error), new_folder(tmp_path / "other"):
            raise error("mine")
    assert [path.name for path in tmp_path.iterdir()] == ["out"] and [path.name for path in out.iterdir()] == ["a"]


def test_files_that_no_result_can_get(tmp_path):
    for out in (tmp_path, tmp_path / "none" / "out.txt", tmp_path / "out.csv"):
        with refused("out", path=out):
            result_file(out, [".txt", ".gz"])
    (tmp_path / "link.txt").symlink_to(tmp_path / "target.txt")
    assert result_file(tmp_path / "link.txt") == tmp_path / "target.txt"
