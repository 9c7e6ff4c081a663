"""train() that is killed, or has no room left, and goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from paranmt_hf import train
from paranmt_hf.encoders.saving import save
from paranmt_hf.errors import WriteError
from paranmt_hf.training import epochs
from paranmt_hf.training.checkpoint import read_checkpoint, write_checkpoint
from paranmt_hf.training.cpu_engine import CpuEngine
from paranmt_hf.training.trainer import MegaBatchTrainer
from tests.refused import refused
from tests.toys import full_disk
from tests.training.toys import encoder_of, small, synonyms, weights_of, write_data

pytestmark = pytest.mark.usefixtures("checkpoint_always")


# The command, with a checkpoint after every mega-batch.
ALWAYS = (
    "from paranmt_hf.training import checkpoint as c; c.CHECKPOINT_SECONDS = 0; "
    "from paranmt_hf.cli import console_main; console_main()"
)


@pytest.mark.parametrize(("model", "after"), [("word", 0), ("word,trigram", 1), ("word", 7)])
def test_killed_in_process_and_resumed(tmp_path, data, killed_after, caplog, model, after):
    settings = small(model, decay=True, lambda_w=0.01)
    train(data, tmp_path / "whole", **settings)
    killed_after(after, train, data, tmp_path / "killed", **settings)
    assert (tmp_path / "killed.work" / "checkpoint.safetensors").exists() == (after > 0)
    if after:
        with refused(path=tmp_path / "killed.work"):
            train(data, tmp_path / "killed", **small(model, epochs=9))
    caplog.set_level("INFO")
    result = train(data, tmp_path / "killed", **settings)
    assert (f"continuing after {40 * after} pairs" in caplog.text) == (after > 0)
    assert weights_of(tmp_path / "whole") == weights_of(tmp_path / "killed")
    whole = json.loads((tmp_path / "whole" / "training.json").read_text())
    assert [list(loss) for loss in result.record.history.losses] == whole["history"]["losses"]


def test_other_pairs_in_a_file_of_the_same_size_are_refused(tmp_path, data, killed_after):
    plain = {"compression": "none", "use_dictionary": False}
    left, right = synonyms(200)
    size = write_data(data, (left, right), **plain).stat().st_size
    killed_after(3, train, data, tmp_path / "out", **small())
    whole = data.read_bytes()
    write_data(data, (left[::-1], right[::-1]), **plain)
    assert data.stat().st_size == size
    with refused(path=tmp_path / "out.work"):
        train(data, tmp_path / "out", **small())
    data.write_bytes(whole)
    assert train(data, tmp_path / "out", **small()).record.history.pairs == 400


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 7])
def test_killed_among_neighbours_and_resumed(tmp_path, data, killed_after, monkeypatch, after):
    settings = small("word,trigram", **teacher_of(synonyms(200), tmp_path / "teacher"))
    seen, original = [], CpuEngine.train_on
    with monkeypatch.context() as patch:
        noting = lambda self, mega, *rest: seen.append(mega.keys) or original(self, mega, *rest)  # noqa: E731
        patch.setattr(CpuEngine, "train_on", noting)
        train(data, tmp_path / "whole", **settings)
    epochs = [np.concatenate(seen[:5]), np.concatenate(seen[5:])]
    assert len(epochs[0]) == len(epochs[1]) == 400
    # Every pair once an epoch, in another order.
    np.testing.assert_array_equal(np.sort(epochs[0]), np.sort(epochs[1]))
    assert (epochs[0] != epochs[1]).any()
    killed_after(after, train, data, tmp_path / "killed", **settings)
    train(data, tmp_path / "killed", **settings)
    assert weights_of(tmp_path / "whole") == weights_of(tmp_path / "killed")


def command(data, out, model):
    options = ["--model", model, "--dimension", "24", "--batch-size", "10", "--mega-batch", "4", "--epochs", "6"]
    options += ["--device", "cpu"] if model != "word" else []
    if model == "irnn":
        options += ["--optimization", "optimizer=adagrad,lambda_c=100,clip=1", "--learning-rate", "0.05"]
    return [sys.executable, "-c", ALWAYS, "train", "--data", str(data), "--out", str(out), *options]


def checkpoints(work, model) -> int:
    """Number of steps of the last whole checkpoint."""
    if model != "word":
        whole = (work / "trainer").glob("checkpoint-*/complete")
        return max((int(path.parent.name.rpartition("-")[2]) for path in whole), default=0)
    found = read_checkpoint(work / "checkpoint.safetensors")
    return found[1]["step"] if found else 0


@pytest.mark.slow
@pytest.mark.parametrize("model", ["word", "lstm", "irnn"])
def test_killed_command_ends_with_the_same_bytes(tmp_path, model):
    data = write_data(tmp_path / "pairs.parquet", synonyms(4000 if model == "word" else 600))
    total = 6 * (400 if model == "word" else 60)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    done = subprocess.run(command(data, whole, model), env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    work = tmp_path / "killed.work"
    reached = []
    for share in (0.1, 0.5):
        process = subprocess.Popen(command(data, killed, model), env=environment, stderr=subprocess.PIPE, text=True)
        while checkpoints(work, model) < share * total and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -9, "the training ended before it could be killed"
        reached.append(checkpoints(work, model))
    assert 0 < reached[0] < reached[1] < total
    last = subprocess.run(command(data, killed, model), env=environment, capture_output=True, text=True)
    assert last.returncode == 0, last.stderr
    assert weights_of(whole) == weights_of(killed) != {}
    assert not work.exists()
    again = subprocess.run(command(data, killed, model), env=environment, capture_output=True, text=True)
    assert "was trained already" in again.stdout


def teacher_of(sides, folder):
    save(encoder_of(sides, model="word", dimension=8, seed=3), folder)
    return {"teacher": str(folder), "neighbours": True, "teacher_loss": "weighted"}


TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(1), "c": torch.ones(2, dtype=torch.bfloat16)}


def zero(path):
    """Replace the second half of a file by zeros; a model's header stays as it is."""
    content = path.read_bytes()
    half = len(content) // 2
    assert any(content[half:])
    path.write_bytes(content[:half] + bytes(len(content) - half))


