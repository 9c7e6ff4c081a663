"""Scrambling: shuffle the words of some training sentences. ParaNMT-50M (Wieting & Gimpel 2018), section 5.2."""

from __future__ import annotations

import numpy as np


def scramble(rows: np.ndarray, offsets: np.ndarray, share: float, generator: np.random.Generator) -> np.ndarray:
    """Shuffle the words of a share of the sentences.

    Args:
        rows: Word of each position [word], sentence after sentence.
        offsets: Bounds [sentence + 1].
        share: Probability that a sentence is shuffled, in [0, 1].
        generator: Where chance comes from.

    Returns:
        The words [word], each within its sentence.
    """
    if not share:
        return rows
    lengths = np.diff(offsets)
    sentences = np.repeat(np.arange(len(lengths)), lengths)
    chosen = (generator.random(len(lengths)) < share)[sentences]
    # Sorting by the sentence and then by a random key shuffles; other sentences keep their positions as keys.
    keys = np.where(chosen, generator.random(len(rows)), np.arange(len(rows)) / max(1, len(rows)))
    return rows[np.lexsort((keys, sentences))]
