"""Paired differences of models: against resampling one by one, and with intervals that can be worked out by hand."""

import numpy as np
import pytest

from paranmt_hf import evaluate
from paranmt_hf.evaluation.pair_set import StsSet
from paranmt_hf.evaluation.results import read_results


class Given:
    """A measure of pairs that gives each pair a number, which is its first sentence for each model."""

    def __init__(self, model: int) -> None:
        self.model = model

    def similarities(self, left, right):
        return np.array([float(text.split()[self.model]) for text in left])


def sets_of_pairs(sizes: dict[str, tuple[str | None, int]], noises: list[float]) -> list[StsSet]:
    """Sets with gold scores, and for each model the gold scores with this noise."""
    generator = np.random.default_rng(5)
    found = []
    for name, (year, size) in sizes.items():
        gold = generator.uniform(0, 5, size)
        shared = generator.normal(size=size)
        texts = [
            " ".join(f"{gold[i] + shared[i] + noise * generator.normal()}" for noise in noises) for i in range(size)
        ]
        found.append(StsSet(name, texts, ["x"] * size, gold, year))
    return found


def test_intervals_are_those_of_resampling_one_by_one():
    sets = sets_of_pairs({"a": ("STS12", 12), "b": ("STS12", 30), "c": ("STS13", 12), "own": (None, 9)}, [0, 1, 3])
    found = evaluate([Given(0), Given(1), Given(2)], data=sets, bootstrap=150)
    correlations = {}
    for number, each in enumerate(sets):
        drawn = np.random.default_rng([1, number]).integers(len(each), size=(150, len(each)))
        for model in range(3):
            values = Given(model).similarities(each.left, each.right)
            one_by_one = [np.corrcoef(values[rows], each.gold[rows])[0, 1] for rows in drawn]
            correlations[each.title, model] = np.array(one_by_one)
    for model in range(3):
        twelve = (correlations["STS12 a", model] + correlations["STS12 b", model]) / 2
        correlations["STS12", model], correlations["STS13", model] = twelve, correlations["STS13 c", model]
        correlations["Mean", model] = (twelve + correlations["STS13 c", model]) / 2
    assert all(row.difference is None for row in found[0].rows)
    for model in (1, 2):
        for row in found[model].rows:
            expected = correlations[row.name, model] - correlations[row.name, 0]
            assert row.difference.interval == pytest.approx(np.quantile(expected, [0.025, 0.975]))
            assert row.difference.value == pytest.approx(row.main - found[0].value(row.name))
    assert {row.name for row in found[1].rows} == {"STS12 a", "STS12 b", "STS13 c", "own", "STS12", "STS13", "Mean"}


def test_a_model_is_not_separable_from_itself_and_a_worse_one_is(tmp_path):
    sets = sets_of_pairs({"a": ("STS12", 300), "b": ("STS12", 200)}, [0.5, 2])
    found = evaluate({"one": Given(0), "same": Given(0), "worse": Given(1)}, data=sets)
    same, worse = (found[model].tables["Year"][-1].difference for model in (1, 2))
    assert (same.value, same.interval, same.is_separable) == (0, (0, 0), False)
    assert worse.is_separable and worse.interval[0] < worse.value < worse.interval[1] < 0
    sentence = next(line for line in found.summary().splitlines() if line.startswith("Not separable"))
    assert "same on Mean" in sentence and "worse" not in sentence
    found.write(tmp_path / "r.json")
    assert read_results(tmp_path / "r.json") == list(found)


def test_a_paired_interval_is_narrower_than_those_of_the_models():
    """What makes a pair hard is hard for both models."""
    (one,) = sets_of_pairs({"a": (None, 400)}, [0.1, 0.5])
    first, second = evaluate([Given(0), Given(1)], data=[one])
    low, high = second.tables["Set"][0].difference.interval
    widths = [np.ptp(each.tables["Set"][0].interval) for each in (first, second)]
    assert high - low < min(widths)
    assert max(low, high) < 0, "although the intervals of the two overlap"
    assert first.tables["Set"][0].interval[0] < second.tables["Set"][0].interval[1]


def test_without_resamples_there_is_no_difference():
    sets = sets_of_pairs({"a": ("STS12", 20)}, [0, 1])
    found = evaluate([Given(0), Given(1)], data=sets, bootstrap=0)
    assert all(row.difference is None for each in found for row in each.rows)


def test_sets_of_two_pairs():
    """Half of their resamples have no correlation; a difference is left out if none has one in all sets."""
    sets = [StsSet(f"s{number}", ["1 2", "2 1"], ["x", "x"], np.array([1.0, 5.0]), "STS12") for number in range(40)]
    found = evaluate([Given(0), Given(1)], data=sets, bootstrap=30)
    assert found[1].tables["Set"][0].difference.interval == pytest.approx((-2, -2))
    assert found[1].tables["Year"][0].difference is None and "Difference to" in found.summary()
