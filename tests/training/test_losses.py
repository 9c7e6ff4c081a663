"""The margin loss against cases worked out by hand and finite differences."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf.training.losses import margin_loss, margin_loss_and_gradient
from paranmt_hf.training.trainer import scramble

X, Y, D = [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]
DIAGONAL = math.sqrt(0.5)


def loss(*rows, margin=0.4):
    return float(margin_loss(*(torch.tensor(side) for side in rows), margin=margin))


@pytest.mark.parametrize(
    ("s", "s2", "t", "t2", "one", "other"),
    [
        # cos(s, s') = 1 and cos(s, t) = 0: inside the margin there is no loss.
        (X, X, Y, Y, 0.0, 0.0),
        # cos(s, s') = 0, cos(s, t) = 1.
        (X, Y, X, Y, 1.4, 1.4),
        # cos(s, s') = 1, cos(s, t) = 0.7071.
        (X, X, D, Y, 0.4 - 1 + DIAGONAL, 0.0),
        # cos(s, s') = 0.7071 on both sides; t is opposite, t' equals s'.
        (X, D, [-1.0, 0.0], D, 0.0, 0.4 - DIAGONAL + 1),
    ],
)
def test_cases_worked_out_by_hand(s, s2, t, t2, one, other):
    assert loss([s], [s2], [t]) == pytest.approx(one, abs=1e-6)
    assert loss([s], [s2], [t], [t2]) == pytest.approx(one + other, abs=1e-6)


def test_mean_over_pairs_and_no_matter_how_long_the_vectors_are():
    assert loss([X, X], [X, Y], [Y, X]) == pytest.approx(0.7, abs=1e-6)
    assert loss([[5.0, 0.0]], [[0.0, 0.01]], [[100.0, 0.0]]) == pytest.approx(1.4, abs=1e-6)


def test_margin_is_relative():
    # Both cosines are high; only their difference counts.
    near, nearer = [1.0, 0.3], [1.0, 0.1]
    first, second = 1 / math.hypot(1, 0.1), 1 / math.hypot(1, 0.3)
    assert loss([X], [nearer], [near], margin=0.4) == pytest.approx(0.4 - first + second, abs=1e-6)
    assert loss([X], [near], [nearer], margin=0.01) == pytest.approx(0.01 - second + first, abs=1e-6)


@pytest.mark.parametrize("sides", [3, 4])
def test_gradient_equals_finite_differences(sides):
    generator = torch.Generator().manual_seed(sides)
    vectors = [torch.randn(6, 5, generator=generator, dtype=torch.float64).requires_grad_() for _ in range(sides)]
    # The clamp has a corner at 0; no pair lies near it.
    terms = [float(margin_loss(*(vector[[row]].detach() for vector in vectors), margin=0.4)) for row in range(6)]
    assert any(terms)
    assert torch.autograd.gradcheck(lambda *rows: margin_loss(*rows, margin=0.4), vectors, eps=1e-6, atol=1e-7)


def test_zero_vectors_give_finite_loss_and_gradient():
    vectors = [torch.zeros(2, 3).requires_grad_() for _ in range(4)]
    value = margin_loss(*vectors, margin=0.4)
    value.backward()
    assert float(value.detach()) == pytest.approx(0.8)
    assert all(torch.isfinite(vector.grad).all() for vector in vectors)


def test_a_part_of_a_mini_batch_has_its_share_of_the_loss():
    generator = torch.Generator().manual_seed(2)
    vectors = torch.randn(4, 6, 5, generator=generator, dtype=torch.float64)
    whole, slope = margin_loss_and_gradient(vectors.flatten(0, 1), 4, 0.4)
    parts = [margin_loss_and_gradient(vectors[:, half].flatten(0, 1), 4, 0.4, 6) for half in (slice(2), slice(2, 6))]
    torch.testing.assert_close(sum(loss for loss, _ in parts), whole)
    joined = torch.cat([own.unflatten(0, (4, -1)) for _, own in parts], dim=1).flatten(0, 1)
    torch.testing.assert_close(joined, slope)


def sentences(rows: np.ndarray, offsets: np.ndarray) -> list[list[int]]:
    return [rows[start:end].tolist() for start, end in zip(offsets[:-1], offsets[1:], strict=True)]


@given(st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=20), st.floats(0, 1), st.integers(0, 99))
def test_every_sentence_keeps_its_words(texts, share, seed):
    rows = np.array([word for text in texts for word in text], np.int32)
    offsets = np.cumsum([0, *map(len, texts)])
    found = scramble(rows, offsets, share, np.random.default_rng(seed))
    assert found.dtype == rows.dtype
    assert [sorted(text) for text in sentences(found, offsets)] == [sorted(text) for text in texts]
    np.testing.assert_array_equal(found, scramble(rows, offsets, share, np.random.default_rng(seed)))


def long_sentences(count: int = 2000, length: int = 12) -> tuple[np.ndarray, np.ndarray]:
    return np.tile(np.arange(length, dtype=np.int32), count), np.arange(count + 1) * length


def test_shares():
    rows, offsets = long_sentences()
    np.testing.assert_array_equal(scramble(rows, offsets, 0, np.random.default_rng(1)), rows)
    for share in (0.3, 1.0):
        found = scramble(rows, offsets, share, np.random.default_rng(1)).reshape(2000, 12)
        changed = (found != rows.reshape(2000, 12)).any(axis=1).mean()
        # 2,000 draws: five standard deviations are 0.05. A shuffle of 12 words leaves hardly one as it was.
        assert abs(changed - share) < 0.05


def test_all_orders_are_equally_likely():
    rows, offsets = long_sentences(6000, 3)
    found = scramble(rows, offsets, 1.0, np.random.default_rng(2)).reshape(6000, 3)
    _, counts = np.unique(found, axis=0, return_counts=True)
    assert len(counts) == 6
    assert abs(counts - 1000).max() < 150
