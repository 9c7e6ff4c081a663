"""Grids of settings: names and values are checked, and those of the papers are as printed."""

import pytest

from paranmt_hf import EncoderConfig, SuperviseConfig, TrainConfig
from paranmt_hf.tuning.grid import SUPERVISE, apply, paper_grids, read_grid
from tests.refused import refused


def axes(grid):
    """The values of each axis, tuples where settings change together."""
    found = {}
    for names, values in grid.axes.items():
        rows = [tuple(value.values()) for value in values]
        found[names] = rows if "," in names else [row[0] for row in rows]
    return found


def test_words_and_files_give_values_of_the_settings(tmp_path):
    fixed, grid = read_grid(["lambda-w=0,1e-5,.5", "batch_size=25", "decay=true,false", "word-dimension=none,8"])
    values = {"lambda_w": [0.0, 1e-5, 0.5], "batch_size": [25], "decay": [True, False], "word_dimension": [None, 8]}
    assert (fixed, axes(grid)) == ({}, values) and grid.size == 12
    file = tmp_path / "grid.yaml"
    file.write_text("lambda-w: [0, 1e-5, 0.5]\nbatch-size: [25]\ndecay: [true, false]\nword-dimension: [null, 8]\n")
    assert axes(read_grid([str(file)])[1]) == values
    # Later values replace earlier ones, in the place of these.
    fixed, grid = read_grid(["word", str(file), "batch_size=7"])
    assert fixed["model"] == "word" and grid.names[0] == "lambda_w" and grid.axes["optimizer"]
    assert (axes(grid)["lambda_w"], axes(grid)["batch_size"]) == ([0.0, 1e-5, 0.5], [7])


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({}, "grid"),
        ({"lambda-x": [0]}, "grid"),
        ({"epochs": [1]}, "grid"),
        ({"lambda-w": []}, "grid"),
        ({"lambda-w": "0"}, "grid"),
        ({"lambda-w": [-1]}, "lambda_w"),
        ({"decay": ["yes"]}, "decay"),
        ({name: range(1, 1001) for name in ("seed", "words", "trigrams")}, "grid"),
        ({"lambda-w,freeze-words": [[0.5]]}, "grid"),
        ({"lambda-w,freeze-words": [0.5]}, "grid"),
        ({"lambda-w,freeze-words": [[0.5, False, 1]]}, "grid"),
        ({"lambda-w,freeze-words": [[0, True]], "lambda-w": [0]}, "grid"),
        (["lambda-w"], "grid"),
        (["lambda-w="], "grid"),
        (["=1"], "grid"),
        (["lambda-w=1,,2"], "grid"),
        (["sum"], "grid"),
    ],
)
def test_bad_grids(given, option):
    with refused(option):
        read_grid(given)


def test_settings_that_change_together():
    _, grid = read_grid({"seed": [1, 2], "lambda-w, freeze-words": [[0.5, False], [0, True]]})
    assert grid.size == 4
    found = grid.combination({"seed": 1, "lambda_w,freeze_words": 0})
    assert found == {"seed": 2, "lambda_w": 0.5, "freeze_words": False}
    # A list of one of them replaces both.
    assert read_grid(["dan", "lambda-w=0"])[1].names[-1] == "lambda_w"
    assert "freeze_words" not in read_grid(["dan", "lambda-w=0"])[1].names


def test_settings_go_where_they_belong():
    encoder, config = apply({"lambda_w": 0.5, "dimension": 7}, EncoderConfig(min_count=2), TrainConfig(seed=9))
    assert (encoder.dimension, encoder.min_count, config.lambda_w, config.seed) == (7, 2, 0.5, 9)
    with refused():
        apply({"batch_size": 1}, EncoderConfig(), TrainConfig(mega_batch=1))


def combinations(grid):
    """Some combinations of a grid."""
    for start in range(12):
        yield grid.combination({name: start % len(values) for name, values in grid.axes.items()})


