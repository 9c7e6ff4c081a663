"""The compiled kernels against plain NumPy, which updates every row for every target, one after the other."""

import numpy as np
import pytest

from paranmt_hf.encoders.modules.paranmt_tables import ngram_buckets
from paranmt_hf.training.sent2vec import kernels
from paranmt_hf.training.sent2vec.config import MOST_NEGATIVES
from paranmt_hf.training.sent2vec.kernels import Sampling, Tables, Worker

GOLDEN, MASK = 0x9E3779B97F4A7C15, 2**64 - 1


class Draws:
    """SplitMix64 in Python's own whole numbers."""

    def __init__(self, state):
        self.state = state

    def uniform(self):
        self.state = (self.state + GOLDEN) & MASK
        bits = self.state
        bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & MASK
        return ((bits ^ (bits >> 31)) >> 11) / 2**53


def hashed(words, buckets):
    value = words[0]
    for word in words[1:]:
        value = (value * 116049371 + word) & MASK
    return value % buckets


def shrunk(row, amount):
    return np.sign(row) * np.maximum(np.abs(row) - amount, 0)


def plain(words, bounds, rates, model, sampling, worker):
    """Train as the authors' program does: for each target the context is built, averaged and updated."""
    draws, cursor = Draws(int(worker.random[0])), int(worker.cursor[0])
    buckets, order = len(model.row_of_bucket), model.order
    inputs, outputs = model.inputs.astype(np.float64), model.outputs.astype(np.float64)
    loss = targets = 0
    for first, last, rate in zip(bounds[:-1], bounds[1:], rates, strict=True):
        own = words[first:last].tolist()
        spans = [
            (start, size) for start in range(len(own)) for size in range(2, order + 1) if start + size <= len(own)
        ]
        row = lambda part: int(model.row_of_bucket[hashed(part, buckets)])  # noqa: E731
        left = [span for span in spans if row(own[span[0] : sum(span)])]
        dropped = set()
        for _ in range(min(sampling.dropped, len(left))):
            index = int(draws.uniform() * len(left))
            dropped.add(left[index])
            left[index] = left[-1]
            left.pop()
        amount = 0.0
        for at, target in enumerate(own):
            if draws.uniform() >= sampling.keep[target]:
                continue
            masked = [0 if position == at else word for position, word in enumerate(own)]
            context = [word for word in masked if word or model.placeholder]
            for start, size in spans:
                hides = start <= at < start + size
                if (start, size) not in dropped and (model.placeholder_ngrams or not hides):
                    context += [found] if (found := row(masked[start : start + size])) else []
            if not context:
                continue
            hidden = inputs[context].mean(axis=0)
            gradient = np.zeros_like(hidden)
            for index in range(sampling.negatives + 1):
                word = target
                while index and word == target:
                    word = int(sampling.table[cursor])
                    cursor = (cursor + 1) % len(sampling.table)
                score = hidden @ outputs[word]
                loss += np.log1p(np.exp(score if index else -score))
                alpha = rate * ((not index) - 1 / (1 + np.exp(-score)))
                gradient += alpha * outputs[word]
                outputs[word] = shrunk(outputs[word] + alpha * hidden, rate * sampling.l1)
            targets += 1
            amount += rate * sampling.l1 / len(context)
            for found in context:
                inputs[found] += gradient / len(context)
        there = {*own, *(row(own[start : start + size]) for start, size in spans if (start, size) not in dropped)}
        for found in there - {0}:
            inputs[found] = shrunk(inputs[found], amount)
    return inputs, outputs, loss, targets, draws.state, cursor


