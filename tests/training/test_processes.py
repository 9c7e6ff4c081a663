"""Several processes that train one encoder, on the CPU over Gloo."""

import json
import os
import subprocess
import sys

import pytest
import torch
from torch import distributed

from paranmt_hf.errors import LostProcessError
from paranmt_hf.training import processes
from tests.refused import refused
from tests.training.toys import FREE_PORT, synonyms, weights_of, write_data

# The command, with a checkpoint after every mega-batch; a process may be killed before one of its steps.
PROGRAM = """
import os, signal
from paranmt_hf.cli import console_main
from paranmt_hf.training import checkpoint
from paranmt_hf.training.trainer import MegaBatchTrainer

checkpoint.CHECKPOINT_SECONDS = 0
rank, step = os.environ.get("PARANMT_TEST_KILLS", "none:0").split(":")
compute = MegaBatchTrainer.compute_loss

def compute_loss(self, *arguments, **options):
    if os.environ["RANK"] == rank and self.state.global_step == int(step):
        os.kill(os.getpid(), signal.SIGKILL)
    return compute(self, *arguments, **options)

MegaBatchTrainer.compute_loss = compute_loss
console_main()
"""


@pytest.fixture
def run(tmp_path):
    data = write_data(tmp_path / "pairs.parquet", synonyms(400))
    (tmp_path / "program.py").write_text(PROGRAM)

    def run(out, count=2, *options, model="word,trigram", source=data, kills="none:0"):
        launch = [sys.executable, "-m", "torch.distributed.run", *FREE_PORT, "--nproc-per-node", str(count)]
        command = ["train", "--data", str(source), "--out", str(tmp_path / out), "--model", model]
        command += ["--dimension", "16", "--batch-size", "10", "--mega-batch", "4", "--epochs", "2"]
        command += ["--learning-rate", "0.01", "--device", "cpu", *options]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PARANMT_TEST_KILLS": kills}
        program = [*launch, str(tmp_path / "program.py"), *command]
        return subprocess.run(program, env=environment, capture_output=True, text=True, timeout=300)

    return run


@pytest.mark.slow
@pytest.mark.parametrize("model", ["word,trigram", "lstm"])
def test_two_processes_make_one_encoder_also_after_a_kill(tmp_path, run, model):
    done = run("two", model=model)
    assert done.returncode == 0, done.stderr[-3000:]
    # Rank 0 alone prints, and leaves nothing but the encoder.
    assert done.stdout.count("load it:") == 1
    assert not (tmp_path / "two.work").exists()
    record = json.loads((tmp_path / "two" / "training.json").read_text())
    losses = record["history"]["losses"]
    # Ten mega-batches an epoch, two at a time, of four steps.
    assert losses[-1][0] == 2 * 5 * 4 and record["history"]["pairs"] == 2 * 400
    assert losses[-1][1] < losses[0][1]
    assert record["settings"]["processes"] == 2
    assert "was trained already" in run("two", model=model).stdout
    other = run("two", 1, model=model)
    assert other.returncode and "processes" in other.stderr
    assert run("killed", model=model, kills="1:21").returncode
    assert not (tmp_path / "killed").exists()
    done = run("killed", model=model)
    assert done.returncode == 0, done.stderr[-3000:]
    assert weights_of(tmp_path / "killed") == weights_of(tmp_path / "two")


@pytest.mark.slow
def test_what_rank_0_refuses_ends_all(tmp_path, run):
    (tmp_path / "empty.txt").write_text("")
    done = run("out", source=tmp_path / "empty.txt")
    assert done.returncode and any(line.startswith("paranmt: ") for line in done.stderr.splitlines())
    assert not (tmp_path / "out").exists() and not (tmp_path / "out.work").exists()


@pytest.fixture
def alone(monkeypatch):
    """What `torchrun` tells a process; here one of one that believes to be one of three."""
    for name, value in {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 0, "RANK": 0, "WORLD_SIZE": 1}.items():
        monkeypatch.setenv(name, str(value))
    group = processes._patient_group.__wrapped__("cpu")
    monkeypatch.setattr(processes, "_patient_group", lambda device: group)
    monkeypatch.setenv("WORLD_SIZE", "3")
    yield monkeypatch
    distributed.destroy_process_group()


def test_others_have_something_else(alone):
    def all_gather(everyone, own, group):
        for rank, value in enumerate(everyone):
            value.copy_(own + (rank == 2))

    alone.setattr(distributed, "all_gather", all_gather)
    with refused():
        processes.check_same("settings", "cpu")


def test_another_process_is_gone(alone):
    def lost(*arguments, **options):
        raise RuntimeError("[gloo/transport/tcp/pair.cc:547] Connection closed by peer")

    alone.setattr(distributed, "barrier", lost)
    with pytest.raises(LostProcessError):
        processes.wait_for_all("cpu")


def test_processes_that_nobody_connected(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with refused():
        processes.wait_for_all("cpu")


def test_one_process_waits_for_nobody(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.delenv("RANK", raising=False)
    processes.wait_for_all("cuda")
    processes.check_same("settings", "cuda")
    assert not torch.distributed.is_initialized()
