"""Pearson's and Spearman's correlation and their uncertainty, in numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paranmt_hf.errors import InputError

RESAMPLES = 1000  # Resamples of a bootstrap interval
LEVEL = 0.95  # Share of the resamples inside the interval
# Weights of one block of resamples [resample, pair] stay below this many numbers, whatever the size of the data.
_BLOCK = 4_000_000
_NO_VARIANCE = 1e-12  # A variance below this, of values that were scaled to variance 1, is nothing but rounding


def pearson(left: Sequence[float] | np.ndarray, right: Sequence[float] | np.ndarray) -> float:
    """Pearson's product-moment correlation."""
    x, y = _standardised(left, "first"), _standardised(right, "second")
    _check_lengths(x, y)
    return float(np.clip(np.mean(x * y), -1, 1))


def spearman(left: Sequence[float] | np.ndarray, right: Sequence[float] | np.ndarray) -> float:
    """Spearman's rank correlation; equal values share the average of their ranks."""
    from scipy.stats import rankdata

    return pearson(rankdata(_checked(left, "first")), rankdata(_checked(right, "second")))


def bootstrap_interval(
    left: Sequence[float] | np.ndarray,
    right: Sequence[float] | np.ndarray,
    *,
    resamples: int = RESAMPLES,
    seed: int = 1,
) -> tuple[float, float]:
    """95 % percentile bootstrap interval of Pearson's correlation, over pairs drawn with replacement.

    Resamples in which a side is constant have no correlation and are left out; they only occur with a few pairs.
    """
    x, y = _standardised(left, "first"), _standardised(right, "second")
    _check_lengths(x, y)
    generator = np.random.default_rng(seed)
    moments = np.stack([x, y, x * x, y * y, x * y], axis=1)
    rows = max(1, _BLOCK // len(x))
    blocks = [_resampled(moments, min(rows, resamples - done), generator) for done in range(0, resamples, rows)]
    correlations = np.concatenate(blocks)
    if not len(correlations):
        raise InputError(f"{len(x)} pairs are too few for a bootstrap interval: every resample was constant")
    low, high = np.quantile(correlations, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _resampled(moments: np.ndarray, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """Correlations of resamples [resample], from the moments [pair, 5]; those without variance are dropped."""
    pairs = len(moments)
    drawn = generator.integers(pairs, size=(resamples, pairs)) + np.arange(resamples)[:, None] * pairs
    weights = np.bincount(drawn.ravel(), minlength=resamples * pairs).reshape(resamples, pairs)
    x, y, xx, yy, xy = (weights @ moments / pairs).T
    x_variance, y_variance = xx - x * x, yy - y * y
    valid = (x_variance > _NO_VARIANCE) & (y_variance > _NO_VARIANCE)
    values = (xy - x * y)[valid] / np.sqrt(x_variance[valid] * y_variance[valid])
    return np.clip(values, -1, 1)


def _checked(values: Sequence[float] | np.ndarray, side: str) -> np.ndarray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"the {side} values of a correlation must be numbers: {error}") from None
    if array.ndim != 1 or len(array) < 2:
        raise InputError(
            f"the {side} values of a correlation must be a list of at least two, got the shape {array.shape}"
        )
    if not np.isfinite(array).all():
        index = int(np.flatnonzero(~np.isfinite(array))[0])
        raise InputError(f"a correlation needs finite values, but the {side} value {index} is {array[index]}")
    if array.min() == array.max():
        raise InputError(f"there is no correlation, because the {side} values are all {array[0]:g}")
    return array


def _standardised(values: Sequence[float] | np.ndarray, side: str) -> np.ndarray:
    """Scale to mean 0 and variance 1."""
    array = _checked(values, side)
    # The scale first, so that the squares of very large or very small values neither overflow nor vanish.
    array = array / np.abs(array).max()
    centred = array - array.mean()
    centred /= np.abs(centred).max()
    return centred / np.sqrt(np.mean(centred * centred))


def _check_lengths(x: np.ndarray, y: np.ndarray) -> None:
    if len(x) != len(y):
        raise InputError(f"a correlation needs as many first as second values, got {len(x)} and {len(y)}")
