"""The compiled inner loops of Sent2Vec (arXiv:1703.02507, section 2): counting n-grams, and one pass over sentences.

All targets of a sentence share their context but for one word and the n-grams that hold it, so no row of the context
is read or written for each target. Two sums are kept instead: `total`, of the context's rows, and `delta`, of all
gradients. While a sentence is trained on, a row with m copies in it has the value `inputs[row] + m * delta`; a
gradient that did not reach a copy is subtracted from `inputs[row]`. At the end of the sentence `m * delta` is added to
the rows. The result is that of updating every row for every target, up to rounding.

The contexts of CBOW differ from target to target, so it updates every row for every target.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from paranmt_hf.encoders.modules.paranmt_tables import FACTOR
from paranmt_hf.training.step_kernels import ONE, add_scaled, dot
from paranmt_hf.util.machine import compiled

# Stand for the row of an n-gram that has none, or that was dropped. Row 0 belongs to the placeholder.
MISSING, DROPPED = 0, -1
MOST_COUNTED = 255  # Counts of buckets end here, so that one byte holds them


class Tables(NamedTuple):
    """The trained tables."""

    inputs: np.ndarray  # Rows of the context [row, dimension], float32: the placeholder, the words, the n-grams
    outputs: np.ndarray  # Rows of targets and negatives [word, dimension], float32; the last one is the end of a line
    order: int  # Number of words of the longest n-grams
    row_of_bucket: np.ndarray  # Row of each bucket [bucket], int32; 0 for a bucket without one
    placeholder: bool  # Whether the placeholder's row takes the place of the target in the context
    placeholder_ngrams: bool  # Whether the context has n-grams with the placeholder in them
    window: int = 0  # CBOW: the largest number of words on either side of a target; 0 for the whole sentence


class Sampling(NamedTuple):
    """The settings and tables of the random choices in training."""

    keep: np.ndarray  # Probability that a word is taken as a target [word]
    table: np.ndarray  # Words in the order in which they are taken as negatives [entry], int32
    negatives: int  # Number of negatives of a target
    dropped: int  # Number of n-grams of each sentence that are left out
    l1: float  # Weight of the L1 norm of rows (version 3 of the paper, appendix B); 0 for none


class Worker(NamedTuple):
    """The state of one thread."""

    random: np.ndarray  # State of the generator [1], uint64
    cursor: np.ndarray  # Next entry of the table of negatives [1], int64
    copies: np.ndarray  # Buffer to count the copies of each row in a sentence [row], int32; zeros between sentences


class _Room(NamedTuple):
    """Buffers for one sentence."""

    rows: np.ndarray  # Row of the n-gram that begins at each word, by its length [word, length - 2], int64
    places: np.ndarray  # Positions in `rows` of the n-grams that have a row, and then these rows [n-gram], int64
    leaving: np.ndarray  # Rows that leave the context of a target, int64
    entering: np.ndarray  # Rows that enter it, int64


@compiled()
def _next_uniform(random: np.ndarray) -> float:
    """Draw a number from [0, 1) by SplitMix64 (Steele, Lea and Flood 2014), whose state [1] is one uint64."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    bits = random[0]
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    return float(bits >> np.uint64(11)) * 2.0**-53


@compiled()
def bucket_of(words: np.ndarray, start: int, size: int, hidden: int, buckets: int) -> np.int64:
    """Compute the bucket of an n-gram; see `ngram_buckets`.

    Args:
        words: Ids of the words [word].
        start: Position of its first word.
        size: Number of its words.
        hidden: Position of the word that counts as the placeholder, word 0; outside of the n-gram for none.
        buckets: Number of buckets.
    """
    value = np.uint64(0 if start == hidden else words[start])
    for position in range(start + 1, start + size):
        value = value * FACTOR + np.uint64(0 if position == hidden else words[position])
    return np.int64(value % np.uint64(buckets))


