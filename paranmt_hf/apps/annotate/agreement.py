"""How far people agree: Cohen's kappa with weights (Cohen 1968), for ordered labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

Weights = Literal["linear", "quadratic"]
POWERS: dict[Weights, int] = {"linear": 1, "quadratic": 2}
RESAMPLES = 1000
# Resamples that are drawn at once.
BLOCK = 50


def weighted_kappa(counts: np.ndarray, weights: Weights) -> np.ndarray:
    """Compute weighted kappa [...] = 1 - sum(w O) / sum(w E) of counts [..., label, label]; NaN where it is undefined.

    O are the observed counts, E those expected of two people who label at random with the same frequencies, and w = |i
    - j| (linear) or (i - j)^2 (quadratic). It is undefined if both gave one and the same label throughout.
    """
    counts = np.asarray(counts, np.float64)
    labels = np.arange(counts.shape[-1])
    weight = np.abs(labels[:, None] - labels) ** POWERS[weights]
    total = counts.sum(axis=(-2, -1))
    rows, columns = counts.sum(axis=-1), counts.sum(axis=-2)
    observed = (counts * weight).sum(axis=(-2, -1)) * total
    expected = (rows[..., :, None] * columns[..., None, :] * weight).sum(axis=(-2, -1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(expected > 0, 1 - observed / expected, np.nan)


@dataclass(frozen=True)
class PairAgreement:
    """How far two people agree."""

    first: str  # The one
    second: str  # The other
    items: int  # Pairs of sentences that both labelled
    same: float | None  # Share of these with equal labels; None if there are no such pairs
    linear: float | None  # Kappa with linear weights; None if undefined
    quadratic: float | None  # Kappa with quadratic weights; None if undefined


@dataclass(frozen=True)
class Agreement:
    """How far several people agree: means over each two of them that labelled something in common."""

    items: int  # Pairs of sentences that at least two labelled
    same: float | None  # Mean share of equal labels; None if no two have anything in common
    linear: float | None  # Mean kappa with linear weights, of those where it is defined; None if it is for no two
    quadratic: float | None  # The same with quadratic weights
    # 95 % interval of `quadratic`, from resampled pairs of sentences (percentiles); None without it
    interval: tuple[float, float] | None
    pairs: list[PairAgreement]  # Each two people


def agreement(
    names: Sequence[str], given: np.ndarray, labels: Sequence[int], *, resamples: int = 0, seed: int = 0
) -> Agreement:
    """Compute how far people agree, from their labels `given` [person, item], -1 for none.

    `labels` are the possible labels, ascending, one apart; `resamples` of the items give the interval, 0 for none.
    """
    # What fewer than two labelled says nothing of agreement.
    given = given[:, (given >= 0).sum(axis=0) >= 2]
    couples = list(combinations(range(len(names)), 2))
    cells = [_cells(given[first], given[second], labels) for first, second in couples]
    pairs = [
        _of_two(names[first], names[second], _table(each.sum(axis=0), labels))
        for (first, second), each in zip(couples, cells, strict=True)
    ]
    return Agreement(
        items=given.shape[1],
        same=_mean([pair.same for pair in pairs]),
        linear=_mean([pair.linear for pair in pairs]),
        quadratic=_mean([pair.quadratic for pair in pairs]),
        interval=_interval(_resampled(cells, labels, resamples, seed)) if resamples and given.size else None,
        pairs=pairs,
    )


def _resampled(cells: Sequence[np.ndarray], labels: Sequence[int], resamples: int, seed: int) -> np.ndarray:
    """Quadratic kappa [resample, couple]; each resample draws, with replacement, as many items as there are."""
    generator, items = np.random.default_rng(seed), len(cells[0])
    found = np.empty((resamples, len(cells)))
    for start in range(0, resamples, BLOCK):
        block = found[start : start + BLOCK]
        draws = generator.multinomial(items, np.full(items, 1 / items), len(block))
        for couple, each in enumerate(cells):
            block[:, couple] = weighted_kappa(_table(draws @ each, labels), "quadratic")
    return found


def _table(counts: np.ndarray, labels: Sequence[int]) -> np.ndarray:
    """Counts [..., label * label] as a table [..., label, label]."""
    return counts.reshape(*counts.shape[:-1], len(labels), len(labels))


def _cells(first: np.ndarray, second: np.ndarray, labels: Sequence[int]) -> np.ndarray:
    """Index of the cell in the table of counts [item, label * label] for each item that both annotators labelled."""
    both = np.flatnonzero((first >= 0) & (second >= 0))
    cells = np.zeros((len(first), len(labels) ** 2))
    cells[both, (first[both] - labels[0]) * len(labels) + second[both] - labels[0]] = 1
    return cells


def _of_two(first: str, second: str, counts: np.ndarray) -> PairAgreement:
    items = int(counts.sum())
    kappas = [float(weighted_kappa(counts, weights)) for weights in POWERS]
    linear, quadratic = (None if np.isnan(kappa) else kappa for kappa in kappas)
    return PairAgreement(first, second, items, float(np.trace(counts) / items) if items else None, linear, quadratic)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _interval(kappas: np.ndarray) -> tuple[float, float] | None:
    """95 % interval of the means over couples; None if kappa is undefined in all resamples."""
    defined = kappas[~np.isnan(kappas).all(axis=1)]
    if not len(defined):
        return None
    low, high = np.percentile(np.nanmean(defined, axis=1), [2.5, 97.5])
    return float(low), float(high)
