"""The compiled inner loops of a training step of averaging encoders: find rows, catch up, average, gradient, Adam.

They do what `averaging.py` and `rowwise.py` do with torch, to rounding: sums may be added up in another order. Every
row is read and written where it lies, and the gradient of a row lives only while that row is updated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

# Sums may be rounded in another order; infinities and what is not a number stay, for the loop looks for them.
FAST = {"reassoc", "contract", "arcp", "nsz"}
ZERO, ONE = np.float32(0), np.float32(1)
# What `torch.nn.functional.normalize` divides by at least, and what `RowwiseAdam.read` adds under a division.
SHORTEST, TINY = np.float32(1e-12), np.float32(1e-30)


class Table(NamedTuple):
    """A table under training, as `RowwiseAdam` has it.

    Attributes:
        weight: Rows [row, dimension], float32.
        first: Running average of their gradients [row, dimension], float32.
        second: Running average of the gradients' squares [row, dimension], float32.
        last: Step up to which each row is up to date [row], int32; 0 where it never had a gradient.
    """

    weight: np.ndarray
    first: np.ndarray
    second: np.ndarray
    last: np.ndarray


class Decay(NamedTuple):
    """What rows miss while they rest, by steps.

    Attributes:
        first: What `Table.first` is multiplied by after a number of steps [step + 1], float32.
        second: The same of `Table.second` [step + 1], float32.
        ratio: Power of beta1 / sqrt(beta2) [step + 1], float64.
        drift: Sum over what follows a step, see `RowwiseAdam` [step + 1], float64.
    """

    first: np.ndarray
    second: np.ndarray
    ratio: np.ndarray
    drift: np.ndarray


class Units(NamedTuple):
    """The distinct rows of some sentences and who uses them.

    Attributes:
        rows: The rows in the order of their first use [row], int32.
        bounds: Where the uses of each row begin and end [row + 1], int32.
        sentences: Number of the sentence of each use [use], int32, ascending for each row.
    """

    rows: np.ndarray
    bounds: np.ndarray
    sentences: np.ndarray


@njit(nogil=True, cache=True)
def find_units(rows: np.ndarray, offsets: np.ndarray, sentences: np.ndarray, place: np.ndarray) -> Units:
    """Find which rows some sentences use, and where.

    Args:
        rows: Row of each unit [unit], int32, sentence after sentence.
        offsets: Bounds of the sentences [sentence + 1], int64.
        sentences: The chosen sentences [chosen], int64.
        place: Room to number rows [table's row], int32; -1 everywhere, before and after.
    """
    total = 0
    for sentence in sentences:
        total += offsets[sentence + 1] - offsets[sentence]
    distinct, bounds, users = np.empty(total, np.int32), np.zeros(total + 1, np.int32), np.empty(total, np.int32)
    count = 0
    for sentence in sentences:
        for unit in range(offsets[sentence], offsets[sentence + 1]):
            row = rows[unit]
            if place[row] < 0:
                place[row] = count
                distinct[count] = row
                count += 1
            bounds[place[row] + 1] += 1
    for index in range(count):
        bounds[index + 1] += bounds[index]
    # While they are filled, `next_use` of a row is where its next use goes.
    next_use = bounds[:count].copy()
    for number, sentence in enumerate(sentences):
        for unit in range(offsets[sentence], offsets[sentence + 1]):
            index = place[rows[unit]]
            users[next_use[index]] = number
            next_use[index] += 1
    for row in distinct[:count]:
        place[row] = -1
    return Units(distinct[:count], bounds[: count + 1], users)


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def _rest(
    weight: np.ndarray, first: np.ndarray, second: np.ndarray, total: np.float32, fade1: np.float32, fade2: np.float32
) -> None:
    for k in range(len(weight)):
        weight[k] -= total * first[k] / (np.sqrt(second[k]) + TINY)
        first[k] *= fade1
        second[k] *= fade2


@njit(nogil=True, cache=True)
def catch_up(table: Table, rows: np.ndarray, step: int, decay: Decay) -> None:
    """Make up for the steps that rows missed: `RowwiseAdam.catch_up`.

    Args:
        table: The table, changed in place.
        rows: Its rows [row].
        step: Steps made so far.
        decay: What rows miss while they rest.
    """
    for row in rows:
        last = table.last[row]
        if last == 0 or last == step:
            continue
        missed = step - last
        total = decay.drift[last] - decay.ratio[missed] * decay.drift[step]
        fade1, fade2 = decay.first[missed], decay.second[missed]
        _rest(table.weight[row], table.first[row], table.second[row], np.float32(total), fade1, fade2)
        table.last[row] = step


@njit(nogil=True, cache=True, fastmath=FAST)
def _add(target: np.ndarray, factor: np.float32, row: np.ndarray) -> None:
    for k in range(len(target)):
        target[k] += factor * row[k]


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def average(
    weight: np.ndarray,
    rows: np.ndarray,
    offsets: np.ndarray,
    sentences: np.ndarray,
    vectors: np.ndarray,
    column: int,
) -> None:
    """Add the mean row of each of some sentences to their vectors.

    Args:
        weight: The table [row, dimension].
        rows: Row of each unit [unit], int32, sentence after sentence.
        offsets: Bounds of the sentences [sentence + 1], int64.
        sentences: The chosen sentences [chosen], int64.
        vectors: Vectors [chosen, all dimensions], float32, added to.
        column: Where the dimensions of this table begin.
    """
    dimension = weight.shape[1]
    total = np.empty(dimension, np.float32)
    for number, sentence in enumerate(sentences):
        start, stop = offsets[sentence], offsets[sentence + 1]
        if start == stop:
            continue
        total[:] = ZERO
        for unit in range(start, stop):
            _add(total, ONE, weight[rows[unit]])
        _add(vectors[number, column : column + dimension], ONE / np.float32(stop - start), total)


@njit(nogil=True, cache=True, fastmath=FAST)
def _dot(left: np.ndarray, right: np.ndarray) -> np.float32:
    total = ZERO
    for k in range(len(left)):
        total += left[k] * right[k]
    return total


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def _pass_back(
    gradient: np.ndarray, own: np.ndarray, one: np.ndarray, alpha: np.float32, other: np.ndarray, beta: np.float32
) -> None:
    """Gradient of `own` from that of its direction, which is alpha times one vector and beta times another."""
    length = np.sqrt(_dot(own, own))
    share = ONE / max(length, SHORTEST)
    # The part along the vector itself changes its length alone, which the cosine does not see.
    along = (alpha * _dot(own, one) + beta * _dot(own, other)) * share * share if length >= SHORTEST else ZERO
    for k in range(len(own)):
        gradient[k] = (alpha * one[k] + beta * other[k] - along * own[k]) * share


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def margin_gradient(vectors: np.ndarray, roles: int, margin: float, gradient: np.ndarray, moves: np.ndarray) -> float:
    """The margin loss of a mini-batch, `margin_loss`, and its gradient.

    Args:
        vectors: Vectors of s, s', t and, with two sides, t' of each pair [role x pair, dimension], float32.
        roles: 4, or 3 without t'.
        margin: d.
        gradient: Room for the gradient of each vector [role x pair, dimension], float32.
        moves: Room to say which vectors have a gradient [role x pair], bool; that of the others is left undefined.

    Returns:
        The loss.
    """
    pairs = len(vectors) // roles
    lengths = np.empty(len(vectors), np.float32)
    for index in range(len(vectors)):
        lengths[index] = ONE / max(np.sqrt(_dot(vectors[index], vectors[index])), SHORTEST)
    share, loss = ONE / np.float32(pairs), 0.0
    for left in range(pairs):
        right, first = left + pairs, left + 2 * pairs
        second = left + 3 * pairs if roles == 4 else first
        gap = margin - float(_dot(vectors[left], vectors[right]) * lengths[left] * lengths[right])
        term = gap + float(_dot(vectors[left], vectors[first]) * lengths[left] * lengths[first])
        other = -1.0
        if roles == 4:
            other = gap + float(_dot(vectors[right], vectors[second]) * lengths[right] * lengths[second])
        # At exactly 0 the slope counts, as in torch. What is no number goes into the loss.
        alpha = ZERO if term < 0 else share
        beta = ZERO if other < 0 else share
        loss += (0.0 if term < 0 else term) + (0.0 if other < 0 else other)
        both = alpha + beta
        moves[left] = moves[right] = both > 0
        moves[first] = alpha > 0
        moves[second] = (beta if roles == 4 else alpha) > 0
        if both == 0:
            continue
        own, partner, mine, theirs = vectors[left], vectors[right], vectors[first], vectors[second]
        _pass_back(gradient[left], own, partner, -both * lengths[right], mine, alpha * lengths[first])
        _pass_back(gradient[right], partner, own, -both * lengths[left], theirs, beta * lengths[second])
        if alpha > 0:
            _pass_back(gradient[first], mine, own, alpha * lengths[left], own, ZERO)
        if beta > 0:
            _pass_back(gradient[second], theirs, partner, beta * lengths[right], partner, ZERO)
    return loss / pairs


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def _move(
    weight: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    gradient: np.ndarray,
    betas: tuple[np.float32, np.float32],
    size: np.float32,
    floor: np.float32,
) -> None:
    beta1, beta2 = betas
    for k in range(len(weight)):
        value = gradient[k]
        first[k] = beta1 * first[k] + (ONE - beta1) * value
        second[k] = beta2 * second[k] + (ONE - beta2) * value * value
        weight[k] -= size * first[k] / (np.sqrt(second[k]) + floor)


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def adam(
    table: Table,
    units: Units,
    gradient: np.ndarray,
    moves: np.ndarray,
    column: int,
    lengths: np.ndarray,
    frozen: bool,
    step: int,
    betas: tuple[np.float32, np.float32],
    size: np.float32,
    floor: np.float32,
) -> None:
    """Give each row the sum of its sentences' gradients, and make a step of Adam: `RowwiseAdam.update`.

    Args:
        table: The table, whose rows are up to date; changed in place.
        units: The rows of the sentences.
        gradient: Gradient of each sentence's vector [sentence, all dimensions], float32.
        moves: Which sentences have one [sentence], bool.
        column: Where the dimensions of this table begin.
        lengths: Number of units of each sentence [sentence], float32, at least 1.
        frozen: Leave row 0 as it is.
        step: Number of this step.
        betas: Adam's beta1 and beta2.
        size: Size of the step.
        floor: What is added to the root of the second moment.
    """
    dimension = table.weight.shape[1]
    total = np.empty(dimension, np.float32)
    for index, row in enumerate(units.rows):
        total[:] = ZERO
        if row > 0 or not frozen:
            for sentence in units.sentences[units.bounds[index] : units.bounds[index + 1]]:
                if moves[sentence]:
                    _add(total, ONE / lengths[sentence], gradient[sentence, column : column + dimension])
        _move(table.weight[row], table.first[row], table.second[row], total, betas, size, floor)
        table.last[row] = step