@compiled()
def count_buckets(words: np.ndarray, bounds: np.ndarray, order: int, placeholder: bool, counts: np.ndarray) -> None:
    """Add the n-grams of sentences to the counts of their buckets, which end at 255.

    Args:
        words: Ids of the words, sentence after sentence [word], int32.
        bounds: Bounds of the sentences in them [sentence + 1].
        order: Number of words of the longest n-grams.
        placeholder: Whether n-grams with the placeholder in the place of each of their words count too.
        counts: The counts [bucket], uint8, changed in place.
    """
    for sentence in range(len(bounds) - 1):
        first, last = bounds[sentence], bounds[sentence + 1]
        for start in range(first, last):
            for size in range(2, min(order, last - start) + 1):
                # `start - 1` is outside of the n-gram, so it hides no word.
                for hidden in range(start - 1, start + size if placeholder else start):
                    bucket = bucket_of(words, start, size, hidden, len(counts))
                    if counts[bucket] < MOST_COUNTED:
                        counts[bucket] += 1


@compiled(fast=True)
def _scale(target: np.ndarray, factor: np.float32) -> None:
    """Multiply a vector by a factor, in place."""
    for k in range(len(target)):
        target[k] *= factor


@compiled(fast=True)
def _step(gradient: np.ndarray, row: np.ndarray, alpha: np.float32, hidden: np.ndarray) -> None:
    """Add `alpha` times a row to the gradient of the hidden vector, and `alpha` times the hidden vector to the row."""
    for k in range(len(row)):
        value = row[k]
        gradient[k] += alpha * value
        row[k] = value + alpha * hidden[k]


@compiled()
def _shrink(row: np.ndarray, amount: np.float32) -> None:
    """Move each number towards zero by an amount, but not beyond it: the proximal step of an L1 norm."""
    for k in range(len(row)):
        value = row[k]
        row[k] = value - amount if value > amount else value + amount if value < -amount else np.float32(0)


@compiled(fast=True)
def _predict(
    target: int,
    hidden: np.ndarray,
    gradient: np.ndarray,
    outputs: np.ndarray,
    sampling: Sampling,
    cursor: np.ndarray,
    rate: float,
) -> float:
    """Update the output rows of a target and its negatives (equation 3).

    Args:
        target: The target.
        hidden: Average of its context [dimension].
        gradient: Gets the step of the context [dimension]: minus the gradient of `hidden`, times the rate.
        outputs: Rows of targets and negatives [word, dimension], changed in place.
        sampling: The negatives.
        cursor: Next entry of the table of negatives [1], changed in place.
        rate: Learning rate.

    Returns:
        The loss.
    """
    gradient[:] = 0
    linear, product = 0.0, 1.0
    for index in range(sampling.negatives + 1):
        word = target
        while index > 0 and word == target:
            word = sampling.table[cursor[0]]
            cursor[0] = cursor[0] + 1 if cursor[0] + 1 < len(sampling.table) else 0
        row = outputs[word]
        score = float(dot(hidden, row))
        # log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)). The factors 1 + exp(-|x|) are multiplied, so that a single
        # logarithm is taken at the end.
        small = math.exp(-abs(score))
        product *= 1 + small
        probability = 1 / (1 + small) if score > 0 else small / (1 + small)
        if index == 0:
            linear += max(-score, 0.0)
            alpha = rate * (1 - probability)
        else:
            linear += max(score, 0.0)
            alpha = -rate * probability
        _step(gradient, row, np.float32(alpha), hidden)
        if sampling.l1 > 0:
            _shrink(row, np.float32(rate * sampling.l1))
    return linear + math.log(product)


