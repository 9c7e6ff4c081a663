"""Compiled inner loops of mining on the CPU: the most similar allowed sentence of each sentence, tile by tile.

Tiles of products stay in the processor's cache, and the products are of float32 or of int8. With int8 every vector
becomes integers from -127 to 127 and one scale. Their products are exact, and the similarities are off by about 0.001.
So int8 finds the best sentence of each 128, and float32 decides among those that may be the best of all. The error of
every similarity has a bound, which tells which these are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paranmt_hf.training.step_kernels import ONE, ZERO, dot
from paranmt_hf.util.machine import compiled

# Similarities are compared as integers in units of 2^-24: as fine as float32, and their maxima are found in a third of
# the time.
UNIT = np.float32(1 << 24)
LOWEST = np.int32(-(1 << 31))
SEGMENT = 128  # Number of sentences of which the best one is kept
# Similarity that excluded sentences get; and in units of 2^-24 a number below which only theirs are.
EXCLUDED = np.float32(-2)
NONE = np.int32(-1.5 * (1 << 24))
SLACK = 32.0  # Largest error of computing a similarity in float32, in units of 2^-24
# Number of best sentences that are kept for each sentence. With more than 64 segments, several share a slot.
SLOTS = 64
LARGEST_INT8 = np.float32(127)  # The integer that the number with the largest magnitude of a vector becomes


class Best(NamedTuple):
    """The most similar sentences that were found so far for each sentence, the best one of each segment.

    Segment s is kept in the slot s modulo `SLOTS`.
    """

    values: np.ndarray  # Their similarities, in units of 2^-24 [sentence, slot], int32
    places: np.ndarray  # Their positions [sentence, slot], int32


@compiled(error_model="numpy")
def round_to_int8(unit: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Divide vectors by a scale each, round them to int8, and measure the length |e| of the error of rounding each.

    A similarity u v, computed from u + e and v + f, is off by u f + e v + e f, which is at most |e| + |f| + |e| |f|
    where u and v have length 1 (Cauchy-Schwarz).

    Args:
        unit: Vectors of length 1, or of zeros [sentence, dimension], float32.

    Returns:
        The integers [sentence, dimension], int8; the scales [sentence], float32, above 0; and the lengths of errors
        [sentence], float64.
    """
    integers = np.empty(unit.shape, np.int8)
    scales = np.empty(len(unit), np.float32)
    errors = np.empty(len(unit), np.float64)
    for index in range(len(unit)):
        vector, rounded = unit[index], integers[index]
        largest = largest_magnitude(vector)
        scale = largest / LARGEST_INT8 if largest > 0 else ONE
        for k in range(len(vector)):
            rounded[k] = np.int8(np.rint(vector[k] / scale))
        scales[index] = scale
        errors[index] = np.sqrt(squared_error(vector, rounded, scale))
    return integers, scales, errors


@compiled(fast=True)
def largest_magnitude(vector: np.ndarray) -> np.float32:
    """Find the largest magnitude of the numbers of a vector [dimension]."""
    largest = ZERO
    for k in range(len(vector)):
        largest = max(largest, abs(vector[k]))
    return largest


@compiled(fast=True)
def squared_error(vector: np.ndarray, rounded: np.ndarray, scale: np.float32) -> float:
    """Compute the squared distance of a vector [dimension] from integers times a scale, in float64."""
    total = 0.0
    for k in range(len(vector)):
        error = np.float64(rounded[k]) * scale - np.float64(vector[k])
        total += error * error
    return total


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
def keep_best_of_tile(
    products: np.ndarray, scales: tuple[np.ndarray, np.ndarray], corner: tuple[int, int], best: Best
) -> None:
    """Find the most similar sentence in each segment of a tile, for each row and column, and keep the better ones.

    Args:
        products: The tile [row, column].
        scales: Scales of its rows and of its columns.
        corner: Positions of the sentences of its first row and its first column, both multiples of `SEGMENT`.
        best: The best sentences so far, changed in place.
    """
    height, width = products.shape
    top, left = corner
    row_slot, column_slot = top // SEGMENT % SLOTS, left // SEGMENT % SLOTS
    # The buffer has whole segments, because loops of a fixed length are several times as fast.
    segments = -(-width // SEGMENT)
    similarities = np.full(segments * SEGMENT, LOWEST, np.int32)
    of_columns = np.full((-(-height // SEGMENT), width), LOWEST, np.int32)
    chosen = np.empty(of_columns.shape, np.int32)
    for row in range(height):
        row_products, scale = products[row], scales[0][row] * UNIT
        for column in range(width):
            similarities[column] = np.int32(np.float32(row_products[column]) * scales[1][column] * scale)
        for index in range(segments):
            start, largest = index * SEGMENT, LOWEST
            for offset in range(SEGMENT):
                largest = max(largest, similarities[start + offset])
            if largest > best.values[top + row, column_slot + index]:
                place = start
                while similarities[place] != largest:
                    place += 1
                best.values[top + row, column_slot + index] = largest
                best.places[top + row, column_slot + index] = left + place
        segment, number = row // SEGMENT, np.int32(top + row)
        for column in range(width):
            better = similarities[column] > of_columns[segment, column]
            of_columns[segment, column] = similarities[column] if better else of_columns[segment, column]
            chosen[segment, column] = number if better else chosen[segment, column]
    for segment in range(len(of_columns)):
        for column in range(width):
            if of_columns[segment, column] > best.values[left + column, row_slot + segment]:
                best.values[left + column, row_slot + segment] = of_columns[segment, column]
                best.places[left + column, row_slot + segment] = chosen[segment, column]


@compiled()
def best_of_all(best: Best, unit: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Select the best sentence of all segments for each sentence [sentence], int64; -1 if all are excluded.

    Args:
        best: The best sentences of each segment.
        unit: Vectors of length 1 [sentence, dimension], float32.
        errors: Length of the rounding error of each vector whose products were compared [sentence], float64.
            Sentences that may be the best within these errors are compared again by `unit`. Empty if nothing was
            rounded.
    """
    values, places = best
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
        nearest = np.float32(-2)
        for index in range(len(similarities)):
            if similarities[index] < NONE:
                continue
            other = errors[places[sentence, index]]
            if similarities[index] + (error + other + error * other) * UNIT + SLACK >= least:
                similarity = dot(unit[sentence], unit[places[sentence, index]])
                if similarity > nearest:
                    nearest, chosen[sentence] = similarity, places[sentence, index]
    return chosen
