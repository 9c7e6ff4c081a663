"""The frame of long work: found, refused, locked, resumed, put into place."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

import pytest

import paranmt_hf.util.run as module
import paranmt_hf.util.work as work_module
from paranmt_hf import InputError
from paranmt_hf.errors import LostProcessError, WriteError
from paranmt_hf.util.files import checksum, put_in_place, result_file
from paranmt_hf.util.markers import RunOnly
from paranmt_hf.util.records import FileRecord, Record, made_with
from paranmt_hf.util.run import Result, result_folder, run
from paranmt_hf.util.work import locked
from tests.refused import refused


@dataclass(frozen=True)
class Toy:
    size: int
    name: str = "a"
    pause: Annotated[float, RunOnly] = 0.0


@dataclass(frozen=True)
class ToySettings:
    toy: Toy
    data: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class ToyRecord(Record):
    FILE: ClassVar[str] = "toy.json"
    KIND: ClassVar[str] = "a toy"
    settings: ToySettings
    steps: int


@dataclass(frozen=True, kw_only=True)
class ToyFileRecord(FileRecord):
    KIND: ClassVar[str] = "a file of toys"
    settings: ToySettings
    steps: int


def toy(size=1, **settings):
    return ToySettings(Toy(size, **settings))


def steps_of(work):
    return len(list(work.glob("step*")))


def make_toy(settings, fails=None, kind=ToyRecord):
    """Make three steps, of which those that are there are not made again; perhaps fail after the second."""

    def make(work, made):
        for step in range(3):
            (work / f"step{step}").touch()
            if step == 1 and fails is not None:
                raise fails
        (made / "weights" if kind is ToyRecord else made).write_text("1 2 3")
        return kind(settings=settings, steps=steps_of(work), **made_with("numpy"))

    return make


def run_toy(out, settings=None, make=None, *, holds=lambda work: steps_of(work) > 0, **options):
    settings = settings or toy()
    return run(
        out, settings, ToyRecord, make or make_toy(settings), result=Result, command="toy", holds=holds, **options
    )


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_result_is_made_once(tmp_path):
    out = tmp_path / "deep" / "out"
    made = run_toy(out)
    assert made.fresh and made.folder == out and names(out) == ["toy.json", "weights"]
    assert names(out.parent) == ["out"] and repr(made) == f"Result('{out}', fresh=True)"
    written = json.loads((out / "toy.json").read_text())
    assert written["settings"] == {"toy": {"size": 1, "name": "a"}, "data": []} and set(written["versions"]) == {
        "numpy"
    }
    # What changes no result makes no other result.
    again = run_toy(out, toy(pause=3.0), lambda work, folder: pytest.fail("made twice"))
    assert not again.fresh and again.record == made.record == ToyRecord.read(out)
    with refused("out", path=out):
        run_toy(out, toy(2))
    assert names(out.parent) == ["out"]


def test_where_a_locked_folder_keeps_its_name(tmp_path, monkeypatch):
    monkeypatch.setattr(work_module, "RENAMES_OPEN", False)
    out = tmp_path / "out"
    assert run_toy(out).fresh and names(tmp_path) == ["out"]
    with refused():
        run_toy(tmp_path / "refused", make=make_toy(toy(), InputError("mine")), holds=lambda work: False)
    assert names(tmp_path) == ["out"]
    # A file that is still open keeps the folder, which is nobody's unfinished work.
    with monkeypatch.context() as patch:
        patch.setattr(work_module, "clear", lambda work: (work / "step0").unlink() or Path("missing").unlink())
        assert run_toy(tmp_path / "other").fresh
    assert names(tmp_path) == ["other", "other.work", "out"]
    shutil.copytree(tmp_path / "other.work", tmp_path / "third.work")
    assert not run_toy(tmp_path / "other").fresh
    assert run_toy(tmp_path / "third", toy(2)).record.steps == 3
    assert names(tmp_path) == ["other", "out", "third"]


def test_what_is_there_stays(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "text").touch()
    (tmp_path / "file").touch()
    for name in ("mine", "file"):
        for refuse in (run_toy, lambda out: result_folder(out, ToyRecord)):
            with refused("out", path=tmp_path / name) as found:
                refuse(tmp_path / name)
            # It is somebody's own.
            assert "delete" not in str(found.value)
    (tmp_path / "empty").mkdir()
    assert run_toy(tmp_path / "empty").fresh
    assert names(tmp_path) == ["empty", "file", "mine"]


def test_folders_that_no_result_can_get(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    (tmp_path / "source").mkdir()
    monkeypatch.chdir(tmp_path)
    for out in (".", "source/out", "source/deep/out"):
        with refused("out"):
            result_folder(out, sources=["file", "source", "a/name on the Hub"])
    assert result_folder("out", sources=["file", "source"]) == tmp_path / "out"
    assert result_folder("source", sources=["source"]) == tmp_path / "source"


def test_records_are_read_as_they_were_written(tmp_path):
    made = run_toy(tmp_path / "out")
    values = made.record.to_json()
    with refused():
        ToyRecord.from_json({name: value for name, value in values.items() if name != "machine"}, "toy.json")
    # A setting that this version lacks may have changed the result.
    values["settings"]["toy"]["colour"] = "red"
    with refused():
        ToyRecord.from_json(values, "toy.json")


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, WriteError, LostProcessError, InputError])
def test_interrupted_work_is_continued(tmp_path, error):
    out, work = tmp_path / "out", tmp_path / "out.work"
    with pytest.raises(error):
        run_toy(out, make=make_toy(toy(), error("no")))
    assert names(tmp_path) == ["out.work"] and steps_of(work) == 2
    with refused(path=work):
        run_toy(out, toy(2))
    seen = []
    made = run_toy(out, make=lambda work, folder: seen.append(steps_of(work)) or make_toy(toy())(work, folder))
    assert made.fresh and seen == [2] and names(tmp_path) == ["out"]


def test_refused_input_leaves_nothing(tmp_path):
    def fails(error, holds):
        with pytest.raises(type(error)):
            run_toy(tmp_path / "out", make=make_toy(toy(), error), holds=holds)
        return names(tmp_path)

    nothing_long = lambda work: False  # noqa: E731
    assert fails(InputError("no"), nothing_long) == []
    # With room the same command continues, and an interruption must not cost anything.
    for error in (WriteError("no"), LostProcessError("no"), OSError(28, "No space left on device")):
        with pytest.raises((WriteError, LostProcessError)):
            run_toy(tmp_path / "out", make=make_toy(toy(), error), holds=nothing_long)
        assert names(tmp_path) == ["out.work"]
    assert fails(KeyboardInterrupt("no"), nothing_long) == ["out.work"]
    # Other settings need not be the former ones if nothing took long.
    assert run_toy(tmp_path / "out", toy(2), holds=nothing_long).fresh


def test_short_work_starts_again(tmp_path):
    out = tmp_path / "out"
    for error in (KeyboardInterrupt(), InputError("no"), WriteError("no"), OSError(28, "No space left on device")):
        with pytest.raises((KeyboardInterrupt, InputError)):
            run_toy(out, make=make_toy(toy(), error), holds=None)
        assert names(tmp_path) == []
    code = (
        "import os, signal, sys; from pathlib import Path; from tests.util.test_run import run_toy\n"
        "run_toy(Path(sys.argv[1]), make=lambda work, folder: (work / 'step0').touch() or os.kill(os.getpid(), 9), "
        "holds=None)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(out)]).returncode == -9
    assert names(tmp_path) == ["out.work"]
    # Not even other settings or another command are refused.
    seen = []
    made = run(
        out,
        toy(2),
        ToyRecord,
        lambda work, folder: seen.append(steps_of(work)) or make_toy(toy(2))(work, folder),
        result=Result,
        command="other",
    )
    assert seen == [0] and made.fresh and names(tmp_path) == ["out"]


def test_a_full_disk_is_named(tmp_path):
    with refused(path=tmp_path / "out.work", kind=WriteError):
        run_toy(tmp_path / "out", make=make_toy(toy(), OSError(28, "No space left on device")))
    # Reading fails otherwise.
    with pytest.raises(FileNotFoundError):
        run_toy(tmp_path / "out", make=lambda work, folder: Path("nowhere").read_text())


@pytest.mark.slow
def test_one_process_at_a_time(tmp_path):
    out, work = tmp_path / "out", tmp_path / "out.work"
    code = "import sys; from tests.util.test_run import run_toy; run_toy(sys.argv[1])"

    def make(made_in, folder):
        with refused(path=work):
            run_toy(out)
        other = subprocess.run([sys.executable, "-c", code, str(out)], capture_output=True, text=True)
        assert other.returncode == 1 and "another process is working" in other.stderr
        return make_toy(toy())(made_in, folder)

    assert run_toy(out, make=make).fresh


def test_a_killed_process_frees_the_lock(tmp_path):
    code = (
        "import os, sys; from tests.util.test_run import run_toy\n"
        "run_toy(sys.argv[1], make=lambda work, folder: os.kill(os.getpid(), 9))"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "out")]).returncode == -9
    assert run_toy(tmp_path / "out").fresh and names(tmp_path) == ["out"]


def test_what_another_process_finished_in_the_meantime_is_found(tmp_path, monkeypatch):
    out, find, others = tmp_path / "out", module.find, []

    def find_then_another_finishes(*arguments):
        found = find(*arguments)
        if not others:
            others.append(True)
            run_toy(out)
        return found

    monkeypatch.setattr(module, "find", find_then_another_finishes)
    assert not run_toy(out, make=lambda work, folder: pytest.fail("made twice")).fresh
    assert names(tmp_path) == ["out"]


def test_work_of_others_is_not_taken(tmp_path):
    """`import --out X` deleted the checkpoints of a killed `train --out X`."""
    out, work = tmp_path / "out", tmp_path / "out.work"
    work.mkdir()
    (work / "mine").touch()
    with refused(path=work):
        run_toy(out)
    assert names(work) == ["mine"]
    (work / "mine").rename(work / "lock")
    (work / ".run.json.123.tmp").write_text("{")
    with pytest.raises(KeyboardInterrupt):
        run_toy(out, make=make_toy(toy(), KeyboardInterrupt()))
    with refused(path=work):
        run(out, toy(), ToyRecord, make_toy(toy()), result=Result, command="train", holds=lambda work: False)
    assert steps_of(work) == 2
    (work / "run.json").write_text('{"command"')
    with refused(path=work / "run.json"):
        run_toy(out)


def test_leftovers_of_a_finished_result_go(tmp_path):
    out, work = tmp_path / "out", tmp_path / "out.work"
    with pytest.raises(KeyboardInterrupt):
        run_toy(out, make=make_toy(toy(), KeyboardInterrupt()))
    shutil.copytree(work, tmp_path / "kept")
    run_toy(out)
    (tmp_path / "kept").rename(work)
    # What a kill left, by a process that cannot be running, and a folder of the user.
    (tmp_path / ".out.work.99999999-0a1b2c3d.tmp" / "part").mkdir(parents=True)
    (tmp_path / ".out.work.gone" / "mine").mkdir(parents=True)
    assert steps_of(work) == 2
    with locked(work, "toy", json.loads((work / "run.json").read_text())["identity"], lambda work: True):
        assert not run_toy(out).fresh and work.exists()
    state = json.loads((work / "run.json").read_text())
    (work / "run.json").write_text(json.dumps({**state, "command": "other"}))
    assert not run_toy(out).fresh and work.exists()
    (work / "run.json").write_text(json.dumps(state))
    assert not run_toy(out).fresh and names(tmp_path) == [".out.work.gone", "out"]
    assert names(tmp_path / ".out.work.gone") == ["mine"]


def test_a_kill_while_work_of_other_settings_is_cleared(tmp_path, monkeypatch):
    """Steps of the former settings must not be continued with the former settings once some of them are gone."""
    out, work, nothing_long = tmp_path / "out", tmp_path / "out.work", lambda work: False
    with pytest.raises(KeyboardInterrupt):
        run_toy(out, make=make_toy(toy(), KeyboardInterrupt()), holds=nothing_long)

    def killed(path, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "unlink", killed)
        run_toy(out, toy(2), holds=nothing_long)
    seen = []
    run_toy(out, make=lambda work, _: seen.append(steps_of(work)) or make_toy(toy())(work, _), holds=nothing_long)
    assert seen == [0] and not work.exists()


def test_work_in_progress_may_agree_with_less(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        run_toy(out, make=make_toy(toy(), KeyboardInterrupt()), work_identity={"input": 1})
    with refused(path=tmp_path / "out.work"):
        run_toy(out, work_identity={"input": 2})
    assert run_toy(out, toy(2), work_identity={"input": 1}).record.settings.toy.size == 2


@pytest.mark.parametrize("keep_result", [False, True])
def test_the_folder_of_the_result(tmp_path, keep_result):
    def fails(work, folder):
        (folder / "half").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_toy(tmp_path / "out", make=fails, keep_result=keep_result)
    run_toy(tmp_path / "out", keep_result=keep_result)
    assert names(tmp_path / "out") == ["half"] * keep_result + ["toy.json", "weights"]


def test_other_ranks_neither_lock_nor_write(tmp_path):
    out, order = tmp_path / "out", []

    def make_as_rank_1(work, folder):
        order.append("made")
        assert not work.exists()

    def barrier():
        order.append("barrier")
        run_toy(out, barrier=lambda: order.append("rank 0"))

    other = run_toy(out, make=make_as_rank_1, rank=1, barrier=barrier)
    assert order == ["made", "barrier", "rank 0"] and other.fresh and other.record.steps == 3
    assert not run_toy(out, rank=1).fresh


def run_file(out, settings=None, fails=None, make=None):
    settings = settings or toy()
    make = make or make_toy(settings, fails, ToyFileRecord)
    return run(out, settings, ToyFileRecord, make, result=Result, command="file", holds=lambda work: True)


def test_results_that_are_one_file(tmp_path):
    out = tmp_path / "out.txt"
    with pytest.raises(KeyboardInterrupt):
        run_file(out, fails=KeyboardInterrupt())
    assert names(tmp_path) == ["out.txt.work"]
    made = run_file(out)
    assert made.fresh and out.read_text() == "1 2 3" and names(tmp_path) == ["out.txt", "out.txt.json"]
    again = run_file(out)
    assert not again.fresh and again.record == made.record and made.record.sha256 == checksum(out)
    with refused("out", path=out):
        run_file(out, toy(2))
    # `--json` replaced the record of a release.
    with refused("out", path=tmp_path / "out.txt.json"):
        result_file(tmp_path / "out.txt.json")
    # A kill between record and file.
    out.unlink()
    assert run_file(out, toy(2)).fresh
    out.write_text("mine")
    with refused("out", path=out):
        run_file(out, toy(2))
    (tmp_path / "out.txt.json").unlink()
    with refused("out", path=out):
        run_file(out, toy(2))
    assert out.read_text() == "mine" and names(tmp_path) == ["out.txt"]


def test_a_folder_that_is_there_is_not_replaced(tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    with pytest.raises(OSError):  # noqa: PT011 - of the system
        put_in_place(tmp_path / "made", tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]
