"""The mean of encoders."""

import json

import numpy as np
import pytest
import torch

from paranmt_hf.encoders.building import trainable
from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.encoders.loading import load
from paranmt_hf.encoders.precision import with_precision
from paranmt_hf.encoders.saving import save
from paranmt_hf.errors import InputError
from paranmt_hf.workflows.average import average_encoders
from tests.training.toys import encoder_of, random_text


def weights_of(model):
    return [part.table.weight.data for part in take_apart(list(model)).parts]


@pytest.fixture(params=["word", "trigram", "word,trigram", "word+trigram", "lstm"])
def models(tmp_path, request):
    names = []
    for seed in (1, 2):
        names.append(tmp_path / f"m{seed}")
        save(encoder_of(random_text(20), model=request.param, dimension=6, seed=seed), names[-1])
        (names[-1] / "training.json").write_text(json.dumps({"pairs": 10 * seed, "development": 0.5}))
    return names


def test_mean_of_two(tmp_path, models):
    average_encoders(models, tmp_path / "mean")
    mean, first, second = (load(path, device="cpu") for path in (tmp_path / "mean", *models))
    for own, left, right in zip(*(model.state_dict().values() for model in (mean, first, second)), strict=True):
        assert not torch.equal(left, right)
        torch.testing.assert_close(own, (left + right) / 2)
    record = json.loads((tmp_path / "mean" / "training.json").read_text())
    assert record["pairs"] == 20 and record["development"] is None
    assert [(entry["name"], entry["revision"][:7]) for entry in record["mean_of"]] == [
        ("m1", "sha256:"),
        ("m2", "sha256:"),
    ]
    assert mean.encode("w1 w2").shape == first.encode("w1 w2").shape
    with pytest.raises(InputError, match="mean is there already; choose another --out"):
        average_encoders(models, tmp_path / "mean")


def test_named_twice_counts_twice_and_alone_stays(tmp_path):
    names = []
    for seed in (1, 2):
        names.append(tmp_path / f"m{seed}")
        save(encoder_of(random_text(20), model="word", dimension=6, seed=seed), names[-1])
    mean = average_encoders([names[0], names[0], names[1]], tmp_path / "mean")
    (first,), (second,) = (weights_of(trainable(load(name, device="cpu"))) for name in names)
    torch.testing.assert_close(weights_of(mean)[0], (2 * first + second) / 3)
    same = average_encoders([names[1], names[1]], tmp_path / "same")
    assert torch.equal(weights_of(same)[0], second)
    vector = load(names[1], device="cpu").encode("w1 w3")
    np.testing.assert_array_equal(load(tmp_path / "same", device="cpu").encode("w1 w3"), vector)


def test_small_rows_are_widened(tmp_path):
    model = encoder_of(random_text(20), model="trigram", dimension=6)
    save(with_precision(model, "int8"), tmp_path / "int8")
    save(model, tmp_path / "full")
    mean = average_encoders([tmp_path / "int8", tmp_path / "full"], tmp_path / "mean")
    torch.testing.assert_close(weights_of(mean)[0], weights_of(model)[0], atol=0.01, rtol=0)


def test_what_cannot_be_averaged(tmp_path):
    kinds = {"a": {}, "b": {"model": "trigram"}, "c": {"words": 9}, "d": {"dimension": 5}}
    for name, settings in kinds.items():
        save(encoder_of(random_text(20), **{"model": "word", "dimension": 6, **settings}), tmp_path / name)
    for other in "bcd":
        with pytest.raises(InputError, match="has not the kind, the vocabulary and the dimensions of"):
            average_encoders([tmp_path / "a", tmp_path / other], tmp_path / "mean")
    with pytest.raises(InputError, match="at least two models"):
        average_encoders([tmp_path / "a"], tmp_path / "mean")
    assert not (tmp_path / "mean").exists()
