"""Semantic textual similarity: how well a model's similarities follow people's judgements.

The papers report Pearson's r for each data set and, for a year, the mean over its data sets (P18-1042, section 5.1).
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
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.util.progress import Progress

# Similarities that lie closer together than float32 can tell apart hold nothing but rounding.
_NO_SPREAD = 1e-6
# More narrow no interval.
MOST_RESAMPLES = 1_000_000


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
    if bootstrap > MOST_RESAMPLES:
        raise InputError(f"the number of bootstrap resamples must be at most {MOST_RESAMPLES:,}, was {bootstrap:,}")
    sets = read_sts(data) if isinstance(data, str | Path) else list(data)
    if not sets:
        raise InputError("there is nothing to evaluate: expected at least one set of pairs")
    results: list[SetResult] = []
    with Progress("evaluating", sum(map(len, sets)), unit="pairs") as progress:
        for sts_set in sets:
            results += _evaluate_set(encoder, sts_set, bootstrap, seed)
            progress.advance_to(progress.rows + len(sts_set))
    return StsResult(
        name or type(encoder).__name__,
        results,
        [_year(year, results) for year in sorted({result.year for result in results if result.year})],
        [*notes(sets), *getattr(encoder, "notes", ())],
    )


def _evaluate_set(encoder: Encoder | PairSimilarity, sts_set: StsSet, bootstrap: int, seed: int) -> list[SetResult]:
    """The result of a set, and those of its subsets."""
    title = f"{sts_set.year} {sts_set.name}" if sts_set.year else sts_set.name
    similarities = pair_similarities(encoder, sts_set.left, sts_set.right, title)
    whole = np.ones(len(sts_set), bool)
    return [
        _result(sts_set, subset, mask, similarities, bootstrap, seed)
        for subset, mask in [(None, whole), *sts_set.subsets.items()]
    ]


def _result(
    sts_set: StsSet, subset: str | None, mask: np.ndarray, similarities: Similarities, bootstrap: int, seed: int
) -> SetResult:
    name = f"{sts_set.name} {subset}" if subset else sts_set.name
    gold, values = sts_set.gold[mask], similarities.values[mask]
    title = f"{sts_set.year} {name}" if sts_set.year else name
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
        year=sts_set.year,
        part_of=sts_set.name if subset else None,
        pairs=len(values),
        skipped=0 if subset else sts_set.skipped,
        pearson=correlation,
        interval=interval,
        spearman=spearman(values, gold),
        zero_vectors=int(similarities.zeros[mask].sum()),
        unknown_sentences=None if similarities.unknown is None else int(similarities.unknown[mask].sum()),
        similarities=values,
        gold=gold,
    )


def _year(year: str, results: list[SetResult]) -> YearResult:
    whole = [result for result in results if result.year == year and not result.part_of]
    correlations = [result.pearson for result in whole]
    values = np.concatenate([result.similarities for result in whole])
    gold = np.concatenate([result.gold for result in whole])
    return YearResult(
        name=year,
        sets=len(whole),
        pairs=len(values),
        mean=float(np.mean(correlations)),
        weighted_mean=float(np.average(correlations, weights=[result.pairs for result in whole])),
        all_pearson=pearson(values, gold),
        all_spearman=spearman(values, gold),
    )
