"""Train with an engine of averaging encoders: epochs, evaluations, early stop and checkpoints."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from transformers import TrainingArguments

from paranmt_hf.training.checkpoint import CheckpointFile, read_checkpoint, write_checkpoint
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.cpu_engine import CpuEngine, CpuTable
from paranmt_hf.training.device.engine import DeviceEngine
from paranmt_hf.training.device.tables import DeviceOptimizer
from paranmt_hf.training.pair_store import MegaBatch
from paranmt_hf.training.record import History
from paranmt_hf.training.reporting import Reporter
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import as_json, from_json

logger = logging.getLogger(__name__)
Evaluate = Callable[[], float]
Engine = CpuEngine | DeviceEngine


class MegaBatches(Protocol):
    """The mega-batches of a run, such as those of a `PairStore`."""

    unit: str  # Name of a pair in messages
    pairs: int  # Number of pairs of an epoch

    def mega_batches(self, size: int, *, seed: int, epoch: int, start: int = 0) -> Iterator[MegaBatch]:
        """Read an epoch in mega-batches of `size` pairs, without the first `start` ones.

        The seed and the epoch determine the order of the pairs.
        """


def evaluation_points(count: int, config: TrainConfig) -> set[int]:
    """Return the numbers of the mega-batches after which the development set is scored; the last one is among them.

    Args:
        count: Number of mega-batches in an epoch.
        config: How often it is scored in an epoch.
    """
    return {-(-count * part // config.evaluations) for part in range(1, config.evaluations + 1)}


class Epochs:
    """Runs an engine over all epochs of a training.

    Args:
        engine: The engine.
        source: The mega-batches.
        folder: Folder of the checkpoints.
        evaluate: Scores the current weights on the development set; None without one.
    """

    def __init__(self, engine: Engine, source: MegaBatches, folder: Path, evaluate: Evaluate | None = None) -> None:
        self.engine, self.source, self.evaluate = engine, source, evaluate
        self.config = engine.config
        self._tables: list[CpuTable | DeviceOptimizer] = list(engine.optimizers)
        self.history = History()
        self._folder = folder
        self._checkpoint = CheckpointFile(folder / "checkpoint.safetensors")
        self._best = folder / "best.safetensors"
        # The current epoch, and how many of its mega-batches are finished.
        self._epoch = self._mega = 0

    def run(self) -> History:
        """Train to the end, from the last checkpoint if there is one; the tables hold the final weights then.

        With a development set the final weights are those that scored best.

        Returns:
            The course of the run.

        Raises:
            DivergedError: A loss is not finite.
        """
        self._resume()
        config, runs = self.config, self._folder.with_suffix(".runs")
        total = config.epochs * self.source.pairs
        with (
            Progress("train", total, done=self.history.pairs, unit=self.source.unit) as progress,
            Reporter(config.report_to, runs, partial(_shown, config, runs)) as reporter,
        ):
            while self._epoch < config.epochs and not self.history.is_over(config):
                self._run_epoch(progress, reporter)
                self._epoch, self._mega = self._epoch + 1, 0
        # If writing the encoder fails, a later run continues from the last checkpoint.
        if self._checkpoint.is_due:
            self._save()
        self._catch_up()
        best = read_checkpoint(self._best) if self.evaluate is not None else None
        if best is not None:
            for index, table in enumerate(self._tables):
                table.weight.copy_(best[0][f"{index}"])
        return self.history

    def _run_epoch(self, progress: Progress, reporter: Reporter) -> None:
        """Train on the remaining mega-batches of the epoch, with evaluations and checkpoints."""
        points = evaluation_points(-(-self.source.pairs // self.config.mega_pairs), self.config)
        for mega in self._prepared():
            started = time.monotonic()
            losses = self.engine.train_on(mega, self._generator(self._mega))
            self._mega += 1
            self.history.pairs += mega.pairs
            if losses:
                self.history.add_loss(self._step, float(np.mean(losses)))
            if self._mega in points:
                self._score()
            self.history.seconds += time.monotonic() - started
            progress.advance_to(self.history.pairs, self.history.note)
            reporter.log(self._step, self.history.last)
            if self._checkpoint.is_due:
                self._save()
            if self.history.is_over(self.config):
                return

    def _generator(self, mega: int) -> np.random.Generator:
        """Return the random generator of a mega-batch of this epoch."""
        return np.random.default_rng([self.config.seed, self._epoch, mega, 1])

    def _prepared(self) -> Iterator[MegaBatch]:
        """Yield the remaining mega-batches of the epoch; for a device the next one is prepared in the background."""
        config, engine = self.config, self.engine
        megas = self.source.mega_batches(config.mega_pairs, seed=config.seed, epoch=self._epoch, start=self._mega)
        if isinstance(engine, CpuEngine):
            return megas
        # One thread reads mega-batches, another prepares them.
        numbered = enumerate(_ahead(megas), self._mega)
        return _ahead(engine.prepare(mega, self._generator(number)) for number, mega in numbered)

    @property
    def _step(self) -> int:
        """Number of steps so far."""
        return self._tables[0].step

    def _catch_up(self) -> None:
        """Apply the steps that rows have missed to all rows, and copy the tables to the host."""
        for table in self._tables:
            table.catch_up()

    def _score(self) -> None:
        """Score the weights on the development set, if there is one, and keep them if they are the best."""
        self._catch_up()
        if self.evaluate is not None and self.history.add_score(self._step, self.evaluate()):
            weights = {f"{index}": table.weight for index, table in enumerate(self._tables)}
            write_checkpoint(self._best, weights, {"step": self._step})

    def _save(self) -> None:
        """Write a checkpoint."""
        tensors: dict[str, torch.Tensor] = {}
        for index, table in enumerate(self._tables):
            tensors |= {f"{index}.{name}": value for name, value in table.state().items()}
        state = {"epoch": self._epoch, "mega": self._mega, "history": as_json(self.history), "step": self._step}
        self._checkpoint.write(tensors, state)

    def _resume(self) -> None:
        """Continue from the last checkpoint, if there is one."""
        found = self._checkpoint.read()
        if found is None:
            return
        tensors, state = found
        for index, table in enumerate(self._tables):
            table.restore({name: tensors[f"{index}.{name}"] for name in table.state()}, state["step"])
        self._epoch, self._mega = state["epoch"], state["mega"]
        self.history = from_json(History, state["history"], self._checkpoint.path)
        logger.info(f"continuing after {self.history.pairs:,} {self.source.unit}")


def _shown(config: TrainConfig, folder: Path) -> TrainingArguments:
    """Convert the settings to a form that a reporting service shows."""
    return TrainingArguments(
        output_dir=str(folder),
        learning_rate=config.learning_rate,
        num_train_epochs=config.epochs,
        per_device_train_batch_size=config.batch_size,
        seed=config.seed,
        use_cpu=True,
    )


def _ahead(items: Iterator[MegaBatch]) -> Iterator[MegaBatch]:
    """Compute each item in a background thread, while the item before it is in use."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, items, None)
        while (item := waiting.result()) is not None:
            waiting = pool.submit(next, items, None)
            yield item
