"""The compiled kernels against plain NumPy, which updates every row for every target, one after the other."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from paranmt_hf import Sent2VecConfig
from paranmt_hf.encoders.modules.paranmt_tables import ngram_buckets
from paranmt_hf.sent2vec import kernels
from paranmt_hf.sent2vec.config import MOST_NEGATIVES
from paranmt_hf.sent2vec.corpus import read_corpus, write_corpus
from paranmt_hf.sent2vec.kernels import Sampling, Tables, Worker
from paranmt_hf.sent2vec.loop import negative_table
from tests.refused import refused
from tests.training.toys import random_text

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


def plain_windows(words, bounds, rates, model, sampling, worker):
    """CBOW as word2vec and fastText have it: subsampled words are gone, each window is as wide as is drawn."""
    draws, cursor = Draws(int(worker.random[0])), int(worker.cursor[0])
    inputs, outputs = model.inputs.astype(np.float64), model.outputs.astype(np.float64)
    loss = targets = 0
    for first, last, rate in zip(bounds[:-1], bounds[1:], rates, strict=True):
        own = [word for word in words[first:last].tolist() if draws.uniform() < sampling.keep[word]]
        for at, target in enumerate(own):
            reach = 1 + int(draws.uniform() * model.window)
            context = own[max(0, at - reach) : at] + own[at + 1 : at + reach + 1]
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
                outputs[word] = outputs[word] + alpha * hidden
            targets += 1
            for found in context:
                inputs[found] += gradient
    return inputs, outputs, loss, targets, draws.state, cursor


@pytest.mark.parametrize("window", [1, 2, 20])
def test_cbow_is_the_plain_update(window):
    for seed in range(3):
        words, bounds, rates, model, sampling, worker = random_case(seed, 1, "paper", 0)
        model = model._replace(window=window)
        before = model.inputs.copy()
        # Whole gradients grow faster, and rounding with them.
        inputs, outputs, loss, targets, *state = plain_windows(words, bounds, rates / 10, model, sampling, worker)
        found, count = kernels.train_windows(words, bounds, rates / 10, model, sampling, worker)
        assert count == targets > 50
        assert found == pytest.approx(loss, rel=1e-4)
        np.testing.assert_allclose(model.inputs, inputs, atol=2e-4)
        np.testing.assert_allclose(model.outputs, outputs, atol=2e-4)
        assert np.abs(model.inputs - before).max() > 0.1
        assert [int(worker.random[0]), int(worker.cursor[0])] == state


@pytest.mark.parametrize(
    ("settings", "option"),
    [
        ({"context": "cbow", "ngrams": 2}, "ngrams"),
        ({"context": "cbow", "l1": 0.1}, "l1"),
        ({"context": "cbow", "min_target_count": 5}, "min_target_count"),
    ],
)
def test_settings_that_cbow_has_not_or_alone_has(settings, option):
    with refused(option):
        Sent2VecConfig(**settings)
    assert Sent2VecConfig(context="cbow").resolved().min_target_count == 1


def test_the_most_negatives_have_a_loss():
    """Of 1,001 scores of zero it is 1001 log 2."""
    words, bounds, _, model, sampling, worker = random_case(1, 1, "program", 0)
    model.outputs[:] = 0
    sampling = sampling._replace(negatives=MOST_NEGATIVES)
    loss, targets = kernels.train_sentences(words, bounds, np.zeros(len(bounds) - 1), model, sampling, worker)
    assert loss / targets == pytest.approx(1001 * np.log(2))


@pytest.mark.parametrize(("window", "train"), [(0, kernels.train_sentences), (3, kernels.train_windows)])
def test_blocks_do_not_matter(window, train):
    words, bounds, rates, model, sampling, worker = random_case(3, 1 if window else 2, "program", 1)
    whole = random_case(3, 1 if window else 2, "program", 1)
    model = model._replace(window=window)
    train(words, bounds, rates, whole[3]._replace(window=window), sampling, whole[5])
    for low, high in ((0, 4), (4, 5), (5, 40)):
        train(words, bounds[low : high + 1], rates[low:high], model, sampling, worker)
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


# b occurs four times, a three times, c twice, x once; the tie of none.
LINES = ["b a b", "A c b", "x", "b, a c"]


def corpus(folder, lines=LINES, batch=2, **settings):
    folder.mkdir(exist_ok=True)
    config = Sent2VecConfig(**{"min_count": 2, "min_target_count": 1, **settings}).resolved()
    return write_corpus((pa.array(lines[at : at + batch]) for at in range(0, len(lines), batch)), folder, config)


def test_words_by_falling_count(tmp_path):
    text = corpus(tmp_path)
    assert text.words.names == ["[UNK]", "b", "a", "c"]
    assert text.words.counts.tolist() == [0, 4, 3, 2]
    # Eleven tokens, the comma and x among them, and four ends of lines.
    assert (text.words.lines, text.words.tokens) == (4, 15)


def test_sentences_of_known_words(tmp_path):
    text = corpus(tmp_path)
    blocks = list(text.blocks(size=2))
    assert [block.words.tolist() for block in blocks] == [[1, 2, 1, 2, 3, 1], [1, 2, 3]]
    assert [block.bounds.tolist() for block in blocks] == [[0, 3, 6], [0, 3]]
    assert [block.first for block in blocks] == [0, 6]
    (last,) = text.blocks(start=2)
    assert (last.words.tolist(), last.first) == ([1, 2, 3], 6)
    assert (text.sentences, text.known) == (3, 9)


def test_which_words_are_known(tmp_path):
    assert corpus(tmp_path, cut="blanks", min_count=1).words.names == ["[UNK]", "b", "a", "c", "A", "b,", "x"]


def test_targets_are_subsampled(tmp_path):
    # f = 4/15, 3/15, 2/15 and t = 0.05: t/f = 0.1875, 0.25, 0.375; c is too rare for a target.
    words = corpus(tmp_path).words
    keep = words.keep(Sent2VecConfig(threshold=0.05, min_target_count=3).resolved())
    assert keep.tolist() == pytest.approx([0, 0.1875**0.5 + 0.1875, 0.75, 0])


def test_a_small_text_gets_a_higher_threshold(tmp_path):
    config = Sent2VecConfig(ngrams=2).resolved()
    found = [config.threshold_for(tokens) for tokens in (1_700_000_000, 50_000_000, 5_000_000, 1000)]
    assert found == pytest.approx([5e-6, 1e-4, 1e-3, 1e-3])
    assert replace(config, threshold=1e-6).threshold_for(1000) == 1e-6
    words = corpus(tmp_path).words
    given = Sent2VecConfig(threshold=1e-3, min_target_count=3)
    assert words.keep(replace(given, threshold=None).resolved()).tolist() == words.keep(given.resolved()).tolist()


@pytest.mark.slow
def test_buckets_that_occur(tmp_path):
    lines, _ = random_text(40)
    text = corpus(tmp_path, lines, ngrams=3, buckets=5000, min_ngram_count=2)
    (block,) = text.blocks()
    found, _ = ngram_buckets(block.words, block.bounds, 3, 5000)
    buckets, counts = np.unique(found, return_counts=True)
    assert text.hashes.tolist() == buckets[counts > 1].tolist()
    assert 5 < len(text.hashes) < len(buckets)


def test_what_is_read_again_is_what_was_written(tmp_path):
    written = corpus(tmp_path, ngrams=2, buckets=100)
    found = read_corpus(tmp_path)
    assert (found.words.names, found.sentences, found.known) == (written.words.names, 3, 9)
    np.testing.assert_array_equal(found.words.counts, written.words.counts)
    np.testing.assert_array_equal(found.hashes, written.hashes)
    (tmp_path / "rows").write_bytes(b"\0" * 36)
    assert read_corpus(tmp_path) is None
    assert read_corpus(tmp_path / "nothing") is None


def test_batches_do_not_matter(tmp_path):
    lines, _ = random_text(60)
    one, other = (corpus(tmp_path / str(batch), lines, batch, ngrams=2, buckets=500) for batch in (60, 7))
    assert one.words.names == other.words.names
    assert (tmp_path / "60" / "rows").read_bytes() == (tmp_path / "7" / "rows").read_bytes()


def test_negatives_follow_the_root_of_the_count():
    table = negative_table(np.array([0, 900, 100, 25]), np.random.default_rng(1), 4500)
    assert np.bincount(table).tolist() == [0, 3000, 1000, 500]
    assert table[:50].tolist() != sorted(table[:50].tolist())


def test_each_word_is_among_the_negatives():
    table = negative_table(np.array([0, 10**12, 1]), np.random.default_rng(1), 1000)
    assert np.bincount(table).tolist() == [0, 1000, 1]


def test_presets_are_table_5():
    names = ("dimension", "min_count", "min_target_count", "epochs", "threshold", "dropped_ngrams")
    for preset, ngrams, values in (
        ("books", 1, (700, 5, 8, 13, 1e-5, 0)),
        ("books", 2, (700, 5, 5, 12, 5e-6, 7)),
        ("wikipedia", 1, (600, 8, 20, 9, 1e-5, 0)),
        ("wikipedia", 2, (700, 8, 20, 9, 5e-6, 4)),
        ("twitter", 1, (700, 20, 20, 3, 1e-6, 0)),
        ("twitter", 2, (700, 20, 20, 3, 1e-6, 3)),
    ):
        found = Sent2VecConfig(preset=preset, ngrams=ngrams).resolved()
        assert tuple(getattr(found, name) for name in names) == values
        assert found.threshold_for(10) == values[4]
    assert Sent2VecConfig(preset="twitter", epochs=4).resolved().epochs == 4


@pytest.mark.parametrize(
    ("lines", "settings"),
    [
        (LINES, {"min_count": 5}),
        (LINES, {"min_target_count": 5}),
        (["a b c"], {"min_count": 1}),
        (["a", "a", "b", "b"], {}),
    ],
)
def test_too_little_text(tmp_path, lines, settings):
    with refused():
        corpus(tmp_path, lines, **settings)


def test_ngrams_need_buckets():
    with refused("buckets"):
        Sent2VecConfig(ngrams=2, buckets=0)
