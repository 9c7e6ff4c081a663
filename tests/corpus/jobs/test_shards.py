"""The resumable job: what is done stays done, what differs is refused, what is damaged is made again."""

import json
import os
import pickle
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paranmt_hf import EngineConfig
from paranmt_hf.corpus.jobs.job import _worker_environment, run_job
from paranmt_hf.corpus.jobs.shards import Manifest, cut_into_shards
from paranmt_hf.corpus.jobs.stages import TranslateStage
from paranmt_hf.errors import WriteError
from tests.corpus import fakes
from tests.corpus.translation.tiny_models import config, make_marian
from tests.refused import refused


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_every_row_once_in_order(tmp_path):
    manifest = fakes.run(tmp_path)
    rows = [row for path in manifest.paths() for row in pq.read_table(path).to_pylist()]
    assert rows == [{"id": n, "text": f"ROW {n}"} for n in range(20) if n % 7 != 6]
    assert manifest.rows == 18
    assert manifest.dropped == {"unwanted": 2}
    assert Manifest.open(tmp_path / "output", manifest.settings).complete


def test_a_job_in_this_process_leaves_its_threads_as_they_were(tmp_path):
    before = torch.get_num_threads()

    class ManyThreads(fakes.UpperStage):
        def load(self):
            torch.set_num_threads(before + 3)
            return super().load()

    stage = ManyThreads(str(tmp_path / "log"))
    assert (
        run_job(fakes.make_input(tmp_path / "input"), tmp_path / "output", stage, EngineConfig("local", 1, 1)).rows
        == 18
    )
    assert torch.get_num_threads() == before


def kill_in_the_middle(folder: Path, workers: int, done: int) -> None:
    """Start the job in a process of its own and kill it with -9 once `done` shards stand in the manifest."""
    command = [sys.executable, "-m", "tests.corpus.fakes", str(folder), "0.1", str(workers), "local"]
    process = subprocess.Popen(command)
    manifest = folder / "output" / "manifest.json"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if manifest.exists() and len(json.loads(manifest.read_text())["shards"]) >= done:
            break
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert len(json.loads(manifest.read_text())["shards"]) < 4, "the job ended before it could be killed"


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_killed_job_continues(tmp_path, workers):
    fakes.run(tmp_path / "whole")
    kill_in_the_middle(tmp_path / "killed", workers, done=1)
    # Workers must end with the process that started them, or they would go on writing.
    time.sleep(1.2)
    before = Counter((tmp_path / "killed" / "log").read_text().split())
    fakes.run(tmp_path / "killed", workers=workers)
    assert contents(tmp_path / "whole" / "output") == contents(tmp_path / "killed" / "output")
    after = Counter((tmp_path / "killed" / "log").read_text().split())
    twice = [row for row, count in after.items() if count > 1]
    assert len(twice) <= 5 * workers, "more was done twice than the shards in hand"
    assert set(after) == {str(row) for row in range(20)}
    assert sum(before.values()) >= 5


@pytest.mark.slow
def test_workers_give_the_same_bytes_even_if_one_dies(tmp_path):
    fakes.run(tmp_path / "one")
    source = fakes.make_input(tmp_path / "input")
    stage = fakes.UpperStage(str(tmp_path / "log"), poison="die")
    manifest = run_job(source, tmp_path / "output", stage, EngineConfig("local", 2, 1))
    assert manifest.rows == 18 and (tmp_path / "log.died").exists()
    assert contents(tmp_path / "output") == contents(tmp_path / "one" / "output")


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_error_in_a_worker_is_the_users_sentence(tmp_path, workers):
    source = fakes.make_input(tmp_path / "input")
    stage = fakes.UpperStage(str(tmp_path / "log"), poison="row 7")
    with pytest.raises(WriteError) as caught:
        run_job(source, tmp_path / "output", stage, EngineConfig("local", workers, 1))
    assert (caught.value.option, caught.value.path) == ("poison", tmp_path / "log")


def test_other_settings_are_refused(tmp_path):
    source = fakes.make_input(tmp_path / "input")
    log = str(tmp_path / "log")
    run_job(source, tmp_path / "output", fakes.UpperStage(log), EngineConfig("local", 1, 1))
    with refused():
        run_job(source, tmp_path / "output", fakes.UpperStage(log, setting=2), EngineConfig("local", 1, 1))
    other = fakes.make_input(tmp_path / "other", rows=6)
    with refused():
        run_job(other, tmp_path / "output", fakes.UpperStage(log), EngineConfig("local", 1, 1))


