"""Train averaging encoders on a GPU, without synchronising with the host inside a mega-batch.

A mega-batch is sent to the GPU once, and its losses come back at its end. How many units the sentences of a step have
is not known beforehand, because their negatives are found on the GPU; buffers have room for an assumed maximum, the
bound. If a step has more units, the whole mega-batch is run again with a larger bound, from the tables, to which
nothing was written yet.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from paranmt_hf.encoders.composition import Composition
from paranmt_hf.errors import InputError
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.device.graph import Capturing, RepeatedStep
from paranmt_hf.training.device.plan import Plan, make_plan
from paranmt_hf.training.device.tables import (
    DeviceAdagrad,
    DeviceAdam,
    DeviceSchedule,
    DeviceTable,
)
from paranmt_hf.training.losses import diverged, margin_loss, margin_loss_and_gradient, teacher_loss
from paranmt_hf.training.mega_batch import hardest
from paranmt_hf.training.optimizers import Schedule, learning_rates
from paranmt_hf.training.pair_store import MegaBatch
from paranmt_hf.training.teacher_vectors import TeacherVectors


class DeviceEngine:
    """Trains averaging encoders, alone or combined, on a device.

    Args:
        tables: Table of each encoder.
        mode: How several encoders are combined: `add` or `concatenate`.
        config: How they are trained.
        teacher: Vectors of the teacher; None without one.
        capturing: Captures steps as CUDA graphs; None to run one kernel at a time.
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
        # The states of the optimizers are those of a checkpoint.
        self.optimizers = [table.optimizer for table in tables]
        self._schedule = tables[0].optimizer.schedule
        self._device = tables[0].optimizer.table.device
        # The buffers of a captured step: the sentences of its pairs, the negative of each sentence, the teacher's
        # vectors, and the result, which is the loss and then the number of units of each table.
        self._sentences = torch.zeros(2 * config.batch_size, dtype=torch.long, device=self._device)
        self._negatives = self._sentences[:0]
        self._taught = self._schedule.now[:0]
        self._result = torch.zeros(1 + len(tables), dtype=torch.float64, device=self._device)
        self._repeated = RepeatedStep(lambda: self._result.copy_(self._step(self._sentences)), capturing)

    def prepare(self, mega: MegaBatch, generator: np.random.Generator) -> Plan:
        """Prepare a mega-batch on the host, while earlier ones are trained on; arguments as in `train_on`."""
        readers = [table.reader for table in self.tables]
        return make_plan(mega, generator, readers, self.config, self.teacher, pinned=self._device.type == "cuda")

    def train_on(self, mega: MegaBatch, generator: np.random.Generator) -> list[float]:
        """Mine negatives once, then perform one step for each mini-batch.

        Args:
            mega: The mega-batch, or the plan that `prepare` made of it.
            generator: Draws random negatives, unless `prepare` did.

        Returns:
            The loss of each step; mini-batches in which no pair has a negative have none.
        """
        try:
            return self._train_on(mega, generator)
        except torch.cuda.OutOfMemoryError:
            raise InputError(
                f"`device` cuda: a mega-batch of {mega.pairs:,} pairs and the tables do not fit into the memory of "
                "the GPU; lower `mega_batch`, or leave `device` out",
                option="mega_batch",
            ) from None

    def _train_on(self, mega: MegaBatch, generator: np.random.Generator) -> list[float]:
        """Train on a mega-batch; see `train_on`."""
        plan = mega if isinstance(mega, Plan) else self.prepare(mega, generator)
        if not plan.steps:
            return []
        done = self.tables[0].optimizer.step
        while True:
            # The only synchronisation. There is a row for each step, and a last one: whether mined vectors were
            # finite.
            results = self._run(plan, done).cpu().numpy()
            if not results[-1, 0]:
                raise diverged(f"{done + 1}", float("nan"))
            most = results[:-1, 1:].max(axis=0).astype(int).tolist()
            crowded = [(table, units) for table, units in zip(self.tables, most, strict=True) if units > table.bound]
            if not crowded:
                break
            for table, units in crowded:
                table.raise_bound(int(units * 1.1))
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
        """Perform all steps of a mega-batch on local copies of its rows.

        Args:
            plan: The prepared mega-batch.
            done: Number of steps before it.

        Returns:
            Loss and numbers of units of each step, as in `_result`, and in the last row whether the mined vectors were
            finite [step + 1, column], float64.
        """
        results = torch.ones(len(plan.steps) + 1, len(self._result), dtype=torch.float64, device=self._device)
        sent = self._send(plan)
        if self.config.margin_weight:
            self._mine(plan, sent, results[-1])
        for index, sentences in enumerate(sent["steps"].split([len(step) for step in plan.steps])):
            self._schedule.now.copy_(self._schedule.steps[done + index + 1])
            if len(sentences) == len(self._sentences):
                self._sentences.copy_(sentences)
                self._repeated.run((len(self._negatives), len(self._taught), *(table.shapes for table in self.tables)))
                results[index].copy_(self._result)
            else:
                results[index].copy_(self._step(sentences.long()))
        return results

    def _send(self, plan: Plan) -> dict[str, torch.Tensor]:
        """Send a mega-batch to the device, and load it into the tables; return the parts of its parcel by name."""
        parcel, sizes = plan.parcel
        parts = parcel.to(self._device, non_blocking=True).split(list(sizes.values()))
        sent = dict(zip(sizes, parts, strict=True))
        for index, (table, rows) in enumerate(zip(self.tables, plan.rows, strict=True)):
            table.load(rows.own_units, *(sent[f"{name}{index}"] for name in ("rows", "ids", "starts", "lengths")))
        if plan.taught is not None:
            if len(self._taught) < len(plan.taught):
                self._taught = torch.empty_like(plan.taught, device=self._device)
            self._taught[: len(plan.taught)].copy_(plan.taught, non_blocking=True)
        return sent

    def _mine(self, plan: Plan, sent: dict[str, torch.Tensor], finite: torch.Tensor) -> None:
        """Find the negative of each sentence; a sentence that has none gets any.

        Args:
            plan: The prepared mega-batch.
            sent: The parts of its parcel on the device.
            finite: Row that gets whether the vectors were finite.
        """
        drawn = sent["drawn"].long() if plan.drawn is not None else None
        if plan.exclusions is not None:
            vectors = self._combine([table.encode_all() for table in self.tables])
            finite.copy_(torch.isfinite(vectors.square().sum(dim=1)).all())
            queries = vectors[: len(vectors) // 2] if self.config.one_sided else vectors
            bounds = np.searchsorted(plan.exclusions[0], np.arange(len(queries) + 1))
            chosen = hardest(queries, (sent["queries"], sent["excluded"]), bounds)
            if drawn is not None:
                chosen = torch.where(drawn >= 0, drawn, chosen)
        else:
            assert drawn is not None
            chosen = drawn.clamp(min=0)
        if len(self._negatives) < len(chosen):
            self._negatives = torch.zeros_like(chosen)
        self._negatives[: len(chosen)].copy_(chosen)

    def _combine(self, vectors: list[torch.Tensor]) -> torch.Tensor:
        """Add or concatenate the vectors of each table [sentence, dimension]."""
        if len(vectors) == 1:
            return vectors[0]
        return torch.stack(vectors).sum(dim=0) if self.mode == "add" else torch.cat(vectors, dim=1)

    def _step(self, pairs: torch.Tensor) -> torch.Tensor:
        """Perform one step, and return its loss and the number of units of each table, as in `_result`.

        Args:
            pairs: Positions of the sentences of its pairs, references first [2 x pair].
        """
        sentences = pairs
        if self.config.margin_weight:
            queries = pairs[: len(pairs) // 2] if self.config.one_sided else pairs
            sentences = torch.cat([pairs, self._negatives.index_select(0, queries)])
        units = [table.units_of(sentences) for table in self.tables]
        vectors = [table.mean(part) for table, part in zip(self.tables, units, strict=True)]
        loss, slopes = self._loss(vectors, pairs)
        moved, gradients = [], []
        for table, part, slope in zip(self.tables, units, slopes, strict=True):
            if not table.fixed:
                moved.append(table)
                gradients.append(table.gradient(part, slope))
        if self.config.clip is not None and moved:
            norm = torch.stack([gradient.square().sum() for gradient in gradients]).sum().sqrt()
            # The factor is below 1 if the norm is above the limit. For a norm of 0 the division gives infinity,
            # because the limit is above 0, so the factor is 1.
            factor = (self.config.clip / norm).clamp(max=1)
            for gradient in gradients:
                gradient.mul_(factor)
        for table, gradient in zip(moved, gradients, strict=True):
            table.update(gradient)
        return torch.stack([loss.double(), *(part.count.double() for part in units)])

    def _loss(self, vectors: list[torch.Tensor], pairs: torch.Tensor) -> tuple[torch.Tensor, Sequence[torch.Tensor]]:
        """Compute the loss, as `combined_loss` does, and its gradient with respect to the vectors of each table.

        Args:
            vectors: Vectors of each table [role x pair, dimension].
            pairs: Positions of the sentences of the pairs, references first [2 x pair].
        """
        config, roles = self.config, 3 if self.config.one_sided else 4
        if self.teacher is None:
            loss, slope = margin_loss_and_gradient(self._combine(vectors), roles, config.margin)
            if self.mode == "add":
                return loss, [slope] * len(vectors)
            return loss, slope.split([part.shape[1] for part in vectors], dim=1)
        leaves = [part.requires_grad_() for part in vectors]
        combined, terms = self._combine(leaves), []
        if config.margin_weight:
            terms.append(config.margin_weight * margin_loss(*combined.chunk(roles), margin=config.margin))
        taught = self._taught.index_select(0, pairs).float()
        terms.append(config.teacher_weight * teacher_loss(combined[: len(pairs)], taught, config, self.teacher.scale))
        total = torch.stack(terms).sum()
        return total.detach(), torch.autograd.grad(total, leaves)


def device_engine(
    composition: Composition,
    config: TrainConfig,
    pairs: int,
    teacher: TeacherVectors | None,
    device: torch.device,
    capturing: Capturing | None = None,
) -> DeviceEngine:
    """Create the engine of an averaging encoder on a device; its tables on the host get the trained rows.

    Args:
        composition: The parts of the encoder.
        config: How it is trained.
        pairs: Number of pairs of an epoch.
        teacher: Vectors of the teacher; None without one.
        device: The device.
        capturing: Captures steps; if left out, steps on a GPU are captured as CUDA graphs, and others are not
            captured.
    """
    if capturing is None and device.type == "cuda":
        capturing = Capturing()
    schedule = DeviceSchedule(Schedule(learning_rates(pairs, config), config.optimizer), device)
    kind = DeviceAdam if config.optimizer == "adam" else DeviceAdagrad
    tables = []
    for part in composition.parts:
        weight = part.table.weight.data
        fixed = config.freeze_words and part.family.units == "word"
        optimizer = kind(weight, schedule, device)
        pull = 0.0 if fixed else config.lambda_w
        frozen = not bool(weight[0].any())
        tables.append(DeviceTable(part.unit_kind, optimizer, pull=pull, frozen=frozen, fixed=fixed))
    return DeviceEngine(tables, composition.mode, config, teacher, capturing)
