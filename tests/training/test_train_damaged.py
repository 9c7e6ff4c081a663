"""Checkpoints, and training that continues with damaged files of equal length or on a full disk."""

from contextlib import nullcontext

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from paranmt_hf.errors import InputError, WriteError
from paranmt_hf.training import epochs
from paranmt_hf.training.checkpoint import read_checkpoint, write_checkpoint
from paranmt_hf.training.cpu_engine import CpuEngine
from paranmt_hf.training.train import train
from paranmt_hf.training.trainer import MegaBatchTrainer
from tests.training.test_train_interrupted import teacher_of
from tests.training.toys import full_disk, small, synonyms, weights_of

pytestmark = pytest.mark.usefixtures("checkpoint_always")
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
        with pytest.raises(InputError, match="checkpoint.safetensors is damaged"):
            read_checkpoint(path)
    for tensors, known in ((TENSORS, None), ({**TENSORS, "a": torch.zeros(2, 3)}, metadata)):
        save_file(tensors, path, metadata=known)
        with pytest.raises(InputError, match="checkpoint.safetensors is damaged"):
            read_checkpoint(path)


@pytest.mark.parametrize("name", ["pairs/word.rows", "pairs/pairs.json", "initial/model.safetensors"])
def test_damaged_pairs_are_made_again(tmp_path, data, killed_after, monkeypatch, caplog, name):
    # Pulled back to the initial weights, the result depends on these also where a checkpoint is there.
    settings = small(lambda_w=0.01)
    train(data, tmp_path / "whole", **settings)
    killed_after(3, train, data, tmp_path / "out", **settings)
    zero(tmp_path / "out.work" / name)
    calls, original = [], CpuEngine.train_on
    monkeypatch.setattr(CpuEngine, "train_on", lambda self, *rest: calls.append(1) or original(self, *rest))
    train(data, tmp_path / "out", **settings)
    assert len(calls) == 10 - 3, "it did not continue from the checkpoint"
    if not name.startswith("initial"):
        assert f"warning: {tmp_path / 'out.work' / 'pairs'} is damaged and is made again" in caplog.text
    assert weights_of(tmp_path / "out") == weights_of(tmp_path / "whole")


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
    with pytest.raises(InputError, match=f"^{state} is damaged"):
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
    with pytest.raises(InputError, match=f"^{checkpoint}/{name} is missing or damaged; remove {checkpoint}"):
        train(data, tmp_path / "out", **settings)


def test_no_room_for_tokens_or_a_checkpoint(tmp_path, data, monkeypatch):
    train(data, tmp_path / "whole", **small())
    out, original, count = tmp_path / "out", epochs.write_checkpoint, iter(range(4))
    with full_disk(2000), pytest.raises(WriteError, match=f"^cannot write {out}.work/tokens/"):
        train(data, out, **small())

    def write(*arguments):
        with full_disk(500) if next(count, None) is None else nullcontext():
            original(*arguments)

    with monkeypatch.context() as patch, pytest.raises(InputError, match="cannot save .*checkpoint.safetensors: "):
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
    with monkeypatch.context() as patch, pytest.raises(WriteError, match=f"{tmp_path}/out.work/trainer/checkpoint-12"):
        patch.setattr(MegaBatchTrainer, "_save_checkpoint", save)
        train(data, tmp_path / "out", **settings)
    train(data, tmp_path / "out", **settings)
    assert weights_of(tmp_path / "out") == weights_of(tmp_path / "whole")
