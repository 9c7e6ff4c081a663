"""What processes that train together send each other by torch, and what is said if one of them is gone."""

import socket

import pytest
import torch

from paranmt_hf.errors import InputError, LostProcessError
from paranmt_hf.training import distributed
from paranmt_hf.training.distributed import Processes

CPU = torch.device("cpu")


@pytest.fixture
def environment(monkeypatch):
    """What `torchrun` tells a process; here one of one."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for name, value in {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": 0, "WORLD_SIZE": 1}.items():
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
    with pytest.raises(InputError, match="^process 2 of 4 does not have the same order of pairs as rank 0; all"):
        Processes(0, 4).check_same("order of pairs", 7, 8)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("[gloo/transport/tcp/pair.cc:547] Connection closed by peer", "another of the 2 processes ended, and says"),
        ("Timed out waiting 600000ms for recv operation", "another of the 2 processes does not answer, and says"),
    ],
)
def test_another_process_is_gone(environment, message, said):
    def lost(*arguments, **options):
        raise RuntimeError(message)

    environment.setattr(distributed.distributed, "all_gather_single", lost)
    with pytest.raises(LostProcessError, match=f"^{said}.* continues from the last checkpoint$"):
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
    with pytest.raises(InputError, match="^the 2 processes cannot connect: .*MASTER_ADDR.*; start them by torch"):
        distributed.join.__wrapped__(CPU)
