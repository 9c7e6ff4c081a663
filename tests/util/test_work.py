"""Long work on disk: who holds it, whether it is finished, and how its result gets its name."""

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from paranmt_hf.errors import InputError, WriteError
from paranmt_hf.util.run import work_folder
from paranmt_hf.util.work import (
    clear,
    finished,
    folder_aside,
    keep_identity,
    locked,
    owner_of,
    remove,
    remove_leftover,
)


def hold(folder, command="build", *, worth=lambda folder: True):
    return locked(folder, command, worth=worth)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_is_held_by_one(tmp_path):
    folder = tmp_path / "deep" / "out.work"
    with hold(folder):
        with pytest.raises(InputError, match=f"^another command is at work in {folder}; wait for it, or stop"):
            with hold(folder):
                pytest.fail("held twice")
        # And by one process.
        code = (
            "import sys; from pathlib import Path; from tests.util.test_work import hold\n"
            "with hold(Path(sys.argv[1])): print('held')"
        )
        other = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True)
        assert other.returncode == 1 and "another command is at work" in other.stderr and not other.stdout
    with hold(folder):
        pass


def test_the_lock_goes_with_a_killed_process(tmp_path):
    code = (
        "import os, signal, sys; from pathlib import Path; from tests.util.test_work import hold\n"
        "with hold(Path(sys.argv[1])): os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "out.work")]).returncode == -9
    with hold(tmp_path / "out.work"):
        pass


def test_a_folder_of_somebody_else_is_not_taken(tmp_path):
    folder = tmp_path / "out.work"
    folder.mkdir()
    (folder / "mine").touch()
    with pytest.raises(InputError, match=f"^{folder} is needed for work in progress and holds something else; move"):
        with hold(folder):
            pytest.fail("taken")
    assert names(folder) == ["mine"]
    (tmp_path / "file.work").touch()
    with pytest.raises(InputError, match="holds something else"), hold(tmp_path / "file.work"):
        pytest.fail("taken")


def test_another_command_is_refused_by_name(tmp_path):
    """`import --out X` deleted the checkpoints of a killed `train --out X`."""
    folder = work_folder(tmp_path / "out")
    with hold(folder, "train"):
        (folder / "checkpoint").touch()
    expected = f"^{folder} holds work of `paranmt train`, unfinished or kept; let that command finish, or delete that"
    with pytest.raises(InputError, match=expected), hold(folder, "import", worth=lambda folder: False):
        pytest.fail("taken")
    remove_leftover(tmp_path / "out", "import")
    assert names(folder) == ["checkpoint", "command", "lock"]
    with hold(folder, "train"):
        with suppress(InputError):
            remove_leftover(tmp_path / "out", "train")
        assert folder.exists(), "removed while somebody is at work in it"
    remove_leftover(tmp_path / "out", "train")
    assert not names(tmp_path)
    # A kill in the middle of `remove`.
    (tmp_path / ".out.work.gone" / "part").mkdir(parents=True)
    remove_leftover(tmp_path / "out", "train")
    assert not names(tmp_path)


def test_a_kill_before_the_name_is_written(tmp_path):
    folder = work_folder(tmp_path / "out")
    folder.mkdir()
    (folder / "lock").touch()
    (folder / ".command.123.tmp").write_text("tra")
    with hold(folder, "score"):
        assert owner_of(folder) == "score"


def test_refused_input_leaves_no_folder(tmp_path):
    folder = work_folder(tmp_path / "out")

    def fails(error, worth):
        with pytest.raises(type(error), match="^no$"), hold(folder, worth=lambda folder: worth):
            (folder / "input").touch()
            raise error
        return names(tmp_path)

    assert fails(InputError("no"), worth=False) == []
    # With room the same command goes on; and hours of work are not lost for a wrong word.
    assert fails(WriteError("no"), worth=False) == ["out.work"]
    assert fails(InputError("no"), worth=True) == ["out.work"]
    assert fails(KeyboardInterrupt("no"), worth=False) == ["out.work"]
    assert fails(InputError("no"), worth=False) == []


def keep(folder, identity, worth=True):
    keep_identity(folder, identity, worth=lambda folder: worth, doing="training")


def test_settings_of_work_in_progress(tmp_path):
    folder = work_folder(tmp_path / "out")
    with hold(folder):
        keep(folder, {"a": 1})
        (folder / "part").touch()
        keep(folder, {"a": 1})
        expected = f"^{folder} holds unfinished training with other settings: a: was 1, now 2; give the same ones to "
        with pytest.raises(InputError, match=expected):
            keep(folder, {"a": 2})
        assert names(folder) == ["command", "lock", "part", "settings.json"]
        keep(folder, {"a": 2}, worth=False)
        assert names(folder) == ["command", "lock", "settings.json"]


def test_a_kill_while_work_of_other_settings_is_cleared(tmp_path, monkeypatch):
    """Its pairs, without the settings that they were made with, would be taken for those of the next run."""
    removed, original = [], Path.unlink

    def unlink(path, **options):
        removed.append(path.name)
        original(path, **options)

    for name in ("a", "settings.json", "z"):
        (tmp_path / name).write_text('{"a": 1}')
    monkeypatch.setattr(Path, "unlink", unlink)
    keep(tmp_path, {"a": 2}, worth=False)
    assert removed[:3] in (["a", "z", "settings.json"], ["z", "a", "settings.json"])


@pytest.mark.parametrize(
    ("content", "wrong"), [('{"a"', "it is not JSON .*"), ("", "it is not JSON .*"), ("[1]", "it holds no object")]
)
def test_damaged_settings_are_told(tmp_path, content, wrong):
    (tmp_path / "settings.json").write_text(content)
    expected = f"^{tmp_path}/settings.json is damaged: {wrong}; expected the settings of a run; delete {tmp_path} to"
    with pytest.raises(InputError, match=expected):
        keep(tmp_path, {"a": 1})


def test_clear_leaves_the_lock(tmp_path):
    folder = tmp_path / "out.work"
    with hold(folder):
        (folder / "part").mkdir()
        (folder / "part" / "a").touch()
        (folder / "b").touch()
        clear(folder)
        assert names(folder) == ["command", "lock"]
        with pytest.raises(InputError, match="another command"), hold(folder):
            pytest.fail("held twice")


def finish(out, identity):
    """Ask for a result whose record is a JSON file."""

    def read(folder):
        try:
            return json.loads((folder / "record.json").read_text())
        except OSError:
            raise InputError(f"{folder} holds no record") from None

    return finished(out, identity, read, lambda record: record["identity"], made="built")


def test_finished(tmp_path):
    out = tmp_path / "out"
    assert finish(out, {"a": 1}) is None
    out.mkdir()
    assert finish(out, {"a": 1}) is None
    (out / "record.json").write_text(json.dumps({"identity": {"a": 1, "sizes": [1, 2]}, "rows": 7}))
    # Identities are compared as JSON has them: a tuple is a list there.
    assert finish(out, {"a": 1, "sizes": (1, 2)}) == {"identity": {"a": 1, "sizes": [1, 2]}, "rows": 7}
    expected = f"^{out} was built with other settings: a: was 1, now 2; b: was None, now 'x'; choose another --out or "
    with pytest.raises(InputError, match=expected):
        finish(out, {"a": 2, "b": "x", "sizes": [1, 2]})
    (out / "record.json").unlink()
    (out / "other").touch()
    with pytest.raises(InputError, match="^.* holds no record; choose another --out$"):
        finish(out, {"a": 1})


def test_a_folder_appears_whole(tmp_path):
    out = tmp_path / "deep" / "out"
    (out.parent / ".out.tmp").mkdir(parents=True)
    (out.parent / ".out.tmp" / "left by a kill").touch()
    with folder_aside(out) as aside:
        assert aside == out.parent / ".out.tmp" and not names(aside)
        (aside / "a").write_text("1")
        assert not out.exists()
    assert names(out.parent) == ["out"] and names(out) == ["a"]


def test_an_empty_folder_is_replaced(tmp_path):
    (tmp_path / "out").mkdir()
    with folder_aside(tmp_path / "out") as aside:
        (aside / "a").touch()
    assert names(tmp_path / "out") == ["a"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, InputError])
