"""Compiled inner loops of mining: the best sentence of each part of a tile of products, and the best of all."""

from __future__ import annotations

import numpy as np

from paranmt_hf.util.machine import compiled

# Similarities are compared as integers in units of 2^-24: as fine as float32, and their maxima are found in a third of
# the time.
UNIT = np.float32(1 << 24)
LOWEST = np.int32(-(1 << 31))
# Sentences of which the best one is kept.
SEGMENT = 128
# The value of an excluded similarity, and a bound below which all are excluded.
EXCLUDED = np.float32(-2)
NONE = np.int32(-1.5 * (1 << 24))
# The largest error of float32 itself, in a similarity and the lengths of its vectors, in units of 2^-24.
SLACK = 32.0


@compiled(error_model="numpy")
def exclude(
    products: np.ndarray,
    scales: tuple[np.ndarray, np.ndarray],
    corner: tuple[int, int],
    rows: np.ndarray,
    columns: np.ndarray,
) -> None:
    """Overwrite excluded products, so that their similarity is -2.

    Args:
        products: A tile of the products of all sentences with all sentences [row, column], changed in place.
        scales: Scales of the rows and columns [row], [column], float32, above 0.
        corner: Sentences of the tile's first row and first column.
        rows: Sentence of each exclusion that may lie in the tile [exclusion].
        columns: Sentence that it excludes [exclusion].
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
    """Find the most similar sentence in each segment of a tile, of each row and of each column.

    Args:
        products: The tile [row, column].
        scales: Scales of the rows and columns [row], [column], float32.
        of_rows: Output: the largest similarity of each row in each segment of columns, in units of 2^-24, and its
            column [row, segment], both int32.
        of_columns: Output: the same of each column in each segment of rows, and its row [segment, column].
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


@compiled(fast=True)
def _dot(left: np.ndarray, right: np.ndarray) -> np.float32:
    total = np.float32(0)
    for k in range(len(left)):
        total += left[k] * right[k]
    return total


@compiled()
def best_of_all(values: np.ndarray, places: np.ndarray, unit: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Choose among the best of the segments.

    Args:
        values: Similarity of each sentence's best in each segment, in units of 2^-24 [sentence, segment], int32.
        places: Which sentence that is [sentence, segment], int32.
        unit: Vectors of length 1 [sentence, dimension], float32.
        errors: Length of the error of each vector of which `values` are products [sentence], float64: sentences that
            are the best within these errors are compared again, by float32 vectors. Empty without errors.

    Returns:
        The chosen sentence [sentence], int64; -1 where all are excluded.
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
                similarity = _dot(unit[sentence], unit[places[sentence, index]])
                if similarity > best:
                    best, chosen[sentence] = similarity, places[sentence, index]
    return chosen
