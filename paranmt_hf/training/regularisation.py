"""Penalty of weights: lambda times the squared distance from centres (arXiv:1511.08198, equation 1).

The same function serves lambda_c (weights beside the word embeddings, towards zero or towards where they started),
lambda_w (word embeddings, towards where they started), and supervised training towards what was learned before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import embedding

from paranmt_hf.errors import InputError


@dataclass
class Pull:
    """A weight that is pulled towards a centre, all of its rows in every step.

    Attributes:
        weight: The weight, of any shape.
        strength: lambda, at least 0.
        centre: Values of the weight's shape; None for zeros.
        rows: Distinct rows of a table [row] that are trained; the centre has these rows, and the gradient is sparse.
            None for all rows.
    """

    weight: torch.Tensor
    strength: float
    centre: torch.Tensor | None = None
    rows: torch.Tensor | None = None

    def penalty(self) -> torch.Tensor:
        """Strength times the squared distance from the centre, a scalar that has a gradient."""
        weight = self.weight if self.rows is None else embedding(self.rows, self.weight, sparse=True)
        if self.centre is None:
            return self.strength * weight.square().sum()
        self.centre = self.centre.to(weight.device)
        return self.strength * (weight - self.centre).square().sum()


def penalty(pulls: Iterable[Pull]) -> torch.Tensor | float:
    """Add up the penalties of weights; 0.0 if there are none."""
    return sum((pull.penalty() for pull in pulls), 0.0)


def towards_zero(weights: Iterable[torch.Tensor], strength: float) -> list[Pull]:
    """Pull weights towards zeros; weights that are not trained are left out, and all if the strength is 0."""
    return [Pull(weight, strength) for weight in weights if strength and weight.requires_grad]


def towards_initial(weights: Iterable[torch.Tensor], strength: float) -> list[Pull]:
    """Pull weights towards their current values; see `towards_zero`."""
    return [Pull(weight, strength, weight.detach().clone()) for weight in weights if strength and weight.requires_grad]


def rows_towards_initial(table: torch.Tensor, rows: torch.Tensor, strength: float) -> list[Pull]:
    """Pull the rows of a table that are trained towards their current values; see `towards_zero`.

    Args:
        table: The table [row, dimension].
        rows: The distinct rows [row].
        strength: lambda.
    """
    return [Pull(table, strength, table.detach()[rows], rows)] if strength and table.requires_grad else []


def towards_given(module: nn.Module, centres: Mapping[str, torch.Tensor], strength: float) -> list[Pull]:
    """Pull the weights of a module towards given values; see `towards_zero`.

    Args:
        module: The module; its weights without a centre are free.
        centres: Values by the names of weights, as in the module's `state_dict`.
        strength: lambda.
    """
    weights = dict(module.named_parameters())
    for name, centre in centres.items():
        found = tuple(weights[name].shape) if name in weights else None
        if found != tuple(centre.shape):
            there = f"has the shape {found}" if found is not None else "is not among the weights of the model"
            raise InputError(
                f"the values to regularise towards hold {name!r} of the shape {tuple(centre.shape)}, and that {there}"
                "; give those of a model with the same vocabulary and dimensions"
            )
    return [
        Pull(weights[name], strength, centre.detach().clone())
        for name, centre in centres.items()
        if strength and weights[name].requires_grad
    ]
