"""Row-wise Adam against dense Adam on tables of which a step touches few rows."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch

from paranmt_hf.training.adam import TableAdam
from paranmt_hf.training.rowwise import RowwiseAdagrad, RowwiseAdam

ROWS, WIDTH, STEPS = 60, 5, 600


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


def run_rowwise(decay: bool = False) -> RowwiseAdam:
    adam = RowwiseAdam(torch.zeros(ROWS, WIDTH), rates(decay))
    for rows, noise in touched(1):
        local = adam.read(rows)
        adam.update(local, gradient(local.weight, noise, rows))
    return adam


def run_torch(kind: Callable[..., torch.optim.Optimizer], decay: bool = False) -> torch.Tensor:
    weight = torch.zeros(ROWS, WIDTH, requires_grad=True)
    optimizer = kind([weight], lr=0.01)
    for rate, (rows, noise) in zip(rates(decay), touched(1), strict=True):
        optimizer.param_groups[0]["lr"] = rate
        values = gradient(weight.detach()[rows], noise, rows)
        sparse = torch.sparse_coo_tensor(rows[None], values, weight.shape, check_invariants=True)
        weight.grad = sparse if kind is torch.optim.SparseAdam else sparse.to_dense()
        optimizer.step()
    return weight.detach()


@pytest.mark.parametrize("decay", [False, True])
def test_adagrad_equals_torchs(decay):
    ours = RowwiseAdagrad(torch.zeros(ROWS, WIDTH), rates(decay))
    for number, (rows, noise) in enumerate(touched(1)):
        local = ours.read(rows)
        ours.update(local, gradient(local.weight, noise, rows))
        if number == 250:
            kept = {name: value.clone() for name, value in ours.state().items()}
            ours = RowwiseAdagrad(torch.ones(ROWS, WIDTH), rates(decay))
            ours.restore(kept, number + 1)
    wanted = run_torch(partial(torch.optim.Adagrad, initial_accumulator_value=1e-6, eps=0), decay)
    torch.testing.assert_close(ours.weight, wanted, atol=1e-5, rtol=0)
    assert wanted[:10].abs().mean() > 0.05 and not ours.weight[55:].any()
    assert ours.last[:10].min() > 500 and not ours.last[55:].any()


@pytest.mark.parametrize("decay", [False, True])
def test_equals_dense_adam(decay):
    adam = run_rowwise(decay)
    adam.catch_up()
    wanted = run_torch(torch.optim.Adam, decay)
    difference = (adam.weight - wanted).abs()
    # Weights are about 1 and moved by 0.01 a step; 600 steps leave only rounding.
    assert difference.max() < 1e-5
    assert wanted[:10].abs().mean() > 0.5
    # Rows that never had a gradient rest.
    assert not adam.weight[55:].any()
    sparse = (run_torch(torch.optim.SparseAdam, decay) - wanted).abs()
    assert sparse.max() > 1000 * difference.max()


def test_averages_decay_like_dense_adams():
    adam = run_rowwise()
    adam.catch_up()
    weight = torch.zeros(ROWS, WIDTH, requires_grad=True)
    dense = torch.optim.Adam([weight], lr=0.01)
    for rows, noise in touched(1):
        values = gradient(weight.detach()[rows], noise, rows)
        weight.grad = torch.zeros_like(weight).index_copy(0, rows, values)
        dense.step()
    torch.testing.assert_close(adam.first, dense.state[weight]["exp_avg"], atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(adam.second, dense.state[weight]["exp_avg_sq"], atol=1e-6, rtol=1e-4)


def test_catching_up_twice_changes_nothing_and_some_rows_leave_the_others():
    adam = run_rowwise()
    before = adam.weight.clone()
    some = torch.arange(20, 30)
    adam.catch_up(some)
    others = np.setdiff1d(np.arange(ROWS), some)
    torch.testing.assert_close(adam.weight[others], before[others], atol=0, rtol=0)
    assert (adam.weight[some] != before[some]).any()
    adam.catch_up()
    once = {name: value.clone() for name, value in adam.state().items()}
    adam.catch_up()
    for name, value in adam.state().items():
        torch.testing.assert_close(value, once[name], atol=0, rtol=0)


def test_catching_up_after_every_step_equals_once_at_the_end():
    late = run_rowwise()
    late.catch_up()
    # The same history with a catch-up of all rows after every step.
    often = RowwiseAdam(torch.zeros(ROWS, WIDTH), rates(False))
    for rows, noise in touched(1):
        local = often.read(rows)
        often.update(local, gradient(local.weight, noise, rows))
        often.catch_up()
    torch.testing.assert_close(often.weight, late.weight, atol=1e-5, rtol=0)


def test_state_and_restore():
    steps = touched(1)
    whole = run_rowwise()
    first = RowwiseAdam(torch.zeros(ROWS, WIDTH), rates(False))
    for rows, noise in steps[:250]:
        local = first.read(rows)
        first.update(local, gradient(local.weight, noise, rows))
    kept = {name: value.clone() for name, value in first.state().items()}
    second = RowwiseAdam(torch.ones(ROWS, WIDTH), rates(False))
    second.restore(kept, 250)
    for rows, noise in steps[250:]:
        local = second.read(rows)
        second.update(local, gradient(local.weight, noise, rows))
    for name, value in second.state().items():
        torch.testing.assert_close(value, whole.state()[name], atol=0, rtol=0)


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
    torch.testing.assert_close(table.detach(), run_torch(torch.optim.SparseAdam), atol=1e-5, rtol=0)


def tiny_gradients(step: Callable[[torch.Tensor, torch.Tensor], None], size: float) -> None:
    """Gradients of which one dimension has next to nothing, for rows that rest most of the time."""
    generator = np.random.default_rng(3)
    for number in range(200):
        rows = torch.tensor([0, 1 + number % 50])
        values = torch.from_numpy(generator.standard_normal((2, WIDTH)).astype(np.float32))
        values[:, 0] *= size
        step(rows, values)


@pytest.mark.parametrize("size", [1e-22, 1e-14, 1e-9, 1e-6])
def test_a_dimension_without_variance_does_not_run_away(size):
    # The second moment of such a gradient is below what 32 bits can hold, and the first one is not.
    adam = RowwiseAdam(torch.zeros(ROWS, WIDTH), np.full(200, 0.01))
    tiny_gradients(lambda rows, values: adam.update(adam.read(rows), values), size)
    adam.catch_up()
    weight = torch.zeros(ROWS, WIDTH, requires_grad=True)
    dense = torch.optim.Adam([weight], lr=0.01)

    def step(rows: torch.Tensor, values: torch.Tensor) -> None:
        weight.grad = torch.zeros(ROWS, WIDTH).index_copy(0, rows, values)
        dense.step()

    tiny_gradients(step, size)
    difference = (adam.weight - weight.detach()).abs()
    assert difference[:, 1:].max() < 1e-4
    # What drifts of such a dimension is a fifth off at most, of a way that is short.
    assert difference[:, 0].max() <= 0.2 * weight[:, 0].abs().max() + 1e-6
    assert weight[:, 0].abs().max() < 0.5
