"""The search for settings: trials, what is resumed, what fails, and the options that it writes."""

import json
from dataclasses import replace

import numpy as np
import pytest

from paranmt_hf.cli import main
from paranmt_hf.corpus.reading.pairs import PairSelection
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.encoders.loading import load
from paranmt_hf.errors import DivergedError, InputError
from paranmt_hf.evaluation.correlation import spearman
from paranmt_hf.evaluation.similarities import pair_similarities
from paranmt_hf.evaluation.sts_data import read_scored_pairs
from paranmt_hf.training import checkpoint
from paranmt_hf.training import fit as fitting
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.cpu_engine import CpuEngine
from paranmt_hf.tuning import searches
from paranmt_hf.tuning.grid import TuneConfig
from paranmt_hf.tuning.tune import as_tsv, table_of, tune
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


def search(root, out, grid=GRID, *, training=None, development="phrases.tsv", final=None, **settings):
    config = TuneConfig(**{"sampler": "grid", "tune_pairs": 50, "final_epochs": 3, **settings})
    given = {"development": root / development, "training": {**FAST, **(training or {})}, "final": final}
    return tune(root / "pairs.parquet", out, grid=grid, tuning=config, **given)


def figures(record):
    return [replace(trial, seconds=0.0) for trial in record.trials]


@pytest.fixture(scope="module")
def tuned(root):
    return search(root, root / "out")


def test_all_combinations_are_tried_and_the_best_is_kept(root, tuned):
    record = tuned.record
    assert (record.items, record.combinations, record.refused, len(record.trials)) == (50, 8, 0, 8)
    assert [trial.number for trial in record.trials] == list(range(1, 9))
    assert [tuple(trial.settings.values()) for trial in record.trials[:3]] == [
        (0.001, "max", 0.0),
        (0.001, "max", 0.1),
        (0.001, "rand", 0.0),
    ]
    assert record.best.score == max(trial.score for trial in record.trials) > 0.5
    assert all(trial.loss > 0 for trial in record.trials)
    assert tuned.config == replace(CONFIG, epochs=3, **record.best.settings) and tuned.fresh
    # A second call finds it, and nothing beside it.
    again = search(root, root / "out")
    assert not again.fresh and again.record == record
    assert sorted(path.name for path in (root / "out").iterdir()) == ["best.yaml", "trials.tsv", "tune.json"]
    assert not (root / "out.work").exists()
    with pytest.raises(InputError, match="was made with other settings: .*tune_pairs: was 50, now 40"):
        search(root, root / "out", tune_pairs=40)


def test_a_trial_is_a_training_run(root, tuned):
    """The figures of a trial are those of the encoder that `train` makes of the same sample."""
    trial = tuned.record.trials[4]
    from paranmt_hf.training.train import train

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
    head, *rows = table_of(tuned.record).splitlines()
    assert head.split() == ["trial", "learning-rate", "negatives", "lambda-w", "Spearman", "loss"]
    assert [int(row.split()[0]) for row in rows][0] == tuned.record.best.number and len(rows) == 8
    lines = [line.split("\t") for line in as_tsv(tuned.record).splitlines()]
    assert lines[0] == [
        *("trial", "learning_rate", "negatives", "lambda_w"),
        *("score", "loss", "reason"),
    ]
    assert float(lines[3][4]) == tuned.record.trials[2].score and (tuned.folder / "trials.tsv").read_text() == (
        as_tsv(tuned.record)
    )


