"""Compiled inner loops of a training step of averaging encoders: catch up, average, gradient, Adam or AdaGrad.

Rows are read and written in place, and the gradient of a row exists only while that row is updated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paranmt_hf.util.machine import compiled
from paranmt_hf.util.row_sums import add_rows

ZERO, ONE = np.float32(0), np.float32(1)
SHORTEST = np.float32(1e-12)  # The smallest divisor of `torch.nn.functional.normalize`


class TrainedTable(NamedTuple):
    """A table under training with the state of its optimizer."""

    weight: np.ndarray  # Rows [row, dimension], float32
    first: np.ndarray  # Adam: running average of the gradients [row, dimension], float32; AdaGrad: empty
    second: np.ndarray  # Adam: running average of the squared gradients [row, dimension], float32; AdaGrad: their sum
    last: np.ndarray  # Step after which each row was last updated [row], int32; 0 if it never had a gradient


class Decay(NamedTuple):
    """The values by which missed steps are applied to rows; see `Schedule`."""

    first: np.ndarray  # Factor of `TrainedTable.first` by the number of missed steps [step + 1], float32
    second: np.ndarray  # Factor of `TrainedTable.second` by the number of missed steps [step + 1], float32
    ratio: np.ndarray  # Powers of beta1 / sqrt(beta2) by the number of missed steps [step + 1], float64
    drift: np.ndarray  # Drift after each step, see `Schedule` [step + 1], float64
    # Number that Adam adds to the root of the second moment, by the last step of a row [step + 1], float32
    floors: np.ndarray


class Units(NamedTuple):
    """The distinct rows of some sentences, and for each row the sentences that contain it, once for each unit."""

    rows: np.ndarray  # The rows in the order of their first use [row], int32
    bounds: np.ndarray  # Bounds of each row in `sentences` [row + 1], int32
    sentences: np.ndarray  # Number of the sentence of each unit [unit], int32, row after row and ascending for each


class Slopes(NamedTuple):
    """The gradient of the loss by the sentence vectors, from which the gradient of each row is computed."""

    gradient: np.ndarray  # Gradient of each sentence's vector [sentence, all dimensions], float32
    moves: np.ndarray  # Whether each sentence has a gradient [sentence], bool
    column: int  # First column of the sentence vectors that the table fills
    lengths: np.ndarray  # Number of units of each sentence [sentence], float32, at least 1
    frozen: bool  # Whether row 0 has no gradient


class RowPull(NamedTuple):
    """The gradient of the penalty that pulls rows to where they began (lambda_w of arXiv:1511.08198, equation 1)."""

    strength: np.float32  # 2 lambda_w; 0 for no penalty
    initial: np.ndarray  # Rows before training [row, dimension], float32; empty without lambda_w
    factors: np.ndarray  # Factor of the gradient in each step [step + 1], float32; below 1 where it was clipped
    # Squared distance of each row from where it began, after its last update by a sentence [row], float32
    distances: np.ndarray


@compiled()
def find_units(rows: np.ndarray, offsets: np.ndarray, sentences: np.ndarray, place: np.ndarray) -> Units:
    """Find the distinct rows of some sentences, and the sentences of each row.

    Args:
        rows: Row of each unit of all sentences [unit].
        offsets: Bounds of the sentences in them [sentence + 1].
        sentences: Positions of the chosen sentences [chosen].
        place: Buffer in which rows are numbered [row of the table], int32; it holds -1 everywhere, before and after.
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
    # Position of the next unit of each row.
    next_use = bounds[:count].copy()
    for number, sentence in enumerate(sentences):
        for unit in range(offsets[sentence], offsets[sentence + 1]):
            index = place[rows[unit]]
            users[next_use[index]] = number
            next_use[index] += 1
    for row in distinct[:count]:
        place[row] = -1
    return Units(distinct[:count], bounds[: count + 1], users)


