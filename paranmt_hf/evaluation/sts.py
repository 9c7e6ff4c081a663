"""Semantic textual similarity: how well a model's similarities follow people's judgements.

The papers report Pearson's r for each data set and, for a year, the mean over its data sets (P18-1042, section 5.2).
MTEB puts a year's pairs together and reports Spearman's rho. Both are computed, because the same vectors differ by
several points between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.correlation import RESAMPLES, bootstrap_interval, pearson, spearman
from paranmt_hf.evaluation.record import YearResult
from paranmt_hf.evaluation.results import SetResult, StsResult
from paranmt_hf.evaluation.similarities import PairSimilarity, Similarities, pair_similarities
from paranmt_hf.evaluation.sts_data import StsSet, notes, read_sts
from paranmt_hf.protocols import Encoder
from paranmt_hf.util.progress import Progress

# Similarities that lie closer together than float32 can tell apart hold nothing but rounding.
_NO_SPREAD = 1e-6


def evaluate_sts(
    encoder: Encoder | PairSimilarity,
    data: Path | str | Sequence[StsSet],
    *,
    name: str | None = None,
    bootstrap: int = RESAMPLES,
    seed: int = 1,
) -> StsResult:
    """Evaluate a model on sets of sentence pairs with gold similarities.

    Args:
        encoder: Anything with `encode(sentences)`, compared by cosine, or with `similarities(left, right)`.
        data: Where the data are, see `read_sts`; or the sets themselves.
        name: Name of the model in the result; by default that of its class.
        bootstrap: Resamples of the pairs for the 95 % interval of each Pearson's r; 0 for no interval.
        seed: Of the resampling. Models that are evaluated with the same seed are resampled alike.

    Raises:
        InputError: There are no data, or a similarity is not finite, or all those of a set are equal.
    """
    if bootstrap < 0:
        raise InputError(f"the number of bootstrap resamples cannot be negative, got {bootstrap}")
    sets = read_sts(data) if isinstance(data, str | Path) else list(data)
    if not sets:
        raise InputError("there is nothing to evaluate: expected at least one set of pairs")
    results: list[SetResult] = []
    with Progress("evaluating", sum(map(len, sets))) as progress:
        for one in sets:
            results += _evaluate_set(encoder, one, bootstrap, seed)
            progress.advance_to(progress.rows + len(one))
    return StsResult(
        name or type(encoder).__name__,
        results,
        [_year(year, results) for year in sorted({one.year for one in results if one.year})],
        [*notes(sets), *getattr(encoder, "notes", ())],
    )


def _evaluate_set(encoder: Encoder | PairSimilarity, one: StsSet, bootstrap: int, seed: int) -> list[SetResult]:
    """The result of a set, and those of its subsets."""
    title = f"{one.year} {one.name}" if one.year else one.name
    found = pair_similarities(encoder, one.left, one.right, title)
    whole = np.ones(len(one), bool)
    return [
        _result(one, subset, mask, found, bootstrap, seed) for subset, mask in [(None, whole), *one.subsets.items()]
    ]


def _result(
    one: StsSet, subset: str | None, mask: np.ndarray, found: Similarities, bootstrap: int, seed: int
) -> SetResult:
    name = f"{one.name} {subset}" if subset else one.name
    gold, values = one.gold[mask], found.values[mask]
    title = f"{one.year} {name}" if one.year else name
    if len(values) > 1 and np.ptp(values) < _NO_SPREAD:
        raise InputError(
            f"{title}: there is no correlation, because the model gives all {len(values)} pairs the similarity "
            f"{values[0]:.4g}"
        )
    try:
        correlation = pearson(values, gold)
        interval = bootstrap_interval(values, gold, resamples=bootstrap, seed=seed) if bootstrap else None
    except InputError as error:
        raise InputError(f"{title} (first: the model's similarities, second: the gold scores): {error}") from None
    return SetResult(
        name=name,
        year=one.year,
        part_of=one.name if subset else None,
        pairs=len(values),
        skipped=0 if subset else one.skipped,
        pearson=correlation,
        interval=interval,
        spearman=spearman(values, gold),
        zero_vectors=int(found.zeros[mask].sum()),
        unknown_sentences=None if found.unknown is None else int(found.unknown[mask].sum()),
        similarities=values,
        gold=gold,
    )


def _year(year: str, results: list[SetResult]) -> YearResult:
    parts = [one for one in results if one.year == year and not one.part_of]
    correlations = [one.pearson for one in parts]
    values, gold = (np.concatenate([getattr(one, side) for one in parts]) for side in ("similarities", "gold"))
    return YearResult(
        name=year,
        sets=len(parts),
        pairs=len(values),
        mean=float(np.mean(correlations)),
        weighted_mean=float(np.average(correlations, weights=[one.pairs for one in parts])),
        all_pearson=pearson(values, gold),
        all_spearman=spearman(values, gold),
    )
