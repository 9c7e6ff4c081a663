"""Encoders made from others: means, and rotated ones."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer

from paranmt_hf import train
from paranmt_hf.cli import main
from paranmt_hf.encoders.building import trainable
from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.encoders.export.export import export_encoder
from paranmt_hf.encoders.loading import load
from paranmt_hf.encoders.saving import save
from paranmt_hf.errors import InputError
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.derived import RotateConfig, average_encoders, rotate_encoder
from paranmt_hf.training.record import AveragedModel, TrainingRecord
from tests.cli.commands import fails
from tests.encoders.toys import cosines
from tests.refused import refused
from tests.toys import bytes_of
from tests.training.toys import SMALL, encoder_of, random_text, small, synonyms, write_data


def weights_of(model):
    return [part.table.weight.data for part in take_apart(model).parts]


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
    before = bytes_of(tmp_path / "mean")
    again = average_encoders(models, tmp_path / "mean").load()
    np.testing.assert_array_equal(again.encode("w1 w2"), mean.encode("w1 w2"))
    assert bytes_of(tmp_path / "mean") == before
    with refused("out", path=tmp_path / "mean"):
        average_encoders([models[0], models[0]], tmp_path / "mean")
    with refused("out", path=tmp_path / "m1"):
        average_encoders(models, models[0])


@pytest.fixture
def trigrams(tmp_path):
    """Two TRIGRAM models."""
    names = [tmp_path / f"m{seed}" for seed in (1, 2)]
    for seed, name in enumerate(names, 1):
        save(encoder_of(random_text(20), model="trigram", dimension=6, seed=seed), name)
    return names


def test_a_damaged_model_is_named(tmp_path, trigrams):
    path = trigrams[1] / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    for make in (
        lambda: average_encoders(trigrams, tmp_path / "out"),
        lambda: export_encoder(trigrams[1], tmp_path / "out", format="static"),
    ):
        with refused():
            make()
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_stock_module_with_rows_of_8_bits(tmp_path):
    save(encoder_of(random_text(20), model="word", dimension=6), tmp_path / "word")
    path = tmp_path / "word" / "model.safetensors"
    save_file({"embedding.weight": torch.ones(load_file(path)["embedding.weight"].shape, dtype=torch.int8)}, path)
    with pytest.raises(InputError, match="without a scale"):
        load(tmp_path / "word")


def test_named_twice_counts_twice_and_alone_stays(tmp_path):
    names = []
    for seed in (1, 2):
        names.append(tmp_path / f"m{seed}")
        save(encoder_of(random_text(20), model="word", dimension=6, seed=seed), names[-1])
    mean = average_encoders([names[0], names[0], names[1]], tmp_path / "mean").load()
    (first,), (second,) = (weights_of(trainable(load(name, device="cpu"))) for name in names)
    torch.testing.assert_close(weights_of(mean)[0], (2 * first + second) / 3)
    same = average_encoders([names[1], names[1]], tmp_path / "same").load()
    assert torch.equal(weights_of(same)[0], second)
    vector = load(names[1], device="cpu").encode("w1 w3")
    np.testing.assert_array_equal(load(tmp_path / "same", device="cpu").encode("w1 w3"), vector)


def test_small_rows_are_widened(tmp_path):
    model = encoder_of(random_text(20), model="trigram", dimension=6)
    save(model.stored_as("int8"), tmp_path / "int8")
    save(model, tmp_path / "full")
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
        save(encoder_of(random_text(20), **{"dimension": 6, **settings}), tmp_path / name)
    with refused():
        average_encoders([tmp_path / "a", tmp_path / "b"], tmp_path / "mean")
    with pytest.raises(InputError) as error:
        average_encoders([tmp_path / "a"], tmp_path / "mean")
    assert error.value.option == "models" and not (tmp_path / "mean").exists()


PROBE = ["left1 left2", "right1 right2 right9", "left3 unheard", ""]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A trained WORD,TRIGRAM model and its data."""
    folder = tmp_path_factory.mktemp("rotate")
    data = write_data(folder / "pairs.parquet", synonyms(60))
    train(data, folder / "m", **small("word,trigram"))
    return folder


