"""The margin loss against cases worked out by hand and finite differences."""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf.text.tokens import Bags
from paranmt_hf.training.cpu_engine import CpuTable
from paranmt_hf.training.losses import margin_loss
from paranmt_hf.training.optimizers import Schedule, TableAdam
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


ROWS, WIDTH, STEPS = 60, 5, 300


def touched(seed: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Rows and gradients of each step: few rows at a time, some often, some rarely, some never."""
    generator = np.random.default_rng(seed)
    chance = np.concatenate([np.full(10, 0.5), np.full(30, 0.02), np.full(15, 0.004), np.zeros(5)])
    steps = []
    for _ in range(STEPS):
        rows = np.flatnonzero(generator.random(ROWS) < chance)
        steps.append((torch.from_numpy(rows), torch.from_numpy(generator.standard_normal((len(rows), WIDTH)))))
    return steps


def targets() -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(9).standard_normal((ROWS, WIDTH)).astype(np.float32))


def gradient(weight: torch.Tensor, noise: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Of a noisy square: it depends on the weights, so errors would add up."""
    return weight - targets()[rows] + 0.1 * noise.float()


def rates(decay: bool) -> np.ndarray:
    constant = np.full(STEPS, 0.01)
    return constant * (1 - np.arange(STEPS) / STEPS) if decay else constant


def make(rates: np.ndarray, optimizer: str = "adam", fill: float = 0.0) -> CpuTable:
    table = CpuTable(torch.full((ROWS, WIDTH), fill), Schedule(rates, optimizer))
    table.frozen = False
    return table


def step(table: CpuTable, rows: torch.Tensor, slope: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Make a step on rows, each a sentence, by the gradient that a function computes from their weights."""
    bags = Bags(rows.int().numpy(), np.arange(len(rows) + 1))
    vectors = np.zeros((len(rows), WIDTH), np.float32)
    table.add_means(bags, np.arange(len(rows)), vectors)
    found = slope(torch.from_numpy(vectors)).float().numpy()
    table.update(*table.slopes(found, np.ones(len(rows), bool)))


def run_rowwise(decay: bool = False, optimizer: str = "adam", often: bool = False) -> CpuTable:
    table = make(rates(decay), optimizer)
    for rows, noise in touched(1):
        step(table, rows, lambda weight, noise=noise, rows=rows: gradient(weight, noise, rows))
        if often:
            table.catch_up()
    return table


def resumed(optimizer: str, decay: bool = False) -> CpuTable:
    """As `run_rowwise`, with a checkpoint on the way."""
    table = make(rates(decay), optimizer)
    for number, (rows, noise) in enumerate(touched(1)):
        step(table, rows, lambda weight, noise=noise, rows=rows: gradient(weight, noise, rows))
        if number == 120:
            kept = {name: value.clone() for name, value in table.state().items()}
            table = make(rates(decay), optimizer, fill=1.0)
            table.restore(kept, number + 1)
    return table


@cache
def run_torch(kind: Callable[..., torch.optim.Optimizer], decay: bool = False) -> tuple[torch.Tensor, dict[str, Any]]:
    """The weights after all steps, and the state of the optimizer."""
    weight = torch.zeros(ROWS, WIDTH, requires_grad=True)
    optimizer = kind([weight], lr=0.01)
    for rate, (rows, noise) in zip(rates(decay), touched(1), strict=True):
        optimizer.param_groups[0]["lr"] = rate
        values = gradient(weight.detach()[rows], noise, rows)
        sparse = torch.sparse_coo_tensor(rows[None], values, weight.shape, check_invariants=True)
        weight.grad = sparse if kind is torch.optim.SparseAdam else sparse.to_dense()
        optimizer.step()
    return weight.detach(), optimizer.state[weight]


@pytest.mark.parametrize("decay", [False, True])
def test_adagrad_equals_torchs(decay):
    ours = resumed("adagrad", decay)
    wanted, _ = run_torch(partial(torch.optim.Adagrad, initial_accumulator_value=1e-6, eps=0), decay)
    torch.testing.assert_close(ours.weight, wanted, atol=1e-5, rtol=0)
    assert wanted[:10].abs().mean() > 0.05 and not ours.weight[55:].any()
    last = ours.state()["last"]
    assert last[:10].min() > STEPS - 100 and not last[55:].any()


@pytest.mark.slow
@pytest.mark.parametrize("decay", [False, True])
def test_equals_dense_adam(decay):
    adam, often = run_rowwise(decay), run_rowwise(decay, often=True)
    adam.catch_up()
    wanted, kept = run_torch(torch.optim.Adam, decay)
    difference = (adam.weight - wanted).abs()
    # Weights are about 1 and moved by 0.01 a step; the steps leave only rounding.
    assert difference.max() < 1e-5
    assert wanted[:10].abs().mean() > 0.3
    # Rows that never had a gradient are not updated.
    assert not adam.weight[55:].any()
    torch.testing.assert_close(adam.state()["first"], kept["exp_avg"], atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(adam.state()["second"], kept["exp_avg_sq"], atol=1e-6, rtol=1e-4)
    # Catching up after every step equals catching up once at the end.
    torch.testing.assert_close(often.weight, adam.weight, atol=1e-5, rtol=0)
    sparse = (run_torch(torch.optim.SparseAdam, decay)[0] - wanted).abs()
    assert sparse.max() > 100 * difference.max()


@pytest.mark.parametrize("optimizer", ["adam", "adagrad"])
def test_state_and_restore(optimizer):
    whole, second = run_rowwise(optimizer=optimizer), resumed(optimizer)
    for name, value in second.state().items():
        torch.testing.assert_close(value, whole.state()[name], atol=0, rtol=0)


@pytest.mark.slow
def test_table_adam_equals_torch_on_dense_and_sparse():
    """`TableAdam` is Adam for dense weights and `SparseAdam` for tables."""
    table, dense = torch.zeros(ROWS, WIDTH, requires_grad=True), torch.zeros(3, requires_grad=True)
    other = torch.zeros(3, requires_grad=True)
    ours, theirs = TableAdam([table, dense], lr=0.01), torch.optim.Adam([other], lr=0.01)
    for rows, noise in touched(1):
        values = gradient(table.detach()[rows], noise, rows)
        table.grad = torch.sparse_coo_tensor(rows[None], values, table.shape, check_invariants=True)
        dense.grad = dense.detach() - torch.tensor([1.0, -2.0, 0.5])
        other.grad = other.detach() - torch.tensor([1.0, -2.0, 0.5])
        ours.step()
        theirs.step()
    torch.testing.assert_close(dense, other, atol=1e-6, rtol=0)
    torch.testing.assert_close(table.detach(), run_torch(torch.optim.SparseAdam)[0], atol=1e-5, rtol=0)


def tiny_gradients(make_step: Callable[[torch.Tensor, torch.Tensor], None], size: float) -> None:
    """Gradients of which one dimension has next to nothing, for rows that rest most of the time."""
    generator = np.random.default_rng(3)
    for number in range(200):
        rows = torch.tensor([0, 1 + number % 50])
        values = torch.from_numpy(generator.standard_normal((2, WIDTH)).astype(np.float32))
        values[:, 0] *= size
        make_step(rows, values)


@pytest.mark.parametrize("size", [1e-22, 1e-14, 1e-9, 1e-6])
def test_a_dimension_without_variance_does_not_run_away(size):
    # The second moment of such a gradient is below what 32 bits can hold, and the first one is not.
    adam = make(np.full(200, 0.01))
    tiny_gradients(lambda rows, values: step(adam, rows, lambda weight: values), size)
    adam.catch_up()
    weight = torch.zeros(ROWS, WIDTH, requires_grad=True)
    dense = torch.optim.Adam([weight], lr=0.01)

    def dense_step(rows: torch.Tensor, values: torch.Tensor) -> None:
        weight.grad = torch.zeros(ROWS, WIDTH).index_copy(0, rows, values)
        dense.step()

    tiny_gradients(dense_step, size)
    difference = (adam.weight - weight.detach()).abs()
    assert difference[:, 1:].max() < 1e-4
    # What drifts of such a dimension is a fifth off at most, of a way that is short.
    assert difference[:, 0].max() <= 0.2 * weight[:, 0].abs().max() + 1e-6
    assert weight[:, 0].abs().max() < 0.5
