"""The engine that trains averaging models on the CPU, by compiled steps that touch only the rows they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from paranmt_hf.encoders.composition import Composition
from paranmt_hf.text.tokens import Bags
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.losses import combined_loss, diverged
from paranmt_hf.training.mega_batch import minibatch, select_negatives
from paranmt_hf.training.optimizers import ADAGRAD_START, BETA1, BETA2, Schedule, learning_rates
from paranmt_hf.training.pair_store import MegaBatch
from paranmt_hf.training.step_kernels import (
    ONE,
    Decay,
    RowPull,
    Slopes,
    TrainedTable,
    Units,
    average,
    catch_up,
    find_units,
    follow_pull,
    margin_gradient,
    squared_norm,
    update,
)
from paranmt_hf.training.teacher_vectors import TeacherVectors

BETAS = np.float32(BETA1), np.float32(BETA2)


class CpuTable:
    """A table under training on the CPU, which is changed in place, with the state of its optimizer.

    Args:
        weight: The table [row, dimension]. If row 0, of unknown units, is zeros, it stays so.
        schedule: Step sizes and the optimizer.
        reader: Kind of the units of its rows.
        column: First column of a sentence vector that it fills.
        pull: lambda_w, the weight of the squared distance from the initial table (arXiv:1511.08198, equation 1).
        clip: Norm at which gradients are clipped; None for no limit.
        fixed: Whether its rows are not trained.
    """

    def __init__(
        self,
        weight: torch.Tensor,
        schedule: Schedule,
        *,
        reader: str = "word",
        column: int = 0,
        pull: float = 0.0,
        clip: float | None = None,
        fixed: bool = False,
    ) -> None:
        self.weight, self.reader, self.column, self.fixed = weight, reader, column, fixed
        self.device = weight.device
        self.frozen = not bool(weight[0].any())
        self.step = 0
        self._schedule, self._clip = schedule, clip
        self._is_adam = schedule.optimizer == "adam"
        array = weight.numpy()
        start = 0.0 if self._is_adam else ADAGRAD_START
        first = np.zeros_like(array) if self._is_adam else np.empty((0, array.shape[1]), np.float32)
        self._table = TrainedTable(array, first, np.full_like(array, start), np.zeros(len(array), np.int32))
        self._pull = RowPull(
            strength=np.float32(2 * pull),
            initial=array.copy() if pull else np.empty((0, array.shape[1]), np.float32),
            factors=np.ones(len(schedule.sizes) if pull else 0, np.float32),
            distances=np.zeros(len(array) if pull else 0, np.float32),
        )
        self._sizes = schedule.sizes.astype(np.float32)
        steps = np.arange(len(schedule.drift))
        self._decay = Decay(
            first=(BETA1**steps).astype(np.float32),
            second=(BETA2**steps).astype(np.float32),
            ratio=schedule.ratio**steps,
            drift=schedule.drift,
            floors=schedule.floors,
        )
        # Buffer of `find_units`, -1 between calls.
        self._place = np.full(len(array), -1, np.int32)
        # The distinct rows of the sentences that were encoded last, and the lengths of these sentences, float32.
        self._forward: tuple[Units, np.ndarray] | None = None

    def add_means(self, bags: Bags, sentences: np.ndarray, vectors: np.ndarray) -> None:
        """Add the mean of the rows of each chosen sentence to its vector.

        Args:
            bags: Rows of all sentences.
            sentences: Positions of the chosen sentences [sentence].
            vectors: Their vectors [sentence, all dimensions], float32, changed in place.
        """
        units: Units = find_units(bags.rows, bags.offsets, sentences, self._place)
        self._catch_up(units.rows)
        lengths = bags.offsets[sentences + 1] - bags.offsets[sentences]
        self._forward = units, np.maximum(lengths, 1).astype(np.float32)
        average(self._table.weight, bags.rows, bags.offsets, sentences, vectors, self.column)

    def slopes(self, gradient: np.ndarray, moves: np.ndarray) -> tuple[Units, Slopes]:
        """Find the rows to update, and the values from which their gradients are computed.

        Args:
            gradient: Gradient of the vectors that `add_means` added to last [sentence, all dimensions], float32.
            moves: Whether each vector has a gradient [sentence], bool.
        """
        assert self._forward is not None
        units, lengths = self._forward
        # The pull of rows that this step does not read is left out of the norm while it is only a small share of
        # `clip`. The distances are those after the last update by a sentence. Adam's momentum may have carried rows
        # further, so the share is set low.
        if self._clip and self._pull.strength**2 * self._pull.distances.sum() > 1e-8 * self._clip**2:
            # Otherwise the norm is that of all rows that have moved.
            moved = np.flatnonzero(self._table.last).astype(np.int32)
            others = np.setdiff1d(moved, units.rows, assume_unique=True)
            self._catch_up(others)
            bounds = np.concatenate([units.bounds, np.full(len(others), units.bounds[-1])])
            units = Units(np.concatenate([units.rows, others]), bounds, units.sentences)
        return units, Slopes(gradient, moves, self.column, lengths, self.frozen)

    def squared_norm(self, units: Units, slopes: Slopes) -> float:
        """Compute the squared norm of the gradient of the rows; arguments as returned by `slopes`."""
        return float(squared_norm(self._table, units, slopes, self._pull)) if not self.fixed else 0.0

    def update(self, units: Units, slopes: Slopes, factor: np.float32 = ONE) -> None:
        """Perform a step with the gradient times a factor.

        Args:
            units: The rows to update, as returned by `slopes`.
            slopes: The values of their gradients, as returned by `slopes`.
            factor: Factor of the gradient, below 1 if it is clipped.
        """
        self.step += 1
        if self.fixed:
            return
        if self._pull.strength:
            self._pull.factors[self.step] = factor
        size, floor = self._sizes[self.step], self._schedule.floors[self.step]
        update(self._table, units, slopes, self._pull, factor, self.step, BETAS, size, floor)

    def catch_up(self) -> None:
        """Apply the steps that rows have missed to all rows."""
        self._catch_up(np.flatnonzero(self._table.last).astype(np.int32))

    def _catch_up(self, rows: np.ndarray) -> None:
        """Apply the steps that some rows [row] have missed, because no sentence of a step had them."""
        if self._pull.strength:
            follow_pull(self._table, self._pull, rows, self.step, BETAS, self._sizes, self._schedule.floors)
        elif self._is_adam:
            catch_up(self._table, rows, self.step, self._decay)

    def state(self) -> dict[str, torch.Tensor]:
        """Return the tensors of a checkpoint by name: everything except the number of steps."""
        names = ("weight", "first", "second", "last") if self._is_adam else ("weight", "squares", "last")
        arrays = [array for array in self._table if len(array)]
        found = dict(zip(names, arrays, strict=True))
        if self._pull.strength:
            found |= {"factors": self._pull.factors, "distances": self._pull.distances}
        return {name: torch.from_numpy(array) for name, array in found.items()}

    def restore(self, state: dict[str, torch.Tensor], step: int) -> None:
        """Continue from the tensors of a checkpoint, which was written after `step` steps."""
        self.step = step
        for name, value in self.state().items():
            value.copy_(state[name])


@dataclass
class CpuEngine:
    """Trains averaging encoders, alone or combined, on the CPU.

    Attributes:
        tables: Table of each encoder.
        config: How they are trained.
        teacher: Vectors of the teacher whose similarities are learned too; None without one.
    """

    tables: Sequence[CpuTable]
    config: TrainConfig
    teacher: TeacherVectors | None = None

    @property
    def optimizers(self) -> Sequence[CpuTable]:
        """The tables, whose states are those of a checkpoint."""
        return self.tables

    def train_on(self, mega: MegaBatch, generator: np.random.Generator) -> list[float]:
        """Mine negatives once, then perform one step for each mini-batch.

        Args:
            mega: The mega-batch.
            generator: Draws random negatives.

        Returns:
            The loss of each step; mini-batches in which no pair has a negative have none.
        """
        config, chosen = self.config, None
        if config.margin_weight:
            vectors = None
            if config.negatives != "rand":
                vectors = torch.from_numpy(self.encode(mega))
                if not torch.isfinite(vectors.square().sum(dim=1)).all():
                    raise diverged(f"{self.tables[0].step + 1}", float("nan"))
            chosen = select_negatives(vectors, mega.keys, config, generator)
        losses = []
        for start in range(0, mega.pairs, config.batch_size):
            pairs = np.arange(start, min(start + config.batch_size, mega.pairs))
            sentences = minibatch(pairs, mega.pairs, chosen, one_sided=config.one_sided)
            if sentences.size:
                losses.append(self._step(mega, sentences))
        return losses

    def encode(self, mega: MegaBatch, sentences: np.ndarray | None = None) -> np.ndarray:
        """Encode sentences of a mega-batch into vectors [sentence, dimension].

        Args:
            mega: The mega-batch.
            sentences: Positions of the sentences [sentence]; None for all of them.
        """
        chosen = np.arange(2 * mega.pairs) if sentences is None else sentences
        width = max(table.column + table.weight.shape[1] for table in self.tables)
        vectors = np.zeros((len(chosen), width), np.float32)
        for table in self.tables:
            table.add_means(mega.bags[table.reader], chosen, vectors)
        return vectors

    def _step(self, mega: MegaBatch, sentences: np.ndarray) -> float:
        """Perform one step, and return its loss.

        Args:
            mega: The mega-batch.
            sentences: Positions of the sentences [role, pair]: s, s' and, with a margin loss, t and t'.
        """
        vectors = self.encode(mega, sentences.ravel())
        gradient, moves = np.empty_like(vectors), np.ones(len(vectors), np.bool_)
        if self.teacher is None:
            loss = margin_gradient(vectors, len(sentences), self.config.margin, gradient, moves)
        else:
            leaf = torch.from_numpy(vectors).requires_grad_()
            total = combined_loss(leaf, mega.keys, sentences, self.config, self.teacher)
            total.backward()
            assert leaf.grad is not None
            loss, gradient = float(total.detach()), leaf.grad.numpy()
        if not np.isfinite(loss):
            raise diverged(f"{self.tables[0].step + 1}", loss)
        parts = [table.slopes(gradient, moves) for table in self.tables]
        factor = ONE
        if self.config.clip is not None:
            squares = (table.squared_norm(*part) for table, part in zip(self.tables, parts, strict=True))
            norm = float(np.sqrt(sum(squares)))
            factor = np.float32(min(1.0, self.config.clip / norm)) if norm else ONE
        for table, part in zip(self.tables, parts, strict=True):
            table.update(*part, factor)
        return loss


def cpu_engine(
    composition: Composition, config: TrainConfig, pairs: int, teacher: TeacherVectors | None = None
) -> CpuEngine:
    """Create the engine of an averaging encoder, whose tables are trained in place.

    Args:
        composition: The parts of the encoder.
        config: How it is trained.
        pairs: Number of pairs of an epoch.
        teacher: Vectors of the teacher; None without one.
    """
    schedule, column, tables = Schedule(learning_rates(pairs, config), config.optimizer), 0, []
    for part in composition.parts:
        fixed = config.freeze_words and part.family.units == "word"
        pull = 0.0 if fixed else config.lambda_w
        weight = part.table.weight.data
        tables.append(
            CpuTable(weight, schedule, reader=part.unit_kind, column=column, pull=pull, clip=config.clip, fixed=fixed)
        )
        column += 0 if composition.mode == "add" else weight.shape[1]
    return CpuEngine(tables, config, teacher)
