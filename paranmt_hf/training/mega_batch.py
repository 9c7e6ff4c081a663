"""Hard negatives from a mega-batch: ParaNMT-50M (Wieting & Gimpel 2018), section 4.

A mega-batch is M mini-batches of pairs. Once per mega-batch every sentence gets the most similar sentence of the
mega-batch, on either side, as its negative. Excluded are sentences that mean the same as far as the pairs show: copies
of the sentence, every sentence that a copy is paired with, and every sentence that one of those is paired with, copies
included. The latter are the other translations of its reference, or the other references of its translation. Further
steps are not taken: through them one frequent short sentence would join half a corpus.

On the CPU mining is compiled, in tiles that stay in the processor's cache, with products of float32 or of int8. With
int8 every vector becomes integers from -127 to 127 and one scale. Their products are exact, and the similarities are
off by about 0.001. So int8 finds the best sentence of each 128, and float32 decides among those that may be the best
of all. The error of every similarity has a bound, which tells which these are.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch.nn.functional import normalize

from paranmt_hf.text.tokens import expand
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.step_kernels import dot
from paranmt_hf.util.machine import compiled

Precision = Literal["float32", "int8"]
# Similarities are compared as integers in units of 2^-24: as fine as float32, and their maxima are found in a third of
# the time.
UNIT = np.float32(1 << 24)
LOWEST = np.int32(-(1 << 31))
SEGMENT = 128  # Number of sentences of which the best one is kept
# Similarity that excluded sentences get; and in units of 2^-24 a number below which only theirs are.
EXCLUDED = np.float32(-2)
NONE = np.int32(-1.5 * (1 << 24))
SLACK = 32.0  # Largest error of computing a similarity in float32, in units of 2^-24
TILE = 4 * SEGMENT  # Number of rows and columns of a tile, whole segments: its int32 products take a megabyte
# Number of best sentences that are kept for each sentence. With more than 64 segments, several share a slot.
SLOTS = 64
# Minimum numbers of sentences and dimensions for int8; with fewer it saves no time, and float32 is used.
INT8_SENTENCES, INT8_DIMENSIONS = 2_000, 50
LARGEST_INT8 = 127  # The integer that the number with the largest magnitude of a vector becomes


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
    factors, scales = round_to_int8(unit) if int8 else (unit, np.ones(len(unit), np.float32))
    starts = np.arange(0, len(unit), TILE)
    values = np.full((len(unit), SLOTS), LOWEST, np.int32)
    places = np.empty_like(values)
    bounds = np.searchsorted(rows, np.append(starts, len(unit)))
    for index, top in enumerate(starts.tolist()):
        upper = slice(top, top + TILE)
        exclusions = slice(bounds[index], bounds[index + 1])
        for left in starts[index:].tolist():
            other = slice(left, left + TILE)
            tile = (torch._int_mm if int8 else torch.mm)(factors[upper], factors[other].T).numpy()
            scaled = scales[upper], scales[other]
            exclude(tile, scaled, (top, left), rows[exclusions], columns[exclusions])
            of_rows = np.empty((2, tile.shape[0], -(-tile.shape[1] // SEGMENT)), np.int32)
            of_columns = np.empty((2, -(-tile.shape[0] // SEGMENT), tile.shape[1]), np.int32)
            best_of_tile(tile, scaled, (of_rows[0], of_rows[1]), (of_columns[0], of_columns[1]))
            # A product is the similarity of its row to its column and the other way round, so half the tiles are
            # enough.
            _keep_better(values[upper], places[upper], left, of_rows[0], of_rows[1])
            _keep_better(values[other], places[other], top, of_columns[0].T, of_columns[1].T)
    errors = rounding_errors(unit, factors, scales) if int8 else np.empty(0)
    return best_of_all(values, places, unit.numpy(), errors)


def _keep_better(values: np.ndarray, places: np.ndarray, start: int, found: np.ndarray, where: np.ndarray) -> None:
    """Keep the best sentences of some segments where they are better than those that are kept already.

    Args:
        values: Similarity of the kept sentences [sentence, slot], changed in place.
        places: Their positions [sentence, slot], changed in place.
        start: Position of the first sentence of the first segment.
        found: Largest similarity of each sentence in each segment [sentence, segment].
        where: Which sentence has it, counted from `start` [sentence, segment].
    """
    slot = start // SEGMENT % SLOTS
    slots = slice(slot, slot + found.shape[1])
    better = found > values[:, slots]
    np.copyto(values[:, slots], found, where=better)
    np.copyto(places[:, slots], where + np.int32(start), where=better)


def round_to_int8(unit: torch.Tensor) -> tuple[torch.Tensor, np.ndarray]:
    """Divide vectors by a scale each, and round them to int8.

    Returns:
        The integers [sentence, dimension] and the scales [sentence], float32, above 0.
    """
    scales = unit.abs().amax(dim=1) / LARGEST_INT8
    scales[scales == 0] = 1
    return (unit / scales[:, None]).round().to(torch.int8), scales.numpy()


def rounding_errors(unit: torch.Tensor, integers: torch.Tensor, scales: np.ndarray) -> np.ndarray:
    """Measure the length |e| of the error of rounding each vector [sentence], float64.

    A similarity u v, computed from u + e and v + f, is off by u f + e v + e f, which is at most |e| + |f| + |e| |f|
    where u and v have length 1 (Cauchy-Schwarz).

    Args:
        unit: Vectors of length 1, or of zeros [sentence, dimension].
        integers: The rounded vectors [sentence, dimension].
        scales: Their scales [sentence].
    """
    errors = np.empty(len(unit))
    for start in range(0, len(unit), TILE):
        part = slice(start, start + TILE)
        rounded = integers[part].double() * torch.from_numpy(scales[part]).double()[:, None]
        errors[part] = (rounded - unit[part].double()).norm(dim=1).numpy()
    return errors


@compiled(error_model="numpy")
def exclude(
    products: np.ndarray,
    scales: tuple[np.ndarray, np.ndarray],
    corner: tuple[int, int],
    rows: np.ndarray,
    columns: np.ndarray,
) -> None:
    """Overwrite the products of excluded sentences in a tile, so that their similarity is -2.

    Args:
        products: The tile [row, column], changed in place.
        scales: Scales of its rows and of its columns, above 0.
        corner: Positions of the sentences of its first row and its first column.
        rows: Position of a sentence [exclusion], in the tile or not.
        columns: Position of a sentence that it excludes [exclusion].
    """
    for index in range(len(rows)):
        row, column = rows[index] - corner[0], columns[index] - corner[1]
        if 0 <= row < products.shape[0] and 0 <= column < products.shape[1]:
            products[row, column] = EXCLUDED / (scales[0][row] * scales[1][column])


@compiled(fast=True)
def best_of_tile(
    products: np.ndarray,
    scales: tuple[np.ndarray, np.ndarray],
    of_rows: tuple[np.ndarray, np.ndarray],
    of_columns: tuple[np.ndarray, np.ndarray],
) -> None:
    """Find the most similar sentence in each segment of a tile, for each row and for each column.

    Args:
        products: The tile [row, column].
        scales: Scales of its rows and of its columns.
        of_rows: Gets the largest similarity of each row in each segment of columns, in units of 2^-24, and the column
            that has it [row, segment], both int32.
        of_columns: Gets the same for each column and each segment of rows [segment, column].
    """
    height, width = products.shape
    segments = of_rows[0].shape[1]
    # The buffer has whole segments, because loops of a fixed length are several times as fast.
    similarities = np.full(segments * SEGMENT, LOWEST, np.int32)
    of_columns[0][:] = LOWEST
    for row in range(height):
        row_products, scale = products[row], scales[0][row] * UNIT
        for column in range(width):
            similarities[column] = np.int32(np.float32(row_products[column]) * scales[1][column] * scale)
        for index in range(segments):
            start, largest = index * SEGMENT, LOWEST
            for offset in range(SEGMENT):
                largest = max(largest, similarities[start + offset])
            place = start
            while similarities[place] != largest:
                place += 1
            of_rows[0][row, index], of_rows[1][row, index] = largest, place
        number = np.int32(row)
        best, chosen = of_columns[0][row // SEGMENT], of_columns[1][row // SEGMENT]
        for column in range(width):
            better = similarities[column] > best[column]
            best[column] = similarities[column] if better else best[column]
            chosen[column] = number if better else chosen[column]


@compiled()
def best_of_all(values: np.ndarray, places: np.ndarray, unit: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Select the best sentence of all segments for each sentence [sentence], int64; -1 if all are excluded.

    Args:
        values: Similarity of each sentence's best in each slot, in units of 2^-24 [sentence, slot], int32.
        places: Position of this best sentence [sentence, slot], int32.
        unit: Vectors of length 1 [sentence, dimension], float32.
        errors: Length of the rounding error of each vector whose products are in `values` [sentence], float64.
            Sentences that may be the best within these errors are compared again by `unit`. Empty if nothing was
            rounded.
    """
    chosen = np.full(len(values), -1, np.int64)
    for sentence in range(len(values)):
        similarities = values[sentence]
        first = np.argmax(similarities)
        if similarities[first] < NONE:
            continue
        chosen[sentence] = places[sentence, first]
        if len(errors) == 0:
            continue
        error = errors[sentence]
        # The best similarity is at least this, whatever the errors are.
        least = -np.inf
        for index in range(len(similarities)):
            if similarities[index] >= NONE:
                other = errors[places[sentence, index]]
                least = max(least, similarities[index] - (error + other + error * other) * UNIT - SLACK)
        best = np.float32(-2)
        for index in range(len(similarities)):
            if similarities[index] < NONE:
                continue
            other = errors[places[sentence, index]]
            if similarities[index] + (error + other + error * other) * UNIT + SLACK >= least:
                similarity = dot(unit[sentence], unit[places[sentence, index]])
                if similarity > best:
                    best, chosen[sentence] = similarity, places[sentence, index]
    return chosen


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
