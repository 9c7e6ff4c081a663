"""Trains averaging encoders on a device: what `AveragingTrainer` does, without a look back to the host inside a step.

A mega-batch is sent once and looked at once, at its end, when the losses of its steps come back. What is not known
before, how many units the sentences of a step have, has a bound; should a step have more, which the look tells, the
mega-batch is run again with a larger bound, from the tables that it has not written to yet.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from paranmt_hf.errors import InputError
from paranmt_hf.training.arithmetic import Arithmetic
from paranmt_hf.training.averaging import diverged
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.device.graph import Capturing, Repeated
from paranmt_hf.training.device.margin import margin_loss_and_gradient
from paranmt_hf.training.device.mining import hardest
from paranmt_hf.training.device.plan import Plan, make_plan
from paranmt_hf.training.device.tables import DeviceTable
from paranmt_hf.training.margin_loss import margin_loss
from paranmt_hf.training.pair_store import MegaBatch
from paranmt_hf.training.teacher import TeacherVectors, teacher_loss


class DeviceTrainer:
    """Trains averaging encoders, alone or combined, on a device.

    Args:
        tables: The encoders' tables.
        mode: How their vectors are combined, `add` or `concatenate`.
        config: The settings.
        teacher: The teacher's vectors, if similarities are learned too.
        capturing: How steps are captured; None runs them one kernel at a time.
    """

    def __init__(
        self,
        tables: Sequence[DeviceTable],
        mode: str,
        config: TrainConfig,
        teacher: TeacherVectors | None = None,
        capturing: Capturing | None = None,
    ) -> None:
        self.tables, self.mode, self.config, self.teacher = tables, mode, config, teacher
        self.arithmetic = Arithmetic()
        self._schedule = tables[0].optimizer.schedule
        self._device = tables[0].optimizer.table.device
        # What a whole mini-batch's step reads and writes: its sentences, all negatives, the teacher, what came of it.
        self._own = torch.zeros(2 * config.batch_size, dtype=torch.long, device=self._device)
        self._negatives = self._own[:0]
        self._taught = self._schedule.now[:0]
        self._result = torch.zeros(1 + len(tables), dtype=torch.float64, device=self._device)
        self._repeated = Repeated(self._whole_step, capturing)

    def compute_with(self, arithmetic: Arithmetic) -> None:
        """Do nothing: on a device there is one way to compute, with torch in float32."""

    def prepare(self, mega: MegaBatch, generator: np.random.Generator) -> Plan:
        """Do what the host can do for a mega-batch before the ones before it are done; arguments as of `train_on`."""
        readers = [table.reader for table in self.tables]
        pinned = self._device.type == "cuda"
        return make_plan(mega, generator, readers, self.config, self.teacher, pinned=pinned)

    def train_on(self, mega: MegaBatch, generator: np.random.Generator) -> list[float]:
        """Mine negatives once, then make one step for each mini-batch.

        Args:
            mega: The pairs, or what `prepare` made of them.
            generator: For random negatives, unless the mega-batch was prepared.

        Returns:
            Loss of each step.

        Raises:
            DivergedError: A loss is not a number.
            InputError: The device has too little memory.
        """
        try:
            return self._train_on(mega, generator)
        except torch.cuda.OutOfMemoryError:
            raise InputError(
                f"--device cuda: a mega-batch of {mega.pairs:,} pairs does not fit beside the tables into the memory "
                "of the GPU; lower --mega-batch, or leave --device out"
            ) from None

    def _train_on(self, mega: MegaBatch, generator: np.random.Generator) -> list[float]:
        plan = mega if isinstance(mega, Plan) else self.prepare(mega, generator)
        if not plan.steps:
            return []
        done = self.tables[0].optimizer.step
        while True:
            # The one look: a row for each step, then whether the vectors that were mined were numbers.
            results = self._run(plan, done).cpu().numpy()
            if not results[-1, 0]:
                raise diverged(f"{done + 1}", float("nan"))
            units = results[:-1, 1:].max(axis=0)
            if all(count <= table.bound for count, table in zip(units, self.tables, strict=True)):
                break
            for count, table in zip(units, self.tables, strict=True):
                table.raise_bound(int(count * 1.1))
        losses: list[float] = results[:-1, 0].tolist()
        for index, loss in enumerate(losses):
            if not np.isfinite(loss):
                raise diverged(f"{done + index + 1}", loss)
        for table in self.tables:
            table.optimizer.step = done + len(losses)
            if not table.fixed:
                table.write()
        return losses

    def _run(self, plan: Plan, done: int) -> torch.Tensor:
        """Make all steps of a mega-batch on local copies of its rows.

        Returns:
            Loss and units of each step, then whether the vectors were numbers [step + 1, 1 + table], float64.
        """
        results = torch.ones(len(plan.steps) + 1, len(self._result), dtype=torch.float64, device=self._device)
        steps, rest = self._send(plan)
        if self.config.margin_weight:
            self._mine(plan, rest, results[-1])
        for index, own in enumerate(steps):
            self._schedule.go_to(done + index + 1)
            if len(own) == len(self._own):
                self._own.copy_(own)
                self._repeated.run((len(self._negatives), len(self._taught), *(table.shapes for table in self.tables)))
                results[index].copy_(self._result)
            else:
                results[index].copy_(self._step(own.long()))
        return results

    def _send(self, plan: Plan) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Send a mega-batch to the device; returns the sentences of its steps, and what mining needs."""
        parcel = plan.parcel.to(self._device, non_blocking=True)
        own = [len(step) for step in plan.steps]
        of_tables = [[len(table.rows), len(table.ids), *[len(table.starts)] * 2] for table in plan.tables]
        rest = [len(part) for part in plan.exclusions or ()] + ([len(plan.drawn)] if plan.drawn is not None else [])
        parts = list(parcel.split([sum(own), *(size for sizes in of_tables for size in sizes), *rest]))
        for index, (table, table_plan) in enumerate(zip(self.tables, plan.tables, strict=True)):
            rows, ids, starts, lengths = parts[1 + 4 * index : 5 + 4 * index]
            table.load(table_plan, (rows, ids, starts, lengths))
        if plan.taught is not None:
            if len(self._taught) < len(plan.taught):
                self._taught = torch.empty_like(plan.taught, device=self._device)
            self._taught[: len(plan.taught)].copy_(plan.taught, non_blocking=True)
        return list(parts[0].split(own)), parts[1 + 4 * len(self.tables) :]

    def _mine(self, plan: Plan, sent: list[torch.Tensor], finite: torch.Tensor) -> None:
        """Find the negative of each sentence, any where it has none; says in `finite` whether vectors were numbers."""
        drawn = [sent[-1].long()] if plan.drawn is not None else []
        if plan.exclusions is not None:
            vectors = self._combine([table.encode_all() for table in self.tables])
            finite.copy_(torch.isfinite(vectors.square().sum(dim=1)).all())
            bounds = np.searchsorted(plan.exclusions[0], np.arange(len(plan.keys) + 1))
            mined = hardest(vectors, (sent[0], sent[1]), bounds, one_sided=self.config.one_sided)
            chosen = torch.where(drawn[0] >= 0, drawn[0], mined) if drawn else mined
        else:
            chosen = drawn[0].clamp(min=0)
        if len(self._negatives) < len(chosen):
            self._negatives = torch.zeros_like(chosen)
        self._negatives[: len(chosen)].copy_(chosen)

    def _combine(self, vectors: list[torch.Tensor]) -> torch.Tensor:
        if len(vectors) == 1:
            return vectors[0]
        return torch.stack(vectors).sum(dim=0) if self.mode == "add" else torch.cat(vectors, dim=1)

    def _whole_step(self) -> None:
        self._result.copy_(self._step(self._own))

    def _step(self, own: torch.Tensor) -> torch.Tensor:
        """Make one step on the sentences of some pairs, references first [2 x pair].

        Returns:
            The loss and the units under each table [1 + table], float64.
        """
        sentences = own
        if self.config.margin_weight:
            asking = own[: len(own) // 2] if self.config.one_sided else own
            sentences = torch.cat([own, self._negatives.index_select(0, asking)])
        units = [table.units_of(sentences) for table in self.tables]
        vectors = [table.mean(part) for table, part in zip(self.tables, units, strict=True)]
        loss, slopes = self._loss(vectors, own)
        gradients: list[torch.Tensor | None] = [
            None if table.fixed else table.gradient(part, slope)
            for table, part, slope in zip(self.tables, units, slopes, strict=True)
        ]
        moved = [gradient for gradient in gradients if gradient is not None]
        if self.config.clip is not None and moved:
            norm = torch.stack([gradient.square().sum() for gradient in moved]).sum().sqrt()
            # Above the limit this is a factor below one; 0 / 0 cannot be, for the limit is above 0.
            factor = (self.config.clip / norm).clamp(max=1)
            for rows in moved:
                rows.mul_(factor)
        for table, gradient in zip(self.tables, gradients, strict=True):
            if gradient is not None:
                table.update(gradient)
        return torch.stack([loss.double(), *(part.count.double() for part in units)])

    def _loss(self, vectors: list[torch.Tensor], own: torch.Tensor) -> tuple[torch.Tensor, Sequence[torch.Tensor]]:
        """Weigh the margin loss and the teacher's term, see `combined_loss`; with the gradient under each table."""
        config, roles = self.config, 3 if self.config.one_sided else 4
        if self.teacher is None:
            loss, slope = margin_loss_and_gradient(self._combine(vectors), roles, config.margin)
            widths = [part.shape[1] for part in vectors]
            return loss, [slope] * len(vectors) if self.mode == "add" else slope.split(widths, dim=1)
        leaves = [part.requires_grad_() for part in vectors]
        combined, terms = self._combine(leaves), []
        if config.margin_weight:
            terms.append(config.margin_weight * margin_loss(*combined.chunk(roles), margin=config.margin))
        taught = self._taught.index_select(0, own).float()
        term = teacher_loss(combined[: len(own)], taught, config)
        loss = torch.stack([*terms, config.teacher_weight * term]).sum()
        return loss.detach(), torch.autograd.grad(loss, leaves)
