"""How much paraphrases repeat of a sentence, and of each other: shared word trigrams."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paranmt_hf.text.definitions import words
from paranmt_hf.text.overlap import trigram_overlap
from paranmt_hf.text.tokens import WordTokenizer


def overlaps(first: Sequence[str], second: Sequence[str]) -> np.ndarray:
    """Compute the trigram overlap of pairs of sentences, also of short ones.

    Args:
        first: Sentences [pair].
        second: Sentences [pair].

    Returns:
        Overlap [pair], float32 in [0, 1], as in the column `trigram_overlap`. Where a side has fewer than three words
        it is 1 if both have the same words, else 0.
    """
    if not len(first):
        return np.zeros(0, np.float32)
    found = trigram_overlap(*WordTokenizer().tables(list(first), list(second)))
    values = found.fill_null(0).to_numpy(zero_copy_only=False).copy()
    for pair in np.flatnonzero(found.is_null().to_numpy(zero_copy_only=False)).tolist():
        values[pair] = words(first[pair]) == words(second[pair])
    return values


def unlike(texts: Sequence[str], choices: Sequence[Sequence[str]], most: float) -> list[list[str]]:
    """Keep the choices of each text that have at most this overlap with it."""
    values = iter(
        overlaps(
            [text for text, own in zip(texts, choices, strict=True) for _ in own], [c for own in choices for c in own]
        )
    )
    return [[choice for choice in own if next(values) <= most] for own in choices]


def apart(choices: Sequence[Sequence[str]], most: float) -> list[list[int]]:
    """Keep of each list the choices that have at most this overlap with each one kept before.

    Args:
        choices: Lists of sentences, the one that is to stay before.
        most: Largest overlap.

    Returns:
        Positions of those kept in each list.
    """
    kept: list[list[int]] = [[] for _ in choices]
    for position in range(max(map(len, choices), default=0)):
        rows = [row for row, own in enumerate(choices) if position < len(own)]
        pairs = [(choices[row][position], choices[row][other]) for row in rows for other in kept[row]]
        values = overlaps([a for a, _ in pairs], [b for _, b in pairs])
        ends = np.cumsum([0, *(len(kept[row]) for row in rows)])
        for row, start, end in zip(rows, ends, ends[1:], strict=False):
            if (values[start:end] <= most).all():
                kept[row].append(position)
    return kept
