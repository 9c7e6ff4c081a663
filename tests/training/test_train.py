"""train(): from pairs to an encoder, whatever happens on the way."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from paranmt_hf import EncoderConfig, TrainConfig, load, train
from paranmt_hf.encoders.building import trainable
from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.encoders.saving import save
from paranmt_hf.errors import DivergedError, OtherSettingsError
from paranmt_hf.evaluation.sts_data import StsSet
from paranmt_hf.training.epochs import evaluation_points
from paranmt_hf.training.fit import development_score, fit_encoder
from paranmt_hf.training.optimizers import learning_rates, steps_of
from paranmt_hf.training.trainer_run import train_with_trainer
from tests.evaluation.toys import write_benchmark
from tests.refused import refused
from tests.training.toys import SMALL, encoder_of, random_text, small, store_of, synonyms, write_data


def gold() -> StsSet:
    """Pairs that mean the same, and pairs that do not."""
    left, right = synonyms(40, seed=7)
    shifted = right[20:][1:] + right[20:][:1]
    return StsSet("toy", left, right[:20] + shifted, np.repeat([5.0, 0.0], 20))


@pytest.mark.parametrize("model", ["word", "dan"])
def test_a_last_step_that_diverges(tmp_path, any_number, model):
    """No loss comes after it that would show it."""
    sides = synonyms(20)
    encoder = trainable(encoder_of(sides, model=model, dimension=4))
    config = TrainConfig(batch_size=20, mega_batch=1, epochs=1, lambda_w=1e300, device="cpu")
    with refused(kind=DivergedError):
        fit_encoder(encoder, store_of(sides, encoder, tmp_path / "pairs"), config, tmp_path)


# Learning


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("word", {}),
        ("word,trigram", {}),
        *(
            pytest.param(model, {}, marks=pytest.mark.slow)
            for model in ("trigram", "word+trigram", "projection", "word,lstm", "word,dan", "projection,trigram")
        ),
        pytest.param("lstm", {"epochs": 10}, marks=pytest.mark.slow),
        pytest.param("irnn", {"lambda_c": 100}, marks=pytest.mark.slow),
    ],
)
def test_synonyms_are_learned(tmp_path, model, settings):
    sides = synonyms(400)
    encoder = trainable(encoder_of(sides, model=model, dimension=16))
    store = store_of(sides, encoder, tmp_path / "pairs")
    held_out = gold()
    before = development_score(encoder, held_out)
    # An LSTM's vectors are all alike at first, and it takes some epochs to tell them apart.
    config = TrainConfig(**{**SMALL, "epochs": 4, "scrambling": 0.3, **settings})
    history = fit_encoder(encoder, store, config, tmp_path, held_out)
    assert history.best_score == max(score for _, score in history.scores)
    assert development_score(encoder, held_out) == pytest.approx(history.best_score, abs=1e-6)
    assert len(history.scores) == config.epochs
    assert history.pairs == 400 * config.epochs
    assert history.losses[-1][1] < 0.6 * history.losses[0][1]
    # Words of two languages have nothing in common before; character trigrams hold the concepts' numbers.
    assert before < 0.75
    assert history.best_score > 0.9
    left, right = synonyms(50, seed=11)
    vectors = [torch.nn.functional.normalize(torch.from_numpy(encoder.encode(side)), dim=1) for side in (left, right)]
    similarity = vectors[0] @ vectors[1].T
    # A reference's own translation is nearest, of 50.
    assert (similarity.argmax(dim=1) == torch.arange(50)).float().mean() > 0.8


@pytest.mark.slow
def test_teacher_is_followed(tmp_path, data):
    sides = synonyms(200)
    # A teacher in which both words of a concept are one vector.
    teacher = encoder_of(sides, model="word", dimension=16)
    units, weight = teacher[0].units, teacher[0].weight
    row = {unit: number for number, unit in enumerate(units)}
    for unit in units[1:]:
        if unit.startswith("right"):
            weight[row[unit]] = weight[row[unit.replace("right", "left")]]
    save(teacher, tmp_path / "teacher")
    result = train(data, tmp_path / "out", **small(teacher=str(tmp_path / "teacher"), epochs=15))
    left, right = sides
    student = result.load()
    vectors = [torch.nn.functional.normalize(torch.from_numpy(student.encode(side)), dim=1) for side in (left, right)]
    assert (vectors[0] * vectors[1]).sum(dim=1).mean() > 0.9
    losses = [loss for _, loss in result.record.history.losses]
    assert losses[-1] < 0.2 * losses[0]


@pytest.mark.slow
def test_two_teachers_and_lists(tmp_path, data):
    sides = synonyms(200)
    for number, dimension in enumerate((8, 6)):
        save(encoder_of(sides, model="word", dimension=dimension, seed=number), tmp_path / f"teacher{number}")
    names = {"teacher": (str(tmp_path / "teacher0"), str(tmp_path / "teacher1"))}
    settings = small(
        **names,
        teacher_loss="listwise",
        temperature=0.2,
        neighbours=True,
        precision="bf16",
        epochs=5,
        teacher_cache=str(tmp_path / "cache"),
    )
    result = train(data, tmp_path / "out", **settings)
    losses = [loss for _, loss in result.record.history.losses]
    assert losses[-1] < losses[0]
    # Each teacher has its own place among the vectors, by its content, and another run finds them.
    kept = sorted(path.relative_to(tmp_path / "cache").parts for path in (tmp_path / "cache").rglob("part-*"))
    assert len(kept) == 2 and len({folder for folder, _ in kept}) == 2
    times = [path.stat().st_mtime_ns for path in sorted((tmp_path / "cache").rglob("*"))]
    again = train(data, tmp_path / "again", **settings)
    assert [path.stat().st_mtime_ns for path in sorted((tmp_path / "cache").rglob("*"))] == times
    assert again.record.history.losses == result.record.history.losses
    identity = asdict(result.record.settings.training)
    assert len({*identity["teacher"]}) == 2 and identity["teacher_loss"] == "listwise"
    assert result.record.inputs == {"teacher": "teacher0, teacher1"}
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf8")
    assert "the similarities of the teachers `teacher0` and `teacher1`" in card


# The two ways of training


def test_tight_loop_and_trainer_agree(tmp_path):
    sides = random_text(160)
    losses, weights = [], []
    for device in (None, "cpu-by-trainer"):
        encoder = trainable(encoder_of(sides, model="word,trigram", dimension=12, words=40))
        store = store_of(sides, encoder, tmp_path / f"pairs-{device}")
        config = TrainConfig(**{**SMALL, "epochs": 1})
        parts = take_apart(encoder).parts
        if device is None:
            history = fit_encoder(encoder, store, config, tmp_path / f"{device}")
        else:
            composition = take_apart(encoder)
            history = train_with_trainer(encoder, composition, store, tmp_path / device, replace(config, device="cpu"))
        losses.append(np.array(history.losses))
        weights.append([part.table.weight.detach().clone() for part in parts])
    assert losses[0].shape == losses[1].shape == (4, 2)
    np.testing.assert_array_equal(losses[0][:, 0], losses[1][:, 0])
    # Rows rest in one way and drift in the other; in the first mega-batch that is nearly nothing.
    assert losses[0][0, 1] == pytest.approx(losses[1][0, 1], abs=0.01)
    np.testing.assert_allclose(losses[0][:, 1], losses[1][:, 1], atol=0.05)
    for first, second in zip(*weights, strict=True):
        # The row of unknown units is zeros in both.
        assert not first[0].any()
        assert not second[0].any()
        assert torch.nn.functional.cosine_similarity(first[1:], second[1:]).mean() > 0.95


# Evaluations, early stopping, rates


def test_steps_rates_and_evaluations():
    config = TrainConfig(batch_size=10, mega_batch=4, epochs=2, decay=True)
    assert steps_of(95, config) == 4 + 4 + 2
    rates = learning_rates(95, config)
    assert len(rates) == 20
    np.testing.assert_allclose(rates, 0.001 * (1 - np.arange(20) / 20))
    assert set(learning_rates(95, TrainConfig(batch_size=10, mega_batch=4)).tolist()) == {0.001}
    assert evaluation_points(10, TrainConfig(evaluations=1)) == {10}
    assert evaluation_points(10, TrainConfig(evaluations=4)) == {3, 5, 8, 10}
    assert evaluation_points(2, TrainConfig(evaluations=5)) == {1, 2}


@pytest.mark.parametrize("model", ["word", "lstm"])
def test_early_stopping_keeps_the_best_weights(tmp_path, model, monkeypatch):
    sides = synonyms(120)
    encoder = trainable(encoder_of(sides, model=model, dimension=8))
    store = store_of(sides, encoder, tmp_path / "pairs")
    scores = iter([0.1, 0.5, 0.4, 0.3, 0.2, 0.9])
    kept = []

    def score(encoder, held_out):
        kept.append(take_apart(encoder).parts[0].table.weight.detach().clone())
        return next(scores)

    monkeypatch.setattr("paranmt_hf.training.fit.development_score", score)
    config = TrainConfig(**{**SMALL, "epochs": 3, "patience": 2, "evaluations": 3})
    history = fit_encoder(encoder, store, config, tmp_path, gold())
    assert [value for _, value in history.scores] == [0.1, 0.5, 0.4, 0.3]
    assert (history.best_score, history.stale) == (0.5, 2)
    assert history.best_step == history.scores[1][0] == 8
    assert history.pairs == 160
    torch.testing.assert_close(take_apart(encoder).parts[0].table.weight.detach(), kept[1], atol=0, rtol=0)
    assert (kept[1] != kept[3]).any()


def test_development_set_of_the_benchmark_decides(tmp_path, data):
    write_benchmark(tmp_path / "STSBenchmark")
    write_data(tmp_path / "plane.parquet", (["x d", "y", "x y"] * 30, ["x", "d y", "d"] * 30))
    result = train(tmp_path / "plane.parquet", tmp_path / "out", development=tmp_path, **small())
    history = result.record.history
    assert result.record.development == pytest.approx(history.best_score, abs=1e-6)
    with refused():
        train(data, tmp_path / "other", development=tmp_path / "nowhere", **small())


def test_own_pairs_decide(tmp_path, data):
    text = "sentence1\tsentence2\tscore\nleft1 left2\tright1 right2\t9\nleft1 left2\tright3 right4\t1\n"
    (tmp_path / "mine.tsv").write_text(text + "left5\tright5\t8\nleft6\tright7\t2\n")
    result = train(data, tmp_path / "out", development=tmp_path / "mine.tsv", **small())
    assert result.record.settings.development == "mine"
    # The start is scored, and is never the best.
    start = result.record.history.start
    options = {**small(), "encoder": EncoderConfig(init_from=str(tmp_path / "out"))}
    further = train(data, tmp_path / "further", development=tmp_path / "mine.tsv", **options)
    assert further.record.history.start == pytest.approx(result.record.development, abs=1e-6) != start
    assert f"{100 * start:.1f} before training" in result.summary()
    assert result.record.development == pytest.approx(result.record.history.best_score, abs=1e-6)


# Files and settings


@pytest.mark.slow
def test_written_encoder_has_a_record_and_is_there_the_second_time(tmp_path, data, drawing):
    result = train(data, tmp_path / "deep" / "out", **small())
    assert result.fresh
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["out"]
    record = json.loads((tmp_path / "deep" / "out" / "training.json").read_text())
    assert record["pairs"] == 200
    assert record["dimension"] == 16
    assert record["parameters"] == 61 * 16
    assert record["history"]["pairs"] == 400
    assert [step for step, _ in record["history"]["losses"]] == [4, 8, 12, 16, 20, 24, 28, 32, 36, 40]
    assert record["settings"]["training"]["batch_size"] == 10
    assert (tmp_path / "deep" / "out" / "training.png").stat().st_size > 5000
    again = train(data, tmp_path / "deep" / "out", **small())
    assert not again.fresh
    assert again.record.to_json() == record
    with refused("out", path=tmp_path / "deep" / "out", kind=OtherSettingsError):
        train(data, tmp_path / "deep" / "out", **small(epochs=3))
    assert again.load().encode(["left1"]).shape == (1, 16)


def test_same_seed_same_bytes(tmp_path, data):
    results = []
    for name, seed in (("one", 1), ("two", 1), ("three", 2)):
        train(data, tmp_path / name, **small(seed=seed))
        results.append((tmp_path / name / "model.safetensors").read_bytes())
    assert results[0] == results[1] != results[2]


def test_training_goes_on_from_an_encoder_or_from_vectors(tmp_path, data):
    train(data, tmp_path / "first", **small())
    settings = small(epochs=1, learning_rate=1e-9)
    settings["encoder"] = EncoderConfig(init_from=str(tmp_path / "first"), words=5)
    with refused("init_from"):
        train(data, tmp_path / "second", **settings)
    settings["encoder"] = EncoderConfig(init_from=str(tmp_path / "first"))
    second = train(data, tmp_path / "second", **settings)
    encoder = second.record.settings.encoder
    assert encoder == EncoderConfig(model="word", init_from=encoder.init_from) and encoder.init_from.startswith(
        "sha256:"
    )
    vectors = [load(tmp_path / name).encode(["left1 right2"]) for name in ("first", "second")]
    np.testing.assert_allclose(*vectors, atol=1e-6)
    assert second.record.dimension == 16
    (tmp_path / "v.txt").write_text("left1 1 0\nright1 0 1\nother 1 1\n")
    settings["encoder"] = EncoderConfig(dimension=2, vectors=str(tmp_path / "v.txt"))
    third = train(data, tmp_path / "third", **settings).load()
    np.testing.assert_allclose(third.encode(["left1", "right1", "other"]), [[1, 0], [0, 1], [1, 1]], atol=1e-6)
    settings["encoder"] = EncoderConfig(dimension=3, vectors=str(tmp_path / "v.txt"))
    with refused():
        train(data, tmp_path / "fourth", **settings)


def test_vectors_are_found_behind_the_number_of_words(tmp_path, data):
    """The text's own words are the vocabulary; that others stand first in the file takes nothing from them."""
    (tmp_path / "v.txt").write_text("".join(f"other{n} 1 1\n" for n in range(70)) + "left1 3 0\nright1 0 3\n")
    settings = small(epochs=1, learning_rate=1e-9)
    settings["encoder"] = EncoderConfig(dimension=2, words=62, vectors=str(tmp_path / "v.txt"))
    model = train(data, tmp_path / "out", **settings).load()
    found = model.encode(["left1", "right1", "other0", "other1", "other2"])
    # 60 words stand in the text.
    np.testing.assert_allclose(found, [[3, 0], [0, 3], [1, 1], [1, 1], [0, 0]], atol=1e-6)
    (tmp_path / "none.txt").write_text("nothing\n")
    settings["encoder"] = EncoderConfig(dimension=2, vectors=str(tmp_path / "none.txt"))
    with refused(path=tmp_path / "none.txt"):
        train(data, tmp_path / "none", **settings)