@compiled(fast=True, error_model="numpy")
def _drift(
    weight: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    total: np.float32,
    floor: np.float32,
    fade1: np.float32,
    fade2: np.float32,
) -> None:
    """Apply missed steps of Adam to a row and its moments [dimension], in place.

    `total` is the sum of the sizes of these steps, weighted by the decay, `floor` is added to the root of the second
    moment, and `fade1` and `fade2` are the factors of the moments.
    """
    for k in range(len(weight)):
        weight[k] -= total * first[k] / (np.sqrt(second[k]) + floor)
        first[k] *= fade1
        second[k] *= fade2


@compiled()
def catch_up(table: TrainedTable, rows: np.ndarray, step: int, decay: Decay) -> None:
    """Apply the steps of Adam that rows [row] of a table missed, up to `step`, in closed form (see `Schedule`)."""
    for row in rows:
        last = table.last[row]
        if last == 0 or last == step:
            continue
        missed = step - last
        total = decay.drift[last] - decay.ratio[missed] * decay.drift[step]
        fade1, fade2 = decay.first[missed], decay.second[missed]
        floor = decay.floors[last]
        _drift(table.weight[row], table.first[row], table.second[row], np.float32(total), floor, fade1, fade2)
        table.last[row] = step


@compiled(fast=True)
def add_scaled(target: np.ndarray, factor: np.float32, row: np.ndarray) -> None:
    """Add a row times a factor to `target`, in place."""
    for k in range(len(target)):
        target[k] += factor * row[k]


@compiled(fast=True, error_model="numpy")
def average(
    weight: np.ndarray, rows: np.ndarray, offsets: np.ndarray, sentences: np.ndarray, vectors: np.ndarray, column: int
) -> None:
    """Add the mean of the rows of each chosen sentence to its vector.

    Args:
        weight: The table [row, dimension].
        rows: Row of each unit, sentence after sentence [unit].
        offsets: Bounds of the sentences in them [sentence + 1].
        sentences: Positions of the chosen sentences [chosen].
        vectors: Their vectors [chosen, all dimensions], changed in place.
        column: First column to add to.
    """
    dimension = weight.shape[1]
    total = np.empty(dimension, np.float32)
    for number, sentence in enumerate(sentences):
        start, stop = offsets[sentence], offsets[sentence + 1]
        if start == stop:
            continue
        total[:] = ZERO
        add_rows(total, weight, rows[start:stop])
        add_scaled(vectors[number, column : column + dimension], ONE / np.float32(stop - start), total)


@compiled(fast=True)
def dot(left: np.ndarray, right: np.ndarray) -> np.float32:
    """Compute the scalar product of two rows."""
    total = ZERO
    for k in range(len(left)):
        total += left[k] * right[k]
    return total


@compiled(fast=True, error_model="numpy")
def _pass_back(
    gradient: np.ndarray, own: np.ndarray, one: np.ndarray, alpha: np.float32, other: np.ndarray, beta: np.float32
) -> None:
    """Compute the gradient of the vector `own` [dimension] from the gradient of its direction.

    The latter is alpha times the vector `one` plus beta times the vector `other`.
    """
    length = np.sqrt(dot(own, own))
    share = ONE / max(length, SHORTEST)
    # The part along the vector itself is removed: it changes only the length, on which cosines do not depend.
    along = (alpha * dot(own, one) + beta * dot(own, other)) * share * share if length >= SHORTEST else ZERO
    for k in range(len(own)):
        gradient[k] = (alpha * one[k] + beta * other[k] - along * own[k]) * share


