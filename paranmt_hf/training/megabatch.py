"""Hard negatives from a mega-batch. ParaNMT-50M (Wieting & Gimpel 2018), section 4.2.

A mega-batch is M mini-batches of pairs. Once per mega-batch every sentence gets the most similar sentence of the
mega-batch as its negative, whichever side that stands on. Left out are its own pair, other copies of itself and of its
partner, and what other copies of it are paired with: none of these is a negative, and a corpus with several
translations of one reference is full of them.
"""

from __future__ import annotations

import numpy as np
import torch
from torch.nn.functional import normalize

from paranmt_hf.training.config import Negatives

# Rows of a block of similarities: small enough to stay near the processor (measured: 2.6 times the full matrix).
BLOCK = 500


def partners(pairs: int) -> np.ndarray:
    """Partner of each of the sentences [references; translations] of some pairs [2 x pair], int64."""
    return np.concatenate([np.arange(pairs, 2 * pairs), np.arange(pairs)])


def excluded(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """List which sentences may not be whose negatives: copies of it, copies of its partner, partners of its copies.

    If a sentence excludes another, that one excludes it too.

    Args:
        keys: A number for each of the sentences [references; translations] [2 x pair]; equal for equal sentences.

    Returns:
        The sentence [exclusion], sorted, and what it excludes [exclusion], both int64.
    """
    count = len(keys)
    # Sorted by key, copies of a sentence stand together: group g is order[starts[g] : starts[g] + sizes[g]].
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if count else np.empty(0, np.int64)
    sizes = np.diff(np.concatenate([starts, [count]]))
    group = np.empty(count, np.int64)
    group[order] = np.repeat(np.arange(len(starts)), sizes)
    partner = partners(count // 2)
    sentences, excluded_by = [], []
    # Copies of a sentence, copies of its partner, partners of its copies: a group for each sentence, and who is in it.
    for groups, members in ((group, order), (group[partner], order), (group, partner[order])):
        counts = sizes[groups]
        # Sentence i fills counts[i] entries of the list. Entry j, counted from the first of them, is for the member at
        # starts[groups[i]] + j; `arange` counts from the start of the whole list, so what stands before is taken off.
        before = np.cumsum(counts) - counts
        positions = np.repeat(starts[groups] - before, counts) + np.arange(counts.sum())
        sentences.append(np.repeat(np.arange(count), counts))
        excluded_by.append(members[positions])
    rows, columns = np.concatenate(sentences), np.concatenate(excluded_by)
    by_row = np.argsort(rows, kind="stable")
    return rows[by_row], columns[by_row]


def mine(vectors: torch.Tensor, keys: np.ndarray, *, one_sided: bool = False) -> np.ndarray:
    """Find the most similar allowed sentence of each sentence.

    Every similarity is computed once, in blocks of the upper triangle, and counts for both of its sentences.

    Args:
        vectors: Sentence vectors [2 x pair, dimension]: the references, then the translations.
        keys: A number for each sentence [2 x pair]; equal for equal sentences.
        one_sided: Only references get a negative, and only from the translations.

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
    found = []
    for start in range(0, pairs, BLOCK):
        block = unit[start : min(start + BLOCK, pairs)] @ unit[pairs:].T
        here = (rows >= start) & (rows < start + len(block)) & (columns >= pairs)
        block[rows[here] - start, columns[here] - pairs] = -2.0
        value, position = block.max(dim=1)
        found.append(torch.where(value > -2.0, position + pairs, -1))
    return torch.cat(found).cpu().numpy()


def draw(keys: np.ndarray, generator: np.random.Generator, *, one_sided: bool = False) -> np.ndarray:
    """Draw a random allowed sentence for each sentence; shapes and meaning as `mine`."""
    count = len(keys)
    first, queries = (count // 2, count // 2) if one_sided else (0, count)
    partner = keys[partners(count // 2)]
    chosen = np.full(queries, -1, np.int64)
    # Nearly all draws are allowed; a sentence that is still without one after many tries has copies everywhere.
    for _ in range(100):
        open_ = np.flatnonzero(chosen < 0)
        if not len(open_):
            break
        drawn = generator.integers(first, count, len(open_))
        allowed = (keys[drawn] != keys[open_]) & (keys[drawn] != partner[open_]) & (partner[drawn] != keys[open_])
        chosen[open_[allowed]] = drawn[allowed]
    return chosen


def select(
    vectors: torch.Tensor | None,
    keys: np.ndarray,
    negatives: Negatives,
    generator: np.random.Generator,
    *,
    one_sided: bool = False,
) -> np.ndarray:
    """Choose negatives by MAX, MIX (each one random with probability one half) or RAND. arXiv:1511.08198, section 4.

    Args:
        vectors: Sentence vectors [2 x pair, dimension]; not needed for `rand`.
        keys: A number for each sentence [2 x pair]; equal for equal sentences.
        negatives: The way of choosing.
        generator: For what is random.
        one_sided: Only references get a negative, and only from the translations.

    Returns:
        As `mine`.
    """
    if negatives == "rand":
        return draw(keys, generator, one_sided=one_sided)
    if vectors is None:
        raise ValueError("the most similar sentence cannot be chosen without vectors")
    hardest = mine(vectors, keys, one_sided=one_sided)
    if negatives == "max":
        return hardest
    random = draw(keys, generator, one_sided=one_sided)
    return np.where(generator.random(len(hardest)) < 0.5, random, hardest)
