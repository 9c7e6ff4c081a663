"""Training that continues in a work folder with damaged files of equal length, or on a full disk."""

import resource
from contextlib import contextmanager, nullcontext

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import save_file

from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.encoders.units import lookup
from paranmt_hf.errors import InputError, WriteError
from paranmt_hf.training.checkpoint import read_checkpoint, write_checkpoint
from paranmt_hf.training.cpu_engine import CpuEngine
from paranmt_hf.training.pair_store import keys_are_whole, read_keys, write_pairs, write_tokens
from paranmt_hf.training.train import train
from paranmt_hf.training.trainer import MegaBatchTrainer
from tests.training.test_train_interrupted import Killed, interrupted, teacher_of
from tests.training.toys import encoder_of, small, store_of, synonyms, write_data

pytestmark = pytest.mark.usefixtures("checkpoint_always")


@pytest.fixture
def data(tmp_path):
    return write_data(tmp_path / "pairs.parquet", synonyms(200))


def zero(path):
    """Replace the second half of a file by zeros; a model's header stays as it is."""
    content = path.read_bytes()
    half = len(content) // 2
    assert any(content[half:])
    path.write_bytes(content[:half] + bytes(len(content) - half))


@pytest.mark.parametrize(
    "name", ["pairs/keys", "pairs/word.rows", "pairs/word.bounds", "pairs/pairs.json", "initial/model.safetensors"]
)
def test_damaged_pairs_are_made_again(tmp_path, data, monkeypatch, caplog, name):
    # Pulled back to the initial weights, the result depends on these also where a checkpoint is there.
    settings = small(lambda_w=0.01)
    train(data, tmp_path / "whole", **settings)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        interrupted(patch, 3)
        train(data, tmp_path / "out", **settings)
    zero(tmp_path / "out.work" / name)
    calls, original = [], CpuEngine.train_on
    monkeypatch.setattr(CpuEngine, "train_on", lambda self, *rest: calls.append(1) or original(self, *rest))
    train(data, tmp_path / "out", **settings)
    assert len(calls) == 10 - 3, "it did not go on from the checkpoint"
    if not name.startswith("initial"):
        assert f"warning: {tmp_path / 'out.work' / 'pairs'} is damaged and is made again" in caplog.text
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == (
        tmp_path / "whole" / "model.safetensors"
    ).read_bytes()


def test_damaged_keys_of_taught_sentences_are_made_again(tmp_path, data, monkeypatch):
    settings = small(**teacher_of(synonyms(200), tmp_path / "teacher"))
    train(data, tmp_path / "whole", **settings)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        interrupted(patch, 3)
        train(data, tmp_path / "out", **settings)
    zero(tmp_path / "out.work" / "tokens" / "keys")
    train(data, tmp_path / "out", **settings)
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == (
        tmp_path / "whole" / "model.safetensors"
    ).read_bytes()


def test_zeroed_checkpoint_is_named(tmp_path, data, monkeypatch):
    settings = small()
    with monkeypatch.context() as patch, pytest.raises(Killed):
        interrupted(patch, 3)
        train(data, tmp_path / "out", **settings)
    state = tmp_path / "out.work" / "checkpoint.safetensors"
    zero(state)
    with pytest.raises(InputError, match=f"^{state} is damaged; remove it and run again, from the start$"):
        train(data, tmp_path / "out", **settings)
    assert state.exists()


def test_truncated_settings_are_told(tmp_path, data, monkeypatch):
    settings = small()
    with monkeypatch.context() as patch, pytest.raises(Killed):
        interrupted(patch, 3)
        train(data, tmp_path / "out", **settings)
    work = tmp_path / "out.work"
    whole = (work / "run.json").read_bytes()
    (work / "run.json").write_bytes(whole[:50])
    with pytest.raises(
        InputError, match=f"^{work}/run.json is damaged: it is not JSON .*; expected .*; delete {work} to start again"
    ):
        train(data, tmp_path / "out", **settings)
    (work / "run.json").write_bytes(whole)
    assert train(data, tmp_path / "out", **settings).record.history.pairs == 400


def test_a_checkpoint_knows_its_values(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    tensors = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(1), "c": torch.ones(2, dtype=torch.bfloat16)}
    write_checkpoint(path, tensors, {"step": 3})
    found, state = read_checkpoint(path)
    assert state == {"step": 3}
    for name, value in tensors.items():
        torch.testing.assert_close(found[name], value, atol=0, rtol=0)
    save_file({**tensors, "a": torch.zeros(2, 3)}, tmp_path / "other", metadata=_metadata(path))
    with pytest.raises(InputError, match="other is damaged; remove it"):
        read_checkpoint(tmp_path / "other")


