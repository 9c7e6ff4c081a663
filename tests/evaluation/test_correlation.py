"""Correlations against hand-worked numbers and scipy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from paranmt_hf.evaluation.correlation import bootstrap_interval, pearson, spearman
from tests.refused import refused

scipy_stats = pytest.importorskip("scipy.stats", reason="scipy is the oracle")


def test_pearson_by_hand():
    # Centred: -1 0 1 and -2 -1 3; 5 / sqrt(2 * 14).
    assert pearson([1, 2, 3], [1, 2, 6]) == pytest.approx(5 / 28**0.5)
    assert pearson([1, 2], [7, 3]) == pytest.approx(-1)


def test_spearman_by_hand():
    # Ranks 1.5 1.5 3 and 1 2 3; centred -0.5 -0.5 1 and -1 0 1: 1.5 / sqrt(1.5 * 2).
    assert spearman([5, 5, 9], [0, 10, 11]) == pytest.approx(1.5 / 3**0.5)


@pytest.mark.parametrize("size", [2, 3, 50, 2000])
def test_scipy_agrees(size):
    generator = np.random.default_rng(size)
    left = generator.integers(0, 6, size) + generator.normal(size=size) * (size > 3)
    right = generator.integers(0, 6, size).astype(float)
    left[0], right[0], left[1], right[1] = 0, 0, 5.5, 5
    assert pearson(left, right) == pytest.approx(scipy_stats.pearsonr(left, right).statistic, abs=1e-12)
    assert spearman(left, right) == pytest.approx(scipy_stats.spearmanr(left, right).statistic, abs=1e-12)


@given(
    arrays.arrays(np.float64, st.integers(2, 20), elements=st.floats(-1e3, 1e3, width=16)),
    st.sampled_from([1e-200, 1e-3, 1.0, 1e200]),
    st.floats(-5, 5),
)
def test_scale_and_shift_do_not_matter(values, scale, shift):
    """Squares of extreme values must neither overflow nor vanish."""
    other = np.arange(len(values)) ** 2.0
    if values.min() == values.max():
        with refused():
            pearson(values, other)
        return
    expected = pearson(values, other)
    assert -1 <= expected <= 1
    assert pearson(values * scale, other) == pytest.approx(expected, abs=1e-9)
    assert pearson(values, other + shift) == pytest.approx(expected, abs=1e-9)
    assert pearson(-values, other) == pytest.approx(-expected, abs=1e-12)


@pytest.mark.parametrize("measure", [pearson, spearman, bootstrap_interval])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([1.0, float("nan"), 2.0], [1, 2, 3]),
        ([1, 2, 3], [1, 2, float("inf")]),
        ([0.1] * 3, [1, 2, 3]),
        ([1, 2, 3], [4, 4, 4]),
        ([1, 2, 3], [1, 2]),
        ([1], [1]),
        ([[1, 2], [3, 4]], [1, 2]),
        (["a", "b"], [1, 2]),
    ],
)
def test_what_has_no_correlation_is_an_error(measure, left, right):
    with refused():
        measure(left, right)


def correlated(size: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(7)
    left = generator.normal(size=size)
    return left, left + generator.normal(size=size)


def test_interval_is_that_of_resampling_one_by_one():
    left, right = correlated(40)
    generator = np.random.default_rng(3)
    drawn = generator.integers(40, size=(200, 40))
    each = [np.corrcoef(left[rows], right[rows])[0, 1] for rows in drawn]
    expected = np.quantile(each, [0.025, 0.975])
    assert bootstrap_interval(left, right, resamples=200, seed=3) == pytest.approx(expected)


def test_interval_is_near_the_theory():
    """Fisher's transformation gives the interval of normal data."""
    left, right = correlated(1000)
    centre = np.arctanh(pearson(left, right))
    expected = np.tanh([centre - 1.96 / 997**0.5, centre + 1.96 / 997**0.5])
    assert bootstrap_interval(left, right, resamples=2000) == pytest.approx(expected, abs=0.01)


def test_interval_depends_on_the_seed_alone():
    left, right = correlated(30)
    first = bootstrap_interval(left, right, resamples=100, seed=5)
    assert first == bootstrap_interval(left, right, resamples=100, seed=5)
    assert first != bootstrap_interval(left, right, resamples=100, seed=6)
    assert first == pytest.approx(bootstrap_interval(left, right, resamples=100, seed=5, block=70))


def test_constant_resamples_are_left_out():
    low, high = bootstrap_interval([0.1, 0.1, 0.1, 0.7], [0.3, 0.3, 0.3, 0.9], resamples=300)
    assert (low, high) == pytest.approx((1, 1))
