"""The search for settings: trials, what is resumed, what fails, and the options that it writes."""

import json
from dataclasses import replace

import pytest

from paranmt_hf import EncoderConfig, PairSelection, TrainConfig, load, train
from paranmt_hf.cli import main
from paranmt_hf.errors import OtherSettingsError
from paranmt_hf.evaluation.correlation import spearman
from paranmt_hf.evaluation.similarities import pair_similarities
from paranmt_hf.evaluation.sts_data import read_scored_pairs
from paranmt_hf.training.cpu_engine import CpuEngine
from paranmt_hf.training.record import TrainingRecord
from paranmt_hf.tuning.record import TuneConfig
from paranmt_hf.tuning.tune import tune
from tests.refused import refused
from tests.training.toys import synonyms, write_data

GRID = {"learning-rate": [0.001, 0.05], "negatives": ["max", "rand"], "lambda-w": [0.0, 0.1]}
ENCODER, CONFIG = EncoderConfig(dimension=8), TrainConfig(batch_size=10, mega_batch=1, epochs=2)
FAST = {"dimension": 8, "batch-size": 10, "mega-batch": 1, "epochs": 2}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("tune")
    write_data(root / "pairs.parquet", synonyms(60))
    left, right = synonyms(40, seed=7)
    other = right[:20] + right[21:] + right[20:21]
    lines = [f"{score}\t{a}\t{b}" for score, a, b in zip([1] * 20 + [0] * 20, left, other, strict=True)]
    (root / "phrases.tsv").write_text("\n".join(lines) + "\n")
    return root


def search(root, out, grid=GRID, *, training=None, development="phrases.tsv", **settings):
    config = TuneConfig(**{"tune_pairs": 50, **settings})
    given = {"development": root / development, "training": {**FAST, **(training or {})}}
    return tune(root / "pairs.parquet", out, grid=grid, tuning=config, **given)


def figures(record):
    return [replace(trial, seconds=0.0) for trial in record.trials]


@pytest.fixture(scope="module")
def tuned(root):
    return search(root, root / "out")


def test_all_combinations_are_tried_and_the_best_is_kept(root, tuned):
    record = tuned.record
    assert (record.items, record.combinations, record.refusals) == (50, 8, [])
    assert [trial.number for trial in record.trials] == list(range(1, 9))
    assert len({tuple(trial.settings.values()) for trial in record.trials}) == 8
    assert record.best.score == max(trial.score for trial in record.trials) > 0.5
    assert all(trial.loss > 0 for trial in record.trials) and tuned.fresh
    # A second call finds it, and nothing beside it.
    again = search(root, root / "out")
    assert not again.fresh and again.record == record
    assert sorted(path.name for path in (root / "out").iterdir()) == ["best.yaml", "trials.tsv", "tune.json"]
    assert not (root / "out.work").exists()
    with refused("out"):
        search(root, root / "out", tune_pairs=40)


def test_a_trial_is_a_training_run(root, tuned):
    """The figures of a trial are those of the encoder that `train` makes of the same sample."""
    trial = tuned.record.trials[4]
    made = train(
        root / "pairs.parquet",
        root / "same",
        encoder=ENCODER,
        config=replace(CONFIG, **trial.settings),
        selection=PairSelection(max_pairs=50),
    )
    held_out = read_scored_pairs(root / "phrases.tsv")
    values = pair_similarities(load(made.folder), held_out.left, held_out.right, "phrases").values
    assert spearman(values, held_out.gold) == pytest.approx(trial.score, abs=1e-12)
    assert made.record.history.losses[-1][1] == trial.loss


def test_tables(tuned):
    head, *rows = tuned.record.table().splitlines()
    assert head.split() == ["trial", "learning-rate", "negatives", "lambda-w", "Spearman", "loss"]
    assert [int(row.split()[0]) for row in rows][0] == tuned.record.best.number and len(rows) == 8
    lines = [line.split("\t") for line in (tuned.folder / "trials.tsv").read_text().splitlines()]
    assert lines[0] == ["trial", "learning_rate", "negatives", "lambda_w", "score", "loss", "reason"]
    assert [float(line[4]) for line in lines[1:]] == [trial.score for trial in tuned.record.trials]


def test_the_best_settings_train_from_their_file(root, tuned):
    assert main(["train", "--config", str(root / "out" / "best.yaml"), "--out", str(root / "by-hand")]) == 0
    record = TrainingRecord.read(root / "by-hand")
    assert (record.pairs, record.history.pairs) == (60, 600)
    assert record.settings.training == replace(CONFIG, epochs=10, **tuned.record.best.settings)


