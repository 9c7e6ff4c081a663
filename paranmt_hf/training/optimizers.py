"""The optimisers of training through the trainer, and clipping of gradients."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import nn

from paranmt_hf.training.adam import TableAdagrad, TableAdam
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.rowwise import ADAGRAD_START


def make_optimizer(model: nn.Module, config: TrainConfig, device: torch.device) -> torch.optim.Optimizer:
    """Make the optimiser of a model's weights that are trained.

    Args:
        model: The model, on the device.
        config: Which optimiser, its rate, and where gradients are clipped.
        device: Where it is trained. On the CPU the gradients of tables are sparse.
    """
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer: torch.optim.Optimizer
    if device.type == "cpu":
        optimizer = {"adam": TableAdam, "adagrad": TableAdagrad}[config.optimizer](weights, lr=config.learning_rate)
    elif config.optimizer == "adagrad":
        optimizer = torch.optim.Adagrad(
            weights, lr=config.learning_rate, initial_accumulator_value=ADAGRAD_START, eps=0
        )
    else:
        optimizer = torch.optim.Adam(weights, lr=config.learning_rate, fused=True)
    if config.clip is not None and device.type == "cpu":
        # The trainer's own clipping knows no sparse gradients.
        limit = config.clip
        optimizer.register_step_pre_hook(lambda *unused: clip_weights(weights, limit))
    return optimizer


def clip_weights(weights: Iterable[nn.Parameter], limit: float) -> None:
    """Clip the gradients of weights, dense or sparse, in place; see `clip`."""
    gradients = []
    for weight in weights:
        if weight.grad is None:
            continue
        if weight.grad.is_sparse:
            # Else a row that occurs twice has two gradients, whose norms do not add up to that of their sum.
            weight.grad = weight.grad.coalesce()
            gradients.append(weight.grad._values())
        else:
            gradients.append(weight.grad)
    clip(gradients, limit)


def clip(gradients: Sequence[torch.Tensor], limit: float) -> None:
    """Scale gradients in place so that the norm over all of them together is at most a limit.

    Args:
        gradients: All gradients of a step, of any shapes; rows without a gradient may be missing.
        limit: The largest norm.
    """
    norm = math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients))
    if norm > limit:
        for gradient in gradients:
            gradient.mul_(limit / norm)


def leave_first_row(weight: torch.Tensor) -> Any:  # noqa: ANN401 - torch does not name the class of the handle
    """Take the gradient of row 0 of a table away, so that the row of unknown units stays zeros.

    Returns:
        What ends it with `remove()`.
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
