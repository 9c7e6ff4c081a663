"""Hard negatives from a mega-batch. ParaNMT-50M (Wieting & Gimpel 2018), section 4.

A mega-batch is M mini-batches of pairs. Once per mega-batch every sentence gets the most similar sentence of the
mega-batch as its negative, whichever side that stands on. Left out is what means the same as far as the pairs tell:
copies of the sentence, every sentence that one of them is paired with, and every sentence that one of those is paired
with, copies counted. These last ones are the other translations of its reference, or the other references of its
translation; a corpus with several translations of one reference is full of them. Further steps are not taken: through
them one frequent short sentence would join half a corpus.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch.nn.functional import normalize

from paranmt_hf.text.tokens import expand
from paranmt_hf.training.config import Negatives

# Rows of a block of similarities: small enough to stay near the processor (measured: 2.6 times the full matrix).
BLOCK = 500


class Miner(Protocol):
    """Finds the most similar allowed sentence of each sentence; arguments and result as of `mine`."""

    def __call__(self, vectors: torch.Tensor, keys: np.ndarray, *, one_sided: bool = False) -> np.ndarray:
        """Find them."""
        ...


def partners(pairs: int) -> np.ndarray:
    """Partner of each of the sentences [references; translations] of some pairs [2 x pair], int64."""
    return np.concatenate([np.arange(pairs, 2 * pairs), np.arange(pairs)])


def paraphrases(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find which distinct sentences may not be negatives of each other.

    Args:
        keys: A number for each of the sentences [references; translations] [2 x pair]; equal for equal sentences.

    Returns:
        The distinct sentence that each sentence is a copy of [2 x pair], and the pairs of distinct sentences that mean
        the same, each pair (u, w) as the number u * (2 x pair) + w, ascending. Where (u, w) is there, (w, u) is too.
    """
    count = len(keys)
    _, group = np.unique(keys, return_inverse=True)
    # One step: who is paired with whom, each pair of distinct sentences once, sorted by its first one.
    edges = np.unique(group * count + group[partners(count // 2)])
    left, right = np.divmod(edges, max(count, 1))
    # Two steps: the edges of each edge's right end. Those of sentence u stand from bounds[u] to bounds[u + 1].
    bounds = np.searchsorted(left, np.arange(group.max(initial=-1) + 2))
    ends, _ = expand(right, bounds[right], bounds[right + 1] - bounds[right])
    begins = np.repeat(left, bounds[right + 1] - bounds[right])
    # Two steps lead back to where they began, so that a sentence is among its own paraphrases.
    return group, np.unique(np.concatenate([edges, begins * count + ends]))


def excluded(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """List which sentences may not be whose negatives: copies of its paraphrases, see `paraphrases`.

    If a sentence excludes another, that one excludes it too.

    Args:
        keys: A number for each of the sentences [references; translations] [2 x pair]; equal for equal sentences.

    Returns:
        The sentence [exclusion], sorted, and what it excludes [exclusion], both int64.
    """
    count = len(keys)
    group, related = paraphrases(keys)
    left, right = np.divmod(related, max(count, 1))
    distinct = np.arange(group.max(initial=-1) + 2)
    # Sorted by group, the copies of u stand from copies[u] to copies[u + 1].
    order = np.argsort(group, kind="stable")
    copies = np.searchsorted(group[order], distinct)
    # What each distinct sentence excludes: the copies of its paraphrases, from lists[u] to lists[u + 1].
    members, ends = expand(order, copies[right], copies[right + 1] - copies[right])
    lists = ends[np.searchsorted(left, distinct)]
    sizes = lists[group + 1] - lists[group]
    columns, _ = expand(members, lists[group], sizes)
    return np.repeat(np.arange(count), sizes), columns


def mine(vectors: torch.Tensor, keys: np.ndarray, *, one_sided: bool = False) -> np.ndarray:
    """Find the most similar allowed sentence of each sentence.

    Every similarity is computed once, in blocks of the upper triangle, and counts for both of its sentences.

    Args:
        vectors: Sentence vectors [2 x pair, dimension]: the references, then the translations.
        keys: A number for each sentence [2 x pair]; equal for equal sentences.
        one_sided: Only references get a negative, and only another reference (ParaNMT-50M, section 4).

    Returns:
        Position of each sentence's negative [2 x pair] (one-sided: [pair]), int64; -1 where none is allowed.
    """
    unit = normalize(vectors, dim=1)
    rows, columns = (torch.from_numpy(part).to(unit.device) for part in excluded(keys))
    if one_sided:
        return _mine_one_sided(unit, rows, columns)
    count = len(unit)
    best = torch.full((count,), -2.0, device=unit.device)
    chosen = torch.full((count,), -1, dtype=torch.long, device=unit.device)
    bounds = torch.searchsorted(rows, torch.arange(0, count + BLOCK, BLOCK, device=unit.device)).tolist()
    for index, start in enumerate(range(0, count, BLOCK)):
        stop = min(start + BLOCK, count)
        block = unit[start:stop] @ unit[start:].T
        # Exclusions of the block's own sentences; those to the left of the triangle were dealt with from there.
        inside = slice(bounds[index], bounds[index + 1])
        after = columns[inside] >= start
        block[rows[inside][after] - start, columns[inside][after] - start] = -2.0
        value, position = block.max(dim=1)
        _keep_better(best, chosen, slice(start, stop), value, position + start)
        if stop < count:
            value, position = block[:, stop - start :].max(dim=0)
            _keep_better(best, chosen, slice(stop, count), value, position + start)
    return chosen.cpu().numpy()


def _keep_better(
    best: torch.Tensor, chosen: torch.Tensor, where: slice, value: torch.Tensor, position: torch.Tensor
) -> None:
    better = value > best[where]
    best[where] = torch.where(better, value, best[where])
    chosen[where] = torch.where(better, position, chosen[where])


def _mine_one_sided(unit: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor) -> np.ndarray:
    pairs = len(unit) // 2
    chosen = []
    for start in range(0, pairs, BLOCK):
        block = unit[start : min(start + BLOCK, pairs)] @ unit[:pairs].T
        here = (rows >= start) & (rows < start + len(block)) & (columns < pairs)
        block[rows[here] - start, columns[here]] = -2.0
        value, position = block.max(dim=1)
        chosen.append(torch.where(value > -2.0, position, -1))
    return torch.cat(chosen).cpu().numpy()


def draw(keys: np.ndarray, generator: np.random.Generator, *, one_sided: bool = False) -> np.ndarray:
    """Draw a random allowed sentence for each sentence; shapes and meaning as `mine`."""
    count = len(keys)
    # One-sided, references draw among references, which come first.
    queries = count // 2 if one_sided else count
    group, related = paraphrases(keys)
    chosen = np.full(queries, -1, np.int64)
    # Nearly all draws are allowed; a sentence that is still without one after many tries has copies everywhere.
    for _ in range(100):
        open_ = np.flatnonzero(chosen < 0)
        if not len(open_):
            break
        drawn = generator.integers(0, queries, len(open_))
        codes = group[open_] * count + group[drawn]
        indices = np.searchsorted(related, codes).clip(max=len(related) - 1)
        allowed = related[indices] != codes
        chosen[open_[allowed]] = drawn[allowed]
    return chosen


def select(
    vectors: torch.Tensor | None,
    keys: np.ndarray,
    negatives: Negatives,
    generator: np.random.Generator,
    *,
    one_sided: bool = False,
    hardest: Miner = mine,
) -> np.ndarray:
    """Choose negatives by MAX, MIX (each random with probability one half) or RAND. arXiv:1511.08198, section 3.1.1.

    Args:
        vectors: Sentence vectors [2 x pair, dimension]; not needed for `rand`.
        keys: A number for each sentence [2 x pair]; equal for equal sentences.
        negatives: The way of choosing.
        generator: For what is random.
        one_sided: Only references get a negative, and only another reference.
        hardest: Finds the most similar ones.

    Returns:
        As `mine`.
    """
    if negatives == "rand":
        return draw(keys, generator, one_sided=one_sided)
    if vectors is None:
        raise ValueError("the most similar sentence cannot be chosen without vectors")
    most_similar = hardest(vectors, keys, one_sided=one_sided)
    if negatives == "max":
        return most_similar
    random = draw(keys, generator, one_sided=one_sided)
    return np.where(generator.random(len(most_similar)) < 0.5, random, most_similar)
