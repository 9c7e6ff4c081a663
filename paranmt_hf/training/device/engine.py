"""Trains averaging encoders on a device, without synchronising with the host inside a step.

A mega-batch is sent once, and its losses come back at its end. The number of units of the sentences of a step is not
known before and has a bound. If a step has more, the mega-batch is run again with a larger bound, from the tables, to
which nothing was written yet.

Several processes share the pairs of every step. Each has the whole table and updates it by the gradients of all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from paranmt_hf.encoders.composition import Composition
from paranmt_hf.errors import InputError
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.device.graph import Capturing, Repeated
from paranmt_hf.training.device.plan import Plan, make_plan, owners
from paranmt_hf.training.device.tables import (
    DEVICE_OPTIMIZERS,
    DeviceOptimizer,
    DeviceSchedule,
    DeviceTable,
    StepUnits,
)
from paranmt_hf.training.distributed import Processes, summed, with_others
from paranmt_hf.training.losses import diverged, margin_loss, margin_loss_and_gradient, teacher_loss
from paranmt_hf.training.mega_batch import hardest
from paranmt_hf.training.optimizers import Schedule, learning_rates
from paranmt_hf.training.pair_store import MegaBatch
from paranmt_hf.training.teacher import TeacherVectors


class DeviceEngine:
    """Trains averaging encoders, alone or combined (`mode` is `add` or `concatenate`), on a device.

    Steps are captured if `capturing` says how, and run one kernel at a time otherwise.
    """

    def __init__(
        self,
        tables: Sequence[DeviceTable],
        mode: str,
        config: TrainConfig,
        teacher: TeacherVectors | None = None,
        capturing: Capturing | None = None,
        processes: Processes | None = None,
    ) -> None:
        self.tables, self.mode, self.config, self.teacher = tables, mode, config, teacher
        self._processes = processes
        self._schedule = tables[0].optimizer.schedule
        self._device = tables[0].optimizer.table.device
        parts = owners(config.batch_size, config.batch_size, processes.count if processes is not None else 1)
        self._whole = tuple(np.bincount(parts).tolist())
        # What the step of a full mini-batch reads and writes: its sentences, those of all processes, the negatives,
        # the teacher's vectors, and the result.
        own = self._whole[processes.rank if processes is not None else 0]
        self._own = torch.zeros(2 * own, dtype=torch.long, device=self._device)
        self._together = torch.zeros(2 * config.batch_size, dtype=torch.long, device=self._device)
        self._negatives = self._own[:0]
        self._taught = self._schedule.now[:0]
        # The loss, the units of each table and, of several processes, the rows of each table that were sent.
        columns = 1 + len(tables) * (1 if processes is None else 2)
        self._result = torch.zeros(columns, dtype=torch.float64, device=self._device)
        self._repeated = Repeated(self._whole_step, capturing)

    @property
    def optimizers(self) -> Sequence[DeviceOptimizer]:
        """Optimizer states of a checkpoint."""
        return [table.optimizer for table in self.tables]

    def prepare(self, mega: MegaBatch, generator: np.random.Generator) -> Plan:
        """Prepare a mega-batch on the host during the training of earlier ones; arguments as in `train_on`."""
        readers = [table.reader for table in self.tables]
        pinned = self._device.type == "cuda"
        return make_plan(mega, generator, readers, self.config, self.teacher, pinned=pinned, processes=self._processes)

    def train_on(self, mega: MegaBatch, generator: np.random.Generator) -> list[float]:
        """Mine negatives once, then perform one step for each mini-batch; returns the loss of each.

        The mega-batch may be what `prepare` made of it; otherwise the generator draws random negatives.
        """
        try:
            return self._train_on(mega, generator)
        except torch.cuda.OutOfMemoryError:
            raise InputError(
                f"`device` cuda: a mega-batch of {mega.pairs:,} pairs and the tables do not fit into the memory of "
                "the GPU; lower `mega_batch`, or leave `device` out"
            ) from None

    def _train_on(self, mega: MegaBatch, generator: np.random.Generator) -> list[float]:
        plan = mega if isinstance(mega, Plan) else self.prepare(mega, generator)
        if not plan.steps:
            return []
        done = self.tables[0].optimizer.step
        while True:
            # The only synchronisation: a row for each step, then whether the vectors of mining were finite.
            results = self._look(self._run(plan, done))
            if not results[-1, 0]:
                raise diverged(f"{done + 1}", float("nan"))
            if self._had_room(results[:-1, 1:].max(axis=0).astype(int).tolist()):
                break
        losses: list[float] = results[:-1, 0].tolist()
        for index, loss in enumerate(losses):
            if not np.isfinite(loss):
                raise diverged(f"{done + index + 1}", loss)
        for table in self.tables:
            table.optimizer.step = done + len(losses)
            if not table.fixed:
                table.write()
        return losses

    def _look(self, results: torch.Tensor) -> np.ndarray:
        """Copy the results of steps to the host, combined over all processes."""
        if self._processes is None:
            return results.cpu().numpy()
        everyone = self._processes.gather(results).cpu().numpy()
        together: np.ndarray = everyone.max(axis=0)
        together[:-1, 0] = everyone[:, :-1, 0].sum(axis=0)
        together[-1] = everyone[:, -1].min(axis=0)
        return together

    def _had_room(self, most: list[int]) -> bool:
        """Whether the bounds of units and of rows to send were large enough; raise them if not."""
        count = len(self.tables)
        enough = all(units <= table.bound for units, table in zip(most, self.tables, strict=False))
        for units, table in zip(most, self.tables, strict=False):
            if units > table.bound:
                table.raise_bound(int(units * 1.1))
        for rows, table in zip(most[count:], self.tables, strict=False):
            enough = enough and rows <= (table.row_bound or rows)
            table.fit_row_bound(rows)
        return enough

    def _run(self, plan: Plan, done: int) -> torch.Tensor:
        """Perform all steps of a mega-batch on local copies of its rows.

        Returns loss and units of each step, see `_result`; then whether the vectors were finite [step + 1, column],
        float64.
        """
        results = torch.ones(len(plan.steps) + 1, len(self._result), dtype=torch.float64, device=self._device)
        sent = self._send(plan)
        steps = together = sent["steps"].split([len(step) for step in plan.steps])
        if plan.together is not None:
            together = sent["together"].split([len(step) for step in plan.together])
        if self.config.margin_weight:
            self._mine(plan, sent, results[-1])
        for index, (own, shares, everyone) in enumerate(zip(steps, plan.shares, together, strict=True)):
            self._schedule.go_to(done + index + 1)
            if shares == self._whole:
                self._own.copy_(own)
                if plan.together is not None:
                    self._together.copy_(everyone)
                self._repeated.run((len(self._negatives), len(self._taught), *(table.shapes for table in self.tables)))
                results[index].copy_(self._result)
            else:
                results[index].copy_(self._step(own.long(), shares, everyone))
        return results

    def _send(self, plan: Plan) -> dict[str, torch.Tensor]:
        """Send a mega-batch to the device, and load it there; returns the parts of the parcel by name."""
        parcel, sizes = plan.parcel
        parts = parcel.to(self._device, non_blocking=True).split(list(sizes.values()))
        sent = dict(zip(sizes, parts, strict=True))
        for index, (table, table_plan) in enumerate(zip(self.tables, plan.tables, strict=True)):
            table.load(table_plan, *(sent[f"{name}{index}"] for name in ("rows", "ids", "starts", "lengths")))
        if plan.taught is not None:
            if len(self._taught) < len(plan.taught):
                self._taught = torch.empty_like(plan.taught, device=self._device)
            self._taught[: len(plan.taught)].copy_(plan.taught, non_blocking=True)
        return sent

    def _mine(self, plan: Plan, sent: dict[str, torch.Tensor], finite: torch.Tensor) -> None:
        """Find the negative of each sentence, any if it has none; writes into `finite` whether vectors were finite."""
        drawn = sent["drawn"].long() if plan.drawn is not None else None
        if plan.exclusions is not None:
            vectors = self._combine([table.encode_all() for table in self.tables])
            finite.copy_(torch.isfinite(vectors.square().sum(dim=1)).all())
            chosen = self._hardest(plan, sent, vectors[: len(vectors) // 2] if self.config.one_sided else vectors)
            if drawn is not None:
                chosen = torch.where(drawn >= 0, drawn, chosen)
        else:
            assert drawn is not None
            chosen = drawn.clamp(min=0)
        if len(self._negatives) < len(chosen):
            self._negatives = torch.zeros_like(chosen)
        self._negatives[: len(chosen)].copy_(chosen)

    def _hardest(self, plan: Plan, sent: dict[str, torch.Tensor], vectors: torch.Tensor) -> torch.Tensor:
        """Mine the negatives of the queries of this process (see `Plan`); those of other sentences stay 0."""
        assert plan.exclusions is not None
        exclusions = sent["queries"], sent["excluded"]
        count = len(vectors) if plan.asking is None else len(plan.asking)
        bounds = np.searchsorted(plan.exclusions[0], np.arange(count + 1))
        if plan.asking is None:
            return hardest(vectors, exclusions, bounds)
        chosen = torch.zeros(len(vectors), dtype=torch.long, device=self._device)
        if not count:
            return chosen
        asking = sent["asking"].long()
        if self.config.mine_over == "rank":
            found = asking.index_select(0, hardest(vectors.index_select(0, asking), exclusions, bounds))
        else:
            found = hardest(vectors, exclusions, bounds, asking=asking)
        return chosen.index_copy_(0, asking, found)

    def _combine(self, vectors: list[torch.Tensor]) -> torch.Tensor:
        if len(vectors) == 1:
            return vectors[0]
        return torch.stack(vectors).sum(dim=0) if self.mode == "add" else torch.cat(vectors, dim=1)

    def _whole_step(self) -> None:
        self._result.copy_(self._step(self._own, self._whole, self._together))

    def _step(self, own: torch.Tensor, shares: tuple[int, ...], together: torch.Tensor) -> torch.Tensor:
        """Perform one step on the sentences of some pairs of this process, references first [2 x pair].

        `shares` has the pairs of each process; `together` the sentences of all processes, needed where the teacher
        compares them. Returns what `_result` has.
        """
        loss, units, slopes = self._slopes(own, shares, together)
        # Without a pair the loss and the units are zero.
        counts = [part.count for part in units] or [loss] * len(self.tables)
        results = [loss.double(), *(count.double() for count in counts)]
        moved = [table for table in self.tables if not table.fixed]
        if self._processes is not None:
            gradients, sent = self._summed(self._processes, units, slopes)
            results += sent
        else:
            parts = zip(self.tables, units, slopes, strict=True)
            gradients = [table.gradient(part, slope) for table, part, slope in parts if not table.fixed]
        for table, gradient in zip(moved, gradients, strict=True):
            table.complete(gradient)
        if self.config.clip is not None and moved:
            norm = torch.stack([gradient.square().sum() for gradient in gradients]).sum().sqrt()
            # Below 1 if the norm is above the limit; never 0 / 0, because the limit is above 0.
            factor = (self.config.clip / norm).clamp(max=1)
            for gradient in gradients:
                gradient.mul_(factor)
        for table, gradient in zip(moved, gradients, strict=True):
            table.update(gradient)
        return torch.stack(results)

    def _slopes(
        self, own: torch.Tensor, shares: tuple[int, ...], together: torch.Tensor
    ) -> tuple[torch.Tensor, Sequence[StepUnits], Sequence[torch.Tensor]]:
        """Compute the gradient of this process in a step; arguments as in `_step`.

        Returns its part of the loss; the units of its sentences under each table, and the gradient of these sentences
        under each [sentence, dimension]; nothing if it has no pair.
        """
        if not len(own):
            if self.teacher is not None and self._processes is not None:
                nothing = self._combine([table.no_gradient()[:0] for table in self.tables])
                with_others(self._processes, nothing, [2 * share for share in shares])
            return self._schedule.now.new_zeros(()), [], []
        sentences = own
        if self.config.margin_weight:
            asking = own[: len(own) // 2] if self.config.one_sided else own
            sentences = torch.cat([own, self._negatives.index_select(0, asking)])
        units = [table.units_of(sentences) for table in self.tables]
        vectors = [table.mean(part) for table, part in zip(self.tables, units, strict=True)]
        loss, slopes = self._loss(vectors, own, shares, together)
        return loss, units, slopes

    def _summed(
        self, processes: Processes, units: Sequence[StepUnits], slopes: Sequence[torch.Tensor]
    ) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Sum the gradients of the pairs of all processes.

        Given the units of this process's sentences under each table, none if it has no pair, and their gradients,
        returns the gradient of each table that moves [row, dimension], and the number of rows of every table that this
        process had to send, float64.
        """
        totals, sent, counts = [], [], []
        for index, table in enumerate(self.tables):
            if table.fixed:
                counts.append(self._result.new_zeros(()))
                continue
            part, slope = (units[index], slopes[index]) if units else (None, None)
            rows, gradient, count = table.sparse_gradient(part, slope)
            totals.append(table.no_gradient())
            sent.append((rows, gradient))
            counts.append(count.double())
        summed(processes, sent, totals)
        return totals, counts

    def _loss(
        self, vectors: list[torch.Tensor], own: torch.Tensor, shares: tuple[int, ...], together: torch.Tensor
    ) -> tuple[torch.Tensor, Sequence[torch.Tensor]]:
        """Compute `combined_loss` and its gradient with respect to the vectors of each table.

        Each of several processes returns its part of the loss, and the gradient of the whole loss for its own pairs.
        """
        config, roles = self.config, 3 if self.config.one_sided else 4
        if self.teacher is None:
            loss, slope = margin_loss_and_gradient(self._combine(vectors), roles, config.margin, sum(shares))
            widths = [part.shape[1] for part in vectors]
            return loss, [slope] * len(vectors) if self.mode == "add" else slope.split(widths, dim=1)
        leaves = [part.requires_grad_() for part in vectors]
        combined, terms = self._combine(leaves), []
        # A sum over pairs: each process has the terms of its own pairs.
        part = len(own) / (2 * sum(shares))
        if config.margin_weight:
            terms.append(config.margin_weight * part * margin_loss(*combined.chunk(roles), margin=config.margin))
        # Every sentence is compared with every other one: each process has the whole term.
        taught, among = own, combined[: len(own)]
        if self._processes is not None:
            taught, among = together, with_others(self._processes, among, [2 * share for share in shares])
        term = teacher_loss(among, self._taught.index_select(0, taught).float(), config)
        loss = torch.stack([*terms, config.teacher_weight * term]).sum()
        reported = torch.stack([*terms, config.teacher_weight * part * term]).sum() if part < 1 else loss
        return reported.detach(), torch.autograd.grad(loss, leaves)


def device_engine(
    composition: Composition,
    config: TrainConfig,
    pairs: int,
    teacher: TeacherVectors | None,
    device: torch.device,
    capturing: Capturing | None = None,
    processes: Processes | None = None,
) -> DeviceEngine:
    """Create the engine of an averaging encoder for epochs of some pairs; its tables on the host get the trained rows.

    `capturing` says how steps are captured: on a GPU as a CUDA graph if left out, elsewhere not at all. `processes`
    train together; None for one process.
    """
    if capturing is None and device.type == "cuda":
        capturing = Capturing()
    schedule = DeviceSchedule(Schedule(learning_rates(pairs, config), config.optimizer), device)
    tables = []
    for part in composition.parts:
        weight = part.table.weight.data
        fixed = config.freeze_words and part.family.units == "word"
        optimizer = DEVICE_OPTIMIZERS[config.optimizer](weight, schedule, device)
        pull = 0.0 if fixed else config.lambda_w
        frozen = not bool(weight[0].any())
        tables.append(DeviceTable(part.unit_kind, optimizer, pull=pull, frozen=frozen, fixed=fixed))
    return DeviceEngine(tables, composition.mode, config, teacher, capturing, processes)