@compiled(fast=True, error_model="numpy")
def margin_gradient(vectors: np.ndarray, roles: int, margin: float, gradient: np.ndarray, moves: np.ndarray) -> float:
    """Compute the margin loss of a mini-batch (see `losses.margin_loss`) and its gradient.

    Args:
        vectors: Vectors of s, s', t and, with four roles, t' of each pair [role x pair, dimension], float32.
        roles: Number of roles: 3 or 4.
        margin: The margin d.
        gradient: Gets the gradient of each vector [role x pair, dimension]; undefined for vectors that have none.
        moves: Gets whether each vector has a gradient [role x pair], bool.

    Returns:
        The loss.
    """
    pairs = len(vectors) // roles
    lengths = np.empty(len(vectors), np.float32)
    for index in range(len(vectors)):
        lengths[index] = ONE / max(np.sqrt(dot(vectors[index], vectors[index])), SHORTEST)
    share, loss = ONE / np.float32(pairs), 0.0
    for left in range(pairs):
        right, first = left + pairs, left + 2 * pairs
        second = left + 3 * pairs if roles == 4 else first
        gap = margin - float(dot(vectors[left], vectors[right]) * lengths[left] * lengths[right])
        term = gap + float(dot(vectors[left], vectors[first]) * lengths[left] * lengths[first])
        other = -1.0
        if roles == 4:
            other = gap + float(dot(vectors[right], vectors[second]) * lengths[right] * lengths[second])
        # A term of exactly 0 has a slope, as in torch. A term that is NaN is added, so that the loss shows it.
        alpha = ZERO if term < 0 else share
        beta = ZERO if other < 0 else share
        loss += (0.0 if term < 0 else term) + (0.0 if other < 0 else other)
        both = alpha + beta
        moves[left] = moves[right] = both > 0
        moves[first] = alpha > 0
        moves[second] = (beta if roles == 4 else alpha) > 0
        if both == 0:
            continue
        s, s2, t, t2 = vectors[left], vectors[right], vectors[first], vectors[second]
        _pass_back(gradient[left], s, s2, -both * lengths[right], t, alpha * lengths[first])
        _pass_back(gradient[right], s2, s, -both * lengths[left], t2, beta * lengths[second])
        if alpha > 0:
            _pass_back(gradient[first], t, s, alpha * lengths[left], s, ZERO)
        if beta > 0:
            _pass_back(gradient[second], t2, s2, beta * lengths[right], s2, ZERO)
    return loss / pairs


@compiled(fast=True, error_model="numpy")
def _adam(
    weight: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    gradient: np.ndarray,
    betas: tuple[np.float32, np.float32],
    size: np.float32,
    floor: np.float32,
) -> None:
    """Perform a step of Adam on one row and its moments [dimension], in place; other arguments as in `update`."""
    beta1, beta2 = betas
    for k in range(len(weight)):
        value = gradient[k]
        first[k] = beta1 * first[k] + (ONE - beta1) * value
        second[k] = beta2 * second[k] + (ONE - beta2) * value * value
        weight[k] -= size * first[k] / (np.sqrt(second[k]) + floor)


@compiled(fast=True, error_model="numpy")
def _adagrad(weight: np.ndarray, squares: np.ndarray, gradient: np.ndarray, size: np.float32) -> None:
    """Perform a step of AdaGrad on one row and its sums of squares [dimension], in place."""
    for k in range(len(weight)):
        squares[k] += gradient[k] * gradient[k]
        weight[k] -= size * gradient[k] / np.sqrt(squares[k])


@compiled(fast=True, error_model="numpy")
def _sum_over_sentences(
    total: np.ndarray, users: np.ndarray, gradient: np.ndarray, moves: np.ndarray, lengths: np.ndarray, column: int
) -> None:
    """Sum the gradient of one row over the sentences that contain it into `total` [dimension].

    `users` are the numbers of these sentences, once for each unit; the other arguments are those of `Slopes`.
    """
    total[:] = ZERO
    for sentence in users:
        if moves[sentence]:
            add_scaled(total, ONE / lengths[sentence], gradient[sentence, column : column + len(total)])


@compiled(fast=True, error_model="numpy")
def _pull_back(total: np.ndarray, strength: np.float32, row: np.ndarray, initial: np.ndarray) -> None:
    """Add the gradient of the penalty of one row to `total` [dimension]."""
    for k in range(len(total)):
        total[k] += strength * (row[k] - initial[k])


