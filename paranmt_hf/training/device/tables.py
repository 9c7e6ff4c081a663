"""A table under training on a device: the rows of a mega-batch, and sentences as means of them.

All memory that a step reads and writes keeps its place and its size from one mega-batch to the next, with room to
spare, so that a step can be captured. It grows where a mega-batch needs more.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import torch
from torch.nn.functional import embedding_bag

from paranmt_hf.training.device.exchange import distinct
from paranmt_hf.training.device.optimizers import DeviceOptimizer
from paranmt_hf.training.device.plan import TablePlan

# Shapes are multiples of this, so that few of them occur.
GRAIN = 256
# Room that is left when memory is made larger.
ROOM = 1.1


@dataclass
class Units:
    """The units of some sentences, in a shape that does not depend on them.

    Attributes:
        rows: Local row of each unit [bound]; behind the last unit the row that is none.
        sentences: Which of the sentences each unit is in [bound]; behind the last unit their number.
        share: What a unit of each sentence contributes to its mean [sentence].
        count: Number of units, which may be larger than the bound.
    """

    rows: torch.Tensor
    sentences: torch.Tensor
    share: torch.Tensor
    count: torch.Tensor


class DeviceTable:
    """One encoder's table under training on a device.

    Args:
        reader: Name of the reader whose rows it holds.
        optimizer: The table and its optimiser.
        pull: Weight of the squared distance from the initial table (arXiv:1511.08198, equation 1); with it every row
            has a gradient in every step, so all rows take part.
        frozen: Keep row 0, of unknown units, at zeros.
        fixed: Keep all rows as they are.
    """

    def __init__(
        self, reader: str, optimizer: DeviceOptimizer, *, pull: float = 0.0, frozen: bool = True, fixed: bool = False
    ) -> None:
        self.reader, self.optimizer, self.frozen, self.fixed = reader, optimizer, frozen, fixed
        self._pull = pull
        self._device = optimizer.table.device
        # Most units of a step, and most distinct rows that a process sends in a step; 0 if that is not known yet.
        self.bound = self.row_bound = 0
        self._everything = torch.arange(len(optimizer.table), device=self._device) if pull else None
        self._initial = optimizer.table.clone() if pull else None
        self._zero = torch.zeros(1, dtype=torch.long, device=self._device)
        # The rows of the mega-batch with their averages; the local row of each unit; the sentences' units among them.
        self._local = [optimizer.table[:0] for _ in (optimizer.table, *optimizer.averages)]
        self._rows = self._ids = self._starts = self._lengths = self._places = self._zero[:0]
        self._sizes = 0, 0

    @property
    def shapes(self) -> Hashable:
        """Changes when the memory of a step or its shapes do."""
        return len(self._local[0]), len(self._ids), len(self._starts), self.bound, self.row_bound

    def load(self, plan: TablePlan, sent: tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]) -> None:
        """Begin a mega-batch: read its rows, and note the units of its sentences.

        Args:
            plan: What is known of it on the host.
            sent: Its rows, ids, starts and lengths on the device.
        """
        rows, ids, starts, lengths = sent
        if self._everything is not None:
            ids, rows = rows.index_select(0, ids), self._everything
        self._make_room(rows=len(rows), units=len(ids), sentences=len(starts))
        # A guess until it proves too small: negatives are as long as the pairs, and somewhat longer.
        self.raise_bound(int(2 * plan.own_units * ROOM) if not self.bound else plan.own_units)
        self._rows = rows.long()
        self.optimizer.read(self._rows, self._local)
        self._ids[: len(ids)].copy_(ids)
        self._starts[: len(starts)].copy_(starts)
        self._lengths[: len(lengths)].copy_(lengths)
        self._sizes = len(ids), len(starts)

    def write(self) -> None:
        """End a mega-batch: write its rows back."""
        self.optimizer.write(self._rows, self._local)

    def raise_bound(self, units: int) -> None:
        """Make room for so many units of a step."""
        if units > self.bound:
            self.bound = _round_up(units)
            self._places = torch.arange(self.bound, device=self._device)

    def fit_row_bound(self, rows: int) -> None:
        """Have so many rows of a step sent, and some more; from the first time on only if more are needed."""
        if not self.row_bound or rows > self.row_bound:
            self.row_bound = _round_up(int(rows * ROOM))

    def encode_all(self) -> torch.Tensor:
        """Encode all sentences of the mega-batch [sentence, dimension]."""
        units, sentences = self._sizes
        return embedding_bag(self._ids[:units], self._local[0], self._starts[:sentences], mode="mean")

    def units_of(self, sentences: torch.Tensor) -> Units:
        """List the units of some sentences of the mega-batch, by their positions [sentence]."""
        lengths = self._lengths.index_select(0, sentences)
        ends = lengths.cumsum(0)
        owner = torch.searchsorted(ends, self._places, right=True)
        # Unit p of those listed is unit p + shift of the mega-batch, a shift for each sentence.
        shifts = torch.cat([self._starts.index_select(0, sentences) - (ends - lengths), self._zero])
        where = self._places + shifts.index_select(0, owner)
        # The last of the ids is of the row that is none.
        where = where.masked_fill(owner == len(sentences), len(self._ids) - 1)
        return Units(self._ids.index_select(0, where), owner, lengths.clamp(min=1).reciprocal(), ends[-1])

    def mean(self, units: Units) -> torch.Tensor:
        """Encode sentences: means of their rows [sentence, dimension]."""
        weight = self._local[0]
        sums = weight.new_zeros(len(units.share) + 1, weight.shape[1])
        sums.index_add_(0, units.sentences, weight.index_select(0, units.rows))
        return sums[:-1] * units.share[:, None]

    def gradient(self, units: Units, gradient: torch.Tensor) -> torch.Tensor:
        """Gradient of the local rows under some sentences [row, dimension] from theirs [sentence, dimension]."""
        rows = self.no_gradient()
        rows.index_add_(0, units.rows, _of_units(units, gradient))
        return rows

    def no_gradient(self) -> torch.Tensor:
        """Gradient of the local rows under no sentence [row, dimension]."""
        return torch.zeros_like(self._local[0])

    def sparse_gradient(
        self, units: Units | None, gradient: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """List the distinct rows under some sentences with their gradients, as `gradient` gives those of all rows.

        Args:
            units: The units of the sentences; None if there is none.
            gradient: Gradient of the sentences [sentence, dimension].

        Returns:
            Rows [row], as many in any case, their gradient [row, dimension], and how many there are; see `distinct`.
        """
        bound, weight = self.row_bound or self.bound, self._local[0]
        rows = units.rows if units is not None else self._zero[:0]
        listed, places, count = distinct(rows, len(weight), bound)
        own = weight.new_zeros(bound + 1, weight.shape[1])
        if units is not None and gradient is not None:
            own.index_add_(0, places.index_select(0, rows), _of_units(units, gradient))
        return listed, own[:bound], count

    def complete(self, gradient: torch.Tensor) -> None:
        """Add to the gradient of the local rows [row, dimension] what is no matter of sentences."""
        if self._initial is not None:
            pulled = slice(len(self._initial))
            gradient[pulled].add_(self._local[0][pulled] - self._initial, alpha=2 * self._pull)
        if self.frozen:
            gradient[0].zero_()

    def update(self, gradient: torch.Tensor) -> None:
        """Move the local rows by their gradient [row, dimension]."""
        self.optimizer.update(self._local, gradient)

    def _make_room(self, *, rows: int, units: int, sentences: int) -> None:
        """Make memory larger where it is too small; what is in it is lost."""
        table = self.optimizer.table
        if rows >= len(self._local[0]):
            # One row more than there are: the row that is none. Ids name its place, so they are made anew too.
            size = min(_round_up(int(rows * ROOM)), len(table)) + 1
            self._local = [table.new_zeros(size, table.shape[1]) for _ in self._local]
            units, self._ids = max(units, len(self._ids) - 1), self._ids[:0]
        if units >= len(self._ids):
            none = len(self._local[0]) - 1
            self._ids = torch.full((_round_up(int(units * ROOM)) + 1,), none, device=self._device)
        if sentences > len(self._starts):
            self._starts, self._lengths = torch.zeros(2, sentences, dtype=torch.long, device=self._device)


def _of_units(units: Units, gradient: torch.Tensor) -> torch.Tensor:
    """Gradient of each unit [bound, dimension] from that of the sentences [sentence, dimension]."""
    share = torch.cat([gradient * units.share[:, None], gradient.new_zeros(1, gradient.shape[1])])
    return share.index_select(0, units.sentences)


def _round_up(number: int) -> int:
    return -(-number // GRAIN) * GRAIN
