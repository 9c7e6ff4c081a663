"""The training loop of averaging encoders on the CPU: a step reads and writes only the rows of its sentences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn.functional import embedding_bag

from paranmt_hf.errors import DivergedError
from paranmt_hf.text.tokens import Bags
from paranmt_hf.training.arithmetic import Arithmetic, choose
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.error_negatives import with_errors
from paranmt_hf.training.margin_loss import margin_loss
from paranmt_hf.training.megabatch import mine, select
from paranmt_hf.training.optimizers import clip
from paranmt_hf.training.pair_store import MegaBatch
from paranmt_hf.training.rowwise import Rows, TrainedTable
from paranmt_hf.training.teacher import TeacherVectors, teacher_loss

if TYPE_CHECKING:
    from paranmt_hf.training.compiled import CompiledSteps


@dataclass
class _Step:
    """The rows of one table in one step, and how sentences are made of them.

    Attributes:
        local: The distinct rows.
        positions: Position in `local` of each unit [unit].
        offsets: Bounds of the sentences [sentence + 1].
        by_row: Sentence of each unit in the order of the rows [unit].
        row_bounds: Bounds of the rows in that order [row + 1].
        counts: Units of each sentence [sentence, 1].
    """

    local: Rows
    positions: torch.Tensor
    offsets: torch.Tensor
    by_row: torch.Tensor
    row_bounds: torch.Tensor
    counts: torch.Tensor


class AveragingTrainer:
    """Trains averaging encoders, alone or combined, with a row-wise optimiser.

    Args:
        tables: The encoders' tables.
        mode: How their vectors are combined, `add` or `concatenate`.
        config: The settings.
        teacher: The teacher's vectors, if similarities are learned too.
        arithmetic: With what it computes; chosen by the settings and what is there, if left out.
    """

    def __init__(
        self,
        tables: list[TrainedTable],
        mode: str,
        config: TrainConfig,
        teacher: TeacherVectors | None = None,
        arithmetic: Arithmetic | None = None,
    ) -> None:
        self.tables, self.mode, self.config, self.teacher = tables, mode, config, teacher
        self.compute_with(arithmetic or choose(config))

    def compute_with(self, arithmetic: Arithmetic) -> None:
        """Compute in another way from now on: as a checkpoint says."""
        self.arithmetic = arithmetic
        self._compiled: CompiledSteps | None = None
        self._mine = mine
        if arithmetic.steps == "compiled":
            from paranmt_hf.training.compiled import CompiledSteps

            self._compiled = CompiledSteps(self.tables, self.mode)
        if arithmetic.mining != "torch":
            from paranmt_hf.training.tile_mining import mine_tiles

            self._mine = partial(mine_tiles, precision=arithmetic.mining)

    def train_on(self, mega: MegaBatch, generator: np.random.Generator) -> list[float]:
        """Mine negatives once, then make one step for each mini-batch.

        Args:
            mega: The pairs.
            generator: For random negatives.

        Returns:
            Loss of each step.

        Raises:
            DivergedError: A loss is not a number.
        """
        config = self.config
        chosen = None
        if config.margin_weight:
            wanted = config.negatives != "rand" or mega.errors is not None
            vectors = self.encode(mega) if wanted else None
            if vectors is not None and not torch.isfinite(vectors.square().sum(dim=1)).all():
                raise diverged(f"{self.tables[0].optimizer.step + 1}", float("nan"))
            pool = None if vectors is None else vectors[: len(mega.keys)]
            one_sided, way = config.one_sided, config.negatives
            chosen = select(pool, mega.keys, way, generator, one_sided=one_sided, hardest=self._mine)
            if vectors is not None and mega.errors is not None:
                chosen = with_errors(chosen, vectors, mega.errors)
        losses = []
        for start in range(0, mega.pairs, config.batch_size):
            pairs = np.arange(start, min(start + config.batch_size, mega.pairs))
            sentences = minibatch(pairs, mega.pairs, chosen, one_sided=config.one_sided)
            if sentences.size:
                losses.append(self._step(mega, sentences))
        return losses

    def encode(self, mega: MegaBatch) -> torch.Tensor:
        """Encode all sentences of a mega-batch with the present weights [sentence, dimension]."""
        if self._compiled is not None:
            return torch.from_numpy(self._compiled.encode(mega.bags, np.arange(mega.sentences)))
        vectors = []
        for table in self.tables:
            bags = mega.bags[table.reader]
            used = np.zeros(len(table.optimizer.weight), bool)
            used[bags.rows] = True
            table.optimizer.catch_up(torch.from_numpy(np.flatnonzero(used)))
            vectors.append(_mean(torch.from_numpy(bags.rows), table.optimizer.weight, torch.from_numpy(bags.offsets)))
        return self._combine(vectors)

    def _combine(self, vectors: list[torch.Tensor]) -> torch.Tensor:
        if len(vectors) == 1:
            return vectors[0]
        return torch.stack(vectors).sum(dim=0) if self.mode == "add" else torch.cat(vectors, dim=1)

    def _step(self, mega: MegaBatch, sentences: np.ndarray) -> float:
        """Make one step on sentences [role, pair]: s, s' and, with a margin loss, t and t'."""
        if self._compiled is not None:
            return self._compiled_step(self._compiled, mega, sentences)
        flat = sentences.ravel()
        steps = [_prepare(table, mega.bags[table.reader].take(flat)) for table in self.tables]
        vectors = [_mean(step.positions, step.local.weight, step.offsets).requires_grad_() for step in steps]
        loss = combined_loss(self._combine(vectors), mega.keys, sentences, self.config, self.teacher)
        value = float(loss.detach())
        if not np.isfinite(value):
            raise diverged(f"{self.tables[0].optimizer.step + 1}", value)
        loss.backward()
        gradients = [
            self._gradient(table, step, vector.grad)
            for table, step, vector in zip(self.tables, steps, vectors, strict=True)
        ]
        if self.config.clip is not None:
            clip([gradient for gradient in gradients if gradient is not None], self.config.clip)
        for table, step, rows in zip(self.tables, steps, gradients, strict=True):
            if rows is None:
                table.optimizer.step += 1
            else:
                table.optimizer.update(step.local, rows)
        return value

    def _compiled_step(self, steps: CompiledSteps, mega: MegaBatch, sentences: np.ndarray) -> float:
        """Make a step as `_step` does; with a teacher the loss is torch's, and only the rest is compiled."""
        from paranmt_hf.training.compiled import margin_step

        vectors = steps.encode(mega.bags, sentences.ravel())
        if self.teacher is None:
            value, gradient, moves = margin_step(vectors, len(sentences), self.config.margin)
        else:
            leaf = torch.from_numpy(vectors).requires_grad_()
            loss = combined_loss(leaf, mega.keys, sentences, self.config, self.teacher)
            value, moves = float(loss.detach()), np.ones(len(vectors), np.bool_)
            loss.backward()
            assert leaf.grad is not None
            gradient = leaf.grad.numpy()
        if not np.isfinite(value):
            raise diverged(f"{self.tables[0].optimizer.step + 1}", value)
        steps.update(gradient, moves)
        return value

    def _gradient(self, table: TrainedTable, step: _Step, gradient: torch.Tensor | None) -> torch.Tensor | None:
        """Gradient of the distinct rows of a step [row, dimension], from that of its sentences; None if fixed."""
        if table.fixed:
            return None
        assert gradient is not None
        # The gradient of a row is the sum over its units of the sentence's gradient over the sentence's length.
        share = gradient / step.counts
        rows = embedding_bag(step.by_row, share, step.row_bounds, mode="sum", include_last_offset=True)
        if table.initial is not None:
            # The gradient of lambda_w times the squared norm (arXiv:1511.08198, equation 1).
            rows += 2 * self.config.lambda_w * (step.local.weight - table.initial[step.local.rows])
        if table.frozen and len(step.local.rows) and step.local.rows[0] == 0:
            rows[0] = 0
        return rows


