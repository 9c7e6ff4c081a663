"""Mining as `megabatch.mine` does it, compiled: by tiles that stay in the processor's cache, in float32 or in int8.

With int8 every vector becomes whole numbers from -127 to 127 and one factor. Their products are exact, and the
similarities are off by about 0.001. So the best sentence of every 128 is found by them, and which of these is the
best of all is decided in float32, among those that the error may hide: there is a bound of it for every two vectors.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch.nn.functional import normalize

from paranmt_hf.training.megabatch import excluded
from paranmt_hf.training.tile_kernels import LOWEST, SEGMENT, best_of_all, best_of_tile, exclude

# Sentences of a tile's rows and columns, whole segments: its int32 products take a megabyte.
TILE = 4 * SEGMENT
# Best sentences that are kept for each: more segments, of more than 8,192 sentences, share them.
SLOTS = 64
# With fewer sentences or dimensions int8 saves nothing worth its error, and float32 is taken.
SENTENCES, DIMENSIONS = 2_000, 50
# The largest whole number of a vector.
LARGEST = 127


def mine_tiles(
    vectors: torch.Tensor,
    keys: np.ndarray,
    *,
    one_sided: bool = False,
    precision: Literal["float32", "int8"] = "float32",
) -> np.ndarray:
    """Find the most similar allowed sentence of each sentence.

    Args:
        vectors: Sentence vectors [2 x pair, dimension], float32: the references, then the translations.
        keys: A number for each sentence [2 x pair]; equal for equal sentences.
        one_sided: Only references get a negative, and only another reference (ParaNMT-50M, section 4).
        precision: Of which numbers similarities are products; small ones are of float32 anyway.

    Returns:
        Position of each sentence's negative [2 x pair] (one-sided: [pair]), int64; -1 where none is allowed.
    """
    unit = normalize(vectors, dim=1)
    rows, columns = excluded(keys)
    if one_sided:
        unit = unit[: len(unit) // 2]
    int8 = precision == "int8" and len(unit) >= SENTENCES and unit.shape[1] >= DIMENSIONS
    factors, scales = whole_numbers(unit) if int8 else (unit, np.ones(len(unit), np.float32))
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
    """Enter the best of some segments, the first of which begins with sentence `start`."""
    slot = start // SEGMENT % SLOTS
    slots = slice(slot, slot + found.shape[1])
    better = found > values[:, slots]
    np.copyto(values[:, slots], found, where=better)
    np.copyto(places[:, slots], where + np.int32(start), where=better)


def whole_numbers(unit: torch.Tensor) -> tuple[torch.Tensor, np.ndarray]:
    """Round vectors to whole numbers.

    Args:
        unit: Vectors [sentence, dimension], float32.

    Returns:
        Whole numbers [sentence, dimension], int8, and what they are to be multiplied by [sentence], float32, above 0.
    """
    scales = unit.abs().amax(dim=1) / LARGEST
    scales[scales == 0] = 1
    return (unit / scales[:, None]).round().to(torch.int8), scales.numpy()


def rounding_errors(unit: torch.Tensor, numbers: torch.Tensor, scales: np.ndarray) -> np.ndarray:
    """Measure how far each vector is from what its whole numbers stand for.

    A similarity u v, computed of u + e and v + f, is off by u f + e v + e f. By the inequality of Cauchy and Schwarz
    that is at most |e| + |f| + |e| |f| where u and v have length 1, whatever the vectors are.

    Args:
        unit: Vectors of length 1, or zeros [sentence, dimension], float32.
        numbers: Their whole numbers [sentence, dimension], int8.
        scales: What these are multiplied by [sentence], float32.

    Returns:
        |e| of each vector [sentence], float64.
    """
    errors = np.empty(len(unit))
    for start in range(0, len(unit), TILE):
        part = slice(start, start + TILE)
        rounded = numbers[part].double() * torch.from_numpy(scales[part]).double()[:, None]
        errors[part] = (rounded - unit[part].double()).norm(dim=1).numpy()
    return errors