@pytest.mark.parametrize("name", paper_grids())
def test_grids_of_the_paper(name):
    """Section 4.2.1 and footnote 9 of arXiv:1511.08198."""
    fixed, grid = read_grid([name])
    fixed = {key.replace("-", "_"): value for key, value in fixed.items()}
    assert (
        fixed.pop("model") == name and fixed.pop("mega_batch") == 1 and fixed.pop("scrambling", 0) == 0 and not fixed
    )
    words = (1e-5, 1e-6, 1e-7, 1e-8)
    wanted = {
        "batch_size": {25, 50, 100},
        "margin": {0.4, 0.6, 0.8},
        "clip": {None, 1.0},
        "optimizer": {"adam", "adagrad"},
        "learning_rate": {0.05, 0.005, 0.0005},
        "negatives": {"mix", "max"},
    }
    if name == "word":
        wanted["lambda_w"] = set(words)
    else:
        wanted["lambda_w,freeze_words"] = {*((weight, False) for weight in words), (0.0, True)}
        wanted["lambda_c"] = {1000.0, 100.0, 10.0, 1.0} if name == "irnn" else {1e-3, 1e-4, 1e-5, 1e-6}
    wanted |= {"activation": {"tanh", "relu"}} if name in ("rnn", "dan") else {}
    wanted |= {"layers": {1, 2}} if name == "dan" else {}
    wanted |= {"output_gate": {"with", "without"}} if name == "plstm" else {}
    assert {names: set(values) for names, values in axes(grid).items()} == wanted
    for combination in combinations(grid):
        encoder, _ = apply(combination, EncoderConfig(model=name), TrainConfig(mega_batch=1))
        assert encoder.model == name


def test_the_grids_are_those_of_the_encoders_of_the_paper():
    sizes = {name: read_grid([name])[1].size for name in paper_grids()}
    # lambda_w 4, or 5 with words that are not updated; lambda_c 4; batch, margin, clip, optimizer, rate, negatives.
    others = 3 * 3 * 2 * 2 * 3 * 2
    averaged = {"word": 4 * others, "projection": 20 * others, "irnn": 20 * others}
    assert sizes == averaged | {"rnn": 40 * others, "plstm": 40 * others, "dan": 80 * others}
    assert sizes["word"] == 864


@pytest.mark.parametrize("name", paper_grids(SUPERVISE))
def test_grids_of_the_supervised_tasks(name):
    """Section 4.4 and footnotes 16 and 17 of arXiv:1511.08198."""
    fixed, grid = read_grid([name], SUPERVISE)
    heads, composition = (1e-3, 1e-4, 1e-5, 1e-6), (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
    words = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
    wanted = {"batch_size": {25, 50, 100}, "hidden": {50, 150, 300}, "optimizer": {"adam", "adagrad"}}
    if name == "fixed":
        wanted = {"lambda_s": {*heads}, "optimizer": {"adam", "adagrad"}}
    elif name in ("word", "regularised-word", "regularised"):
        wanted |= {"lambda_s": {*heads}, "lambda_w": {*words}}
        wanted |= {"lambda_c": {*composition}} if name == "regularised" else {}
    else:
        wanted["lambda_s,lambda_c"] = {(weight, weight) for weight in heads}
        wanted["lambda_w,freeze_words"] = {*((weight, False) for weight in words), (0.0, True)}
    wanted |= {"activation": {"tanh", "relu"}} if name in ("rnn", "dan") else {}
    wanted |= {"layers": {1, 2}} if name == "dan" else {}
    assert {names: set(values) for names, values in axes(grid).items()} == wanted
    start = name in ("fixed", "regularised", "regularised-word")
    assert fixed == ({"way": name.removesuffix("-word")} if start else {"model": name})
    for combination in combinations(grid):
        _, config = apply(combination, EncoderConfig(), SuperviseConfig("SICK-R"))
        rate = {"adam": 0.001, "adagrad": 0.05}[config.optimizer]
        assert config.resolved(start=start).learning_rate == rate


def test_the_grids_of_tasks_are_those_of_the_paper():
    assert set(paper_grids(SUPERVISE)) == {*paper_grids(), "fixed", "regularised", "regularised-word"}