def diverged(step: str, loss: float) -> DivergedError:
    """Make the error for a loss, or for vectors which would give one, that is not a number."""
    return DivergedError(
        f"the loss of step {step} is {loss}; lower the learning rate or look for broken initial vectors"
    )


def combined_loss(
    vectors: torch.Tensor,
    keys: np.ndarray,
    sentences: np.ndarray,
    config: TrainConfig,
    teacher: TeacherVectors | None = None,
) -> torch.Tensor:
    """Weigh the margin loss and the teacher's term.

    Args:
        vectors: Vectors of the sentences, role after role [role x pair, dimension].
        keys: A number for each sentence of the mega-batch.
        sentences: Positions in the mega-batch [role, pair]: s, s' and, with a margin loss, t and t'.
        config: The weights and the margin.
        teacher: The teacher's vectors, if similarities are learned too.
    """
    terms = []
    if config.margin_weight:
        terms.append(config.margin_weight * margin_loss(*vectors.chunk(len(sentences)), margin=config.margin))
    if teacher is not None:
        own = sentences[:2].ravel()
        taught = teacher.of(keys[own]).to(vectors.device)
        term = teacher_loss(vectors[: len(own)], taught, config)
        terms.append(config.teacher_weight * term)
    return torch.stack(terms).sum()