def test_no_negatives_is_told(tmp_path):
    same = write_data(tmp_path / "same.parquet", (["a b"] * 30, ["b a"] * 30))
    with refused():
        train(same, tmp_path / "out", **small())


@pytest.mark.parametrize("model", ["word", pytest.param("lstm", marks=pytest.mark.slow)])
def test_few_pairs_are_enough(tmp_path, model):
    few = write_data(tmp_path / "few.parquet", (["a b", "c", "d e"], ["b", "c c", "e d"]))
    result = train(few, tmp_path / model, **small(model, epochs=2))
    assert len(result.record.history.losses) == 2
    # 43 pairs: a mega-batch of 40 and one of three.
    odd = write_data(tmp_path / "odd.parquet", synonyms(43))
    assert train(odd, tmp_path / f"{model}-odd", **small(model)).record.history.pairs == 86


@pytest.mark.parametrize(("batch_size", "warned"), [(10_000, True), (13, True), (11, False)])
def test_few_steps_in_an_epoch_are_warned_of(tmp_path, caplog, batch_size, warned):
    """With 110 pairs, `batch_size` 11 gives ten steps."""
    data = write_data(tmp_path / "pairs.parquet", random_text(110, seed=3))
    train(data, tmp_path / "out", **small(batch_size=batch_size, epochs=1))
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert [record.name for record in warnings] == ["paranmt_hf.training.train"] * warned
    assert all("11" in record.getMessage() for record in warnings)