@pytest.mark.slow
def test_a_search_continues_in_the_middle_of_a_trial(root, tuned, tmp_path, checkpoint_always, killed_after, counting):
    # Ten mega-batches are a trial.
    killed_after(17, search, root, tmp_path / "out")
    assert len(list((tmp_path / "out.work" / "running").glob("*/checkpoint.safetensors"))) == 1
    with refused(kind=OtherSettingsError):
        search(root, tmp_path / "out", dict(reversed(GRID.items())))
    resumed, megas = counting(CpuEngine, "train_on", search, root, tmp_path / "out")
    assert megas == 8 * 10 - 17 and figures(resumed.record) == figures(tuned.record)


def test_a_trial_that_diverges_is_no_end(root, tmp_path, any_number):
    record = search(root, tmp_path / "out", {"learning-rate": [0.01, 1e30]}).record
    good, bad = record.ranked
    assert good.score is not None and bad.score is None and "nan" in bad.reason
    assert record.table().splitlines()[-1].split() == [str(bad.number), "1e+30", "failed"]
    with refused():
        search(root, tmp_path / "none", {"learning-rate": [1e30], "seed": [1, 2]})
    # What failed is worth nothing to others.
    assert not (tmp_path / "none.work").exists()


def test_settings_that_do_not_fit_together(root, tmp_path):
    record = search(root, tmp_path / "out", {"mega-batch": [1], "batch-size": [1, 10]}).record
    assert [trial.settings for trial in record.trials] == [{"mega_batch": 1, "batch_size": 10}]
    assert len(record.refusals) == 1
    with refused():
        search(root, tmp_path / "none", {"mega-batch": [1], "batch-size": [1]})
    assert not (tmp_path / "none.work").exists()


def test_settings_that_do_not_fit_the_data(root, tmp_path):
    """What shows when an encoder is made ends no search; vectors are of one width, and words have counts."""
    lines = [f"left{index} {' '.join(['0.5', str(index)] * 4)}\n" for index in range(30)]
    (tmp_path / "v.txt").write_text("".join(lines))
    grid = {"dimension": [6, 8], "min-count": [1, 10_000]}
    record = search(root, tmp_path / "out", grid, training={"vectors": str(tmp_path / "v.txt")}).record
    assert [trial.settings for trial in record.trials] == [{"dimension": 8, "min_count": 1}]
    assert len(record.refusals) == 3


def test_patience_is_refused(root, tmp_path):
    with refused("training"):
        search(root, tmp_path / "out", training={"patience": 2})
    assert not list(tmp_path.iterdir())


def test_pairs_without_negatives_can_be_ranked(root, tmp_path):
    (tmp_path / "few.tsv").write_text("1\tleft1 left2\tright2 right1\n0\tleft1 left2\tright3 right4\n")
    best = search(root, tmp_path / "out", {"seed": [1]}, development=tmp_path / "few.tsv").record.best
    assert abs(best.score) == 1


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_the_command(root, tmp_path, capsys, sampler):
    words = ["tune", str(root / "pairs.parquet"), "--development", str(root / "phrases.tsv")]
    words += ["--grid", "dan", "lambda-w=0,1e-4", "batch-size=10", "lambda-c=0.01", "learning-rate=0.01"]
    words += ["--sampler", sampler, "--trials", "4", "--training", "dimension=8,epochs=1", "--tune-pairs", "40"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    assert "4 of 192 combinations, 40 pairs" in capsys.readouterr().out
    record = json.loads((tmp_path / "out" / "tune.json").read_text())
    assert record["settings"]["training"]["mega_batch"] == 1 and record["settings"]["training"]["epochs"] == 1
    assert {"lambda_w", "margin", "clip", "layers", "activation"} <= record["trials"][0]["settings"].keys()
    assert len({trial["score"] for trial in record["trials"]}) > 1 and not (tmp_path / "out.work").exists()
    options = (tmp_path / "out" / "best.yaml").read_text()
    assert "model: dan\n" in options and "epochs: 10\n" in options
    # The record of the outcome repeats it.
    again = ["tune", "--config", str(tmp_path / "out" / "tune.json"), "--out", str(tmp_path / "again")]
    assert main(again) == 0
    assert (tmp_path / "again" / "trials.tsv").read_bytes() == (tmp_path / "out" / "trials.tsv").read_bytes()


def test_optuna_is_asked_for(root, tmp_path, without):
    without("optuna")
    with refused():
        search(root, tmp_path / "out")
