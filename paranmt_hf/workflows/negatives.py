"""What mega-batches do: the negatives that given sentences get. ParaNMT-50M (Wieting & Gimpel 2018), table 7."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paranmt_hf.corpus.pairs import SIDES, Pairs, SelectionConfig
from paranmt_hf.encoders.loading import load
from paranmt_hf.errors import InputError
from paranmt_hf.text import words


@dataclass(frozen=True)
class Negative:
    """The negative of a sentence: for which M, how similar (cosine, in [-1, 1]), and which sentence."""

    mega_batch: int
    similarity: float
    sentence: str


def mined_negatives(
    sentences: Sequence[str],
    data: Sequence[str | Path],
    *,
    encoder: str | Path = "embedded",
    mega_batches: Sequence[int] = (1, 20, 40),
    batch_size: int = 100,
    seed: int = 1,
    selection: SelectionConfig | None = None,
) -> list[list[Negative]]:
    """Mine the negatives that sentences would get in random mega-batches of a corpus.

    A larger mega-batch holds the smaller ones, so its negative is at least as similar.

    Args:
        sentences: Any sentences.
        data: The corpus, as `train` takes it.
        encoder: Folder or Hub id of the encoder that mines.
        mega_batches: Values of M.
        batch_size: Pairs of a mini-batch.
        seed: Decides which pairs the mega-batches hold.
        selection: Which pairs of the corpus are used.

    Returns:
        For each sentence a negative for each M, in their order.

    Raises:
        InputError: The corpus has too few pairs, or M is below 1.
    """
    if not mega_batches or min(mega_batches) < 1 or batch_size < 1:
        raise InputError("M and the size of a mini-batch must be at least 1")
    model = load(encoder)
    pool = _sample(Pairs(list(data), selection or SelectionConfig()), max(mega_batches) * batch_size, seed)
    if len(pool) < max(mega_batches) * batch_size:
        raise InputError(
            f"M = {max(mega_batches)} needs {max(mega_batches) * batch_size:,} pairs, the data has {len(pool):,}; "
            "name a smaller M"
        )
    options = {"show_progress_bar": False, "normalize_embeddings": True}
    candidates = [sentence for pair in pool for sentence in pair]
    similarities = model.encode(list(sentences), **options) @ model.encode(candidates, **options).T
    tokens = [tuple(words(candidate)) for candidate in candidates]
    for row, sentence in zip(similarities, sentences, strict=True):
        own = tuple(words(sentence))
        # Copies of the sentence, and all copies of what it is paired with.
        excluded = {own, *(tokens[place ^ 1] for place, other in enumerate(tokens) if other == own)}
        row[[place for place, other in enumerate(tokens) if other in excluded]] = -2
        if row[: 2 * min(mega_batches) * batch_size].max() == -2:
            raise InputError(
                f"no negative for {sentence!r} among {min(mega_batches) * batch_size} pairs: all their sentences are "
                "copies of it or paraphrases"
            )
    found = []
    for row in similarities:
        best = [int(np.argmax(row[: 2 * size * batch_size])) for size in mega_batches]
        found.append(
            [
                Negative(size, float(row[place]), candidates[place])
                for size, place in zip(mega_batches, best, strict=True)
            ]
        )
    return found


def _sample(pairs: Pairs, count: int, seed: int) -> list[tuple[str, str]]:
    """Draw pairs without knowing how many there are: each gets a random number, the smallest ones win."""
    generator = np.random.default_rng(seed)
    kept: list[tuple[str, str]] = []
    numbers = np.empty(0)
    for table in pairs.batches():
        drawn = generator.random(table.num_rows)
        # Rows that cannot be among the smallest numbers any more are not turned into Python strings.
        bound = numbers.max() if len(kept) >= count else np.inf
        rows = np.flatnonzero(drawn < bound)
        chosen = table.take(rows)
        kept += list(zip(*(chosen[side].to_pylist() for side in SIDES), strict=True))
        numbers = np.concatenate([numbers, drawn[rows]])
        order = np.argsort(numbers, kind="stable")[:count]
        kept, numbers = [kept[place] for place in order.tolist()], numbers[order]
    return kept
