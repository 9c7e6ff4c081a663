"""Hard negatives from a mega-batch. ParaNMT-50M (Wieting & Gimpel 2018), section 4.

A mega-batch is M mini-batches of pairs. Once per mega-batch every sentence gets the most similar sentence of the
mega-batch, on either side, as its negative. Excluded are sentences that mean the same as far as the pairs show: copies
of the sentence, every sentence that one of them is paired with, and every sentence that one of those is paired with,
copies included. The latter are the other translations of its reference, or the other references of its translation.
Further steps are not taken: through them one frequent short sentence would join half a corpus.

On the CPU mining is compiled, in tiles that stay in the processor's cache, with products of float32 or of int8. With
int8 every vector becomes integers from -127 to 127 and one scale. Their products are exact, and the similarities are
off by about 0.001. So int8 finds the best sentence of every 128, and float32 decides among those that are the best of
all within the error, for which there is a bound for every two vectors.
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
SEGMENT = 128  # Sentences of which the best one is kept
# The value of an excluded similarity, and a bound below which all are excluded.
EXCLUDED = np.float32(-2)
NONE = np.int32(-1.5 * (1 << 24))
SLACK = 32.0  # The largest error of float32 itself, in a similarity and the lengths of its vectors, in units of 2^-24
TILE = 4 * SEGMENT  # Sentences of the rows and columns of a tile, whole segments: its int32 products take a megabyte
# Best sentences that are kept for each sentence: the segments of more than 8,192 sentences share them.
SLOTS = 64
# With fewer sentences or dimensions int8 saves no time, and float32 is used.
INT8_SENTENCES, INT8_DIMENSIONS = 2_000, 50
LARGEST_INT8 = 127


def mining_precision(config: TrainConfig) -> Precision:
    """Type of products when mining on the CPU: by default int8 if the processor has instructions for it."""
    if config.mining_precision is not None:
        return config.mining_precision
    known = torch.cpu.get_capabilities()
    return "int8" if known.get("avx512_vnni") or known.get("amx_int8") else "float32"


def paraphrases(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the distinct sentences that may not be negatives of each other.

    Returns the distinct sentence that each sentence is a copy of [2 x pair], and the pairs of distinct sentences that
    mean the same, each pair (u, w) as the number u * (2 x pair) + w, ascending. The relation is symmetric.
    """
    count = len(keys)
    _, group = np.unique(keys, return_inverse=True)
    # One step: the pairs of distinct sentences, each once, sorted by the first one.
    edges = np.unique(group * count + np.roll(group, count // 2))
    left, right = np.divmod(edges, max(count, 1))
    # Two steps: the edges of each edge's right end. Those of sentence u are from bounds[u] to bounds[u + 1].
    bounds = np.searchsorted(left, np.arange(group.max(initial=-1) + 2))
    ends, _ = expand(right, bounds[right], bounds[right + 1] - bounds[right])
    begins = np.repeat(left, bounds[right + 1] - bounds[right])
    # Two steps lead back to where they began, so that a sentence is among its own paraphrases.
    return group, np.unique(np.concatenate([edges, begins * count + ends]))


def excluded(keys: np.ndarray, *, one_sided: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """List the excluded negatives of each sentence: copies of its paraphrases, see `paraphrases`.

    Given the keys of the references, then of the translations [2 x pair], returns the sentence [exclusion], sorted,
    and what it excludes [exclusion], both int64; if one-sided, among the references only. The relation is symmetric.
    """
    count = len(keys)
    group, related = paraphrases(keys)
    left, right = np.divmod(related, max(count, 1))
    distinct = np.arange(group.max(initial=-1) + 2)
    # Sorted by group, the copies of u are from copies[u] to copies[u + 1].
    order = np.argsort(group, kind="stable")
    copies = np.searchsorted(group[order], distinct)
    # What each distinct sentence excludes: the copies of its paraphrases, from lists[u] to lists[u + 1].
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
    """Find the most similar allowed sentence of each sentence [2 x pair], int64; -1 where none is allowed.

    Given are the vectors of the references, then of the translations [2 x pair, dimension], and their keys [2 x pair],
    equal for equal sentences. One-sided, only references get a negative [pair], and only another reference
    (ParaNMT-50M, section 4). `precision` is that of the products on the CPU; small mega-batches use float32 anyway.
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

    Given are the vectors [sentence, dimension]; the position of a sentence and of one that it excludes, sorted by the
    former, both [exclusion]; and the bounds of each sentence in these [sentence + 1], on the host. `block` sentences
    are compared with all others at once. The result [sentence] is any position where none is allowed.
    """
    unit = normalize(vectors, dim=1)
    count = len(unit)
    # 1 GB of similarities in float32.
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
    """Mine among vectors of length 1 [sentence, dimension]; sentence `rows[i]` excludes `columns[i]`."""
    int8 = precision == "int8" and len(unit) >= INT8_SENTENCES and unit.shape[1] >= INT8_DIMENSIONS
    factors, scales = round_to_int8(unit) if int8 else (unit, np.ones(len(unit), np.float32))
    starts = np.arange(0, len(unit), TILE)
    values = np.full((len(unit), SLOTS), LOWEST, np.int32)
    places = np.empty_like(values)
    bounds = np.searchsorted(rows, np.append(starts, len(unit)))
    for index, top in enumerate(starts.tolist()):
        own = slice(top, top + TILE)
        of_own = slice(bounds[index], bounds[index + 1])
        for left in starts[index:].tolist():
            theirs = slice(left, left + TILE)
            tile = (torch._int_mm if int8 else torch.mm)(factors[own], factors[theirs].T).numpy()
            scaled = scales[own], scales[theirs]
            exclude(tile, scaled, (top, left), rows[of_own], columns[of_own])
            of_rows = np.empty((2, tile.shape[0], -(-tile.shape[1] // SEGMENT)), np.int32)
            of_columns = np.empty((2, -(-tile.shape[0] // SEGMENT), tile.shape[1]), np.int32)
            best_of_tile(tile, scaled, (of_rows[0], of_rows[1]), (of_columns[0], of_columns[1]))
            # Every product counts for both of its sentences.
            _keep_better(values[own], places[own], left, of_rows[0], of_rows[1])
            _keep_better(values[theirs], places[theirs], top, of_columns[0].T, of_columns[1].T)
    errors = rounding_errors(unit, factors, scales) if int8 else np.empty(0)
    return best_of_all(values, places, unit.numpy(), errors)


def _keep_better(values: np.ndarray, places: np.ndarray, start: int, found: np.ndarray, where: np.ndarray) -> None:
    """Keep the best of some segments, the first of which begins at sentence `start`."""
    slot = start // SEGMENT % SLOTS
    slots = slice(slot, slot + found.shape[1])
    better = found > values[:, slots]
    np.copyto(values[:, slots], found, where=better)
    np.copyto(places[:, slots], where + np.int32(start), where=better)


def round_to_int8(unit: torch.Tensor) -> tuple[torch.Tensor, np.ndarray]:
    """Round vectors to int8 [sentence, dimension], with their scales [sentence], float32, above 0."""
    scales = unit.abs().amax(dim=1) / LARGEST_INT8
    scales[scales == 0] = 1
    return (unit / scales[:, None]).round().to(torch.int8), scales.numpy()


def rounding_errors(unit: torch.Tensor, integers: torch.Tensor, scales: np.ndarray) -> np.ndarray:
    """Measure the error |e| of rounding each vector of length 1, or of zeros [sentence], float64.

    A similarity u v, computed from u + e and v + f, is off by u f + e v + e f, which is at most |e| + |f| + |e| |f|
    where u and v have length 1 (Cauchy-Schwarz).
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
    """Overwrite excluded products of a tile [row, column], so that their similarity is -2.

    The scales of its rows and columns are above 0; `corner` has the sentences of its first row and first column.
    Sentence `rows[i]` excludes sentence `columns[i]`, in the tile or not.
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
    """Find the most similar sentence in each segment of a tile [row, column], of each row and of each column.

    Written into `of_rows` are the largest similarity of each row in each segment of columns, in units of 2^-24, and
    its column [row, segment], both int32; into `of_columns` the same of each column [segment, column].
    """
    height, width = products.shape
    segments = of_rows[0].shape[1]
    # Whole segments: loops of a fixed length are several times as fast.
    similarities = np.full(segments * SEGMENT, LOWEST, np.int32)
    of_columns[0][:] = LOWEST
    for row in range(height):
        own, scale = products[row], scales[0][row] * UNIT
        for column in range(width):
            similarities[column] = np.int32(np.float32(own[column]) * scales[1][column] * scale)
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
    """Select the best of all segments: the sentence [sentence], int64; -1 if all are excluded.

    `values` are the similarity of each sentence's best in each segment, in units of 2^-24 [sentence, segment], int32,
    and `places` which sentence that is. `errors` are the lengths of the error of each vector of length 1 of which
    `values` are products [sentence], float64: sentences that are the best within these errors are compared again, by
    float32 vectors. Empty without errors.
    """
    chosen = np.full(len(values), -1, np.int64)
    for sentence in range(len(values)):
        own = values[sentence]
        first = np.argmax(own)
        if own[first] < NONE:
            continue
        chosen[sentence] = places[sentence, first]
        if len(errors) == 0:
            continue
        error = errors[sentence]
        # A lower bound of the best one.
        least = -np.inf
        for index in range(len(own)):
            if own[index] >= NONE:
                other = errors[places[sentence, index]]
                least = max(least, own[index] - (error + other + error * other) * UNIT - SLACK)
        best = np.float32(-2)
        for index in range(len(own)):
            if own[index] < NONE:
                continue
            other = errors[places[sentence, index]]
            if own[index] + (error + other + error * other) * UNIT + SLACK >= least:
                similarity = dot(unit[sentence], unit[places[sentence, index]])
                if similarity > best:
                    best, chosen[sentence] = similarity, places[sentence, index]
    return chosen


def draw_negatives(keys: np.ndarray, generator: np.random.Generator, *, one_sided: bool = False) -> np.ndarray:
    """Sample an allowed sentence for each sentence at random; shapes as in `mine_negatives`."""
    count = len(keys)
    # One-sided, references draw among references, which come first.
    queries = count // 2 if one_sided else count
    group, related = paraphrases(keys)
    chosen = np.full(queries, -1, np.int64)
    # Nearly all draws are allowed; a sentence without one after many tries has copies everywhere.
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
    """Choose negatives by MAX, MIX (each random with probability one half) or RAND. arXiv:1511.08198, section 3.1.1.

    Arguments and result as in `mine_negatives`; `rand` needs no vectors.
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
    """Positions of the sentences of some pairs of a mega-batch [role, pair]: s, s' and, with negatives, t and t'.

    `total` is the number of pairs of the mega-batch. Pairs with a sentence that has no allowed negative are left out;
    one-sided, there is no t'.
    """
    roles = [pairs, pairs + total]
    if negatives is not None:
        roles.append(negatives[pairs])
        if not one_sided:
            roles.append(negatives[pairs + total])
    sentences = np.stack(roles)
    return sentences[:, (sentences >= 0).all(axis=0)]