@compiled()
def _find_ngrams(words: np.ndarray, model: Tables, sampling: Sampling, random: np.ndarray, room: _Room) -> int:
    """Find the rows of a sentence's n-grams, and drop some at random.

    `room.rows` gets the row of each n-gram, `room.places` the rows of those that are left.

    Returns:
        The number of rows in `room.places`.
    """
    length, wide, count = len(words), model.order - 1, 0
    for start in range(length):
        for size in range(2, model.order + 1):
            row = MISSING
            if start + size <= length:
                row = model.row_of_bucket[bucket_of(words, start, size, -1, len(model.row_of_bucket))]
            room.rows[start, size - 2] = row
            if row != MISSING:
                room.places[count] = start * wide + size - 2
                count += 1
    for _ in range(min(sampling.dropped, count)):
        index = int(_next_uniform(random) * count)
        place = room.places[index]
        room.rows[place // wide, place % wide] = DROPPED
        count -= 1
        room.places[index] = room.places[count]
    for index in range(count):
        place = room.places[index]
        room.places[index] = room.rows[place // wide, place % wide]
    return count


@compiled()
def _exchange(words: np.ndarray, at: int, model: Tables, room: _Room) -> tuple[int, int]:
    """Find the rows that leave the context when a word becomes the target, and those that enter it.

    Args:
        words: Ids of the sentence's words.
        at: Position of the target.
        model: The trained tables.
        room: Has the rows of the n-grams; gets the rows in `leaving` and `entering`.

    Returns:
        The number of rows that leave, and of those that enter.
    """
    leaving, entering = 1, 0
    room.leaving[0] = words[at]
    if model.placeholder:
        room.entering[0] = 0
        entering = 1
    for start in range(max(0, at - model.order + 1), at + 1):
        for size in range(max(2, at - start + 1), min(model.order, len(words) - start) + 1):
            row = room.rows[start, size - 2]
            if row > 0:
                room.leaving[leaving] = row
                leaving += 1
            if model.placeholder_ngrams and row != DROPPED:
                row = model.row_of_bucket[bucket_of(words, start, size, at, len(model.row_of_bucket))]
                if row != MISSING:
                    room.entering[entering] = row
                    entering += 1
    return leaving, entering


@compiled(fast=True)
def _gather(rows: np.ndarray, inputs: np.ndarray, copies: np.ndarray, total: np.ndarray) -> int:
    """Add rows to the sum of the context, and count their copies.

    Returns:
        The increase of the sum of the squared numbers of copies.
    """
    rise = 0
    for row in rows:
        add_scaled(total, ONE, inputs[row])
        copies[row] += 1
        rise += 2 * copies[row] - 1
    return rise


@compiled(fast=True)
def _settle(rows: np.ndarray, inputs: np.ndarray, copies: np.ndarray, delta: np.ndarray, shrink: float) -> None:
    """Apply the sum of a sentence's gradients and the L1 penalty to its rows, and reset the counts of copies.

    Args:
        rows: Rows of the sentence; repeated ones are applied once.
        inputs: Rows of the context [row, dimension], changed in place.
        copies: Number of copies of each row [row], set to 0.
        delta: Sum of the gradients [dimension].
        shrink: Amount by which numbers move towards zero; 0 for none.
    """
    for row in rows:
        if copies[row] > 0:
            add_scaled(inputs[row], np.float32(copies[row]), delta)
            if shrink > 0:
                _shrink(inputs[row], np.float32(shrink))
        copies[row] = 0


@compiled(fast=True)
def train_sentences(
    words: np.ndarray, bounds: np.ndarray, rates: np.ndarray, model: Tables, sampling: Sampling, worker: Worker
) -> tuple[float, int]:
    """Train on sentences, one after the other.

    Args:
        words: Ids of the words, sentence after sentence [word], int32.
        bounds: Bounds of the sentences in them [sentence + 1], int64.
        rates: Learning rate of each sentence [sentence].
        model: The tables, changed in place.
        sampling: The random choices.
        worker: The state of the thread, changed in place.

    Returns:
        The sum of the losses of all targets, and the number of targets.
    """
    inputs, copies, random = model.inputs, worker.copies, worker.random
    dimension = inputs.shape[1]
    total, delta = np.empty(dimension, np.float32), np.empty(dimension, np.float32)
    hidden, gradient = np.empty(dimension, np.float32), np.empty(dimension, np.float32)
    longest, around = np.diff(bounds).max() if len(bounds) > 1 else 0, model.order * model.order
    room = _Room(
        np.empty((longest, max(model.order - 1, 1)), np.int64),
        np.empty(longest * (model.order - 1), np.int64),
        np.empty(around + 1, np.int64),
        np.empty(around + 1, np.int64),
    )
    loss, targets = 0.0, 0
    for sentence in range(len(bounds) - 1):
        sentence_words = words[bounds[sentence] : bounds[sentence + 1]]
        shrink, ngram_count = 0.0, _find_ngrams(sentence_words, model, sampling, random, room)
        ngrams = room.places[:ngram_count]
        total[:] = 0
        delta[:] = 0
        # If everything in the context gets a gradient of 1, a row with m copies rises by m, and the sum by m * m.
        squares = _gather(sentence_words, inputs, copies, total) + _gather(ngrams, inputs, copies, total)
        for at in range(len(sentence_words)):
            if _next_uniform(random) >= sampling.keep[sentence_words[at]]:
                continue
            left, entered = _exchange(sentence_words, at, model, room)
            leaving, entering = room.leaving[:left], room.entering[:entered]
            context = len(sentence_words) + ngram_count - left + entered
            if context == 0:
                # The sentence has one word, and there is no placeholder.
                continue
            share = ONE / np.float32(context)
            hidden[:] = total
            # A row is worth inputs[row] + copies[row] * delta. `surplus` counts the copies of `delta` that leave the
            # context, minus those that enter it.
            surplus = 0
            for row in leaving:
                add_scaled(hidden, -ONE, inputs[row])
                surplus += copies[row]
            for row in entering:
                add_scaled(hidden, ONE, inputs[row])
                surplus -= copies[row]
            add_scaled(hidden, -np.float32(surplus), delta)
            _scale(hidden, share)
            loss += _predict(
                sentence_words[at], hidden, gradient, model.outputs, sampling, worker.cursor, rates[sentence]
            )
            targets += 1
            shrink += rates[sentence] * sampling.l1 * share
            _scale(gradient, share)
            add_scaled(delta, ONE, gradient)
            # The sum of all rows rises by `squares`; leaving and entering rows below change it by -surplus.
            add_scaled(total, np.float32(squares - surplus), gradient)
            for row in leaving:
                add_scaled(inputs[row], -ONE, gradient)
            for row in entering:
                add_scaled(inputs[row], ONE, gradient)
        _settle(sentence_words, inputs, copies, delta, shrink)
        _settle(ngrams, inputs, copies, delta, shrink)
    return loss, targets


@compiled(fast=True)
def train_windows(
    words: np.ndarray, bounds: np.ndarray, rates: np.ndarray, model: Tables, sampling: Sampling, worker: Worker
) -> tuple[float, int]:
    """Train CBOW on sentences; arguments and result as of `train_sentences`.

    Subsampling removes words from a sentence before the windows are cut. The number of words on either side of a
    target is drawn for each target (Mikolov et al. 2013; arXiv:1703.02507, section 2.3). As in fastText (`update` in
    its `model.cc`) each row of the window gets the whole gradient of their average.
    """
    inputs, random = model.inputs, worker.random
    hidden, gradient = np.empty(inputs.shape[1], np.float32), np.empty(inputs.shape[1], np.float32)
    kept = np.empty(np.diff(bounds).max() if len(bounds) > 1 else 0, words.dtype)
    loss, targets = 0.0, 0
    for sentence in range(len(bounds) - 1):
        length = 0
        for word in words[bounds[sentence] : bounds[sentence + 1]]:
            if _next_uniform(random) < sampling.keep[word]:
                kept[length] = word
                length += 1
        for at in range(length):
            reach = 1 + int(_next_uniform(random) * model.window)
            first, last = max(0, at - reach), min(length, at + reach + 1)
            if last - first == 1:
                continue
            hidden[:] = 0
            for place in range(first, last):
                if place != at:
                    add_scaled(hidden, ONE, inputs[kept[place]])
            _scale(hidden, ONE / np.float32(last - first - 1))
            loss += _predict(kept[at], hidden, gradient, model.outputs, sampling, worker.cursor, rates[sentence])
            targets += 1
            for place in range(first, last):
                if place != at:
                    add_scaled(inputs[kept[place]], ONE, gradient)
    return loss, targets