def test_damaged_shard_is_made_again(tmp_path, caplog):
    manifest = fakes.run(tmp_path)
    good = contents(tmp_path / "output")
    manifest.paths()[1].write_bytes(b"damaged")
    manifest.paths()[2].unlink()
    fakes.run(tmp_path)
    assert contents(tmp_path / "output") == good
    assert caplog.text.count("missing or damaged") == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest.pop("shards"),
        lambda manifest: manifest["shards"]["shard-000001.parquet"].update(rows="many"),
    ],
)
def test_damaged_manifest_is_told(tmp_path, change):
    fakes.run(tmp_path)
    path = tmp_path / "output" / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    for content in ("{", json.dumps(manifest)):
        path.write_text(content)
        with refused():
            fakes.run(tmp_path)


def test_workers_share_cores_and_gpus(monkeypatch):
    gpus, cores = 8, 24
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    config = EngineConfig().resolved()
    assert (config.workers, config.gpus) == (8, 1)
    given = [_worker_environment(index, config)["CUDA_VISIBLE_DEVICES"] for index in range(9)]
    assert given == ["0", "1", "2", "3", "4", "5", "6", "7", "0"]
    two = EngineConfig(workers=4, gpus=2).resolved()
    assert _worker_environment(1, two)["CUDA_VISIBLE_DEVICES"] == "2,3"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    assert _worker_environment(1, config)["CUDA_VISIBLE_DEVICES"] == "7"
    gpus = 0
    config = EngineConfig().resolved()
    assert (config.workers, config.threads, config.gpus) == (8, 3, 0)
    assert _worker_environment(0, config) == {"OMP_NUM_THREADS": "3"}
    with refused("workers"):
        EngineConfig(workers=-1)
    with refused("threads"):
        EngineConfig(threads=1.5)
    gpus = 1
    with refused("gpus"):
        EngineConfig(gpus=2).resolved()


@pytest.mark.slow
def test_script_without_a_guard_is_told(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\nfrom tests.corpus import fakes\n"
        f"fakes.run(Path({str(tmp_path / 'work')!r}), workers=2)\n"
    )
    root = Path(__file__).parents[3]
    command = [sys.executable, str(script)]
    result = subprocess.run(
        command, env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True
    )
    assert result.returncode == 1
    assert "must do so under `if __name__ == '__main__':`" in result.stderr


def test_a_worker_that_would_translate_otherwise_is_refused(tmp_path):
    make_marian(tmp_path)
    stage = TranslateStage(config(tmp_path, backend="transformers"), threads=1)
    assert stage.identity["translator"]["model"] == tmp_path.name
    before = torch.get_num_threads()
    try:
        replace(stage, threads=before + 3).load()
        assert torch.get_num_threads() == before + 3
    finally:
        torch.set_num_threads(before)
    make_marian(tmp_path, seed=8)
    with refused():
        pickle.loads(pickle.dumps(stage)).load()


def tables(sizes):
    done = 0
    for size in sizes:
        yield pa.table({"id": pa.array(range(done, done + size), pa.int64())})
        done += size


def stored(manifest):
    return [pq.read_table(path)["id"].to_pylist() for path in manifest.paths()]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(st.lists(st.integers(0, 9), max_size=5), st.integers(1, 7))
def test_rows_stay_in_their_order(tmp_path_factory, sizes, rows):
    manifest = cut_into_shards(tables(sizes), tmp_path_factory.mktemp("cut"), {"made": "here"}, rows)
    total = sum(sizes)
    assert stored(manifest) == [list(range(at, min(at + rows, total))) for at in range(0, total, rows)]
    assert manifest.complete and manifest.rows == total


def test_what_is_cut_is_not_read_again(tmp_path):
    first = cut_into_shards(tables([5]), tmp_path, {"made": "here"}, 2, extra=lambda: {"left out": 3})
    assert first.extra == {"left out": 3}

    def unreadable():
        raise AssertionError
        yield

    again = cut_into_shards(unreadable(), tmp_path, {"made": "here"}, 2)
    assert again.extra == {"left out": 3} and again.shards == first.shards
    with refused():
        cut_into_shards(unreadable(), tmp_path, {"made": "here"}, 3)
    # A shard that was lost makes all of them be cut again.
    first.paths()[1].unlink()
    assert stored(cut_into_shards(tables([5]), tmp_path, {"made": "here"}, 2)) == [[0, 1], [2, 3], [4]]


def test_an_interrupted_cut_starts_again_with_any_settings(tmp_path):
    def stopped():
        yield from tables([4])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cut_into_shards(stopped(), tmp_path, {"made": "here"}, 2)
    assert not Manifest.open(tmp_path, {"made": "here", "rows_per_shard": 2}).complete
    assert stored(cut_into_shards(tables([4]), tmp_path, {"made": "there"}, 3)) == [[0, 1, 2], [3]]
