"""Several processes that train an averaging model, with torch's CPU device in each GPU's place."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from paranmt_hf.errors import LostProcessError
from paranmt_hf.training import distributed
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.distributed import Processes, check_processes, own_device
from tests.refused import refused
from tests.training.toys import FREE_PORT, synonyms, write_data

PROGRAM = Path(__file__).with_name("train_on_cpu.py")
ROOT = PROGRAM.parents[2]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    development = "sentence1\tsentence2\tscore\nleft1 left2\tright1 right2\t9\nleft1 left2\tright3\t1\na\tb\t2\n"
    (folder / "mine.tsv").write_text(development)
    return write_data(folder / "pairs.parquet", synonyms(200))


def run(data, out, processes, *options, fails=None):
    """Run the command by `torchrun`; returns its status, and what it said itself."""
    launch = ["-m", "torch.distributed.run", *FREE_PORT, "--nproc-per-node", str(processes)]
    command = ["train", "--data", str(data), "--out", str(out), "--model", "word,trigram", "--dimension", "16"]
    command += ["--batch-size", "10", "--mega-batch", "4", "--epochs", "2", "--learning-rate", "0.01"]
    command += ["--device", "cuda", "--development", str(data.with_name("mine.tsv"))]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    if fails:
        environment["PARANMT_TEST_FAILS"] = fails
    started = [sys.executable, *launch, str(PROGRAM), *command, *options]
    done = subprocess.run(started, env=environment, capture_output=True, text=True, timeout=300)
    said = [line.removeprefix("paranmt: ") for line in done.stderr.splitlines() if line.startswith("paranmt: ")]
    assert done.returncode or not said
    return done, said


def weights(folder):
    files = sorted(folder.rglob("*.safetensors"))
    assert len(files) == 2
    return [load_file(path)["embedding.weight"] for path in files]


def history(folder):
    return json.loads((folder / "training.json").read_text())["history"]


@pytest.mark.slow
def test_two_do_what_one_does_also_after_a_kill(tmp_path, data):
    two, one = tmp_path / "two", tmp_path / "one"
    done, _ = run(data, two, 2)
    assert done.returncode == 0, done.stderr[-3000:]
    # One of them tells, and leaves nothing but the encoder.
    assert done.stdout.count("load it:") == 1
    assert done.stderr.count("train: 400 in") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["two"]
    assert "was trained already" in run(data, two, 2)[0].stdout
    assert run(data, one, 1)[0].returncode == 0
    for name in ("losses", "scores"):
        np.testing.assert_allclose(history(two)[name], history(one)[name], atol=1e-5)
    for left, right in zip(weights(two), weights(one), strict=True):
        torch.testing.assert_close(left, right, atol=1e-5, rtol=0)
    killed = tmp_path / "killed"
    done, said = run(data, killed, 2, fails="1:7:kill")
    assert done.returncode
    assert all(sentence.startswith("another of the 2 processes ended") for sentence in said)
    assert not killed.exists()
    done, _ = run(data, killed, 2)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stderr.count("continuing after 280 pairs") == 1
    assert history(killed)["losses"] == history(two)["losses"]
    assert history(killed)["scores"] == history(two)["scores"]
    for left, right in zip(weights(killed), weights(two), strict=True):
        assert torch.equal(left, right)
    # What two began, three go on with.
    other = tmp_path / "other"
    run(data, other, 2, fails="0:7:kill")
    assert not other.exists()
    assert run(data, other, 3)[0].returncode == 0
    for left, right in zip(weights(other), weights(one), strict=True):
        torch.testing.assert_close(left, right, atol=1e-5, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fails", "sentences", "kept"),
    [
        ("1:3:refuse", {"this process has no luck", "another of the 2 processes ended"}, True),
        ("0:3:refuse", {"this process has no luck", "another of the 2 processes ended"}, True),
        ("0:prepare:refuse", {"this process has no luck", "another of the 2 processes ended"}, False),
        ("1:prepare:kill", {"another of the 2 processes ended"}, True),
        ("1:3:hang", {"another of the 2 processes does not answer"}, True),
    ],
)
def test_one_that_fails_ends_the_others(tmp_path, data, fails, sentences, kept):
    done, said = run(data, tmp_path / "out", 2, fails=fails)
    assert done.returncode
    # By its own sentence, or before it could say one: `torchrun` ends the others too.
    assert {sentence.partition(",")[0] for sentence in said} <= sentences
    assert ("this process has no luck" in said) == fails.endswith("refuse")
    if fails.endswith("hang"):
        assert said
    assert (tmp_path / "out.work").exists() == kept
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_each_mines_alone(tmp_path, data):
    done, _ = run(data, tmp_path / "out", 2, "--mining", "mine_over=rank")
    assert done.returncode == 0, done.stderr[-3000:]
    record = json.loads((tmp_path / "out" / "training.json").read_text())
    assert record["settings"]["training"]["mine_over"] == "rank"
    assert record["settings"]["processes"] == 2
    losses = record["history"]["losses"]
    assert losses[-1][1] < 0.9 * losses[0][1]
    _, said = run(data, tmp_path / "out", 3, "--mining", "mine_over=rank")
    assert any("processes: was 2, now 3" in sentence for sentence in said)


def test_who_may_not_train_together(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("LOCAL_RANK", "1")
    config = TrainConfig(device="cuda", batch_size=4)
    check_processes(config, 4)
    assert own_device() == torch.device("cuda", 1)
    with refused("device"):
        check_processes(TrainConfig(), 2)
    with refused("batch_size"):
        check_processes(config, 5)
    monkeypatch.setenv("LOCAL_RANK", "2")
    with refused():
        check_processes(config, 4)


CPU = torch.device("cpu")


@pytest.fixture
def environment(monkeypatch):
    """What `torchrun` tells a process; here one of one."""
    for name, value in {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 0, "RANK": 0, "WORLD_SIZE": 1}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr(distributed, "_lost", [])
    yield monkeypatch
    if distributed.distributed.is_initialized():
        distributed.distributed.destroy_process_group()


def test_by_gloo(environment):
    process = distributed.join.__wrapped__(CPU)
    assert (process.rank, process.count, process.first) == (0, 1, True)
    for kind in (torch.int32, torch.float32, torch.float64):
        value = torch.arange(6).view(2, 3).t().to(kind)
        everyone = process.gather(value)
        assert everyone.dtype == kind
        assert torch.equal(everyone, value[None])
    assert process.broadcast(0.1) == 0.1
    process.check_same("checkpoint", 1, 2**40)
    distributed._leave()
    assert not distributed.distributed.is_initialized()


def test_others_have_something_else(monkeypatch):
    def all_gather(everyone, own, group):
        for rank, value in enumerate(everyone):
            value.copy_(own + (rank == 2))

    monkeypatch.setattr(distributed.distributed, "all_gather", all_gather)
    with refused():
        Processes(0, 4).check_same("order of pairs", 7, 8)


@pytest.mark.parametrize(
    "message",
    [
        "[gloo/transport/tcp/pair.cc:547] Connection closed by peer",
        "Timed out waiting 600000ms for recv operation",
    ],
)
def test_another_process_is_gone(environment, message):
    def lost(*arguments, **options):
        raise RuntimeError(message)

    environment.setattr(distributed.distributed, "all_gather_single", lost)
    with refused(kind=LostProcessError):
        Processes(0, 2).gather(torch.ones(2))
    # Nobody is left to take leave of.
    distributed.join.__wrapped__(CPU)
    distributed._leave()
    assert distributed.distributed.is_initialized()


def test_memory_is_no_matter_of_others(monkeypatch):
    def full(*arguments, **options):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(distributed.distributed, "all_gather_single", full)
    with pytest.raises(torch.OutOfMemoryError):
        Processes(0, 2).gather(torch.ones(2))


def test_processes_that_nobody_brought_together(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with refused():
        distributed.join.__wrapped__(CPU)
