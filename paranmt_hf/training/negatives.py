"""Negatives of given sentences by the size of the mega-batch; ParaNMT-50M (Wieting & Gimpel 2018), table 7."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.reading.pairs import SIDES, Pairs, PairSelection
from paranmt_hf.encoders.loading import load
from paranmt_hf.errors import InputError
from paranmt_hf.text.identity import keys_of
from paranmt_hf.util.files import listed
from paranmt_hf.util.markers import Count, Seed
from paranmt_hf.util.settings import Settings

EXCLUDED = -2  # Below any cosine


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
    encoder: str | Path | None = None,
    config: NegativesConfig | None = None,
) -> MinedNegatives:
    """Show the hard negatives of sentences in random mega-batches of a corpus (ParaNMT-50M, table 7).

    A larger mega-batch holds the smaller ones, so its negative is at least as similar.

    Args:
        sentences: Any sentences.
        data: The corpus, as `paranmt train` takes it; it must have enough pairs for the largest mega-batch.
        encoder: Folder or Hub id of the encoder that mines; by default `small`, one of the package.
        config: Which mega-batches.
    """
    config = config or NegativesConfig()
    model = load(encoder)
    most = config.pairs(max(config.mega_batches))
    pool = random_pairs(Pairs(listed(data), PairSelection(max_pairs=most), seed=config.seed), config.seed)
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