def test_round_trip_of_a_checkpoint(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    assert read_checkpoint(path) is None
    write_checkpoint(path, TENSORS, {"epoch": 3, "history": {"losses": [[1, 0.1]]}})
    tensors, state = read_checkpoint(path)
    assert state == {"epoch": 3, "history": {"losses": [[1, 0.1]]}}
    for name, value in TENSORS.items():
        torch.testing.assert_close(tensors[name], value, atol=0, rtol=0)
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint.safetensors"]


def test_damaged_checkpoints(tmp_path):
    """Cut off, of another program, or with other values and the checksum of these."""
    path = tmp_path / "checkpoint.safetensors"
    write_checkpoint(path, TENSORS, {"epoch": 1})
    whole = path.read_bytes()
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    for length in (0, 7, 60, -1):
        path.write_bytes(whole[:length])
        with refused():
            read_checkpoint(path)
    for tensors, known in ((TENSORS, None), ({**TENSORS, "a": torch.zeros(2, 3)}, metadata)):
        save_file(tensors, path, metadata=known)
        with refused():
            read_checkpoint(path)


@pytest.mark.parametrize("name", ["pairs/word.rows", "pairs/pairs.json", "initial/model.safetensors"])
def test_damaged_pairs_are_made_again(tmp_path, data, killed_after, caplog, name):
    # Pulled back to the initial weights, the result depends on these also where a checkpoint is there.
    settings = small(lambda_w=0.01)
    train(data, tmp_path / "whole", **settings)
    killed_after(3, train, data, tmp_path / "out", **settings)
    zero(tmp_path / "out.work" / name)
    caplog.set_level("INFO")
    train(data, tmp_path / "out", **settings)
    assert "are damaged and are made again" in caplog.text and "continuing after 120 pairs" in caplog.text
    assert weights_of(tmp_path / "out") == weights_of(tmp_path / "whole")


@pytest.mark.slow
def test_damaged_keys_of_taught_sentences_are_made_again(tmp_path, data, killed_after):
    settings = small(**teacher_of(synonyms(200), tmp_path / "teacher"))
    train(data, tmp_path / "whole", **settings)
    killed_after(3, train, data, tmp_path / "out", **settings)
    zero(tmp_path / "out.work" / "tokens" / "keys")
    train(data, tmp_path / "out", **settings)
    assert weights_of(tmp_path / "out") == weights_of(tmp_path / "whole")


def test_zeroed_checkpoint_is_named(tmp_path, data, killed_after):
    killed_after(3, train, data, tmp_path / "out", **small())
    state = tmp_path / "out.work" / "checkpoint.safetensors"
    zero(state)
    with refused():
        train(data, tmp_path / "out", **small())
    state.unlink()
    assert train(data, tmp_path / "out", **small()).record.history.pairs == 400


@pytest.mark.parametrize("name", ["optimizer.pt", "complete"])
def test_a_damaged_checkpoint_of_the_trainer_is_named(tmp_path, data, killed_after, name):
    settings = small("lstm", device="cpu", epochs=1)
    kind, save = MegaBatchTrainer, "_save_checkpoint"
    killed_after(2, train, data, tmp_path / "out", kind=kind, name=save, **settings)
    checkpoint = max((tmp_path / "out.work" / "trainer").glob("checkpoint-*"), key=lambda path: len(path.name))
    zero(checkpoint / name)
    with refused():
        train(data, tmp_path / "out", **settings)


def test_no_room_for_tokens_or_a_checkpoint(tmp_path, data, monkeypatch):
    train(data, tmp_path / "whole", **small())
    out, original, count = tmp_path / "out", epochs.write_checkpoint, iter(range(4))
    with full_disk(2000), refused(kind=WriteError) as tokens:
        train(data, out, **small())
    assert f"{out}.work/tokens/" in str(tokens.value)

    def write(*arguments):
        with full_disk(500) if next(count, None) is None else nullcontext():
            original(*arguments)

    with monkeypatch.context() as patch, refused(kind=WriteError):
        patch.setattr(epochs, "write_checkpoint", write)
        train(data, out, **small())
    before = read_checkpoint(tmp_path / "out.work" / "checkpoint.safetensors")
    assert before is not None and before[1]["mega"] == 4
    train(data, out, **small())
    assert weights_of(out) == weights_of(tmp_path / "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "pairs.parquet", "whole"]


@pytest.mark.slow
def test_no_room_for_a_checkpoint_of_the_trainer(tmp_path, data, monkeypatch):
    settings = small("lstm", device="cpu", epochs=1)
    original, count = MegaBatchTrainer._save_checkpoint, iter(range(2))

    def save(self, *arguments):
        # Enough for the weights, and not for the averages of Adam.
        with full_disk(18_000) if next(count, None) is None else nullcontext():
            return original(self, *arguments)

    train(data, tmp_path / "whole", **settings)
    with monkeypatch.context() as patch, refused(kind=WriteError):
        patch.setattr(MegaBatchTrainer, "_save_checkpoint", save)
        train(data, tmp_path / "out", **settings)
    train(data, tmp_path / "out", **settings)
    assert weights_of(tmp_path / "out") == weights_of(tmp_path / "whole")
