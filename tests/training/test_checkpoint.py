"""Checkpoints survive what happens to them."""

import resource
from contextlib import contextmanager

import pytest
import torch

from paranmt_hf.errors import InputError
from paranmt_hf.training import checkpoint
from paranmt_hf.training.checkpoint import read_checkpoint, write_checkpoint

TENSORS = {"weight": torch.arange(12.0).reshape(3, 4), "last": torch.arange(3, dtype=torch.int32)}


@contextmanager
def small_files():
    """Files may not grow past 1,000 bytes, as on a full disk; that goes for pytest's own output too."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_round_trip(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    assert read_checkpoint(path) is None
    write_checkpoint(path, TENSORS, {"epoch": 3, "history": {"losses": [[1, 0.1]]}})
    tensors, state = read_checkpoint(path)
    assert state == {"epoch": 3, "history": {"losses": [[1, 0.1]]}}
    for name, value in TENSORS.items():
        torch.testing.assert_close(tensors[name], value, atol=0, rtol=0)
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint.safetensors"]


def test_full_disk_leaves_the_one_before(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    write_checkpoint(path, TENSORS, {"epoch": 1})
    full = pytest.raises(InputError, match=r"cannot save .*checkpoint.safetensors: .*; make room and run the same")
    with small_files(), full:
        write_checkpoint(path, {"weight": torch.zeros(1000)}, {"epoch": 2})
    assert read_checkpoint(path)[1] == {"epoch": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint.safetensors"]


def test_error_of_the_system_leaves_the_one_before(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint.safetensors"
    write_checkpoint(path, TENSORS, {"epoch": 1})

    def full(tensors, target, metadata):
        target.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(InputError, match="cannot save .*: No space left on device; make room"):
        write_checkpoint(path, TENSORS, {"epoch": 2})
    assert read_checkpoint(path)[1] == {"epoch": 1}
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("length", [0, 7, 60, -1])
def test_damaged_one_is_named(tmp_path, length):
    path = tmp_path / "checkpoint.safetensors"
    write_checkpoint(path, TENSORS, {"epoch": 1})
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(InputError, match="checkpoint.safetensors is damaged; remove it and run again"):
        read_checkpoint(path)


def test_file_of_another_program_is_named(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    checkpoint.save_file(TENSORS, path)
    with pytest.raises(InputError, match="is damaged"):
        read_checkpoint(path)
