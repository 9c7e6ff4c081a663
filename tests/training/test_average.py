"""The mean of several encoders."""

import json

import numpy as np
import pytest
import torch

from paranmt_hf import average_encoders, export_encoder, load
from paranmt_hf.encoders.building import trainable
from paranmt_hf.encoders.composition import take_apart
from tests.refused import refused
from tests.toys import bytes_of
from tests.training.toys import encoder_of, random_text, save_trained


def weights_of(model):
    return [part.table.weight.data for part in take_apart(model).parts]


def trained(folder, model):
    """Two models with different weights."""
    names = []
    for seed in (1, 2):
        names.append(folder / f"m{seed}")
        encoder = encoder_of(random_text(20), model=model, dimension=6, seed=seed)
        save_trained(encoder, names[-1], model=model, pairs=10 * seed)
    return names


@pytest.fixture(params=["word", "trigram", "word,trigram", "word+trigram", "lstm"])
def models(tmp_path, request):
    return trained(tmp_path, request.param)


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
    before = bytes_of(tmp_path / "mean")
    again = average_encoders(models, tmp_path / "mean").load()
    np.testing.assert_array_equal(again.encode("w1 w2"), mean.encode("w1 w2"))
    assert bytes_of(tmp_path / "mean") == before
    with refused("out", path=tmp_path / "mean"):
        average_encoders([models[0], models[0]], tmp_path / "mean")
    with refused("out", path=models[0]):
        average_encoders(models, models[0])


@pytest.fixture
def trigrams(tmp_path):
    return trained(tmp_path, "trigram")


def test_a_damaged_model_is_named(tmp_path, trigrams):
    path = trigrams[1] / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    for make in (
        lambda: average_encoders(trigrams, tmp_path / "out"),
        lambda: export_encoder(trigrams[1], tmp_path / "out", format="static"),
    ):
        with refused() as error:
            make()
        assert path.name in str(error.value) and str(trigrams[1]) in str(error.value)
    assert not (tmp_path / "out").exists()


def test_named_twice_counts_twice_and_alone_stays(tmp_path):
    names = trained(tmp_path, "word")
    mean = average_encoders([names[0], names[0], names[1]], tmp_path / "mean").load()
    (first,), (second,) = (weights_of(trainable(load(name, device="cpu"))) for name in names)
    torch.testing.assert_close(weights_of(mean)[0], (2 * first + second) / 3)
    same = average_encoders([names[1], names[1]], tmp_path / "same").load()
    assert torch.equal(weights_of(same)[0], second)
    vector = load(names[1], device="cpu").encode("w1 w3")
    np.testing.assert_array_equal(load(tmp_path / "same", device="cpu").encode("w1 w3"), vector)


def test_small_rows_are_widened(tmp_path):
    model = encoder_of(random_text(20), model="trigram", dimension=6)
    save_trained(model.stored_as("int8"), tmp_path / "int8")
    save_trained(model, tmp_path / "full")
    mean = average_encoders([tmp_path / "int8", tmp_path / "full"], tmp_path / "mean").load()
    torch.testing.assert_close(weights_of(mean)[0], weights_of(model)[0], atol=0.01, rtol=0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"model": "word"}, {"model": "trigram"}),
        ({"model": "word"}, {"model": "word", "words": 9}),
        ({"model": "word"}, {"model": "word", "dimension": 5}),
        ({"model": "blstm"}, {"model": "blstm", "directions": "concatenate"}),
        ({"model": "blstm"}, {"model": "blstm", "pooling": "max"}),
        ({"model": "dan", "activation": "tanh"}, {"model": "dan", "activation": "relu"}),
        ({"model": "rnn", "activation": "tanh"}, {"model": "rnn", "activation": "relu"}),
    ],
)
def test_what_cannot_be_averaged(tmp_path, one, other):
    for name, settings in {"a": one, "b": other}.items():
        save_trained(encoder_of(random_text(20), **{"dimension": 6, **settings}), tmp_path / name)
    for models in (["a", "b"], ["a"]):
        with refused("models"):
            average_encoders([tmp_path / name for name in models], tmp_path / "mean")
    assert not (tmp_path / "mean").exists()


def test_models_without_a_record(tmp_path, trigrams):
    """What sentence-transformers trained further is averaged with its start."""
    load(trigrams[1], device="cpu").save_pretrained(str(tmp_path / "further"))
    assert not (tmp_path / "further" / "training.json").exists()
    done = average_encoders([trigrams[0], tmp_path / "further"], tmp_path / "mean")
    assert [each.name for each in done.record.mean_of] == ["m1", "further"]
    with refused("models", path=tmp_path / "further"):
        average_encoders([tmp_path / "further", tmp_path / "further"], tmp_path / "other")
