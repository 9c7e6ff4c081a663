"""The engine of averaging models on the CPU: compiled steps that read and write only the rows of their sentences."""

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
from paranmt_hf.training.teacher import TeacherVectors

BETAS = np.float32(BETA1), np.float32(BETA2)


class CpuTable:
    """The table of one encoder [row, dimension] under training, changed in place, with the state of its optimizer.

    It begins at `column` of a sentence vector. `pull` is lambda_w, the weight of the squared distance from the initial
    table (arXiv:1511.08198, equation 1), and `clip` the norm at which gradients are clipped. Rows are not trained if
    it is `fixed`, and row 0, of unknown units, stays zeros if it is `frozen`.
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
        # Numbers of rows while they are counted; -1 between calls.
        self._place = np.full(len(array), -1, np.int32)
        # Of the sentences that were encoded last their distinct rows, and their lengths [sentence], float32.
        self._forward: tuple[Units, np.ndarray] | None = None

    def add_means(self, bags: Bags, sentences: np.ndarray, vectors: np.ndarray) -> None:
        """Add the mean of each chosen sentence's rows to its vector [sentence, all dimensions], float32."""
        units: Units = find_units(bags.rows, bags.offsets, sentences, self._place)
        self._catch_up(units.rows)
        lengths = bags.offsets[sentences + 1] - bags.offsets[sentences]
        self._forward = units, np.maximum(lengths, 1).astype(np.float32)
        average(self._table.weight, bags.rows, bags.offsets, sentences, vectors, self.column)

    def slopes(self, gradient: np.ndarray, moves: np.ndarray) -> tuple[Units, Slopes]:
        """Find the rows to update, and the factors of their gradient.

        The gradient is of the vectors that `add_means` added to last [sentence, all dimensions], float32; `moves`
        tells which vectors have one [sentence], bool.
        """
        assert self._forward is not None
        units, lengths = self._forward
        # Up to a small share of `clip` the pull of rows that a step does not read is left out of the norm. It is
        # computed from where sentences left a row, from which Adam's momentum may carry it on, hence the margin.
        if self._clip and self._pull.strength**2 * self._pull.distances.sum() > 1e-8 * self._clip**2:
            # The norm is that of all rows that have moved.
            moved = np.flatnonzero(self._table.last).astype(np.int32)
            others = np.setdiff1d(moved, units.rows, assume_unique=True)
            self._catch_up(others)
            bounds = np.concatenate([units.bounds, np.full(len(others), units.bounds[-1])])
            units = Units(np.concatenate([units.rows, others]), bounds, units.sentences)
        return units, Slopes(gradient, moves, self.column, lengths, self.frozen)

    def squared_norm(self, units: Units, slopes: Slopes) -> float:
        """Squared norm of the gradient of the rows."""
        return float(squared_norm(self._table, units, slopes, self._pull)) if not self.fixed else 0.0

    def update(self, units: Units, slopes: Slopes, factor: np.float32 = ONE) -> None:
        """Perform a step with the gradient times a factor; arguments as returned by `slopes`."""
        self.step += 1
        if self.fixed:
            return
        if self._pull.strength:
            self._pull.factors[self.step] = factor
        size, floor = self._sizes[self.step], self._schedule.floors[self.step]
        update(self._table, units, slopes, self._pull, factor, self.step, BETAS, size, floor)

    def catch_up(self) -> None:
        """Apply missed steps to all rows."""
        self._catch_up(np.flatnonzero(self._table.last).astype(np.int32))

    def _catch_up(self, rows: np.ndarray) -> None:
        if self._pull.strength:
            follow_pull(self._table, self._pull, rows, self.step, BETAS, self._sizes, self._schedule.floors)
        elif self._is_adam:
            catch_up(self._table, rows, self.step, self._decay)

    def state(self) -> dict[str, torch.Tensor]:
        """Everything that a checkpoint must hold except the number of steps."""
        names = ("weight", "first", "second", "last") if self._is_adam else ("weight", "squares", "last")
        arrays = [array for array in self._table if len(array)]
        found = dict(zip(names, arrays, strict=True))
        if self._pull.strength:
            found |= {"factors": self._pull.factors, "distances": self._pull.distances}
        return {name: torch.from_numpy(array) for name, array in found.items()}

    def restore(self, state: dict[str, torch.Tensor], step: int) -> None:
        """Restore a checkpoint."""
        self.step = step
        for name, value in self.state().items():
            value.copy_(state[name])


@dataclass
class CpuEngine:
    """Trains averaging encoders, alone or combined, on the CPU; with a teacher, on similarities too."""

    tables: Sequence[CpuTable]
    config: TrainConfig
    teacher: TeacherVectors | None = None

    @property
    def optimizers(self) -> Sequence[CpuTable]:
        """Optimizer states of a checkpoint."""
        return self.tables

    def train_on(self, mega: MegaBatch, generator: np.random.Generator) -> list[float]:
        """Mine negatives once, then perform one step for each mini-batch; returns the loss of each."""
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
        """Encode sentences [sentence] of a mega-batch, by default all of them: vectors [sentence, dimension]."""
        chosen = np.arange(2 * mega.pairs) if sentences is None else sentences
        width = max(table.column + table.weight.shape[1] for table in self.tables)
        vectors = np.zeros((len(chosen), width), np.float32)
        for table in self.tables:
            table.add_means(mega.bags[table.reader], chosen, vectors)
        return vectors

    def _step(self, mega: MegaBatch, sentences: np.ndarray) -> float:
        """Perform one step on sentences [role, pair]: s, s' and, with a margin loss, t and t'."""
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
    """Create the engine of an averaging encoder, whose tables are trained in place, for epochs of some pairs."""
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