def test_other_errors_pass_and_nothing_is_left(tmp_path, error):
    with pytest.raises(error, match="^mine$"), folder_aside(tmp_path / "out") as aside:
        (aside / "a").touch()
        raise error("mine")
    assert not names(tmp_path)


def test_a_full_disk_is_told(tmp_path):
    out = tmp_path / "out"
    expected = f"^cannot save the encoder to {out}: No space left on device; buy another one$"
    options = {"doing": "save the encoder to", "advice": "buy another one"}
    with pytest.raises(InputError, match=expected), folder_aside(out, **options) as aside:
        (aside / "a").touch()
        raise OSError(28, "No space left on device")
    assert not names(tmp_path)


def test_what_is_there_stays(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine").touch()
    with pytest.raises(InputError, match=f"^cannot write {out}: Directory not empty; check the path"):
        with folder_aside(out) as aside:
            (aside / "a").touch()
    assert names(tmp_path) == ["out"] and names(out) == ["mine"]
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="^cannot write .*/file/out: "), folder_aside(tmp_path / "file" / "out"):
        pytest.fail("there is no such folder")


def test_who_comes_second_is_told(tmp_path):
    """And leaves alone what the first one has written so far."""
    out = tmp_path / "out"
    with folder_aside(out) as aside:
        (aside / "a").write_text("first")
        with pytest.raises(InputError, match=f"^another command is writing {out}; wait for it, or stop it first$"):
            with folder_aside(out):
                pytest.fail("there is somebody at it")
    assert (out / "a").read_text() == "first"
    assert names(tmp_path) == ["out"]


def test_what_a_kill_left_aside_goes_when_the_result_is_found(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "record").write_text("x")
    (tmp_path / ".out.lock").touch()
    (tmp_path / ".out.tmp").mkdir()
    (tmp_path / ".out.tmp" / "half").touch()
    assert finished(out, {"a": 1}, lambda folder: {"a": 1}, lambda record: record, made="built") == {"a": 1}
    assert names(tmp_path) == ["out"]


def test_a_kill_while_work_is_removed_leaves_nothing_in_the_way(tmp_path, monkeypatch):
    """Half of a work folder, without its lock, was taken for somebody else's: the same command refused for ever."""
    work = work_folder(tmp_path / "out")
    with hold(work):
        (work / "shard").write_text("x")
    with monkeypatch.context() as patch:

        def killed(folder, **options):
            if folder.exists():
                (folder / "lock").unlink()
                raise KeyboardInterrupt

        patch.setattr("paranmt_hf.util.work.shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            remove(work)
    assert [path.name for path in tmp_path.iterdir()] == [".out.work.gone"]
    with hold(work):
        assert [path.name for path in tmp_path.iterdir()] == ["out.work"]
        remove(work)
    assert not list(tmp_path.iterdir())


def test_what_a_kill_left_goes_when_the_result_is_found(tmp_path):
    out, gone = tmp_path / "out", tmp_path / ".out.work.gone"
    out.mkdir()
    (out / "record").write_text("x")
    gone.mkdir()
    assert finished(out, {"a": 1}, lambda folder: {"a": 1}, lambda record: record, made="built") == {"a": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