@compiled()
def _move(
    table: TrainedTable,
    row: int,
    gradient: np.ndarray,
    betas: tuple[np.float32, np.float32],
    size: np.float32,
    floor: np.float32,
) -> None:
    """Update one row by its gradient [dimension]; a table with first moments is Adam's, one without AdaGrad's."""
    if len(table.first):
        _adam(table.weight[row], table.first[row], table.second[row], gradient, betas, size, floor)
    else:
        _adagrad(table.weight[row], table.second[row], gradient, size)


@compiled()
def follow_pull(
    table: TrainedTable,
    pull: RowPull,
    rows: np.ndarray,
    step: int,
    betas: tuple[np.float32, np.float32],
    sizes: np.ndarray,
    floors: np.ndarray,
) -> None:
    """Apply the steps that rows [row] have missed, one after the other; in them the penalty is the only gradient.

    The result is that of updating each row in each step, but rows are read from memory once. `sizes` [step + 1],
    float32, and `floors` are those of `Schedule`; the other arguments are those of `update`.
    """
    total = np.empty(table.weight.shape[1], np.float32)
    for row in rows:
        last = table.last[row]
        if last == 0:
            continue
        for missed in range(last + 1, step + 1):
            total[:] = ZERO
            _pull_back(total, pull.strength * pull.factors[missed], table.weight[row], pull.initial[row])
            _move(table, row, total, betas, sizes[missed], floors[missed])
        table.last[row] = step


@compiled(error_model="numpy")
def squared_norm(table: TrainedTable, units: Units, slopes: Slopes, pull: RowPull) -> float:
    """Compute the squared norm of the gradient of a table; arguments as in `update`."""
    total, squares = np.empty(table.weight.shape[1], np.float32), 0.0
    gradient, moves, lengths, column = slopes.gradient, slopes.moves, slopes.lengths, slopes.column
    for index, row in enumerate(units.rows):
        if row == 0 and slopes.frozen:
            continue
        users = units.sentences[units.bounds[index] : units.bounds[index + 1]]
        _sum_over_sentences(total, users, gradient, moves, lengths, column)
        if pull.strength > 0:
            _pull_back(total, pull.strength, table.weight[row], pull.initial[row])
        squares += float(dot(total, total))
    return squares


@compiled(fast=True, error_model="numpy")
def update(
    table: TrainedTable,
    units: Units,
    slopes: Slopes,
    pull: RowPull,
    factor: np.float32,
    step: int,
    betas: tuple[np.float32, np.float32],
    size: np.float32,
    floor: np.float32,
) -> None:
    """Perform a step of Adam (Kingma & Ba 2015, algorithm 1) or AdaGrad (Duchi et al. 2011) on up-to-date rows.

    Args:
        table: The table, changed in place.
        units: The rows and their sentences.
        slopes: The gradient by the sentence vectors.
        pull: The penalty.
        factor: Factor of the gradient, below 1 if it is clipped.
        step: Number of the step.
        betas: Decay of the moments of Adam.
        size: Size of the step.
        floor: Number that Adam adds to the root of the second moment.
    """
    total = np.empty(table.weight.shape[1], np.float32)
    gradient, moves, lengths, column = slopes.gradient, slopes.moves, slopes.lengths, slopes.column
    for index, row in enumerate(units.rows):
        users = units.sentences[units.bounds[index] : units.bounds[index + 1]]
        if row == 0 and slopes.frozen:
            total[:] = ZERO
        else:
            _sum_over_sentences(total, users, gradient, moves, lengths, column)
            if pull.strength > 0:
                _pull_back(total, pull.strength, table.weight[row], pull.initial[row])
        if factor != ONE:
            total *= factor
        _move(table, row, total, betas, size, floor)
        table.last[row] = step
        if pull.strength > 0:
            total[:] = ZERO
            _pull_back(total, ONE, table.weight[row], pull.initial[row])
            pull.distances[row] = dot(total, total)
