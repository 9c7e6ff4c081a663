"""Adam and AdaGrad for large tables of which a step touches few rows.

Dense Adam moves every row in every step, also those without a gradient: their averages decay and the row drifts on.
Here a row is left alone until it is read again, and then makes up for the steps that it missed: the averages decay by
a power, and the drift of k steps is a geometric sum in closed form, exact but for Adam's epsilon, which is nothing
beside the root of the second moment of a row that has had a gradient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
# What AdaGrad's sums of squares begin with; the authors of arXiv:1511.08198 add as much under the root. From 0 the
# first step of every number would be as long as the rate, however small its gradient.
ADAGRAD_START = 1e-6


class RowwiseAdam:
    """Adam on the rows of a table.

    Kingma & Ba 2015, algorithm 1, with the rate of each step given beforehand.

    Args:
        weight: Table [row, dimension], float32, changed in place.
        rates: Learning rate of each step [step], from step 1.

    Attributes:
        step: Steps made so far.
        sizes: Size of each step, if the averages were those of step 0 [step + 1].
        ratio: By how much the drift of a row without a gradient shrinks in each step.
        drift: What a row drifts, in units of its own, from each step to the end [step + 1], float64.
    """

    def __init__(self, weight: torch.Tensor, rates: np.ndarray) -> None:
        self.weight = weight
        self.first = torch.zeros_like(weight)
        self.second = torch.zeros_like(weight)
        self.last = torch.zeros(len(weight), dtype=torch.int32)
        self.step = 0
        steps = np.arange(1, len(rates) + 1)
        # rate * sqrt(1 - b2^t) / (1 - b1^t), which makes up for averages that began with zeros.
        self.sizes = np.concatenate([[0.0], rates * np.sqrt(1 - BETA2**steps) / (1 - BETA1**steps)])
        self.ratio = BETA1 / math.sqrt(BETA2)
        # drift[t] = sum over j >= 1 of ratio^j * size[t + j], up to the last step there is.
        drift = np.zeros(len(rates) + 1)
        for step in range(len(rates) - 1, -1, -1):
            drift[step] = self.ratio * (self.sizes[step + 1] + drift[step + 1])
        self.drift = torch.from_numpy(drift)

    def read(self, rows: torch.Tensor) -> Rows:
        """Copy rows as of now, the steps they missed made up for.

        Args:
            rows: Rows [row], each once, int64.
        """
        local = Rows.of(rows, self.weight, self.first, self.second)
        first, second = local.averages
        last = self.last[rows]
        missed = self.step - last
        if not missed.any():
            return local
        power = missed.double()
        total = self.drift[last.long()] - self.ratio**power * self.drift[self.step]
        # A row that never had a gradient has zeros over zeros here, and stays.
        change = first * -total.float()[:, None]
        local.weight.addcdiv_(change, second.sqrt().add_(1e-30))
        first.mul_((BETA1**power).float()[:, None])
        second.mul_((BETA2**power).float()[:, None])
        return local

    def update(self, local: Rows, gradient: torch.Tensor) -> None:
        """Make one step of Adam on rows that `read` gave since the last step.

        Args:
            local: The rows.
            gradient: Gradient of the loss for each of them [row, dimension].
        """
        self.step += 1
        first, second = local.averages
        first.mul_(BETA1).add_(gradient, alpha=1 - BETA1)
        second.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        floor = EPSILON * math.sqrt(1 - BETA2**self.step)
        size = float(self.sizes[self.step])
        local.weight.addcdiv_(first, second.sqrt().add_(floor), value=-size)
        self._write(local)

    def catch_up(self, rows: torch.Tensor | None = None) -> None:
        """Bring rows of the table up to date; all of them if none are named."""
        last = self.last if rows is None else self.last[rows]
        # A row whose last step is 0 never had a gradient, and rests.
        behind = torch.nonzero((last != self.step) & (last != 0)).flatten()
        for part in (behind if rows is None else rows[behind]).split(20_000):
            self._write(self.read(part))

    def state(self) -> dict[str, torch.Tensor]:
        """Everything that a checkpoint must hold but the number of steps."""
        return {"weight": self.weight, "first": self.first, "second": self.second, "last": self.last}

    def restore(self, state: dict[str, torch.Tensor], step: int) -> None:
        """Go back to a checkpoint."""
        self.step = step
        for name, value in self.state().items():
            value.copy_(state[name])

    def _write(self, local: Rows) -> None:
        self.weight[local.rows] = local.weight
        self.first[local.rows], self.second[local.rows] = local.averages
        self.last[local.rows] = self.step


class RowwiseAdagrad:
    """AdaGrad on the rows of a table (Duchi et al. 2011): a row without a gradient rests, so nothing is made up for.

    Args:
        weight: Table [row, dimension], float32, changed in place.
        rates: Learning rate of each step [step], from step 1.
    """

    def __init__(self, weight: torch.Tensor, rates: np.ndarray) -> None:
        self.weight = weight
        self.squares = torch.full_like(weight, ADAGRAD_START)
        self.last = torch.zeros(len(weight), dtype=torch.int32)
        self.step = 0
        self._rates = rates

    def read(self, rows: torch.Tensor) -> Rows:
        """Copy rows [row], each once, int64."""
        return Rows.of(rows, self.weight, self.squares)

    def update(self, local: Rows, gradient: torch.Tensor) -> None:
        """Make one step on rows that `read` gave since the last step; arguments as of `RowwiseAdam.update`."""
        rate = float(self._rates[self.step])
        self.step += 1
        (squares,) = local.averages
        squares.addcmul_(gradient, gradient)
        local.weight.addcdiv_(gradient, squares.sqrt(), value=-rate)
        self.weight[local.rows] = local.weight
        self.squares[local.rows] = squares
        self.last[local.rows] = self.step

    def catch_up(self, rows: torch.Tensor | None = None) -> None:
        """Do nothing: every row is up to date."""

    def state(self) -> dict[str, torch.Tensor]:
        """Everything that a checkpoint must hold but the number of steps."""
        return {"weight": self.weight, "squares": self.squares, "last": self.last}

    def restore(self, state: dict[str, torch.Tensor], step: int) -> None:
        """Go back to a checkpoint."""
        self.step = step
        for name, value in self.state().items():
            value.copy_(state[name])


# By their names in `TrainConfig.optimizer`.
ROWWISE: dict[str, type[RowwiseAdam] | type[RowwiseAdagrad]] = {"adam": RowwiseAdam, "adagrad": RowwiseAdagrad}


@dataclass
class Rows:
    """A copy of some rows [row] of a table and of what the optimiser keeps of them, each [row, dimension]."""

    rows: torch.Tensor
    weight: torch.Tensor
    averages: tuple[torch.Tensor, ...]

    @classmethod
    def of(cls, rows: torch.Tensor, weight: torch.Tensor, *averages: torch.Tensor) -> Rows:
        """Copy rows of tables."""
        # `index_select` copies rows two and a half times as fast as indexing does.
        return cls(rows, weight.index_select(0, rows), tuple(table.index_select(0, rows) for table in averages))


@dataclass
class TrainedTable:
    """The rows of one encoder under training.

    Attributes:
        reader: Name of the reader whose rows it holds.
        optimizer: The table and its optimiser.
        initial: The table as it was, if it is pulled back to that.
        frozen: Keep row 0, of unknown units, at zeros.
        fixed: Keep all rows as they are.
    """

    reader: str
    optimizer: RowwiseAdam | RowwiseAdagrad
    initial: torch.Tensor | None = None
    frozen: bool = True
    fixed: bool = False
