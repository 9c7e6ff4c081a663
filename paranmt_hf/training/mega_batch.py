"""Hard negatives from a mega-batch: ParaNMT-50M (Wieting & Gimpel 2018), section 4.

A mega-batch is M mini-batches of pairs. Once per mega-batch every sentence gets the most similar sentence of the
mega-batch, on either side, as its negative. Excluded are sentences that mean the same as far as the pairs show: copies
of the sentence, every sentence that a copy is paired with, and every sentence that one of those is paired with, copies
included. The latter are the other translations of its reference, or the other references of its translation. Further
steps are not taken: through them one frequent short sentence would join half a corpus.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch.nn.functional import normalize

from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.mining_kernels import (
    LOWEST,
    SEGMENT,
    SLOTS,
    Best,
    best_of_all,
    exclude,
    keep_best_of_tile,
    round_to_int8,
)
from paranmt_hf.util.ranges import expand

Precision = Literal["float32", "int8"]
TILE = 4 * SEGMENT  # Number of rows and columns of a tile, whole segments: its int32 products take a megabyte
# Minimum numbers of sentences and dimensions for int8; with fewer it saves no time, and float32 is used.
INT8_SENTENCES, INT8_DIMENSIONS = 2_000, 50


def mining_precision(config: TrainConfig) -> Precision:
    """Return the type of products when mining on the CPU: by default int8 if the processor has instructions for it."""
    if config.mining_precision is not None:
        return config.mining_precision
    known = torch.cpu.get_capabilities()
    return "int8" if known.get("avx512_vnni") or known.get("amx_int8") else "float32"


def paraphrases(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the distinct sentences that may not be negatives of each other, a symmetric relation.

    Args:
        keys: Keys of the references, then of the translations [2 x pair].

    Returns:
        The distinct sentence that each sentence is a copy of [2 x pair]; and the pairs of distinct sentences that mean
        the same, each pair (u, w) as the number u * (2 x pair) + w, ascending.
    """
    count = len(keys)
    _, group = np.unique(keys, return_inverse=True)
    # One step in the relation: the pairs of distinct sentences, each once, sorted by the first one.
    edges = np.unique(group * count + np.roll(group, count // 2))
    left, right = np.divmod(edges, max(count, 1))
    # Two steps: for each edge, the edges of its right end. The edges of sentence u are from bounds[u] to bounds[u +
    # 1].
    bounds = np.searchsorted(left, np.arange(group.max(initial=-1) + 2))
    ends, _ = expand(right, bounds[right], bounds[right + 1] - bounds[right])
    begins = np.repeat(left, bounds[right + 1] - bounds[right])
    # Two steps also lead back to where they began, so a sentence is among its own paraphrases.
    return group, np.unique(np.concatenate([edges, begins * count + ends]))


def excluded(keys: np.ndarray, *, one_sided: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """List the sentences that may not be the negative of each sentence, a symmetric relation; see `paraphrases`.

    Args:
        keys: Keys of the references, then of the translations [2 x pair].
        one_sided: Whether only references get negatives, which are references; translations are left out then.

    Returns:
        Positions of a sentence, sorted, and of one that it excludes, both [exclusion], int64.
    """
    count = len(keys)
    group, related = paraphrases(keys)
    left, right = np.divmod(related, max(count, 1))
    distinct = np.arange(group.max(initial=-1) + 2)
    # In the order by group, the copies of the distinct sentence u are from copies[u] to copies[u + 1].
    order = np.argsort(group, kind="stable")
    copies = np.searchsorted(group[order], distinct)
    # The distinct sentence u excludes the copies of its paraphrases: `members` from lists[u] to lists[u + 1].
    members, ends = expand(order, copies[right], copies[right + 1] - copies[right])
    lists = ends[np.searchsorted(left, distinct)]
    sizes = lists[group + 1] - lists[group]
    columns, _ = expand(members, lists[group], sizes)
    rows = np.repeat(np.arange(count), sizes)
    if one_sided:
        among = (rows < count // 2) & (columns < count // 2)
        rows, columns = rows[among], columns[among]
    return rows, columns


def mine_negatives(
    vectors: torch.Tensor, keys: np.ndarray, *, one_sided: bool = False, precision: Precision = "float32"
) -> np.ndarray:
    """Find the most similar allowed sentence of each sentence.

    Args:
        vectors: Vectors of the references, then of the translations [2 x pair, dimension].
        keys: Keys of these sentences, equal for equal sentences [2 x pair].
        one_sided: Whether only references get a negative, which is another reference (ParaNMT-50M, section 4).
        precision: Type of the products on the CPU; small mega-batches use float32 anyway.

    Returns:
        Position of the negative of each sentence [2 x pair], or reference [pair], int64; -1 where none is allowed.
    """
    rows, columns = excluded(keys, one_sided=one_sided)
    vectors = vectors[: len(vectors) // 2] if one_sided else vectors
    if vectors.device.type == "cpu":
        return _mine_tiles(normalize(vectors.float(), dim=1), rows, columns, precision)
    counts = np.bincount(rows, minlength=len(vectors))
    pairs = torch.from_numpy(rows).to(vectors.device), torch.from_numpy(columns).to(vectors.device)
    chosen: np.ndarray = hardest(vectors, pairs, np.concatenate([[0], counts.cumsum()])).cpu().numpy()
    return np.where(counts < len(vectors), chosen, -1)


def hardest(
    vectors: torch.Tensor,
    exclusions: tuple[torch.Tensor, torch.Tensor],
    bounds: np.ndarray,
    *,
    block: int | None = None,
) -> torch.Tensor:
    """Find the most similar allowed sentence of each sentence on a device, without synchronising with the host.

    Args:
        vectors: Vectors of the sentences [sentence, dimension].
        exclusions: Positions of a sentence and of one that it excludes, sorted by the former, both [exclusion].
        bounds: Bounds of each sentence in the exclusions [sentence + 1], on the host.
        block: Number of sentences that are compared with all others at once; None to choose it by memory.

    Returns:
        Position of the sentence [sentence]; any position where none is allowed.
    """
    unit = normalize(vectors, dim=1)
    count = len(unit)
    # So many that the similarities take 1 GB in float32.
    block = block or max(1, (1 << 28) // max(1, count))
    chosen = []
    for start in range(0, count, block):
        stop = min(start + block, count)
        similarities = unit[start:stop] @ unit.T
        inside = slice(int(bounds[start]), int(bounds[stop]))
        cells = (exclusions[0][inside].long() - start) * count + exclusions[1][inside]
        similarities.view(-1).index_fill_(0, cells, -2.0)
        chosen.append(similarities.argmax(dim=1))
    return torch.cat(chosen)


def _mine_tiles(unit: torch.Tensor, rows: np.ndarray, columns: np.ndarray, precision: Precision) -> np.ndarray:
    """Find the most similar allowed sentence of each sentence on the CPU, tile by tile.

    Args:
        unit: Vectors of length 1 [sentence, dimension].
        rows: Position of a sentence [exclusion], sorted.
        columns: Position of one that it excludes [exclusion].
        precision: Type of the products.
    """
    int8 = precision == "int8" and len(unit) >= INT8_SENTENCES and unit.shape[1] >= INT8_DIMENSIONS
    factors, scales, errors = unit, np.ones(len(unit), np.float32), np.empty(0)
    if int8:
        integers, scales, errors = round_to_int8(unit.numpy())
        factors = torch.from_numpy(integers)
    starts = np.arange(0, len(unit), TILE)
    best = Best(np.full((len(unit), SLOTS), LOWEST, np.int32), np.empty((len(unit), SLOTS), np.int32))
    bounds = np.searchsorted(rows, np.append(starts, len(unit)))
    for index, top in enumerate(starts.tolist()):
        upper = slice(top, top + TILE)
        exclusions = slice(bounds[index], bounds[index + 1])
        # A product is the similarity of its row to its column and the other way round, so half the tiles are enough.
        for left in starts[index:].tolist():
            other = slice(left, left + TILE)
            tile = (torch._int_mm if int8 else torch.mm)(factors[upper], factors[other].T).numpy()
            scaled = scales[upper], scales[other]
            exclude(tile, scaled, (top, left), rows[exclusions], columns[exclusions])
            keep_best_of_tile(tile, scaled, (top, left), best)
    return best_of_all(best, unit.numpy(), errors)


def draw_negatives(keys: np.ndarray, generator: np.random.Generator, *, one_sided: bool = False) -> np.ndarray:
    """Draw an allowed sentence for each sentence at random; arguments and result as in `mine_negatives`."""
    count = len(keys)
    # If one-sided, references draw among references, which are the first half.
    queries = count // 2 if one_sided else count
    group, related = paraphrases(keys)
    chosen = np.full(queries, -1, np.int64)
    # Nearly all draws are allowed. A sentence that has none after 100 tries excludes nearly all others.
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


def select_negatives(
    vectors: torch.Tensor | None, keys: np.ndarray, config: TrainConfig, generator: np.random.Generator
) -> np.ndarray:
    """Choose negatives by MAX, MIX or RAND (arXiv:1511.08198, section 3.1.1); by MIX half of them are random.

    Arguments and result are those of `mine_negatives`; RAND needs no vectors.
    """
    if config.negatives == "rand":
        return draw_negatives(keys, generator, one_sided=config.one_sided)
    assert vectors is not None, "the most similar sentence cannot be chosen without vectors"
    nearest = mine_negatives(vectors, keys, one_sided=config.one_sided, precision=mining_precision(config))
    if config.negatives == "max":
        return nearest
    random = draw_negatives(keys, generator, one_sided=config.one_sided)
    return np.where(generator.random(len(nearest)) < 0.5, random, nearest)


def minibatch(pairs: np.ndarray, total: int, negatives: np.ndarray | None, *, one_sided: bool) -> np.ndarray:
    """Return the positions of the sentences of some pairs [role, pair]: s, s' and, with negatives, t and t'.

    Pairs with a sentence that has no allowed negative are left out; one-sided, there is no t'. `total` is the number
    of pairs of the mega-batch, and `negatives` are the positions that `select_negatives` returned; None for a loss
    without negatives.
    """
    roles = [pairs, pairs + total]
    if negatives is not None:
        roles.append(negatives[pairs])
        if not one_sided:
            roles.append(negatives[pairs + total])
    sentences = np.stack(roles)
    return sentences[:, (sentences >= 0).all(axis=0)]
