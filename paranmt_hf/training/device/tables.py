"""A table under training on a device: the rows of a mega-batch, and sentences as means of rows.

The rows of a mega-batch are copied into a small local table, all of whose rows move in every step, as with dense Adam.
Other rows are not updated; the steps that they miss are applied when a mega-batch reads them (see `Schedule`). Nothing
is copied to the host.

All memory that a step reads and writes keeps its place and its size from one mega-batch to the next, so that a step
can be captured. It has spare room, and it grows if a mega-batch needs more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch.nn.functional import embedding_bag

from paranmt_hf.training.optimizers import ADAGRAD_START, BETA1, BETA2, Schedule

GRAIN = 256  # Sizes are rounded up to multiples of this, so that few different shapes occur
ROOM = 1.1  # Factor by which memory is made larger than needed


class DeviceSchedule:
    """The values of a `Schedule` on a device, with those of the current step."""

    def __init__(self, schedule: Schedule, device: torch.device) -> None:
        self.optimizer, self.ratio = schedule.optimizer, schedule.ratio
        # For each step minus its size, and the number that Adam adds to the root of the second moment [step + 1, 2].
        steps = np.stack([-schedule.sizes, schedule.floors], axis=1).astype(np.float32)
        self.steps = torch.from_numpy(steps).to(device)
        self.drift = torch.from_numpy(schedule.drift).to(device)
        self.now = torch.zeros(2, device=device)


class DeviceOptimizer(ABC):
    """A table on a device with the state of its optimizer.

    Args:
        weight: The model's table on the host [row, dimension], float32; `catch_up` copies the trained rows into it.
        schedule: The schedule.
        device: The device.
    """

    # The tensors of the optimizer's state: name, initial value, and value in unused rows of a local table
    KEPT: ClassVar[tuple[tuple[str, float, float], ...]]

    def __init__(self, weight: torch.Tensor, schedule: DeviceSchedule, device: torch.device) -> None:
        self.weight, self.schedule = weight, schedule
        self.device, self.table = device, weight.to(device, copy=True)
        self.averages = tuple(torch.full_like(self.table, start) for _, start, _ in self.KEPT)
        self.last = torch.zeros(len(weight), dtype=torch.int32, device=device)
        self.step = 0

    def read(self, rows: torch.Tensor, local: list[torch.Tensor]) -> None:
        """Copy rows, with the steps that they have missed applied, into the first rows of a local table and its state.

        Args:
            rows: Rows of the table [row].
            local: The local table and its state.
        """
        for table, part in zip((self.table, *self.averages), local, strict=True):
            torch.index_select(table, 0, rows, out=part[: len(rows)])
        self._catch_up_rows([part[: len(rows)] for part in local], self.last.index_select(0, rows))
        for part, (_, _, blank) in zip(local[1:], self.KEPT, strict=True):
            part[len(rows) :].fill_(blank)
        local[0][len(rows) :].zero_()

    def write(self, rows: torch.Tensor, local: list[torch.Tensor]) -> None:
        """Copy the first rows of a local table and its state back to the rows [row] that `read` was given."""
        for table, part in zip((self.table, *self.averages), local, strict=True):
            table.index_copy_(0, rows, part[: len(rows)])
        self.last.index_fill_(0, rows, self.step)

    def catch_up(self) -> None:
        """Apply the steps that rows have missed to all rows, and copy these to the host."""
        rows = 1 << 16
        for start in range(0, len(self.table), rows):
            part = slice(start, start + rows)
            self._catch_up_rows([self.table[part], *(kept[part] for kept in self.averages)], self.last[part])
        # A row whose last step is 0 never had a gradient, so it has not missed any step.
        self.last.masked_fill_(self.last > 0, self.step)
        self.weight.copy_(self.table)

    def state(self) -> dict[str, torch.Tensor]:
        """Return the tensors of a checkpoint by name, on the host: everything except the number of steps."""
        named = {name: kept for (name, _, _), kept in zip(self.KEPT, self.averages, strict=True)}
        return {name: value.cpu() for name, value in ({"weight": self.table} | named | {"last": self.last}).items()}

    def restore(self, state: dict[str, torch.Tensor], step: int) -> None:
        """Continue from the tensors of a checkpoint, which was written after `step` steps."""
        self.step = step
        self.table.copy_(state["weight"])
        self.last.copy_(state["last"])
        for (name, _, _), kept in zip(self.KEPT, self.averages, strict=True):
            kept.copy_(state[name])

    @abstractmethod
    def update(self, local: list[torch.Tensor], gradient: torch.Tensor) -> None:
        """Perform the current step of the schedule on a local table.

        Args:
            local: The local table and its state, changed in place.
            gradient: Gradient of each of its rows [row, dimension].
        """

    def _catch_up_rows(self, rows: list[torch.Tensor], last: torch.Tensor) -> None:  # noqa: B027
        """Apply the steps after the last one of each row, for optimizers that also move rows without a gradient.

        Args:
            rows: The rows and their state, changed in place.
            last: The step up to which each row is up to date [row].
        """


class DeviceAdam(DeviceOptimizer):
    """Adam (Kingma & Ba 2015, algorithm 1)."""

    KEPT = (("first", 0.0, 0.0), ("second", 0.0, 0.0))

    def update(self, local: list[torch.Tensor], gradient: torch.Tensor) -> None:
        """See `DeviceOptimizer.update`."""
        weight, first, second = local
        size, floor = self.schedule.now
        first.lerp_(gradient, 1 - BETA1)
        second.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        weight.addcmul_(first / second.sqrt().add_(floor), size)

    def _catch_up_rows(self, rows: list[torch.Tensor], last: torch.Tensor) -> None:
        weight, first, second = rows
        drift, ratio = self.schedule.drift, self.schedule.ratio
        power = (self.step - last).double()
        total = drift.index_select(0, last.long()) - ratio**power * drift[self.step]
        floors = self.schedule.steps[:, 1].index_select(0, last.long())
        weight.addcdiv_(first * -total.float()[:, None], second.sqrt().add_(floors[:, None]))
        first.mul_((BETA1**power).float()[:, None])
        second.mul_((BETA2**power).float()[:, None])


class DeviceAdagrad(DeviceOptimizer):
    """AdaGrad (Duchi et al. 2011); rows without a gradient are not updated."""

    KEPT = (("squares", ADAGRAD_START, 1.0),)

    def update(self, local: list[torch.Tensor], gradient: torch.Tensor) -> None:
        """See `DeviceOptimizer.update`."""
        weight, squares = local
        squares.addcmul_(gradient, gradient)
        weight.addcmul_(gradient / squares.sqrt(), self.schedule.now[0])


@dataclass
class StepUnits:
    """The units of the sentences of a step, padded to a fixed number of units, the bound."""

    rows: torch.Tensor  # Local row of each unit [bound]; padding has the unused row
    sentences: torch.Tensor  # Number of the sentence of each unit [bound]; padding has the number of sentences
    share: torch.Tensor  # Weight of each unit of a sentence in its mean [sentence]
    count: torch.Tensor  # Number of units, a scalar; if it is larger than the bound, units are missing


class DeviceTable:
    """The table of one encoder under training on a device.

    Args:
        reader: Kind of the units of its rows.
        optimizer: The table and the state of its optimizer.
        pull: lambda_w, the weight of the squared distance from the initial table (arXiv:1511.08198, equation 1). If it
            is not 0, every row has a gradient in every step.
        frozen: Whether row 0, of unknown units, stays zeros.
        fixed: Whether no row is trained.
    """

    def __init__(
        self, reader: str, optimizer: DeviceOptimizer, *, pull: float = 0.0, frozen: bool = True, fixed: bool = False
    ) -> None:
        self.reader, self.optimizer, self.frozen, self.fixed = reader, optimizer, frozen, fixed
        self._pull = pull
        self._device = optimizer.table.device
        # Maximum number of units of a step; 0 before the first mega-batch.
        self.bound = 0
        self._everything = torch.arange(len(optimizer.table), device=self._device) if pull else None
        self._initial = optimizer.table.clone() if pull else None
        self._zero = torch.zeros(1, dtype=torch.long, device=self._device)
        # Of the current mega-batch: the local table and its state, the local row of each unit, and the first unit and
        # the number of units of each sentence.
        self._local = [optimizer.table[:0] for _ in (optimizer.table, *optimizer.averages)]
        self._rows = self._ids = self._starts = self._lengths = self._places = self._zero[:0]
        self._sizes = 0, 0

    @property
    def shapes(self) -> Hashable:
        """A key that changes when the memory or the shapes of a step change."""
        return len(self._local[0]), len(self._ids), len(self._starts), self.bound

    def load(
        self, own_units: int, rows: torch.Tensor, ids: torch.Tensor, starts: torch.Tensor, lengths: torch.Tensor
    ) -> None:
        """Begin a mega-batch: read its rows, and the units of its sentences; arguments as in `LocalRows`."""
        if self._everything is not None:
            ids, rows = rows.index_select(0, ids), self._everything
        self._make_room(rows=len(rows), units=len(ids), sentences=len(starts))
        # The first bound is a guess: with negatives, which tend to be longer, twice the units of the pairs and some
        # more.
        self.raise_bound(int(2 * own_units * ROOM) if not self.bound else own_units)
        self._rows = rows.long()
        self.optimizer.read(self._rows, self._local)
        self._ids[: len(ids)].copy_(ids)
        self._starts[: len(starts)].copy_(starts)
        self._lengths[: len(lengths)].copy_(lengths)
        self._sizes = len(ids), len(starts)

    def write(self) -> None:
        """End a mega-batch: write its trained rows back to the table."""
        self.optimizer.write(self._rows, self._local)

    def raise_bound(self, units: int) -> None:
        """Raise the maximum number of units of a step to at least `units`."""
        if units > self.bound:
            self.bound = _round_up(units)
            self._places = torch.arange(self.bound, device=self._device)

    def encode_all(self) -> torch.Tensor:
        """Encode all sentences of the mega-batch into vectors [sentence, dimension]."""
        units, sentences = self._sizes
        return embedding_bag(self._ids[:units], self._local[0], self._starts[:sentences], mode="mean")

    def units_of(self, sentences: torch.Tensor) -> StepUnits:
        """List the units of some sentences of the mega-batch, given by position [sentence]."""
        lengths = self._lengths.index_select(0, sentences)
        ends = lengths.cumsum(0)
        owner = torch.searchsorted(ends, self._places, right=True)
        # Unit p of the list is unit p + shift of the mega-batch, where each sentence has its own shift.
        shifts = torch.cat([self._starts.index_select(0, sentences) - (ends - lengths), self._zero])
        where = self._places + shifts.index_select(0, owner)
        # Padding reads the last id, which is the unused row.
        where = where.masked_fill(owner == len(sentences), len(self._ids) - 1)
        return StepUnits(self._ids.index_select(0, where), owner, lengths.clamp(min=1).reciprocal(), ends[-1])

    def mean(self, units: StepUnits) -> torch.Tensor:
        """Compute the means of the rows of sentences [sentence, dimension]."""
        weight = self._local[0]
        sums = weight.new_zeros(len(units.share) + 1, weight.shape[1])
        sums.index_add_(0, units.sentences, weight.index_select(0, units.rows))
        return sums[:-1] * units.share[:, None]

    def gradient(self, units: StepUnits, gradient: torch.Tensor) -> torch.Tensor:
        """Compute the gradient of the local rows [row, dimension].

        Args:
            units: The units of the sentences.
            gradient: Gradient of the vectors of the sentences [sentence, dimension].
        """
        weight = self._local[0]
        share = torch.cat([gradient * units.share[:, None], gradient.new_zeros(1, gradient.shape[1])])
        rows = torch.zeros_like(weight)
        rows.index_add_(0, units.rows, share.index_select(0, units.sentences))
        if self._initial is not None:
            pulled = slice(len(self._initial))
            rows[pulled].add_(weight[pulled] - self._initial, alpha=2 * self._pull)
        if self.frozen:
            rows[0].zero_()
        return rows

    def update(self, gradient: torch.Tensor) -> None:
        """Update the local rows, given their gradient [row, dimension]."""
        self.optimizer.update(self._local, gradient)

    def _make_room(self, *, rows: int, units: int, sentences: int) -> None:
        """Enlarge buffers that are too small for these numbers; their content is lost."""
        table = self.optimizer.table
        if rows >= len(self._local[0]):
            # There is one more row, the unused one. Padding in the ids holds its position, so they are allocated
            # again.
            size = min(_round_up(int(rows * ROOM)), len(table)) + 1
            self._local = [table.new_zeros(size, table.shape[1]) for _ in self._local]
            units, self._ids = max(units, len(self._ids) - 1), self._ids[:0]
        if units >= len(self._ids):
            none = len(self._local[0]) - 1
            self._ids = torch.full((_round_up(int(units * ROOM)) + 1,), none, device=self._device)
        if sentences > len(self._starts):
            self._starts, self._lengths = torch.zeros(2, sentences, dtype=torch.long, device=self._device)


def _round_up(number: int) -> int:
    """Round a number up to a multiple of GRAIN."""
    return -(-number // GRAIN) * GRAIN
