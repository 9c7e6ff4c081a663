"""Adam and AdaGrad for tables on a device, of which a mega-batch moves few rows.

The rows of a mega-batch are copied into a small local table, all of whose rows move in every step: that is what dense
Adam does. The other rows rest, and make up for what they missed when a mega-batch reads them (`rowwise.py` has the
closed form). No number comes back to the host.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import torch

from paranmt_hf.training.rowwise import ADAGRAD_START, BETA1, BETA2, EPSILON

# Rows that are brought up to date together.
PART_ROWS = 1 << 16


class Schedule:
    """What changes from step to step, on the device, and the step that is being made.

    Args:
        rates: Learning rate of each step [step], from step 1.
        optimizer: `adam` or `adagrad`.
        device: Where.
    """

    def __init__(self, rates: np.ndarray, optimizer: str, device: torch.device) -> None:
        steps = np.arange(1, len(rates) + 1)
        sizes, floors = rates, np.zeros(len(rates))
        if optimizer == "adam":
            sizes = rates * np.sqrt(1 - BETA2**steps) / (1 - BETA1**steps)
            floors = EPSILON * np.sqrt(1 - BETA2**steps)
        # Of each step: minus the size of it, and what is added to the root of the second average [step, 2].
        self.steps = torch.from_numpy(np.stack([-sizes, floors], axis=1).astype(np.float32)).to(device)
        # drift[t] = sum over j >= 1 of ratio^j * size[t + j], up to the last step there is; see `RowwiseAdam`.
        self.ratio = BETA1 / math.sqrt(BETA2)
        drift = np.zeros(len(rates) + 1)
        for step in range(len(rates) - 1, -1, -1):
            drift[step] = self.ratio * (sizes[step] + drift[step + 1])
        self.drift = torch.from_numpy(drift).to(device)
        self.now = torch.zeros(2, device=device)

    def go_to(self, step: int) -> None:
        """Say which step is made next, counted from 1."""
        self.now.copy_(self.steps[step - 1])


class DeviceOptimizer:
    """A table on a device with what its optimiser keeps of each row; see `RowwiseAdam` for the steps.

    Args:
        weight: The model's table on the host [row, dimension], float32; it gets the trained rows in `catch_up`.
        schedule: The sizes of steps.
        device: Where the table is trained.
    """

    # Averages that are kept of each row: name, initial value, and value in rows of a local table that are no rows.
    KEPT: ClassVar[tuple[tuple[str, float, float], ...]]

    def __init__(self, weight: torch.Tensor, schedule: Schedule, device: torch.device) -> None:
        self.weight, self.schedule = weight, schedule
        self.table = weight.to(device, copy=True)
        self.averages = tuple(torch.full_like(self.table, start) for _, start, _ in self.KEPT)
        self.last = torch.zeros(len(weight), dtype=torch.int32, device=device)
        self.step = 0

    def read(self, rows: torch.Tensor, local: list[torch.Tensor]) -> None:
        """Copy rows [row] into the first rows of a local table and its averages, the steps they missed made up for."""
        for table, part in zip((self.table, *self.averages), local, strict=True):
            torch.index_select(table, 0, rows, out=part[: len(rows)])
        self._make_up([part[: len(rows)] for part in local], self.last.index_select(0, rows))
        for part, (_, _, blank) in zip(local[1:], self.KEPT, strict=True):
            part[len(rows) :].fill_(blank)
        local[0][len(rows) :].zero_()

    def write(self, rows: torch.Tensor, local: list[torch.Tensor]) -> None:
        """Copy the first rows of a local table back, as of now."""
        for table, part in zip((self.table, *self.averages), local, strict=True):
            table.index_copy_(0, rows, part[: len(rows)])
        self.last.index_fill_(0, rows, self.step)

    def catch_up(self) -> None:
        """Bring all rows up to date, and copy them to the host."""
        for start in range(0, len(self.table), PART_ROWS):
            part = slice(start, start + PART_ROWS)
            self._make_up([self.table[part], *(kept[part] for kept in self.averages)], self.last[part])
        # A row whose last step is 0 never had a gradient, and rests.
        self.last.masked_fill_(self.last > 0, self.step)
        self.weight.copy_(self.table)

    def state(self) -> dict[str, torch.Tensor]:
        """Everything that a checkpoint must hold but the number of steps; on the host."""
        named = {name: kept for (name, _, _), kept in zip(self.KEPT, self.averages, strict=True)}
        return {name: value.cpu() for name, value in ({"weight": self.table} | named | {"last": self.last}).items()}

    def restore(self, state: dict[str, torch.Tensor], step: int) -> None:
        """Go back to a checkpoint."""
        self.step = step
        self.table.copy_(state["weight"])
        self.last.copy_(state["last"])
        for (name, _, _), kept in zip(self.KEPT, self.averages, strict=True):
            kept.copy_(state[name])

    def update(self, local: list[torch.Tensor], gradient: torch.Tensor) -> None:
        """Make the schedule's step on a local table, given the gradient of each of its rows [row, dimension]."""
        raise NotImplementedError

    def _make_up(self, rows: list[torch.Tensor], last: torch.Tensor) -> None:
        raise NotImplementedError


class DeviceAdam(DeviceOptimizer):
    """Adam (Kingma & Ba 2015, algorithm 1)."""

    KEPT = (("first", 0.0, 0.0), ("second", 0.0, 0.0))

    def update(self, local: list[torch.Tensor], gradient: torch.Tensor) -> None:
        """Make the schedule's step."""
        weight, first, second = local
        size, floor = self.schedule.now
        first.lerp_(gradient, 1 - BETA1)
        second.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        weight.addcmul_(first / second.sqrt().add_(floor), size)

    def _make_up(self, rows: list[torch.Tensor], last: torch.Tensor) -> None:
        weight, first, second = rows
        drift, ratio = self.schedule.drift, self.schedule.ratio
        power = (self.step - last).double()
        total = drift.index_select(0, last.long()) - ratio**power * drift[self.step]
        # Row t - 1 of the schedule is step t; a row whose last step is 0 has zeros over this.
        floors = self.schedule.steps[:, 1].index_select(0, (last.long() - 1).clamp(min=0))
        weight.addcdiv_(first * -total.float()[:, None], second.sqrt().add_(floors[:, None]))
        first.mul_((BETA1**power).float()[:, None])
        second.mul_((BETA2**power).float()[:, None])


class DeviceAdagrad(DeviceOptimizer):
    """AdaGrad (Duchi et al. 2011): a row without a gradient rests."""

    KEPT = (("squares", ADAGRAD_START, 1.0),)

    def update(self, local: list[torch.Tensor], gradient: torch.Tensor) -> None:
        """Make the schedule's step."""
        weight, squares = local
        squares.addcmul_(gradient, gradient)
        weight.addcmul_(gradient / squares.sqrt(), self.schedule.now[0])

    def _make_up(self, rows: list[torch.Tensor], last: torch.Tensor) -> None:
        """Do nothing: every row is up to date."""


# By their names in `TrainConfig.optimizer`.
DEVICE_OPTIMIZERS: dict[str, type[DeviceOptimizer]] = {"adam": DeviceAdam, "adagrad": DeviceAdagrad}
