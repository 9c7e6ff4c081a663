"""`--device cuda` of averaging encoders, with torch's CPU device in the GPU's place."""

import json

import numpy as np
import pytest
import torch

from paranmt_hf import InputError, train
from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.training import fit
from paranmt_hf.training.device.engine import DeviceEngine
from paranmt_hf.training.epochs import _ahead
from tests.refused import refused
from tests.training.toys import small

CPU = torch.device("cpu")

pytestmark = pytest.mark.usefixtures("checkpoint_always")


@pytest.fixture
def gpu(monkeypatch):
    """A GPU that is the CPU; notes where it was asked for."""
    asked = []
    made = fit.device_engine

    def device_engine(composition, config, pairs, teacher, device, **options):
        asked.append(device)
        return made(composition, config, pairs, teacher, CPU, **options)

    monkeypatch.setattr(fit, "device_engine", device_engine)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    return asked


@pytest.mark.slow
def test_same_record_and_files_as_on_the_cpu(tmp_path, data, gpu, monkeypatch):
    development = tmp_path / "mine.tsv"
    development.write_text(
        "sentence1\tsentence2\tscore\nleft1 left2\tright1 right2\t9\nleft1 left2\tright3\t1\na\tb\t2\n"
    )
    settings = {"decay": True, "evaluations": 2, "precision": "bf16"}
    results = {
        device: train(
            data, tmp_path / device, development=development, **small("word,trigram", device=device, **settings)
        )
        for device in ("cpu", "cuda")
    }
    assert gpu == [torch.device("cuda")]
    files = [sorted(path.name for path in (tmp_path / name).rglob("*")) for name in results]
    assert files[0] == files[1]
    records = [json.loads((tmp_path / name / "training.json").read_text()) for name in results]
    histories = [record.pop("history") for record in records]
    assert {histories[0].pop("seconds"), histories[1].pop("seconds")} != {None}
    for name in ("losses", "scores"):
        one, other = (np.array(history.pop(name)) for history in histories)
        np.testing.assert_allclose(one, other, atol=1e-5)
    assert histories[0].pop("best_score") == pytest.approx(histories[1].pop("best_score"), abs=1e-5)
    assert histories[0] == histories[1]
    assert [record["settings"]["training"].pop("device") for record in records] == ["cpu", "cuda"]
    assert records[0].pop("development") == pytest.approx(records[1].pop("development"), abs=1e-5)
    assert records[0] == records[1]
    for one, other in zip(*(take_apart(result.load()).parts for result in results.values()), strict=True):
        torch.testing.assert_close(one.table.weight, other.table.weight, atol=1e-4, rtol=0)


@pytest.mark.slow
def test_killed_and_resumed(tmp_path, data, gpu, killed_after):
    options = small("word", device="cuda", lambda_w=0.01, negatives="mix")
    whole = train(data, tmp_path / "whole", **options)
    killed_after(6, train, data, tmp_path / "killed", kind=DeviceEngine, **options)
    again = train(data, tmp_path / "killed", **options)
    assert np.array(again.record.history.losses) == pytest.approx(np.array(whole.record.history.losses))
    files = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "killed")]
    # The CPU adds in one order always; a GPU may not.
    assert files[0] == files[1]


def test_items_are_made_ahead_in_order_and_errors_arrive():
    def items():
        yield from range(3)
        raise InputError("the disk is gone")

    ahead = _ahead(items())
    assert [next(ahead) for _ in range(3)] == [0, 1, 2]
    with refused():
        next(ahead)
