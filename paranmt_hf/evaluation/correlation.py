"""Compute Pearson's and Spearman's correlation, and a confidence interval of Pearson's, in numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.util.wording import brief

RESAMPLES = 1000  # Default number of resamples for a bootstrap interval


def pearson(left: Sequence[float] | np.ndarray, right: Sequence[float] | np.ndarray) -> float:
    """Compute Pearson's product-moment correlation, in [-1, 1].

    Raises `InputError` if the correlation does not exist: for fewer than two pairs, numbers that are not finite, or
    sides of equal values or of different lengths.
    """
    x, y = _standardised(left, right)
    return float(np.clip(np.mean(x * y), -1, 1))


def spearman(left: Sequence[float] | np.ndarray, right: Sequence[float] | np.ndarray) -> float:
    """Compute Spearman's rank correlation, in [-1, 1]; equal values share the mean of their ranks.

    Raises `InputError` where `pearson` does.
    """
    from scipy.stats import rankdata

    return pearson(*map(rankdata, _checked(left, right)))


def bootstrap_interval(
    left: Sequence[float] | np.ndarray,
    right: Sequence[float] | np.ndarray,
    *,
    resamples: int = RESAMPLES,
    seed: int = 1,
    block: int = 4_000_000,
) -> tuple[float, float]:
    """Compute the 95 % percentile bootstrap interval of Pearson's correlation.

    Resamples in which a side is constant have no correlation and are left out; they only occur with few pairs.

    Args:
        left: First values of the pairs.
        right: Second values of the pairs.
        resamples: Number of resamples; each draws as many pairs as there are, with replacement.
        seed: Seed of the drawing.
        block: About how many drawn pairs are in memory at once, of all resamples together.

    Returns:
        Lower and upper bound of the interval.

    Raises:
        InputError: The correlation does not exist, or a side is constant in every resample.
    """
    drawn = resampled_correlations([left], right, resamples=resamples, seed=seed, block=block)[0]
    correlations = drawn[~np.isnan(drawn)]
    if not len(correlations):
        raise InputError(f"{len(left)} pairs are too few for a bootstrap interval: every resample was constant")
    low, high = np.quantile(correlations, [0.025, 0.975])
    return float(low), float(high)


def resampled_correlations(
    sides: Sequence[Sequence[float] | np.ndarray],
    gold: Sequence[float] | np.ndarray,
    *,
    resamples: int,
    seed: int | Sequence[int],
    block: int = 4_000_000,
) -> np.ndarray:
    """Compute Pearson's correlations with the gold scores on resamples of the pairs, which all sides share.

    Args:
        sides: Values of the pairs [side][pair], such as the similarities of each model.
        gold: Gold scores of the pairs [pair].
        resamples: Number of resamples; each draws as many pairs as there are, with replacement.
        seed: Seed of the drawing.
        block: About how many drawn pairs are in memory at once, of all resamples together.

    Returns:
        Correlations [side, resample]; NaN where a side or the gold scores are constant in a resample.
    """
    moments: list[np.ndarray] = []
    for side in sides:
        x, y = _standardised(side, gold)
        # The moments of the gold scores stand once, in front.
        moments += [x, x * x, x * y] if moments else [y, y * y, x, x * x, x * y]
    generator = np.random.default_rng(seed)
    rows = max(1, block // len(moments[0]))
    stacked = np.stack(moments, axis=1)
    blocks = [_resampled(stacked, min(rows, resamples - done), generator) for done in range(0, resamples, rows)]
    return np.concatenate(blocks, axis=1)


def _resampled(moments: np.ndarray, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """Draw resamples, and compute their correlations [side, resample]; NaN without variance.

    Args:
        moments: y and y² of each pair, then x, x² and xy of each side [pair, 2 + 3 * side], where x and y have
            variance 1.
        resamples: Number of resamples.
        generator: Random numbers.
    """
    pairs = len(moments)
    drawn = generator.integers(pairs, size=(resamples, pairs)) + np.arange(resamples)[:, None] * pairs
    weights = np.bincount(drawn.ravel(), minlength=resamples * pairs).reshape(resamples, pairs)
    means = (weights @ moments / pairs).T
    y, yy = means[:2]
    x, xx, xy = means[2:].reshape(-1, 3, resamples).transpose(1, 0, 2)
    x_variance, y_variance = xx - x * x, yy - y * y
    # A smaller variance is rounding, because the variance of all pairs is 1.
    valid = np.minimum(x_variance, y_variance) > 1e-12
    scale = np.sqrt(np.where(valid, x_variance * y_variance, 1))
    return np.where(valid, np.clip((xy - x * y) / scale, -1, 1), np.nan)


def _checked(left: Sequence[float] | np.ndarray, right: Sequence[float] | np.ndarray) -> list[np.ndarray]:
    """Return both sides as arrays [pair], float64; raises `InputError` if they have no correlation."""
    arrays = []
    for side, values in (("first", left), ("second", right)):
        try:
            array = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            array = np.empty(0)
        if array.ndim != 1 or len(array) < 2 or not np.isfinite(array).all():
            raise InputError(
                f"the {side} values of a correlation must be two finite numbers or more, got {brief(values)}"
            )
        if array.min() == array.max():
            raise InputError(f"there is no correlation, because the {side} values are all {array[0]:g}")
        arrays.append(array)
    if len(arrays[0]) != len(arrays[1]):
        raise InputError(
            f"a correlation needs as many first as second values, got {len(arrays[0])} and {len(arrays[1])}"
        )
    return arrays


def _standardised(left: Sequence[float] | np.ndarray, right: Sequence[float] | np.ndarray) -> list[np.ndarray]:
    """Scale both sides to mean 0 and variance 1."""
    scaled = []
    for array in _checked(left, right):
        # Values are scaled before they are squared, so that squares of large values do not overflow, and squares of
        # small values do not vanish.
        centred = array / np.abs(array).max()
        centred -= centred.mean()
        centred /= np.abs(centred).max()
        scaled.append(centred / np.sqrt(np.mean(centred * centred)))
    return scaled
