"""Negatives on a corpus: those of given sentences by the size of a mega-batch, and a measure of overfitting.

ParaNMT-50M (Wieting & Gimpel 2018), table 7; arXiv:1511.08198, section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.pairs import SIDES, Pairs, PairSelection
from paranmt_hf.encoders.loading import load
from paranmt_hf.encoders.named_encoder import Quiet
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.evaluate import Models, find_models
from paranmt_hf.evaluation.results import Evaluation, Results, Row
from paranmt_hf.evaluation.sts_data import StsSet, read_scored_pairs
from paranmt_hf.hub.repository import EMBEDDED
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.text.tokens import keys_of
from paranmt_hf.util.settings import Count, PythonOnly, Range, Seed, Settings

EXCLUDED = -2  # Below any cosine
MAX_PAIRS, ENCODED_PAIRS = 3_000_000, 100_000  # Pairs in memory, and pairs that are encoded at once
SHORTEST = 1e-12  # The smallest divisor of a vector


@dataclass(frozen=True)
class NegativesConfig(Settings):
    """The mega-batches in which negatives are mined.

    Attributes:
        mega_batches: Values of M, the number of mini-batches in a mega-batch.
        batch_size: Pairs of a mini-batch.
        seed: Decides which pairs the mega-batches hold.
    """

    mega_batches: tuple[Count, ...] = (1, 20, 40)
    batch_size: Count = 100
    seed: Seed = 1

    def pairs(self, mega_batch: int) -> int:
        """Number of pairs in a mega-batch."""
        return mega_batch * self.batch_size


@dataclass(frozen=True)
class Negative:
    """The negative of a sentence: its mega-batch size M, cosine in [-1, 1], and text."""

    mega_batch: int
    similarity: float
    sentence: str


@dataclass(frozen=True)
class MinedNegatives:
    """The negatives of sentences."""

    of: dict[str, list[Negative]]  # For each sentence a negative for each M, in their order

    def to_json(self) -> dict[str, list[dict[str, Any]]]:
        """The negatives as JSON values."""
        return {sentence: [asdict(negative) for negative in negatives] for sentence, negatives in self.of.items()}

    def summary(self) -> str:
        """The negatives below their sentences, as in table 7."""
        lines = []
        for sentence, negatives in self.of.items():
            lines.append(sentence)
            lines += [f"  M = {one.mega_batch:<4} {one.similarity:5.2f}  {one.sentence}" for one in negatives]
        return "\n".join(lines)


def mined_negatives(
    sentences: Sequence[str],
    *,
    data: str | Path | Sequence[str | Path],
    encoder: str | Path = EMBEDDED,
    config: NegativesConfig | None = None,
) -> MinedNegatives:
    """Show the hard negatives of sentences in random mega-batches of a corpus (ParaNMT-50M, table 7).

    A larger mega-batch holds the smaller ones, so its negative is at least as similar.

    Args:
        sentences: Any sentences.
        data: The corpus, as `paranmt train` takes it; it must have enough pairs for the largest mega-batch.
        encoder: Folder or Hub id of the encoder that mines.
        config: Which mega-batches.
    """
    config = config or NegativesConfig()
    model = load(encoder)
    most = config.pairs(max(config.mega_batches))
    sources = [data] if isinstance(data, str | Path) else list(data)
    pool = random_pairs(Pairs(sources, PairSelection(max_pairs=most), seed=config.seed), config.seed)
    if len(pool) < most:
        raise InputError(
            f"M = {max(config.mega_batches)} needs {most:,} pairs, the data has {len(pool):,}; name a smaller M"
        )
    options = {"show_progress_bar": False, "normalize_embeddings": True}
    candidates = [sentence for pair in pool for sentence in pair]
    similarities = model.encode(list(sentences), **options) @ model.encode(candidates, **options).T
    _exclude_paraphrases(similarities, sentences, candidates, config)
    found: dict[str, list[Negative]] = {}
    for sentence, row in zip(sentences, similarities, strict=True):
        best = {size: int(np.argmax(row[: 2 * config.pairs(size)])) for size in config.mega_batches}
        found[sentence] = [Negative(size, float(row[index]), candidates[index]) for size, index in best.items()]
    return MinedNegatives(found)


def random_pairs(pairs: Pairs, seed: int) -> list[tuple[str, str]]:
    """Read pairs in a random order."""
    table = pa.concat_tables(pairs.batches())
    table = table.take(np.random.default_rng(seed).permutation(table.num_rows))
    return list(zip(*(table[side].to_pylist() for side in SIDES), strict=True))


def _exclude_paraphrases(
    similarities: np.ndarray, sentences: Sequence[str], candidates: Sequence[str], config: NegativesConfig
) -> None:
    """Set the similarities [sentence, candidate] of excluded negatives below all others, in place.

    That is what training excludes: each sentence is added to the pairs as one that is paired with itself. Candidate 2k
    is paired with 2k + 1.
    """
    from paranmt_hf.training.mega_batch import excluded

    pairs, fewest = len(candidates) // 2, config.pairs(min(config.mega_batches))
    sides = ([*candidates[0::2], *sentences], [*candidates[1::2], *sentences])
    rows, columns = excluded(keys_of(*sides).ravel())
    # Of the references the first are the candidates', and so of the translations, which begin at len(sides[0]).
    side, pair = np.divmod(columns, len(sides[0]))
    for index, sentence in enumerate(sentences):
        own = (rows == pairs + index) & (pair < pairs)
        similarities[index, 2 * pair[own] + side[own]] = EXCLUDED
        if similarities[index, : 2 * fewest].max() == EXCLUDED:
            raise InputError(
                f"no negative for {sentence!r} among {fewest} pairs: all their sentences are copies of it or "
                "paraphrases"
            )


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
        models: Folders or Hub ids of encoders; `embedded` is the one that the package carries.
        data: What they were trained on, as in `paranmt train`.
        development: Pairs that they were not trained on, see `read_scored_pairs`; their scores do not matter.
        config: How many training pairs are measured, and the pools of their negatives.
    """
    found = find_models(models)
    sources = [data] if isinstance(data, str | Path) else list(data)
    pairs = MarginPairs(sources, development, config)
    return Evaluation(
        [
            Results(
                kind="overfitting",
                model=model.name,
                tables={"Pairs": pairs.measure(Quiet(model.load()))},
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

    @property
    def pairs(self) -> int:
        """Number of training pairs."""
        return len(self._train[0])

    def measure(self, encoder: Encoder) -> list[Row]:
        """Measure an encoder on training pairs and development pairs, and the difference."""
        train = self._mean(encoder, *self._train)
        rows = [Row(name="train", values={"margin": train}, items=self.pairs)]
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

    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    unit, count = vectors / np.maximum(lengths, SHORTEST), len(vectors) // 2
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
