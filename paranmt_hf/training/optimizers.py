"""Adam and AdaGrad: the sizes of their steps, and the optimizers of models that the trainer trains.

Dense Adam moves every row of a table in every step, also rows without a gradient: their moments decay and the row
drifts on. The engines of averaging models leave such a row alone until it is read again, and then apply the steps that
it missed: the moments decay by a power, and the drift of k steps is a geometric sum in closed form (see `Schedule`).
This is exact except for Adam's epsilon, which shrinks like the root of the second moment there. Epsilon matters where
a gradient is almost zero, as in a dimension without variance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import nn

from paranmt_hf.training.config import TrainConfig

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
# Initial value of AdaGrad's sums of squares; the authors of arXiv:1511.08198 add the same number under the root. With
# 0 the first step of every weight would be as long as the rate, however small its gradient.
ADAGRAD_START = 1e-6


def steps_of(pairs: int, config: TrainConfig) -> int:
    """Return the number of steps of an epoch; a mini-batch never crosses the end of its mega-batch."""
    whole, rest = divmod(pairs, config.mega_pairs)
    return whole * config.mega_batch + -(-rest // config.batch_size)


def learning_rates(pairs: int, config: TrainConfig) -> np.ndarray:
    """Return the learning rate of each step of a training [step]: constant, or falling linearly to zero.

    Args:
        pairs: Number of pairs of an epoch.
        config: How the encoder is trained.
    """
    steps = config.epochs * steps_of(pairs, config)
    rates = np.full(steps, config.learning_rate)
    return rates * (1 - np.arange(steps) / steps) if config.decay else rates


class Schedule:
    """The values that change from step to step; steps are counted from 1.

    Args:
        rates: Learning rate of each step [step].
        optimizer: `adam` or `adagrad`.

    Attributes:
        sizes: Size of each step [step + 1], float64; 0 for step 0, before training.
        floors: Number that Adam adds to the root of the second moment in each step [step + 1], float32.
        ratio: Factor by which the drift of a row without a gradient shrinks in each step.
        drift: How far a row without a gradient drifts after each step until the last one, in units of its first moment
            over the root of its second [step + 1], float64: drift[t] = sum over j >= 1 of ratio^j sizes[t + j].
    """

    def __init__(self, rates: np.ndarray, optimizer: str = "adam") -> None:
        self.optimizer = optimizer
        steps = np.arange(1, len(rates) + 1)
        sizes, floors = rates, np.zeros(len(rates) + 1)
        if optimizer == "adam":
            # Adam's bias correction, for moments that began as zeros: rate * sqrt(1 - b2^t) / (1 - b1^t).
            sizes = rates * np.sqrt(1 - BETA2**steps) / (1 - BETA1**steps)
            # The floor of step 0 is used for rows without any gradient so far. Their moments are zeros, so any number
            # above 0 will do.
            floors = EPSILON * np.sqrt(1 - BETA2 ** np.concatenate([[1], steps]))
        self.sizes = np.concatenate([[0.0], sizes])
        self.floors = floors.astype(np.float32)
        self.ratio = BETA1 / math.sqrt(BETA2)
        self.drift = np.zeros(len(rates) + 1)
        for step in range(len(rates) - 1, -1, -1):
            self.drift[step] = self.ratio * (self.sizes[step + 1] + self.drift[step + 1])


class TableAdam(torch.optim.Optimizer):
    """Adam (Kingma & Ba 2015, algorithm 1), but torch's `SparseAdam` for parameters with sparse gradients.

    Such parameters are tables: a step moves only the rows of its gradient.
    """

    def __init__(self, parameters: Iterable[torch.nn.Parameter], lr: float) -> None:
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Perform one step."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._move(parameter, parameter.grad, group["lr"])

    def _move(self, parameter: torch.Tensor, gradient: torch.Tensor, rate: float) -> None:
        """Update one parameter and its state by its gradient."""
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros(())
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        state["step"] += 1
        step = int(state["step"])
        rows: Any = slice(None)
        if gradient.is_sparse:
            gradient = gradient.coalesce()
            rows, gradient = gradient.indices()[0], gradient.values()
        first = state["exp_avg"][rows].mul_(BETA1).add_(gradient, alpha=1 - BETA1)
        second = state["exp_avg_sq"][rows].mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        state["exp_avg"][rows], state["exp_avg_sq"][rows] = first, second
        root = (second / (1 - BETA2**step)).sqrt_().add_(EPSILON)
        parameter[rows] += (first / root).mul_(-rate / (1 - BETA1**step))


def make_optimizer(model: nn.Module, config: TrainConfig, device: torch.device) -> torch.optim.Optimizer:
    """Create the optimizer of a model's trained weights; on the CPU the gradients of tables are sparse.

    Args:
        model: The model.
        config: Which optimizer, its rate and its clipping.
        device: The device that trains.
    """
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer: torch.optim.Optimizer
    if config.optimizer == "adagrad":
        # They are disabled by default, but torch warns about sparse gradients unless they are disabled explicitly.
        torch.sparse.check_sparse_tensor_invariants.disable()
        optimizer = torch.optim.Adagrad(
            weights, lr=config.learning_rate, initial_accumulator_value=ADAGRAD_START, eps=0
        )
    elif device.type == "cpu":
        optimizer = TableAdam(weights, lr=config.learning_rate)
    else:
        optimizer = torch.optim.Adam(weights, lr=config.learning_rate, fused=True)
    if config.clip is not None and device.type == "cpu":
        # The trainer's own clipping does not support sparse gradients.
        limit = config.clip
        optimizer.register_step_pre_hook(lambda *unused: clip_weights(weights, limit))
    return optimizer


def clip_weights(weights: Iterable[nn.Parameter], limit: float) -> None:
    """Scale the gradients of weights, dense or sparse, in place, so that their common norm is at most a limit."""
    gradients = []
    for weight in weights:
        if weight.grad is None:
            continue
        if weight.grad.is_sparse:
            # Add up the gradients of a row that occurs twice: the norm is that of their sum.
            weight.grad = weight.grad.coalesce()
            gradients.append(weight.grad._values())
        else:
            gradients.append(weight.grad)
    norm = math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients))
    if norm > limit:
        for gradient in gradients:
            gradient.mul_(limit / norm)


def leave_first_row(weight: torch.Tensor) -> Any:  # noqa: ANN401 - torch does not name the class of the handle
    """Zero the gradient of row 0 of a table in every backward pass, so that the row of unknown units stays zeros.

    Returns:
        A handle whose `remove()` ends this.
    """

    def without_first(gradient: torch.Tensor) -> torch.Tensor:
        if gradient.is_sparse:
            gradient = gradient.coalesce()
            others = gradient.indices()[0] != 0
            kept = gradient.indices()[:, others], gradient.values()[others]
            return torch.sparse_coo_tensor(*kept, gradient.shape, is_coalesced=True, check_invariants=False)
        gradient = gradient.clone()
        gradient[0] = 0
        return gradient

    return weight.register_hook(without_first)
