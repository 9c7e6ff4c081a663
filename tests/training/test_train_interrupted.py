"""train() that is killed, or has no room left, and goes on."""

import json

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from paranmt_hf import train
from paranmt_hf.encoders.saving import save
from paranmt_hf.training.checkpoint import read_checkpoint, write_checkpoint
from paranmt_hf.training.cpu_engine import CpuEngine
from paranmt_hf.training.trainer import MegaBatchTrainer
from tests.refused import refused
from tests.training.toys import encoder_of, small, synonyms, weights_of, write_data

pytestmark = pytest.mark.usefixtures("checkpoint_always")


@pytest.mark.parametrize(
    ("model", "after"),
    [
        ("word", 0),
        ("word,trigram", 1),
        ("word", 7),
        *(pytest.param(model, 17, marks=pytest.mark.slow) for model in ("lstm", "irnn")),
    ],
)
def test_killed_in_process_and_resumed(tmp_path, data, killed_after, caplog, model, after):
    settings = small(model, decay=True, lambda_w=0.01)
    killed = {}
    if model in ("lstm", "irnn"):
        settings = small(model, device="cpu", optimizer="adagrad", lambda_c=100, clip=1.0, learning_rate=0.05)
        killed = {"kind": MegaBatchTrainer, "name": "compute_loss"}
    train(data, tmp_path / "whole", **settings)
    killed_after(after, train, data, tmp_path / "killed", **killed, **settings)
    assert any((tmp_path / "killed.work").glob("**/checkpoint*")) == (after > 0)
    if after:
        with refused(path=tmp_path / "killed.work"):
            train(data, tmp_path / "killed", **small(model, epochs=9))
    caplog.set_level("INFO")
    result = train(data, tmp_path / "killed", **settings)
    # The trainer saves after each mega-batch of four steps.
    where = f"continuing after step {after // 4 * 4}" if killed else f"continuing after {40 * after} pairs"
    assert (where in caplog.text) == (after > 0)
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