def random_case(seed, order, context, dropped, buckets=40, l1=0.0):
    """Sentences of few words, so that many repeat in one sentence, and n-grams share buckets."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, 12, size=40)
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    words = generator.integers(1, 9, size=bounds[-1]).astype(np.int32)
    row_of = np.zeros(buckets if order > 1 else 1, np.int32)
    counts = np.zeros(len(row_of), np.uint8)
    if order > 1:
        kernels.count_buckets(words, bounds, order, context == "program", counts)
        some = np.flatnonzero(counts > 2)
        row_of[some] = np.arange(9, 9 + len(some))
    rows = 9 + np.count_nonzero(row_of)
    scale = lambda *shape: generator.normal(size=shape).astype(np.float32)  # noqa: E731
    model = Tables(scale(rows, 7), scale(10, 7), order, row_of, context != "paper", context == "program")
    table = generator.permutation(np.repeat(np.arange(1, 10), 3)).astype(np.int32)
    keep = np.append(0, generator.uniform(0, 1.4, size=8))
    worker = Worker(np.array([seed], np.uint64), np.array([5]), np.zeros(rows, np.int32))
    rates = generator.uniform(0.01, 0.3, size=len(lengths))
    return words, bounds, rates, model, Sampling(keep, table, 3, dropped, l1), worker


@pytest.mark.parametrize(
    ("order", "context", "dropped", "l1"),
    [
        (1, "program", 0, 0.0),
        (1, "paper", 0, 0.0),
        (1, "placeholder", 0, 0.1),
        (2, "program", 2, 0.0),
        (2, "placeholder", 0, 0.0),
        (2, "paper", 1, 0.1),
        (3, "program", 4, 0.0),
        (3, "paper", 2, 0.0),
    ],
)
def test_kernel_is_the_plain_update(order, context, dropped, l1):
    """Equations 2 and 3 (`paper`); with a row, or also n-grams, in the place of the target."""
    for seed in range(5):
        words, bounds, rates, model, sampling, worker = random_case(seed, order, context, dropped, l1=l1)
        before = model.inputs.copy()
        inputs, outputs, loss, targets, state, cursor = plain(words, bounds, rates, model, sampling, worker)
        found, count = kernels.train_sentences(words, bounds, rates, model, sampling, worker)
        assert count == targets > 50
        assert found == pytest.approx(loss, rel=1e-4)
        np.testing.assert_allclose(model.inputs, inputs, atol=2e-4)
        np.testing.assert_allclose(model.outputs, outputs, atol=2e-4)
        assert np.abs(model.inputs - before).max() > 0.1
        assert (int(worker.random[0]), int(worker.cursor[0])) == (state, cursor)
        assert not worker.copies.any()
        assert bool((model.outputs == 0).any()) == (l1 > 0)


def test_the_most_negatives_have_a_loss():
    """Of 1,001 scores of zero it is 1001 log 2."""
    words, bounds, _, model, sampling, worker = random_case(1, 1, "program", 0)
    model.outputs[:] = 0
    sampling = sampling._replace(negatives=MOST_NEGATIVES)
    loss, targets = kernels.train_sentences(words, bounds, np.zeros(len(bounds) - 1), model, sampling, worker)
    assert loss / targets == pytest.approx(1001 * np.log(2))


def test_blocks_do_not_matter():
    words, bounds, rates, model, sampling, worker = random_case(3, 2, "program", 1)
    whole = random_case(3, 2, "program", 1)
    kernels.train_sentences(words, bounds, rates, whole[3], sampling, whole[5])
    for low, high in ((0, 4), (4, 5), (5, 40)):
        kernels.train_sentences(words, bounds[low : high + 1], rates[low:high], model, sampling, worker)
    np.testing.assert_array_equal(model.inputs, whole[3].inputs)
    np.testing.assert_array_equal(model.outputs, whole[3].outputs)


def test_buckets_are_those_of_the_encoder():
    generator = np.random.default_rng(1)
    bounds = np.concatenate([[0], np.cumsum(generator.integers(1, 9, size=50))])
    words = generator.integers(1, 500_000, size=bounds[-1]).astype(np.int32)
    for order, buckets in ((2, 2_000_000), (4, 97)):
        counts = np.zeros(buckets, np.uint8)
        kernels.count_buckets(words, bounds, order, False, counts)
        expected, _ = ngram_buckets(words, bounds, order, buckets)
        np.testing.assert_array_equal(counts, np.minimum(np.bincount(expected, minlength=buckets), 255))


def test_placeholder_stands_for_each_word_once():
    # Of "3 5": itself, "0 5" and "3 0"; 0 * 116049371 + 5 = 5 and 3 * 116049371 = 348148113.
    counts = np.zeros(1000, np.uint8)
    kernels.count_buckets(np.array([3, 5], np.int32), np.array([0, 2]), 2, True, counts)
    assert np.flatnonzero(counts).tolist() == [5, 113, 118]


def test_counts_end_at_255():
    counts = np.zeros(1, np.uint8)
    kernels.count_buckets(np.ones(400, np.int32), np.array([0, 400]), 2, False, counts)
    assert counts.tolist() == [255]