def test_the_best_settings_train_from_their_file(root, tuned):
    final = search(root, root / "out", final=root / "final").final
    assert final.record.pairs == 60 and final.record.history.pairs == 180
    assert main(["train", "--config", str(root / "out" / "best.yaml"), "--out", str(root / "by-hand")]) == 0
    sentences = synonyms(5)[0]
    assert np.array_equal(load(root / "by-hand").encode(sentences), load(root / "final").encode(sentences))


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["grid", "tpe"])
def test_a_search_continues_where_it_was_stopped(root, tmp_path, monkeypatch, sampler):
    grid = {**GRID, "seed": [1, 2]}
    whole = search(root, tmp_path / "whole", grid, sampler=sampler, trials=12)
    calls, fit = [], searches.fit_encoder

    def stopped(*arguments, **options):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return fit(*arguments, **options)

    monkeypatch.setattr(searches, "fit_encoder", stopped)
    with pytest.raises(KeyboardInterrupt):
        search(root, tmp_path / "out", grid, sampler=sampler, trials=12)
    assert len(list((tmp_path / "out.work" / "runs").iterdir())) == 4
    with pytest.raises(InputError, match="holds unfinished work with other settings: .*trials"):
        search(root, tmp_path / "out", grid, sampler=sampler, trials=11)
    resumed = search(root, tmp_path / "out", grid, sampler=sampler, trials=12)
    # Four of them were not trained again.
    assert len(calls) == 5 + 8 and figures(resumed.record) == figures(whole.record)
    for name in ("trials.tsv", "best.yaml"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.slow
def test_a_trial_continues_in_its_middle(root, tmp_path, monkeypatch):
    """With its own settings alone, whose order decides which trial is which."""
    grid = {"learning-rate": [0.001, 0.05], "lambda-w": [0.0, 0.1]}
    whole = search(root, tmp_path / "whole", grid)
    monkeypatch.setattr(checkpoint, "CHECKPOINT_SECONDS", 0)
    calls, train_on = [], CpuEngine.train_on

    def stopped(*arguments):
        calls.append(1)
        # Ten mega-batches are a trial.
        if len(calls) == 18:
            raise KeyboardInterrupt
        return train_on(*arguments)

    monkeypatch.setattr(CpuEngine, "train_on", stopped)
    with pytest.raises(KeyboardInterrupt):
        search(root, tmp_path / "out", grid)
    assert len(list((tmp_path / "out.work" / "running").glob("*/checkpoint.safetensors"))) == 1
    with pytest.raises(InputError, match=r"search.names: was \['learning_r"):
        search(root, tmp_path / "out", dict(reversed(grid.items())))
    resumed = search(root, tmp_path / "out", grid)
    assert len(calls) == 18 + 23 and figures(resumed.record) == figures(whole.record)


def test_a_trial_that_diverges_is_no_end(root, tmp_path, monkeypatch):
    fit = fitting.fit_encoder

    def diverging(model, store, config, *rest, **options):
        if config.learning_rate == 0.05:
            raise DivergedError("the loss of step 3 is nan")
        return fit(model, store, config, *rest, **options)

    monkeypatch.setattr(fitting, "fit_encoder", diverging)
    record = search(root, tmp_path / "out").record
    assert [trial.score is None for trial in record.trials] == [False] * 4 + [True] * 4
    assert record.trials[7].reason == "the loss of step 3 is nan" and record.best.number <= 4
    assert table_of(record).splitlines()[-1].split() == ["8", "0.05", "rand", "0.1", "failed"]
    with pytest.raises(InputError, match="all 2 trials failed; the last one: the loss of step 3 is nan"):
        search(root, tmp_path / "none", {"learning-rate": [0.05], "seed": [1, 2]})
    # What failed is worth nothing to others.
    assert not (tmp_path / "none.work").exists()


def test_a_real_loss_that_is_no_number(root, tmp_path, any_number):
    record = search(root, tmp_path / "out", {"learning-rate": [0.01, 1e30]}).record
    assert record.trials[0].score is not None
    assert record.trials[1].score is None and "nan" in record.trials[1].reason


def test_settings_that_do_not_fit_together(root, tmp_path):
    record = search(root, tmp_path / "out", {"mega-batch": [1], "batch-size": [1, 10]}).record
    assert [trial.settings for trial in record.trials] == [{"mega_batch": 1, "batch_size": 10}]
    assert record.refused == 1 and "leaves one pair to a mega-batch" in record.refusal
    with pytest.raises(InputError, match="no combination of the grid fits together; the last one: .*leaves one pair"):
        search(root, tmp_path / "none", {"mega-batch": [1], "batch-size": [1]})
    assert not (tmp_path / "none.work").exists()


def test_settings_that_do_not_fit_the_data(root, tmp_path):
    """What shows when an encoder is made ends no search; vectors are of one width, and words have counts."""
    lines = [f"left{index} {' '.join(['0.5', str(index)] * 4)}\n" for index in range(30)]
    (tmp_path / "v.txt").write_text("".join(lines))
    grid = {"dimension": [6, 8], "min-count": [1, 10_000]}
    record = search(root, tmp_path / "out", grid, training={"vectors": str(tmp_path / "v.txt")}).record
    assert [trial.settings for trial in record.trials] == [{"dimension": 8, "min_count": 1}]
    assert record.refused == 3 and "the word vocabulary is empty" in record.refusal
    with pytest.raises(InputError, match="no combination of the grid fits together; .* the word vocabulary"):
        search(root, tmp_path / "none", {"min-count": [10_000]})
    assert not (tmp_path / "none.work").exists()


def test_what_would_fail_after_the_search_is_refused_before(root, tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    for name in ("out", "taken"):
        with pytest.raises(InputError) as error:
            search(root, tmp_path / "out", final=tmp_path / name)
        assert error.value.option == "final"
    with pytest.raises(InputError, match="patience counts evaluations"):
        search(root, tmp_path / "out", training={"patience": 2})
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_pairs_without_negatives_can_be_ranked(root, tmp_path):
    (tmp_path / "few.tsv").write_text("1\tleft1 left2\tright2 right1\n0\tleft1 left2\tright3 right4\n")
    best = search(root, tmp_path / "out", {"seed": [1]}, development=tmp_path / "few.tsv").record.best
    assert abs(best.score) == 1


@pytest.mark.slow
def test_the_command(root, tmp_path, capsys):
    words = ["tune", str(root / "pairs.parquet"), "--development", str(root / "phrases.tsv")]
    words += "--grid word lambda-w=0,1e-4 batch-size=10 learning-rate=0.01 optimizer=adam margin=0.4 clip=1".split()
    words += ["--sampler", "random", "--trials", "3", "--training", "dimension=8,epochs=1", "--tune-pairs", "40"]
    assert main([*words, "--out", str(tmp_path / "out"), "--final", str(tmp_path / "final")]) == 0
    printed = capsys.readouterr().out
    assert "3 of 4 combinations, 40 pairs" in printed and "final: trained with it on 600 pairs" in printed
    record = json.loads((tmp_path / "out" / "tune.json").read_text())
    assert record["settings"]["training"]["mega_batch"] == 1 and record["settings"]["training"]["epochs"] == 1
    # The record of the outcome repeats it.
    again = ["tune", "--config", str(tmp_path / "out" / "tune.json"), "--out", str(tmp_path / "again")]
    assert main([*again, "--final", str(tmp_path / "final")]) == 0
    assert (tmp_path / "again" / "trials.tsv").read_bytes() == (tmp_path / "out" / "trials.tsv").read_bytes()
    assert main([*words, "--grid", "lambda-x=1", "--out", str(tmp_path / "x")]) == 1
    assert "--grid names 'lambda-x', which is not one of" in capsys.readouterr().err
    assert not (tmp_path / "x.work").exists()


@pytest.mark.slow
def test_models_of_the_trainer(root, tmp_path):
    words = ["tune", str(root / "pairs.parquet"), "--development", str(root / "phrases.tsv")]
    words += ["--grid", "dan", "lambda-w=0,1e-4", "batch-size=10", "lambda-c=0.01", "learning-rate=0.01"]
    words += ["--sampler", "grid", "--trials", "6", "--training", "dimension=8,epochs=1", "--tune-pairs", "40"]
    assert main([*words, "--out", str(tmp_path / "out"), "--final", str(tmp_path / "final")]) == 0
    record = json.loads((tmp_path / "out" / "tune.json").read_text())
    assert {"lambda_w", "margin", "clip", "layers", "activation"} <= record["trials"][0]["settings"].keys()
    assert len({trial["score"] for trial in record["trials"]}) > 1 and not (tmp_path / "out.work").exists()
    options = (tmp_path / "out" / "best.yaml").read_text()
    assert "model: dan\n" in options and "epochs: 10\n" in options