def _mean(rows: torch.Tensor, weight: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    return embedding_bag(rows, weight, offsets.to(rows.dtype), mode="mean", include_last_offset=True)


def _prepare(table: TrainedTable, bags: Bags) -> _Step:
    """Read the distinct rows of some sentences and note who uses which.

    Where rows are pulled back, every row that has moved takes part: how an optimiser moves a row by a gradient that
    depends on the row itself has no closed form, so none may rest.
    """
    counts = np.diff(bags.offsets)
    # Sorted by row, the units of one row stand together; `first` marks where another row begins.
    order = np.argsort(bags.rows, kind="stable")
    ordered = bags.rows[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(ordered) else np.empty(0, bool)
    starts = np.flatnonzero(first)
    positions = np.empty(len(ordered), np.int32)
    positions[order] = np.cumsum(first) - 1
    sentence = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    rows = ordered[starts]
    if table.initial is not None:
        used, rows = rows, np.union1d(rows, np.flatnonzero(table.optimizer.last))
        # Row `used[p]` is `rows[searchsorted(rows, used)[p]]`; a row that no unit uses starts where it ends.
        positions = np.searchsorted(rows, used).astype(np.int32)[positions]
        starts = np.searchsorted(ordered, rows)
    return _Step(
        local=table.optimizer.read(torch.from_numpy(rows.astype(np.int64))),
        positions=torch.from_numpy(positions),
        offsets=torch.from_numpy(bags.offsets),
        by_row=torch.from_numpy(sentence[order]),
        row_bounds=torch.from_numpy(np.concatenate([starts, [len(ordered)]]).astype(np.int32)),
        counts=torch.from_numpy(np.maximum(counts, 1).astype(np.float32))[:, None],
    )


def minibatch(pairs: np.ndarray, total: int, negatives: np.ndarray | None, *, one_sided: bool) -> np.ndarray:
    """Positions of the sentences of a mini-batch in the mega-batch.

    Pairs of which a sentence has no allowed negative are left out.

    Args:
        pairs: Pairs of the mini-batch [pair].
        total: Pairs of the mega-batch.
        negatives: Negative of each sentence, as `megabatch.select` gives it; None if there are none.
        one_sided: Only the reference has one.

    Returns:
        Positions [role, pair]: s, s' and, with negatives, t and, with two sides, t'.
    """
    roles = [pairs, pairs + total]
    if negatives is not None:
        roles.append(negatives[pairs])
        if not one_sided:
            roles.append(negatives[pairs + total])
    sentences = np.stack(roles)
    return sentences[:, (sentences >= 0).all(axis=0)]
