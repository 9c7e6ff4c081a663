"""Grids of settings: names and values are checked, combinations have indices, and each is tried once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import InputError
from paranmt_hf.supervised.config import SuperviseConfig
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.tuning.grid import SUPERVISE, Grid, Order, TuneConfig, apply, paper_grids, read_grid
from paranmt_hf.util import optional
from tests.refused import refused


def test_words_and_files_give_values_of_the_settings(tmp_path):
    fixed, grid = read_grid(["lambda-w=0,1e-5,.5", "batch_size=25", "decay=true,false", "word-dimension=none,8"])
    values = {"lambda_w": (0.0, 1e-5, 0.5), "batch_size": (25,), "decay": (True, False), "word_dimension": (None, 8)}
    assert (fixed, grid.values) == ({}, values)
    file = tmp_path / "grid.yaml"
    file.write_text("lambda-w: [0, 1e-5, 0.5]\nbatch-size: [25]\ndecay: [true, false]\nword-dimension: [null, 8]\n")
    assert read_grid([str(file)])[1].values == values
    # Later values replace earlier ones, in the place of these.
    fixed, grid = read_grid(["word", str(file), "batch_size=7"])
    assert fixed["model"] == "word" and list(grid.values)[0] == "lambda_w" and grid.values["optimizer"]
    assert (grid.values["lambda_w"], grid.values["batch_size"]) == ((0.0, 1e-5, 0.5), (7,))


@pytest.mark.parametrize(
    ("values", "option", "message"),
    [
        ({}, "grid", "nothing to search"),
        ({"lambda-x": [0]}, "grid", "'lambda-x', which is not one of"),
        ({"epochs": [1]}, "grid", "'epochs', which is not one of"),
        ({"lambda-w": []}, "grid", r"must be a list of values, was \[\]"),
        ({"lambda-w": "0"}, "grid", "must be a list of values, was '0'"),
        ({"lambda-w": [-1]}, "lambda_w", "was -1"),
        ({"decay": ["yes"]}, "decay", "was 'yes'"),
        ({"lambda-w": ["1e-5", "0.00001"]}, "grid", "has a value twice: 1e-05, 1e-05"),
        (
            {name: range(1, 1001) for name in "seed batch-size words trigrams min-count dimension clip".split()},
            "grid",
            "1,000,000,000,000,000,000,000 combinations, at most 1,000,000",
        ),
    ],
)
def test_bad_grids(values, option, message):
    with pytest.raises(InputError, match=message) as error:
        Grid(values)
    assert error.value.option == option


@pytest.mark.parametrize("words", [["lambda-w"], ["lambda-w="], ["=1"], ["lambda-w=1,,2"], ["sum"], ["seed=1"] * 2])
def test_bad_words(words):
    with pytest.raises(InputError) as error:
        read_grid(words)
    assert error.value.option == "grid"


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_combinations_are_numbered(sizes):
    names = ["lambda_w", "seed", "batch_size"][: len(sizes)]
    grid = Grid({name: list(range(1, 1 + size)) for name, size in zip(names, sizes, strict=True)})
    combinations = [grid.combination(index) for index in range(len(grid))]
    assert [grid.index(grid.positions(index)) for index in range(len(grid))] == list(range(len(grid)))
    assert len({tuple(combination.values()) for combination in combinations}) == len(grid)
    assert list(combinations[0]) == names


def test_settings_go_where_they_belong():
    encoder, config = apply({"lambda_w": 0.5, "dimension": 7}, EncoderConfig(min_count=2), TrainConfig(seed=9))
    assert (encoder.dimension, encoder.min_count, config.lambda_w, config.seed) == (7, 2, 0.5, 9)
    with refused():
        apply({"batch_size": 1}, EncoderConfig(), TrainConfig(mega_batch=1))


GRID = Grid({"lambda_w": [0.0, 0.1, 0.2, 0.3], "seed": [1, 2, 3, 4, 5]})


def walk(sampler, seed=1, restart=False, turns=20):
    """Try combinations, of which a large lambda_w and a large seed score best."""
    config = TuneConfig(sampler=sampler, search_seed=seed)
    order, scores, closed = Order(GRID, config), {}, set()
    for turn in range(turns):
        if restart:
            order = Order(GRID, config)
        index = order.next(scores, closed)
        closed.add(index)
        combination = GRID.combination(index)
        # One of them fails.
        scores[index] = None if turn == 3 else combination["lambda_w"] + combination["seed"] / 100
    assert turns < 20 or order.next(scores, closed) is None
    return list(scores)


@pytest.mark.parametrize("sampler", ["grid", "random", "tpe"])
def test_each_combination_is_tried_once(sampler):
    tried = walk(sampler)
    assert sorted(tried) == list(range(20))
    assert (tried == list(range(20))) == (sampler == "grid")


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_an_interruption_changes_nothing_and_a_seed_does(sampler):
    assert walk(sampler, turns=14) == walk(sampler, restart=True, turns=14) != walk(sampler, seed=2, turns=14)


def test_tpe_chooses_the_same_with_every_version_of_optuna():
    """As optuna 4.5, 4.9 and 5.0 choose, whose defaults differ."""
    assert walk("tpe", turns=16) == [9, 1, 13, 10, 11, 14, 18, 16, 4, 7, 0, 12, 17, 15, 2, 3]


@pytest.mark.slow
def test_tpe_learns():
    def best_ten(sampler):
        # Sum over some seeds of what was found in turns 11 to 14.
        return sum(GRID.combination(index)["lambda_w"] for seed in range(5) for index in walk(sampler, seed)[10:14])

    assert best_ten("tpe") > best_ten("random")


def test_optuna_is_asked_for(monkeypatch):
    monkeypatch.setattr(optional, "available", lambda package: package != "optuna")
    with refused():
        Order(GRID, TuneConfig(sampler="tpe"))
    Order(GRID, TuneConfig())


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
    assert {names: set(values) for names, values in grid.values.items()} == wanted
    for index in range(0, len(grid), 29):
        encoder, _ = apply(grid.combination(index), EncoderConfig(model=name), TrainConfig(mega_batch=1))
        assert encoder.model == name


def test_the_grids_are_those_of_the_encoders_of_the_paper():
    sizes = {name: len(read_grid([name])[1]) for name in paper_grids()}
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
    assert {names: set(values) for names, values in grid.values.items()} == wanted
    start = name in ("fixed", "regularised", "regularised-word")
    assert fixed == ({"way": name.removesuffix("-word")} if start else {"model": name})
    for index in range(0, len(grid), 29):
        _, config = apply(grid.combination(index), EncoderConfig(), SuperviseConfig("SICK-R"))
        rate = {"adam": 0.001, "adagrad": 0.05}[config.optimizer]
        assert config.resolved(start=start).learning_rate == rate


def test_the_grids_of_tasks_are_those_of_the_paper():
    assert set(paper_grids(SUPERVISE)) == {*paper_grids(), "fixed", "regularised", "regularised-word"}


def test_settings_that_change_together():
    grid = Grid({"seed": [1, 2], "lambda-w, freeze-words": [[0.5, False], [0, True]]})
    assert [tuple(grid.combination(index).values()) for index in range(len(grid))] == [
        (1, 0.5, False), (1, 0.0, True), (2, 0.5, False), (2, 0.0, True)
    ]  # fmt: skip
    assert [grid.index(grid.positions(index)) for index in range(4)] == [0, 1, 2, 3]
    # A list of one of them replaces both.
    assert list(read_grid(["dan", "lambda-w=0"])[1].values)[-1] == "lambda_w"
    assert "freeze_words" not in read_grid(["dan", "lambda-w=0"])[1].names
    for values in ([[0.5]], [0.5], [[0.5, False, 1]]):
        with pytest.raises(InputError) as error:
            Grid({"lambda-w,freeze-words": values})
        assert error.value.option == "grid"
    with pytest.raises(InputError) as error:
        Grid({"lambda-w,freeze-words": [[0, True]], "lambda-w": [0]})
    assert error.value.option == "grid"