@pytest.mark.parametrize("each_part", [False, True])
@pytest.mark.parametrize("order", ["even", "principal"])
def test_whole_vectors_keep_their_cosines(folder, tmp_path, order, each_part):
    before = load(folder / "m", device="cpu").encode(PROBE)
    data = folder / "pairs.parquet" if order == "principal" else None
    config = RotateConfig(each_part=each_part)
    rotated = rotate_encoder(folder / "m", tmp_path / "r", config=config, data=data).load()
    after = rotated.encode(PROBE)
    assert after.shape == (4, 32) and np.abs(after - before).max() > 0.01
    np.testing.assert_allclose(cosines(after), cosines(before), atol=1e-6)
    np.testing.assert_array_equal(load(tmp_path / "r", device="cpu").encode(PROBE), after)
    # Cut as any SentenceTransformer cuts: the first dimensions.
    elsewhere = SentenceTransformer(str(tmp_path / "r"), device="cpu", trust_remote_code=True, truncate_dim=5)
    np.testing.assert_allclose(elsewhere.encode(PROBE), after[:, :5], atol=1e-6)
    np.testing.assert_array_equal(rotated.encode(PROBE, truncate_dim=5), after[:, :5])
    assert take_apart(list(rotated)).name == ("word,trigram" if each_part else "word+trigram")
    record = TrainingRecord.read(tmp_path / "r")
    revision = json.loads((tmp_path / "r" / "training.json").read_text())["rotated"]["model"]["revision"]
    assert record.rotated.model == AveragedModel("m", revision)
    assert (record.rotated.order, record.rotated.each_part) == (order, each_part)
    assert record.settings == TrainingRecord.read(folder / "m").settings


def test_principal_components_fall(folder, tmp_path):
    """The squares of the dimensions, over the sentences that they are taken from, become fewer and fewer."""
    rotated = rotate_encoder(folder / "m", tmp_path / "r", data=folder / "pairs.parquet").load()
    vectors = rotated.encode([*synonyms(60)[0], *synonyms(60)[1]]).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    shares = np.square(vectors).mean(axis=0)
    assert (np.diff(shares) < 1e-7).all() and shares[0] > 2 * shares[-1]


def test_fewer_dimensions_and_what_is_written(folder, tmp_path):
    whole = rotate_encoder(folder / "m", tmp_path / "whole").load()
    cut = rotate_encoder(folder / "m", tmp_path / "cut", config=RotateConfig(dimension=6)).load()
    np.testing.assert_allclose(cut.encode(PROBE), whole.encode(PROBE)[:, :6], atol=1e-6)
    record = TrainingRecord.read(tmp_path / "cut")
    assert (record.dimension, record.development, record.rotated.dimension) == (6, None, 6)
    assert record.parameters == sum(parameter.numel() for parameter in cut.parameters())
    card = (tmp_path / "cut" / "README.md").read_text()
    assert "rotated so that each holds as much as any other, of which the first 6 are kept" in card
    stays = "Whole vectors have the cosines of before."
    assert stays not in card and stays in (tmp_path / "whole" / "README.md").read_text()
    before = bytes_of(tmp_path / "cut")
    again = rotate_encoder(folder / "m", tmp_path / "cut", config=RotateConfig(dimension=6)).load()
    np.testing.assert_array_equal(again.encode(PROBE), cut.encode(PROBE))
    assert bytes_of(tmp_path / "cut") == before
    with refused("out", path=tmp_path / "cut"):
        rotate_encoder(folder / "m", tmp_path / "cut")
    with refused("out", path=folder / "m"):
        rotate_encoder(folder / "m", folder / "m")


def test_only_models_of_one_rotation_are_averaged(folder, tmp_path):
    for seed in (1, 2):
        rotate_encoder(folder / "m", tmp_path / f"r{seed}", config=RotateConfig(seed=seed, each_part=True))
    for others in ([folder / "m"], [tmp_path / "r2"]):
        with refused():
            average_encoders([tmp_path / "r1", *others], tmp_path / "mean")
    # A model that went on from a rotated one has its dimensions.
    encoder = EncoderConfig(init_from=str(tmp_path / "r1"))
    train(folder / "pairs.parquet", tmp_path / "further", encoder=encoder, config=TrainConfig(**SMALL))
    # Also where the rotated one is not among them.
    with refused():
        average_encoders([folder / "m", tmp_path / "further"], tmp_path / "mean")
    mean = average_encoders([tmp_path / "r1", tmp_path / "further"], tmp_path / "mean").load()
    parts = [load(tmp_path / name, device="cpu").encode(PROBE) for name in ("r1", "further")]
    np.testing.assert_allclose(mean.encode(PROBE), sum(parts) / 2, atol=1e-6)


def test_what_does_not_fit(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    model = str(folder / "m")
    for options, message in (
        (["--dimension", "33"], "--dimension 33 is more than the 32 dimensions"),
        (["--dimension", "3", "--each-part"], "--dimension with --each-part"),
        (["--dimension", "0"], "dimension"),
    ):
        fails(capsys, ["encoder", "rotate", model, "--out", "r", *options], message)
    save(encoder_of(random_text(20), model="lstm", dimension=6), tmp_path / "lstm")
    save(encoder_of(random_text(20), model="word", dimension=6), tmp_path / "word")
    fails(capsys, ["encoder", "rotate", "lstm", "--out", "r"], "lstm is a LSTM; only averaging encoders")
    fails(capsys, ["encoder", "rotate", "word", "--out", "r", "--each-part"], "--each-part is for concatenations")
    assert not (tmp_path / "r").exists()
    assert main(["encoder", "rotate", "word", "--out", "r", "--dimension", "4"]) == 0
    assert capsys.readouterr().out.startswith("r: 4 dimensions\n")
