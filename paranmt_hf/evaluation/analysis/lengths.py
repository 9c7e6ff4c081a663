"""How well similarities agree with people by the length of sentences; PARAGRAM-PHRASE (arXiv:1511.08198), table 7."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.correlation import bootstrap_interval, pearson
from paranmt_hf.evaluation.pair_set import StsSet
from paranmt_hf.evaluation.results import StsResult, check_same_sets
from paranmt_hf.text.tokens import WordTokenizer
from paranmt_hf.util.records import to_json
from paranmt_hf.util.tables import percent, write_table

# Longest sentences of the bins of table 7; the last bin has all longer ones.
UP_TO = (4, 5, 6, 7, 8, 9)


@dataclass(frozen=True)
class LengthBin:
    """The pairs whose longer side has some number of tokens.

    Attributes:
        low: Fewest tokens of the longer side.
        high: Most; None for the last bin.
        pairs: Number of pairs.
        pearson: Pearson's r of each model over these pairs, in [-1, 1]; None where there is no correlation, because
            there are fewer than two pairs or one side is constant.
        intervals: The 95 % bootstrap interval of each, if asked for.
    """

    low: int
    high: int | None
    pairs: int
    pearson: list[float | None]
    intervals: list[tuple[float, float] | None]

    @property
    def label(self) -> str:
        """The bin as the paper writes it."""
        if self.high is None:
            return f">= {self.low}" if self.low else "all"
        if self.low == 0:
            return f"<= {self.high}"
        return str(self.low) if self.low == self.high else f"{self.low} to {self.high}"


@dataclass(frozen=True)
class LengthTable:
    """Pearson's r by length.

    Attributes:
        models: Names of the models.
        sets: Titles of the sets whose pairs are pooled.
        bins: The bins, shortest first, and all pairs in the last one.
    """

    models: list[str]
    sets: list[str]
    bins: list[LengthBin]

    def to_json(self) -> dict[str, Any]:
        """Give the table as JSON values."""
        values: dict[str, Any] = to_json(self)
        return values

    def write(self, style: Literal["markdown", "text"] = "text") -> str:
        """Write the table, figures times 100, and what they are of."""
        rows = [(each.label, f"{each.pairs:,}", *map(percent, each.pearson)) for each in self.bins]
        table = write_table(("Longer side", "Pairs", *self.models), rows, style)
        return f"{table}\n\nPearson x 100 over the pairs of {len(self.sets)} sets together: {', '.join(self.sets)}."


def pooled(sets: Sequence[StsSet]) -> list[StsSet]:
    """Choose the sets whose pairs are pooled: those of the yearly tasks, which the paper takes; else all.

    The STS benchmark is drawn from the yearly tasks, and would count their pairs twice.
    """
    yearly = [sts_set for sts_set in sets if sts_set.year]
    return yearly or list(sets)


def longer_side(sets: Sequence[StsSet]) -> np.ndarray:
    """Number of tokens of the longer sentence of each pair, set after set [pair]."""
    left = [sentence for sts_set in sets for sentence in sts_set.left]
    right = [sentence for sts_set in sets for sentence in sts_set.right]
    one, other = WordTokenizer().tables(left, right)
    return np.maximum(one.lengths, other.lengths)


def pearson_by_length(
    results: Sequence[StsResult],
    sets: Sequence[StsSet],
    *,
    up_to: Sequence[int] = UP_TO,
    bootstrap: int = 0,
    seed: int = 1,
) -> LengthTable:
    """Correlate similarities and gold scores in bins of the length of the longer sentence.

    Args:
        results: The results of models on exactly these sets.
        sets: The sets; see `pooled`.
        up_to: Most tokens of each bin but the last, ascending.
        bootstrap: Resamples for intervals; 0 for none.
        seed: Of the resampling.

    Raises:
        InputError: The bins do not ascend, or no bin has a correlation.
    """
    if not up_to or min(up_to) < 1 or list(up_to) != sorted(set(up_to)):
        raise InputError(f"--up-to must be whole numbers from 1 that ascend, was {' '.join(map(str, up_to))}")
    check_same_sets(results)
    chosen = pooled(sets)
    keys = [(sts_set.year, sts_set.name) for sts_set in chosen]
    values = [_of_sets(result, keys) for result in results]
    gold, lengths = np.concatenate([sts_set.gold for sts_set in chosen]), longer_side(chosen)
    lows = [0, *(edge + 1 for edge in up_to), 0]
    highs = [*up_to, None, None]
    bins = []
    for low, high in zip(lows, highs, strict=True):
        inside = (lengths >= low) & (lengths <= (lengths.max() if high is None else high))
        found = [_correlation(each[inside], gold[inside], bootstrap, seed) for each in values]
        bins.append(
            LengthBin(
                low, high, int(inside.sum()), [figure for figure, _ in found], [interval for _, interval in found]
            )
        )
    if all(figure is None for each in bins for figure in each.pearson):
        raise InputError("no length has two pairs of different gold scores and similarities, so nothing correlates")
    titles = [f"{sts_set.year} {sts_set.name}" if sts_set.year else sts_set.name for sts_set in chosen]
    return LengthTable([result.model for result in results], titles, bins)


def _of_sets(result: StsResult, keys: Sequence[tuple[str | None, str]]) -> np.ndarray:
    whole = {(each.year, each.name): each for each in result.sets if not each.part_of}
    return np.concatenate([whole[key].similarities for key in keys])


def _correlation(
    values: np.ndarray, gold: np.ndarray, bootstrap: int, seed: int
) -> tuple[float | None, tuple[float, float] | None]:
    if len(values) < 2 or np.ptp(values) == 0 or np.ptp(gold) == 0:
        return None, None
    interval = bootstrap_interval(values, gold, resamples=bootstrap, seed=seed) if bootstrap else None
    return pearson(values, gold), interval