def _metadata(path):
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        return file.metadata()


@contextmanager
def full_disk(room):
    """Let no file get longer than some bytes; not longer than needed, because pytest itself may write into a file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_no_room_for_tokens_or_pairs(tmp_path):
    sides = synonyms(3000)
    encoder = encoder_of(sides, model="word", dimension=4)
    message = f"^cannot write {tmp_path}/pairs-tokens/(ids|keys): File too large; make room"
    with full_disk(20_000), pytest.raises(WriteError, match=message):
        store_of(sides, encoder, tmp_path / "pairs")
    (part,) = take_apart(list(encoder)).parts
    tokens = write_tokens([(pa.array(sides[0]), pa.array(sides[1]))], tmp_path / "tokens")
    readers, sizes = {"word": lookup(part.vocabulary)}, {"word": len(part.vocabulary)}
    message = f"^cannot write {tmp_path}/pairs/word.rows: File too large; make room and "
    with full_disk(20_000), pytest.raises(WriteError, match=message):
        write_pairs(tokens.tables(), tmp_path / "pairs", readers, sizes)


def test_the_same_command_goes_on_with_room(tmp_path, data):
    train(data, tmp_path / "whole", **small())
    message = f"^cannot write {tmp_path}/out.work/tokens/.*: .*; make room and run the same"
    with full_disk(2000), pytest.raises(WriteError, match=message):
        train(data, tmp_path / "out", **small())
    train(data, tmp_path / "out", **small())
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == (
        tmp_path / "whole" / "model.safetensors"
    ).read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "pairs.parquet", "whole"]


@pytest.mark.parametrize("name", ["optimizer.pt", "trainer_state.json", "complete"])
def test_a_damaged_checkpoint_of_the_trainer_is_named(tmp_path, data, monkeypatch, name):
    settings = small("lstm", device="cpu", epochs=1)
    original, count = MegaBatchTrainer._save_checkpoint, iter(range(2))

    def save(self, *arguments):
        if next(count, None) is None:
            raise Killed
        return original(self, *arguments)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(MegaBatchTrainer, "_save_checkpoint", save)
        train(data, tmp_path / "out", **settings)
    checkpoint = max((tmp_path / "out.work" / "trainer").glob("checkpoint-*"), key=lambda path: len(path.name))
    zero(checkpoint / name)
    expected = f"^{checkpoint}/{name} is missing or damaged; remove {checkpoint} and run again, which continues from"
    with pytest.raises(InputError, match=expected):
        train(data, tmp_path / "out", **settings)


@pytest.mark.slow
def test_no_room_for_a_checkpoint_of_the_trainer(tmp_path, data, monkeypatch):
    settings = small("lstm", device="cpu", epochs=1)
    original, count = MegaBatchTrainer._save_checkpoint, iter(range(2))

    def save(self, *arguments):
        # Enough for the weights, and not for the averages of Adam.
        with full_disk(18_000) if next(count, None) is None else nullcontext():
            return original(self, *arguments)

    train(data, tmp_path / "whole", **settings)
    with monkeypatch.context() as patch:
        patch.setattr(MegaBatchTrainer, "_save_checkpoint", save)
        expected = f"^cannot write {tmp_path}/out.work/trainer/checkpoint-12: torch failed writing a file; make "
        with pytest.raises(WriteError, match=expected):
            train(data, tmp_path / "out", **settings)
    train(data, tmp_path / "out", **settings)
    assert bytes_of_weights(tmp_path / "out") == bytes_of_weights(tmp_path / "whole")


def bytes_of_weights(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.safetensors")}


def test_checksums_of_what_is_written(tmp_path):
    write_tokens([(["a b", "c"], ["d", "e f"])], tmp_path / "tokens")
    assert read_keys(tmp_path / "tokens").shape == (2, 2) and keys_are_whole(tmp_path / "tokens")
    np.zeros(4, np.uint64).tofile(tmp_path / "tokens" / "keys")
    assert not keys_are_whole(tmp_path / "tokens")
    (tmp_path / "tokens" / "keys").unlink()
    assert not keys_are_whole(tmp_path / "tokens")
