"""Steps of averaging encoders by compiled loops: what `averaging.py` does with torch, in less than half the time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from paranmt_hf.text.tokens import Bags
from paranmt_hf.training.rowwise import BETA1, BETA2, RowwiseAdam, TrainedTable
from paranmt_hf.training.step_kernels import (
    Decay,
    Table,
    Units,
    adam,
    average,
    catch_up,
    find_units,
    margin_gradient,
)

BETAS = np.float32(BETA1), np.float32(BETA2)


class CompiledTable:
    """A table with its optimiser, as the compiled loops see it; both work in the same memory.

    Args:
        trained: The table, with row-wise Adam.
        column: Where its dimensions begin in a sentence vector.
    """

    def __init__(self, trained: TrainedTable, column: int) -> None:
        assert isinstance(trained.optimizer, RowwiseAdam)
        self.trained, self.optimizer, self.column = trained, trained.optimizer, column
        state = self.optimizer.state()
        self._table = Table(*(state[name].numpy() for name in Table._fields))
        steps = np.arange(len(self.optimizer.drift))
        self._decay = Decay(
            first=(BETA1**steps).astype(np.float32),
            second=(BETA2**steps).astype(np.float32),
            ratio=self.optimizer.ratio**steps,
            drift=self.optimizer.drift.numpy(),
            floors=self.optimizer.floors.numpy(),
        )
        # Numbers of rows while they are counted; -1 between calls.
        self._place = np.full(len(self._table.weight), -1, np.int32)

    @property
    def dimension(self) -> int:
        """Number of its dimensions."""
        return self._table.weight.shape[1]

    def find(self, bags: Bags, sentences: np.ndarray) -> Units:
        """Find the rows of some sentences [sentence] and bring them up to date."""
        units: Units = find_units(bags.rows, bags.offsets, sentences, self._place)
        self.catch_up(units.rows)
        return units

    def catch_up(self, rows: np.ndarray) -> None:
        """Bring rows [row] of the table up to date."""
        catch_up(self._table, rows, self.optimizer.step, self._decay)

    def add_means(self, bags: Bags, sentences: np.ndarray, vectors: np.ndarray) -> None:
        """Add the mean of each sentence's rows, which are up to date, to its vector [sentence, dimension]."""
        average(self._table.weight, bags.rows, bags.offsets, sentences, vectors, self.column)

    def update(self, units: Units, lengths: np.ndarray, gradient: np.ndarray, moves: np.ndarray) -> None:
        """Make a step.

        Args:
            units: What `find` gave since the last step.
            lengths: Number of units of each sentence [sentence], float32, at least 1.
            gradient: Gradient of each sentence's vector [sentence, all dimensions], float32.
            moves: Which sentences have one [sentence], bool.
        """
        optimizer = self.optimizer
        optimizer.step += 1
        if self.trained.fixed:
            return
        size = np.float32(optimizer.sizes[optimizer.step])
        floor = np.float32(optimizer.floors[optimizer.step])
        frozen = self.trained.frozen
        adam(self._table, units, gradient, moves, self.column, lengths, frozen, optimizer.step, BETAS, size, floor)


@dataclass
class _Forward:
    """What a step needs again of its forward half: the rows of each table, and the lengths of its sentences."""

    units: list[Units] = field(default_factory=list)
    lengths: list[np.ndarray] = field(default_factory=list)


class CompiledSteps:
    """The two halves of a step over all tables of an encoder.

    Args:
        tables: The tables, each with row-wise Adam and none pulled back to where it was.
        mode: How their vectors are combined, `add` or `concatenate`.
    """

    def __init__(self, tables: Sequence[TrainedTable], mode: str) -> None:
        self.tables: list[CompiledTable] = []
        self.width = 0
        for table in tables:
            compiled = CompiledTable(table, 0 if mode == "add" else self.width)
            self.width = max(self.width, compiled.column + compiled.dimension)
            self.tables.append(compiled)
        self._forward = _Forward()

    def encode(self, bags: Mapping[str, Bags], sentences: np.ndarray) -> np.ndarray:
        """Encode sentences with the weights of now, and remember their rows for `update`.

        Args:
            bags: Rows of all sentences under each reader.
            sentences: The chosen sentences [sentence], int64.

        Returns:
            Vectors [sentence, dimension], float32.
        """
        self._forward = _Forward()
        vectors = np.zeros((len(sentences), self.width), np.float32)
        for table in self.tables:
            own = bags[table.trained.reader]
            self._forward.units.append(table.find(own, sentences))
            lengths = own.offsets[sentences + 1] - own.offsets[sentences]
            self._forward.lengths.append(np.maximum(lengths, 1).astype(np.float32))
            table.add_means(own, sentences, vectors)
        return vectors

    def update(self, gradient: np.ndarray, moves: np.ndarray) -> None:
        """Make a step with the gradient of the vectors that `encode` gave last.

        Args:
            gradient: Gradient of each vector [sentence, dimension], float32.
            moves: Which vectors have one [sentence], bool.
        """
        for table, units, lengths in zip(self.tables, self._forward.units, self._forward.lengths, strict=True):
            table.update(units, lengths, gradient, moves)


def margin_step(vectors: np.ndarray, roles: int, margin: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Compute the margin loss, `margin_loss`, and its gradient.

    Args:
        vectors: Vectors of s, s', t and, with two sides, t' of each pair [role x pair, dimension], float32.
        roles: 4, or 3 without t'.
        margin: d.

    Returns:
        The loss; the gradient of each vector [role x pair, dimension], float32; which of them have one
        [role x pair], bool: that of the others is undefined.
    """
    gradient, moves = np.empty_like(vectors), np.empty(len(vectors), np.bool_)
    return margin_gradient(vectors, roles, margin, gradient, moves), gradient, moves
