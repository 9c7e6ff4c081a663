"""Adam and AdaGrad on tables of which a step moves few rows, against the dense optimizers."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import torch

from paranmt_hf.text.tokens import Bags
from paranmt_hf.training.cpu_engine import CpuTable
from paranmt_hf.training.optimizers import Schedule, TableAdam

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
