"""A measure of overfitting: the margin between pairs and their negatives; arXiv:1511.08198, section 5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.reading.pairs import SIDES, Pairs, PairSelection
from paranmt_hf.encoders.named_encoder import WithoutProgressBar
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.evaluate import Models, find_models
from paranmt_hf.evaluation.results import Evaluation, Results, Row
from paranmt_hf.evaluation.similarities import directions
from paranmt_hf.evaluation.sts_data import StsSet, read_scored_pairs
from paranmt_hf.text.identity import keys_of
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.util.files import listed
from paranmt_hf.util.markers import PythonOnly, Range, Seed
from paranmt_hf.util.settings import Settings

MAX_PAIRS, ENCODED_PAIRS = 3_000_000, 100_000  # Pairs in memory, and pairs that are encoded at once


@dataclass(frozen=True)
class OverfittingConfig(Settings):
    """Pairs for the measure of overfitting, and the source of their negatives (arXiv:1511.08198, section 5).

    Attributes:
        pool: Number of pairs among which the most similar negatives are searched, as in a mini-batch.
        pairs: Number of training pairs that are measured, sampled at random.
        seed: Seed of the sample and of the pools.
    """

    pool: Annotated[int, Range(at_least=2)] = 100
    pairs: Annotated[int, Range(at_least=2, at_most=MAX_PAIRS)] = 10_000
    seed: Annotated[Seed, PythonOnly] = 1


def evaluate_overfitting(
    models: Models,
    *,
    data: str | Path | Sequence[str | Path],
    development: str | Path | None = None,
    config: OverfittingConfig | None = None,
) -> Evaluation:
    """Measure the margin between training pairs and their negatives; arXiv:1511.08198, section 5.

    The figure is the mean of 2 cos(g1, g2) - cos(n1, g1) - cos(n2, g2), in [-4, 4]. A model that sets its training
    pairs apart by much more than pairs that it has not seen has overfitted.

    Args:
        models: Folders or Hub ids of encoders; `small` and `base` are those of the package.
        data: What they were trained on, as in `paranmt train`.
        development: Pairs that they were not trained on, see `read_scored_pairs`; their scores do not matter.
        config: How many training pairs are measured, and the pools of their negatives.
    """
    found = find_models(models)
    pairs = MarginPairs(listed(data), development, config)
    return Evaluation(
        [
            Results(
                kind="overfitting",
                model=model.name,
                tables={"Pairs": pairs.measure(WithoutProgressBar(model.load()))},
                settings=vars(pairs.config),
                weights=model.weights,
                notes=[f"Mean of 2 cos(g1,g2) - cos(n1,g1) - cos(n2,g2), negatives among {pairs.config.pool} pairs."],
            )
            for model in found
        ]
    )


class MarginPairs:
    """Training pairs and, if given, development pairs for the measurement of encoders; read once."""

    def __init__(
        self,
        data: Sequence[str | Path],
        development: StsSet | str | Path | None = None,
        config: OverfittingConfig | None = None,
    ) -> None:
        self.config = config or OverfittingConfig()
        pairs = Pairs(data, PairSelection(max_pairs=self.config.pairs), seed=self.config.seed)
        tables = list(pairs.batches())
        if sum(table.num_rows for table in tables) < 2:
            raise InputError(f"{', '.join(map(str, data))}: expected at least two pairs; {pairs.left_out}")
        joined = pa.concat_tables(tables)
        self._train = [joined[side].to_pylist() for side in SIDES]
        self._development = read_scored_pairs(development) if isinstance(development, str | Path) else development

    def measure(self, encoder: Encoder) -> list[Row]:
        """Measure an encoder on training pairs and development pairs, and the difference."""
        train = self._mean(encoder, *self._train)
        rows = [Row(name="train", values={"margin": train}, items=len(self._train[0]))]
        if (held_out := self._development) is not None:
            other = self._mean(encoder, held_out.left, held_out.right)
            rows.append(Row(name="development", values={"margin": other}, items=len(held_out)))
            rows.append(Row(name="difference", values={"margin": train - other}))
        return rows

    def _mean(self, encoder: Encoder, first: Sequence[str], second: Sequence[str]) -> float:
        return mean_margin(encoder, first, second, pool=self.config.pool, seed=self.config.seed)


def pool_margins(vectors: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Compute 2 cos(g1, g2) - cos(n1, g1) - cos(n2, g2) of each pair (g1, g2) of a pool, float64, in [-4, 4].

    The negatives n1 and n2 are the most similar allowed sentences of the pool, as `mine_negatives` finds them; pairs
    without both are left out. Vectors [2 x pair, dimension] and keys are those of the first sides, then of the second
    ones.
    """
    import torch

    from paranmt_hf.training.mega_batch import mine_negatives

    unit, count = directions(vectors), len(vectors) // 2
    negatives = mine_negatives(torch.from_numpy(vectors), keys)
    both = (negatives[:count] >= 0) & (negatives[count:] >= 0)
    similar = (unit * unit[np.maximum(negatives, 0)]).sum(axis=1)
    values: np.ndarray = 2 * (unit[:count] * unit[count:]).sum(axis=1) - similar[:count] - similar[count:]
    return values[both]


def mean_margin(
    encoder: Encoder, first: Sequence[str], second: Sequence[str], *, pool: int = 100, seed: int = 1
) -> float:
    """Average the margins of pairs (first and second sides) in random pools, over those with negatives.

    `pool` is the number of pairs among which the negatives of each are searched; at least 2.
    """
    keys = keys_of(first, second)
    order = np.random.default_rng(seed).permutation(keys.shape[1])
    values = []
    # Whole pools are encoded together.
    block = pool * max(1, ENCODED_PAIRS // pool)
    for begin in range(0, len(order), block):
        own = order[begin : begin + block]
        sides = [np.asarray(encoder.encode([side[pair] for pair in own])) for side in (first, second)]
        vectors = np.stack(sides)
        for start in range(0, len(own), pool):
            known = keys[:, own[start : start + pool]].ravel()
            values.append(pool_margins(vectors[:, start : start + pool].reshape(len(known), -1), known))
    found = np.concatenate([np.empty(0), *values])
    if not len(found):
        raise InputError(
            f"none of the {len(order):,} pairs has a negative, for all their sentences are copies or paraphrases of "
            "each other; give more pairs"
        )
    return float(found.mean())
