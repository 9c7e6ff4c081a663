"""The margin loss against cases worked out by hand and finite differences."""

import math

import pytest
import torch

from paranmt_hf.training.losses import margin_loss, margin_loss_and_gradient

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
