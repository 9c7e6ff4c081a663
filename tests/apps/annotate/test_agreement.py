import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from paranmt_hf.apps.annotate.agreement import agreement, weighted_kappa


def test_by_hand():
    # Rows are the labels of the one, columns of the other: 6 times both 1, once 1 against 3, 3 times both 3.
    counts = np.array([[6, 0, 1], [0, 0, 0], [0, 0, 3]])
    # Quadratic: weight 4. Observed 1 * 4 = 4. Expected (7 * 4 + 3 * 6) * 4 / 10 = 18.4.
    assert weighted_kappa(counts, "quadratic") == pytest.approx(1 - 4 / 18.4)
    assert weighted_kappa(counts, "linear") == pytest.approx(1 - 2 / 9.2)
    # 2 and 3 are nearer than 1 and 3. Linear: observed 1 + 1; expected (row, column): rows 2 1 1, columns 1 2 1.
    counts = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1]])
    expected = (2 * 2 * 1 + 2 * 1 * 2 + 1 * 1 * 1 + 1 * 1 * 1 + 1 * 1 * 2 + 1 * 2 * 1) / 4
    assert weighted_kappa(counts, "linear") == pytest.approx(1 - 1 / expected)


def test_limits():
    assert weighted_kappa(np.diag([2, 3, 4]), "linear") == 1
    assert weighted_kappa(np.array([[0, 0, 5], [0, 0, 0], [5, 0, 0]]), "quadratic") == -1
    # Both gave label 3 throughout: there is nothing to agree on. Each gave one label, not the same: as good as chance.
    assert np.isnan(weighted_kappa(np.diag([0, 0, 5]), "linear"))
    assert weighted_kappa(np.array([[0, 0, 5], [0, 0, 0], [0, 0, 0]]), "linear") == 0
    assert np.isnan(weighted_kappa(np.zeros((3, 3)), "linear"))


labels = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=40)


@settings(max_examples=60)
@given(labels)
def test_as_scikit_learn(pairs):
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    found = agreement(["a", "b"], np.stack([first, second]), range(6))
    assert found.same == pytest.approx(np.mean(first == second))
    for weights in ("linear", "quadratic"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = cohen_kappa_score(first, second, labels=list(range(6)), weights=weights)
        ours = getattr(found, weights)
        assert (ours is None and np.isnan(theirs)) or ours == pytest.approx(theirs)


def test_only_what_both_labelled_counts():
    given = np.array([[1, 3, -1, 2, -1], [1, -1, 3, 3, -1]])
    found = agreement(["a", "b"], given, (1, 2, 3))
    assert (found.items, found.same) == (2, 0.5)
    assert found.quadratic == pytest.approx(cohen_kappa_score([1, 2], [1, 3], labels=[1, 2, 3], weights="quadratic"))


def test_nothing_in_common():
    found = agreement(["a", "b"], np.array([[1, -1], [-1, 2]]), (1, 2, 3), resamples=10)
    assert (found.items, found.same, found.linear, found.quadratic, found.interval) == (0, None, None, None, None)
    assert agreement(["a", "b"], np.empty((2, 0), int), (1, 2, 3), resamples=10).items == 0


def test_more_than_two_the_mean_over_each_two():
    generator = np.random.default_rng(0)
    given = generator.integers(1, 4, (3, 30))
    # The third has nothing in common with the first.
    given[0, :15], given[2, 15:] = -1, -1
    found = agreement(["a", "b", "c"], given, (1, 2, 3))
    assert [(pair.first, pair.second, pair.items) for pair in found.pairs] == [
        ("a", "b", 15),
        ("a", "c", 0),
        ("b", "c", 15),
    ]
    kappas = [
        cohen_kappa_score(given[0, 15:], given[1, 15:], weights="linear"),
        cohen_kappa_score(given[1, :15], given[2, :15], weights="linear"),
    ]
    assert found.linear == pytest.approx(np.mean(kappas))
    assert found.items == 30


def test_the_interval_is_that_of_resampled_items():
    generator = np.random.default_rng(1)
    first = generator.integers(1, 4, 60)
    second = np.where(generator.random(60) < 0.7, first, generator.integers(1, 4, 60))
    found = agreement(["a", "b"], np.stack([first, second]), (1, 2, 3), resamples=2000, seed=5)
    low, high = found.interval
    kappas = []
    for _ in range(400):
        drawn = generator.integers(0, 60, 60)
        kappas.append(cohen_kappa_score(first[drawn], second[drawn], labels=[1, 2, 3], weights="quadratic"))
    assert low < found.quadratic < high
    assert (low, high) == pytest.approx(np.percentile(kappas, [2.5, 97.5]), abs=0.05)
    assert agreement(["a", "b"], np.stack([first, second]), (1, 2, 3), resamples=2000, seed=5) == found
    assert agreement(["a", "b"], np.stack([first, second]), (1, 2, 3), resamples=2000, seed=6).interval != (low, high)
