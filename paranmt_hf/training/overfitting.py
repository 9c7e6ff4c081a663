"""How far pairs stand out from their negatives: the measure of overfitting of arXiv:1511.08198, section 5.

A model that sets its training pairs apart from their negatives by much more than pairs it has not seen has overfitted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn.functional import normalize

from paranmt_hf.errors import InputError
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.text.tokens import TokenHashes, WordTokenizer, sentence_keys
from paranmt_hf.training.mega_batch import mine

# Pairs that are encoded at once.
ENCODED = 100_000


def margins(vectors: torch.Tensor, keys: np.ndarray) -> np.ndarray:
    """Compute 2 cos(g1, g2) - cos(n1, g1) - cos(n2, g2) of each pair (g1, g2) of a pool (arXiv:1511.08198, section 5).

    The negatives n1 and n2 are the most similar allowed sentences of the pool, as `mega_batch.mine` finds them.

    Args:
        vectors: Sentence vectors [2 x pair, dimension]: the first sides, then the second ones.
        keys: A number for each sentence [2 x pair]; equal for equal sentences.

    Returns:
        The value of each pair that has both negatives [value], float64, in [-4, 4].
    """
    unit = normalize(vectors.double(), dim=1)
    count = len(unit) // 2
    negatives = mine(vectors, keys)
    both = torch.from_numpy((negatives[:count] >= 0) & (negatives[count:] >= 0))
    chosen = torch.from_numpy(np.maximum(negatives, 0))
    similar = (unit * unit[chosen]).sum(dim=1)
    values = 2 * (unit[:count] * unit[count:]).sum(dim=1) - similar[:count] - similar[count:]
    return values[both].numpy()


def mean_margin(
    encoder: Encoder, first: Sequence[str], second: Sequence[str], *, pool: int = 100, seed: int = 1
) -> float:
    """Average the margins of pairs, which stand in pools by chance.

    Args:
        encoder: The encoder.
        first: First sides [pair].
        second: Second sides [pair].
        pool: Pairs among which the negatives of each are sought, as in a mini-batch; at least 2.
        seed: Decides which pairs stand in a pool.

    Returns:
        The mean over the pairs that have negatives, in [-4, 4].

    Raises:
        InputError: No pair has.
    """
    tables, hashes = WordTokenizer().tables(first, second), TokenHashes()
    keys = np.stack([sentence_keys(table, hashes.of(table)) for table in tables])
    order = np.random.default_rng(seed).permutation(keys.shape[1])
    values = []
    # Whole pools are encoded together, and no more at once than bounds the memory.
    block = pool * max(1, ENCODED // pool)
    for begin in range(0, len(order), block):
        own = order[begin : begin + block]
        sides = [np.asarray(encoder.encode([side[pair] for pair in own])) for side in (first, second)]
        vectors = torch.from_numpy(np.stack(sides))
        for start in range(0, len(own), pool):
            known = keys[:, own[start : start + pool]].ravel()
            values.append(margins(vectors[:, start : start + pool].flatten(0, 1), known))
    found = np.concatenate([np.empty(0), *values])
    if not len(found):
        raise InputError(
            f"none of the {len(order):,} pairs has a negative, for all their sentences are copies or paraphrases of "
            "each other; give more pairs"
        )
    return float(found.mean())
