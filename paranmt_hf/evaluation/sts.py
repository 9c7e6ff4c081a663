"""Evaluate models on semantic textual similarity (STS): how well their similarities agree with people's judgements.

The papers report Pearson's r for each dataset and, for a year, the mean over its datasets (P18-1042, section 5.1).
MTEB puts all pairs of a year together and reports Spearman's rho. Both are computed here, because they differ by
several points for the same vectors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.correlation import RESAMPLES, bootstrap_interval, pearson, spearman
from paranmt_hf.evaluation.results import Results, Row
from paranmt_hf.evaluation.similarities import PairSimilarity, Similarities, pair_similarities
from paranmt_hf.evaluation.sts_data import StsData, StsSet, notes, sets_of
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.wording import counted


def evaluate_sts(
    encoder: Encoder | PairSimilarity,
    data: StsData,
    *,
    name: str | None = None,
    bootstrap: int = RESAMPLES,
    seed: int = 1,
) -> Results:
    """Evaluate a model on sets of sentence pairs with gold similarities.

    Args:
        encoder: Anything with `encode(sentences)`, compared by cosine, or with `similarities(left, right)`.
        data: Location of the data, see `read_sts`; or the sets themselves.
        name: Name of the model in the results; by default the name of its class.
        bootstrap: Number of resamples of the pairs for the 95 % interval of each Pearson's r; 0 for no interval.
        seed: Seed of the resampling. With the same seed, the same pairs are drawn for all models.
    """
    sets = sets_of(data)
    if not sets:
        raise InputError("there is nothing to evaluate: expected at least one set of pairs")
    results: list[SetResult] = []
    with Progress("evaluating", sum(map(len, sets)), unit="pairs") as progress:
        for sts_set in sets:
            similarities = pair_similarities(encoder, sts_set.left, sts_set.right, sts_set.title)
            for subset, mask in [(None, np.ones(len(sts_set), bool)), *sts_set.subsets.items()]:
                results.append(_result(sts_set, subset, mask, similarities, bootstrap, seed))
            progress.advance_to(progress.rows + len(sts_set))
    years = []
    for year in sorted({each.year for each in sets if each.year}):
        years.append(_year(year, [result for result in results if result.row.group == year]))
    if years:
        years.append(Row(name="Mean", values={"mean": float(np.mean([row.main for row in years]))}))
    rows = [each.row for each in results]
    return Results(
        kind="sts",
        model=name or type(encoder).__name__,
        tables={"Set": rows, "Year": years},
        data={sts_set.title: sts_set.checksum for sts_set in sets},
        settings={"bootstrap": bootstrap, "seed": seed} if bootstrap else {},
        notes=[*notes(sets), *getattr(encoder, "notes", ()), *_counts(rows)],
        similarities={each.row.name: each.similarities for each in results},
        golds={each.row.name: each.gold for each in results},
    )


@dataclass(frozen=True)
class SetResult:
    """The scores of a set or a subset, and the values that they were computed from."""

    row: Row  # The scores
    similarities: np.ndarray  # Similarities of the model [pair]
    gold: np.ndarray  # Gold scores [pair]


def _result(
    sts_set: StsSet, subset: str | None, mask: np.ndarray, similarities: Similarities, bootstrap: int, seed: int
) -> SetResult:
    """Compute the scores of a set, or of its subset with the name `subset`, whose pairs `mask` marks."""
    title = f"{sts_set.title} {subset}" if subset else sts_set.title
    gold, values = sts_set.gold[mask], similarities.values[mask]
    # Similarities that are closer together than this only differ by the rounding of single precision.
    if len(values) > 1 and np.ptp(values) < 1e-6:
        raise InputError(
            f"{title}: there is no correlation, because the model gives all {len(values)} pairs the similarity "
            f"{values[0]:.4g}"
        )
    try:
        figures = {"pearson": pearson(values, gold), "spearman": spearman(values, gold)}
        interval = bootstrap_interval(values, gold, resamples=bootstrap, seed=seed) if bootstrap else None
    except InputError as error:
        raise InputError(f"{title} (first: the model's similarities, second: the gold scores): {error}") from None
    details = {
        "skipped": 0 if subset else sts_set.skipped,
        "zero_vectors": int(similarities.zeros[mask].sum()),
        "unknown_sentences": int(similarities.unknown[mask].sum()),
    }
    group = sts_set.title if subset else sts_set.year
    row = Row(name=title, values=figures, items=len(values), interval=interval, group=group, details=details)
    return SetResult(row, values, gold)


def _year(year: str, results: Sequence[SetResult]) -> Row:
    """Compute the scores of a year from the results of its sets.

    `mean`, the mean of the sets' Pearson's r, is the score of the papers. `all_spearman`, Spearman's rho over all
    pairs together, is the score of MTEB.
    """
    correlations, similarities, golds = [], [], []
    for result in results:
        correlations.append(result.row.main)
        similarities.append(result.similarities)
        golds.append(result.gold)
    values, gold = np.concatenate(similarities), np.concatenate(golds)
    figures = {
        "mean": float(np.mean(correlations)),
        "weighted_mean": float(np.average(correlations, weights=list(map(len, golds)))),
        "all_pearson": pearson(values, gold),
        "all_spearman": spearman(values, gold),
    }
    return Row(name=year, values=figures, items=len(values), details={"sets": len(results)})


def _counts(rows: Sequence[Row]) -> list[str]:
    """Return notes on how many pairs were skipped, and how many sentences have unknown words only or zero vectors."""
    names = {row.name for row in rows}
    totals: Counter[str] = Counter()
    for row in rows:
        # The rows of subsets are passed over, because their pairs count in the row of the set.
        if row.group not in names:
            totals.update(row.details)
    described = []
    if count := totals["skipped"]:
        described.append(f"{counted(count, 'pair')} without a gold score skipped.")
    if count := totals["unknown_sentences"]:
        # A model leaves out words of weight 0, such as those on a blacklist.
        have = counted(count, "sentence has", "sentences have")
        described.append(f"{have} no word that the model knows and does not leave out.")
    if count := totals["zero_vectors"]:
        have = counted(count, "sentence has", "sentences have")
        described.append(f"{have} a vector of zeros; the cosine of their pairs counts as 0.")
    return described
