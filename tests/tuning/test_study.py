"""The choice of combinations by optuna: each once, the same ones after any interruption, and the promising ones."""

import pytest

from paranmt_hf import InputError
from paranmt_hf.errors import DivergedError
from paranmt_hf.tuning.grid import read_grid
from paranmt_hf.tuning.record import TuneConfig
from paranmt_hf.tuning.study import Search

_, GRID = read_grid({"lambda_w": [0.0, 0.1, 0.2, 0.3], "seed": [1, 2, 3, 4, 5]})


class Toy:
    """A large lambda_w and a large seed score best; `stop` and `cut` interrupt the training of one trial."""

    measure = "Score"

    def __init__(self, stop=None):
        self.stop, self.ran = stop, []

    def trial(self, combination):
        if combination["seed"] == 4:
            raise InputError("no four")

        def train(running):
            if len(self.ran) == self.stop:
                raise KeyboardInterrupt
            self.ran.append(combination)
            if combination == {"lambda_w": 0.1, "seed": 2}:
                raise DivergedError("too much")
            return combination["lambda_w"] + combination["seed"] / 100, None

        return train


def search(work, sampler="random", seed=1, trials=20, toy=None, grid=GRID):
    work.mkdir(exist_ok=True)
    config = TuneConfig(sampler=sampler, search_seed=seed, trials=trials)
    return Search(toy or Toy(), grid, config, work).run()


def chosen(found):
    return [(trial.number, tuple(trial.settings.values()), trial.score, trial.reason) for trial in found[0]]


def test_each_combination_is_tried_once(tmp_path):
    trials, refusals = search(tmp_path / "a")
    assert len({tuple(trial.settings.values()) for trial in trials}) == len(trials) == 16
    assert refusals == ["no four"] * 4
    assert [trial.reason for trial in trials if trial.score is None] == ["too much"]
    assert (
        chosen(search(tmp_path / "b", trials=9))
        == chosen((trials, refusals))[: len(search(tmp_path / "c", trials=9)[0])]
    )


@pytest.mark.parametrize("sampler", ["random", pytest.param("tpe", marks=pytest.mark.slow)])
@pytest.mark.parametrize("stop", [pytest.param(0, marks=pytest.mark.slow), 7])
def test_an_interruption_changes_nothing_and_a_seed_does(sampler, stop, tmp_path):
    whole = search(tmp_path / "whole", sampler)
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "out", sampler, toy=Toy(stop))
    # A kill in the middle of a line.
    with (tmp_path / "out" / "trials.jsonl").open("ab") as file:
        file.write(b'{"op_code":')
    again = Toy()
    assert chosen(search(tmp_path / "out", sampler, toy=again)) == chosen(whole)
    assert len(again.ran) == len(whole[0]) - stop and len(whole[0]) == 16
    assert chosen(search(tmp_path / "other", sampler, seed=2)) != chosen(whole)


@pytest.mark.slow
def test_tpe_chooses_the_same_with_every_version_of_optuna(tmp_path):
    """As optuna 4.5 and 5.0 choose, whose defaults differ."""
    found = [tuple(trial.settings.values()) for trial in search(tmp_path / "out", "tpe", trials=14)[0]]
    assert found[:6] == [(0.1, 5), (0.2, 2), (0.2, 5), (0.2, 1), (0.0, 5), (0.0, 2)]
    assert found[6:] == [(0.0, 1), (0.3, 5), (0.3, 1), (0.1, 3), (0.1, 1), (0.3, 3), (0.1, 2)]


@pytest.mark.slow
def test_tpe_learns(tmp_path):
    _, grid = read_grid({"lambda_w": [step / 10 for step in range(10)], "seed": [*range(5, 15)]})

    def late(sampler):
        """Sum of the scores after the first draws, which are random, over some seeds."""
        total = 0.0
        for seed in range(3):
            trials, _ = search(tmp_path / f"{sampler}{seed}", sampler, seed, trials=25, grid=grid)
            total += sum(trial.score for trial in trials[15:])
        return total

    assert late("tpe") > 1.2 * late("random")
