"""The search for the settings of a supervised task."""

import json

import pytest

from paranmt_hf import EncoderConfig, SuperviseConfig, supervise
from paranmt_hf.cli import main
from paranmt_hf.encoders.saving import save
from paranmt_hf.supervised.config import SupervisedRecord
from paranmt_hf.tuning.record import TuneConfig
from paranmt_hf.tuning.tune import tune
from tests.evaluation.toys import WORDS, write_all
from tests.refused import refused
from tests.training.toys import encoder_of

GRID = {
    "optimizer": ["adam", "adagrad"],
    "lambda-s": [1e-3, 1e-6],
    "lambda-w,freeze-words": [[1e-5, False], [0, True]],
}
FAST = {"dimension": 6, "epochs": 2, "hidden": 4}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("tasks")
    write_all(root / "senteval", items=20)
    sentences = [f"{word} of number {item}" for word in WORDS for item in range(21)]
    save(encoder_of((sentences, sentences), model="word", dimension=6), root / "word")
    return root


def search(root, out, grid=GRID, *, name="SICK-E", training=FAST, **settings):
    config = TuneConfig(**settings)
    return tune(root / "senteval", out, task=name, grid=grid, training=training, tuning=config)


@pytest.fixture(scope="module")
def tuned(root):
    return search(root, root / "out")


def test_a_trial_is_a_run_of_supervise(root, tuned, tmp_path):
    record = tuned.record
    assert (record.command, record.measure, record.items, len(record.trials)) == ("supervise", "Accuracy", 20, 8)
    for trial in (record.best, record.ranked[-1]):
        config = SuperviseConfig("SICK-E", epochs=2, hidden=4, **trial.settings)
        done = supervise(
            root / "senteval", tmp_path / f"{trial.number}", config=config, encoder=EncoderConfig(dimension=6)
        )
        assert done.record.settings.training.learning_rate == {"adam": 0.001, "adagrad": 0.05}[config.optimizer]
        assert trial.score == max(epoch.development for epoch in done.record.epochs)
        assert trial.loss == done.record.epochs[-1].loss
    assert record.best.score == max(trial.score for trial in record.trials)
    assert len({trial.loss for trial in record.trials}) > 4
    again = search(root, root / "out")
    assert not again.fresh and again.record == record
    assert sorted(path.name for path in (root / "out").iterdir()) == ["best.yaml", "trials.tsv", "tune.json"]


def test_the_best_settings_train_from_their_file(root, tuned, tmp_path):
    assert main(["supervise", "--config", str(root / "out" / "best.yaml"), "--out", str(tmp_path / "by-hand")]) == 0
    found = SupervisedRecord.read(tmp_path / "by-hand")
    assert max(epoch.development for epoch in found.epochs) == tuned.record.best.score
    wanted = SuperviseConfig("SICK-E", epochs=2, hidden=4, **tuned.record.best.settings)
    assert found.settings.training == wanted.resolved(start=False)


def test_the_encoder_of_a_trial_is_not_that_of_the_one_before(root, tmp_path):
    training = {"init_from": str(root / "word"), "epochs": 2, "hidden": 4, "way": "initialised"}
    record = search(root, tmp_path / "two", {"learning-rate": [0.05, 0.01]}, training=training).record
    second = record.trials[1]
    alone = search(root, tmp_path / "one", {"learning-rate": [second.settings["learning_rate"]]}, training=training)
    assert (second.score, second.loss) == (alone.record.best.score, alone.record.best.loss)
    assert record.trials[0].loss != record.trials[1].loss


def test_what_does_not_fit_together(root, tmp_path):
    training = {"init_from": str(root / "word"), "epochs": 1, "hidden": 2}
    grid = {"way": ["scratch", "fixed", "regularised"], "freeze-words": [False, True]}
    record = search(root, tmp_path / "out", grid, training=training).record
    assert {tuple(trial.settings.values()) for trial in record.trials} == {
        ("fixed", False), ("regularised", False), ("regularised", True)
    }  # fmt: skip
    assert len(record.refusals) == 3
    for wrong, option in (({"dimension": [4]}, "grid"), ({"margin": [0.4]}, "grid"), ({"epochs": [4]}, "grid")):
        with refused(option):
            search(root, tmp_path / "none", wrong, training=training)
    assert not (tmp_path / "none.work").exists()


def test_options_of_pairs(root, tmp_path):
    for option, values in (
        ("development", {"development": "sample"}),
        ("exclude", {"exclude": root}),
        ("tune_pairs", {"tuning": TuneConfig(tune_pairs=5)}),
        ("training", {"training": {"margin": 0.4}}),
        ("data", {"data": [root, root]}),
    ):
        data = values.pop("data", root / "senteval")
        with refused(option):
            tune(data, tmp_path / "out", task="SICK-R", grid=GRID, **values)
    with refused("development"):
        tune(root / "senteval", tmp_path / "out", grid={"margin": [0.4]})
    assert not list(tmp_path.iterdir())


def test_the_command(root, tmp_path, capsys):
    words = ["tune", str(root / "senteval"), "--task", "SICK-R", "--grid", "fixed", "--trials", "3"]
    words += ["--training", f"init-from={root / 'word'},epochs=2,hidden=4"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "3 of 8 combinations, 20 items" in printed and "paranmt supervise --config" in printed
    record = json.loads((tmp_path / "out" / "tune.json").read_text())
    assert record["measure"] == "Pearson" and record["settings"]["training"]["way"] == "fixed"
    assert main([*words, "--grid", "sum", "--out", str(tmp_path / "x")]) == 1
