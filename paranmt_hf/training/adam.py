"""Adam and AdaGrad for models with large tables and dense weights side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from paranmt_hf.training.rowwise import ADAGRAD_START, BETA1, BETA2, EPSILON


class _TableOptimizer(torch.optim.Optimizer):
    """An optimiser whose tables (parameters with sparse gradients) move only in the rows of a step.

    Args:
        parameters: What is trained.
        lr: Learning rate.
    """

    def __init__(self, parameters: Iterable[torch.nn.Parameter], lr: float) -> None:
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Make one step."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    gradient = parameter.grad.coalesce() if parameter.grad.is_sparse else parameter.grad
                    self._move(parameter, gradient, group["lr"])

    def _move(self, parameter: torch.Tensor, gradient: torch.Tensor, rate: float) -> None:
        raise NotImplementedError


class TableAdam(_TableOptimizer):
    """Adam whose tables (parameters with sparse gradients) move only in the rows of a step.

    Dense parameters follow Kingma & Ba 2015, algorithm 1. Rows of a table without a gradient rest, averages included,
    which is what torch's `SparseAdam` does and dense Adam does not; `rowwise.py` makes up for the difference where it
    was measured to matter, on the averaging models.
    """

    def _move(self, parameter: torch.Tensor, gradient: torch.Tensor, rate: float) -> None:
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros(())
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        state["step"] += 1
        step = int(state["step"])
        rows = None
        if gradient.is_sparse:
            rows, gradient = gradient.indices()[0], gradient.values()
        first, second = state["exp_avg"], state["exp_avg_sq"]
        moved_first = first if rows is None else first[rows]
        moved_second = second if rows is None else second[rows]
        moved_first.mul_(BETA1).add_(gradient, alpha=1 - BETA1)
        moved_second.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        root = (moved_second / (1 - BETA2**step)).sqrt_().add_(EPSILON)
        change = (moved_first / root).mul_(-rate / (1 - BETA1**step))
        if rows is None:
            parameter.add_(change)
        else:
            first[rows], second[rows] = moved_first, moved_second
            parameter.index_add_(0, rows, change)


class TableAdagrad(_TableOptimizer):
    """AdaGrad (Duchi et al. 2011); a row without a gradient rests, so sparse gradients give what dense ones do."""

    def _move(self, parameter: torch.Tensor, gradient: torch.Tensor, rate: float) -> None:
        state = self.state[parameter]
        if not state:
            state["sum"] = torch.full_like(parameter, ADAGRAD_START)
        squares = state["sum"]
        if not gradient.is_sparse:
            squares.addcmul_(gradient, gradient)
            parameter.addcdiv_(gradient, squares.sqrt(), value=-rate)
            return
        rows, values = gradient.indices()[0], gradient.values()
        moved = squares[rows].addcmul_(values, values)
        squares[rows] = moved
        parameter.index_add_(0, rows, values / moved.sqrt_(), alpha=-rate)
