"""A training run with an engine of averaging encoders: epochs, evaluations, early stop, checkpoints."""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import torch
from transformers import TrainingArguments

from paranmt_hf.training import checkpoint
from paranmt_hf.training.checkpoint import read_checkpoint, write_checkpoint
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.cpu_engine import CpuEngine, CpuTable
from paranmt_hf.training.device.engine import DeviceEngine
from paranmt_hf.training.device.tables import DeviceOptimizer
from paranmt_hf.training.distributed import Processes
from paranmt_hf.training.pair_store import MegaBatch, PairStore
from paranmt_hf.training.pair_views import DistinctSentences, neighbour_order
from paranmt_hf.training.record import History
from paranmt_hf.training.reporting import Reporter
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import as_json, from_json

logger = logging.getLogger(__name__)
Evaluate = Callable[[], float]
Engine = CpuEngine | DeviceEngine
# Prepares a mega-batch before its turn, given the generator for its random negatives.
Prepare = Callable[[MegaBatch, np.random.Generator], MegaBatch]


def evaluation_points(count: int, config: TrainConfig) -> set[int]:
    """Mega-batches, of `count` in an epoch, after which the development set is scored, including the last."""
    return {-(-count * part // config.evaluations) for part in range(1, config.evaluations + 1)}


class Epochs:
    """Runs an engine over all epochs; checkpoints are in `folder`.

    `evaluate` scores the current weights on the development set. `prepare` is called with each mega-batch in a thread,
    while the engine trains on the one before. Of `processes` that train together rank 0 scores, writes and prints.
    """

    def __init__(
        self,
        engine: Engine,
        store: PairStore | DistinctSentences,
        folder: Path,
        evaluate: Evaluate | None = None,
        prepare: Prepare | None = None,
        processes: Processes | None = None,
    ) -> None:
        self.engine, self.store, self.evaluate, self._prepare = engine, store, evaluate, prepare
        self._processes = processes
        self._first = processes is None or processes.first
        self.config = engine.config
        self.history = History()
        self._checkpoint = folder / "checkpoint.safetensors"
        self._best = folder / "best.safetensors"
        # The epoch, and the number of its finished mega-batches.
        self._epoch = self._mega = 0
        # Vectors by which neighbours are found: the teacher's of each sentence, or their sum over both sides of each
        # pair [item, dimension].
        self._vectors: torch.Tensor | None = None

    def run(self) -> History:
        """Train to the end, from the last checkpoint if there is one; the tables hold the final weights.

        With a development set the final weights are those that scored best; of several processes, those of rank 0.

        Raises:
            DivergedError: A loss is not finite.
        """
        self._resume()
        if self._processes is not None:
            # Before rank 0 writes another checkpoint.
            self._processes.check_same("checkpoint", self._step, self._epoch, self._mega)
        config = self.config
        points = evaluation_points(-(-self.store.pairs // config.mega_pairs), config)
        total = config.epochs * self.store.pairs
        service, runs = config.report_to if self._first else None, self._checkpoint.parent.with_suffix(".runs")
        with (
            Progress("train", total, done=self.history.pairs, unit=self.store.unit, shown=self._first) as progress,
            Reporter(service, runs, partial(_shown, config, runs)) as reporter,
        ):
            saved = time.monotonic()
            while self._epoch < config.epochs and not self.history.is_over(config):
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
                    progress.advance_to(self.history.pairs, self._note())
                    reporter.log(self._step, self.history.last)
                    if time.monotonic() - saved >= checkpoint.CHECKPOINT_SECONDS:
                        self._save()
                        saved = time.monotonic()
                    if self.history.is_over(config):
                        break
                self._epoch, self._mega = self._epoch + 1, 0
        # If the encoder cannot be written, nothing is lost.
        self._save()
        if self._first:
            self._finish()
        return self.history

    def _generator(self, mega: int) -> np.random.Generator:
        """The random generator of a mega-batch of this epoch."""
        return np.random.default_rng([self.config.seed, self._epoch, mega, 1])

    def _prepared(self) -> Iterator[MegaBatch]:
        """The rest of the epoch; each mega-batch is prepared during the training of the previous one."""
        prepare, megas = self._prepare, self._mega_batches()
        if prepare is None:
            return megas
        # Reading in one thread, preparing in another.
        numbered = enumerate(_ahead(megas), self._mega)
        return _ahead(prepare(mega, self._generator(number)) for number, mega in numbered)

    def _mega_batches(self) -> Iterator[MegaBatch]:
        """The rest of the epoch."""
        config, teacher = self.config, self.engine.teacher
        if not config.neighbours or teacher is None:
            assert isinstance(self.store, PairStore)
            return self.store.mega_batches(config.mega_pairs, seed=config.seed, epoch=self._epoch, start=self._mega)
        keys = self.store.keys()
        if self._vectors is None:
            self._vectors = _near(torch.from_numpy(teacher.directions(keys)), self._tables[0].device)
        generator = np.random.default_rng([config.seed, self._epoch, 0, 2])
        order = neighbour_order(self._vectors, 2 * config.batch_size // keys.shape[1], generator)
        if self._processes is not None:
            # It depends on floating-point products.
            self._processes.check_same("order of sentences", zlib.crc32(order.tobytes()))
        if isinstance(self.store, DistinctSentences):
            return self.store.in_order(order, config.batch_size, config.mega_batch, start=self._mega)
        return self.store.in_order([order], config.mega_pairs, start=self._mega)

    @property
    def _tables(self) -> list[CpuTable | DeviceOptimizer]:
        return list(self.engine.optimizers)

    @property
    def _step(self) -> int:
        return self._tables[0].step

    def _note(self) -> str:
        note = f"loss {self.history.losses[-1][1]:.3f}" if self.history.losses else ""
        return f"{note}, dev {100 * self.history.scores[-1][1]:.1f}" if self.history.scores else note

    def _score(self) -> None:
        for table in self._tables:
            table.catch_up()
        if self.evaluate is None:
            return
        score = self.evaluate() if self._first else 0.0
        if self._processes is not None:
            score = self._processes.broadcast(score)
        if self.history.add_score(self._step, score) and self._first:
            weights = {f"{index}": table.weight for index, table in enumerate(self._tables)}
            write_checkpoint(self._best, weights, {"step": self._step})

    def _finish(self) -> None:
        for table in self._tables:
            table.catch_up()
        best = read_checkpoint(self._best) if self.evaluate is not None else None
        if best is not None:
            for index, table in enumerate(self._tables):
                table.weight.copy_(best[0][f"{index}"])

    def _save(self) -> None:
        if not self._first:
            return
        tensors: dict[str, torch.Tensor] = {}
        for index, table in enumerate(self._tables):
            tensors |= {f"{index}.{name}": value for name, value in table.state().items()}
        state = {"epoch": self._epoch, "mega": self._mega, "history": as_json(self.history)}
        write_checkpoint(self._checkpoint, tensors, {**state, "step": self._step})

    def _resume(self) -> None:
        found = read_checkpoint(self._checkpoint)
        if found is None:
            return
        tensors, state = found
        for index, table in enumerate(self._tables):
            prefix = f"{index}."
            own = {name.removeprefix(prefix): tensors[name] for name in tensors if name.startswith(prefix)}
            table.restore(own, state["step"])
        self._epoch, self._mega = state["epoch"], state["mega"]
        self.history = from_json(History, state["history"], self._checkpoint)
        if self._first:
            logger.info(f"continuing after {self.history.pairs:,} {self.store.unit}")


def _shown(config: TrainConfig, folder: Path) -> TrainingArguments:
    """The settings as a reporting service shows them."""
    return TrainingArguments(
        output_dir=str(folder),
        learning_rate=config.learning_rate,
        num_train_epochs=config.epochs,
        per_device_train_batch_size=config.batch_size,
        seed=config.seed,
        use_cpu=True,
    )


def _near(vectors: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Copy vectors to a GPU if they take at most a third of its memory; they stay on the host otherwise.

    Free memory would differ between runs and processes, and with it the rounding of products, and the order.
    """
    fits = device.type == "cuda" and 3 * vectors.nbytes < torch.cuda.get_device_properties(device).total_memory
    return vectors.to(device) if fits else vectors


def _ahead(items: Iterator[MegaBatch]) -> Iterator[MegaBatch]:
    """Compute each item in a thread while the previous one is in use."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, items, None)
        while (item := waiting.result()) is not None:
            waiting = pool.submit(next, items, None)
            yield item
