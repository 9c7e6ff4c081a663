"""The course of a run of averaging encoders: epochs, evaluations, early stop, checkpoints, going on after a kill."""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch

from paranmt_hf.training.arithmetic import Arithmetic
from paranmt_hf.training.checkpoint import read_checkpoint, write_checkpoint
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.distinct_sentences import DistinctSentences
from paranmt_hf.training.history import History
from paranmt_hf.training.neighbours import neighbour_order
from paranmt_hf.training.pair_store import MegaBatch, PairStore
from paranmt_hf.training.processes import Processes
from paranmt_hf.training.teacher import TeacherVectors
from paranmt_hf.util.progress import Progress

logger = logging.getLogger(__name__)
Evaluate = Callable[[], float]
# What a trainer does with a mega-batch before its turn, given the generator for its random negatives.
Prepare = Callable[[MegaBatch, np.random.Generator], MegaBatch]


class Optimizer(Protocol):
    """What the loop asks of the optimiser of a table."""

    # Number of steps made.
    step: int
    # The model's table on the host [row, dimension], with all rows as of now after `catch_up`.
    weight: torch.Tensor

    def catch_up(self) -> None:
        """Bring all rows up to date."""
        ...

    def state(self) -> dict[str, torch.Tensor]:
        """Everything that a checkpoint must hold but the number of steps."""
        ...

    def restore(self, state: dict[str, torch.Tensor], step: int) -> None:
        """Go back to a checkpoint."""
        ...


class Table(Protocol):
    """What the loop asks of a table under training."""

    @property
    def optimizer(self) -> Optimizer:
        """Its optimiser."""
        ...


class Trainer(Protocol):
    """What the loop asks of a trainer of averaging encoders."""

    config: TrainConfig
    teacher: TeacherVectors | None
    arithmetic: Arithmetic

    def compute_with(self, arithmetic: Arithmetic) -> None:
        """Compute in another way from now on: as a checkpoint says."""
        ...

    @property
    def tables(self) -> Sequence[Table]:
        """The encoders' tables."""
        ...

    def train_on(self, mega: MegaBatch, generator: np.random.Generator) -> list[float]:
        """Mine negatives once, then make one step for each mini-batch; returns the loss of each."""
        ...


def steps_of(pairs: int, config: TrainConfig) -> int:
    """Number of steps of an epoch: a mini-batch never reaches over the end of its mega-batch."""
    whole, rest = divmod(pairs, config.mega_pairs)
    return whole * config.mega_batch + -(-rest // config.batch_size)


def learning_rates(pairs: int, config: TrainConfig) -> np.ndarray:
    """Learning rate of each step [step]: constant, or falling linearly to zero."""
    steps = config.epochs * steps_of(pairs, config)
    rates = np.full(steps, config.learning_rate)
    return rates * (1 - np.arange(steps) / steps) if config.decay else rates


def evaluation_points(count: int, config: TrainConfig) -> set[int]:
    """Mega-batches, of `count` in an epoch, after which the development set is scored; the last is among them."""
    return {-(-count * part // config.evaluations) for part in range(1, config.evaluations + 1)}


@dataclass
class _Position:
    """Where a run is: the epoch, and how many of its mega-batches are done."""

    epoch: int = 0
    mega: int = 0


class Loop:
    """Runs the training of averaging encoders.

    Args:
        trainer: The encoder under training.
        store: The pairs, or the sentences of which a teacher alone tells something.
        folder: For checkpoints.
        evaluate: Scores the weights as they are on the development set; None if there is none.
        prepare: Done with each mega-batch in a thread, while the trainer is at the one before.
        processes: Those that train together; the first one scores, writes and tells. None if this one is alone.
    """

    def __init__(
        self,
        trainer: Trainer,
        store: PairStore | DistinctSentences,
        folder: Path,
        evaluate: Evaluate | None = None,
        prepare: Prepare | None = None,
        processes: Processes | None = None,
    ) -> None:
        self.trainer, self.store, self.evaluate, self._prepare = trainer, store, evaluate, prepare
        self._processes = processes
        self._first = processes is None or processes.first
        self.config = trainer.config
        self.history = History()
        self._checkpoint = folder / "checkpoint.safetensors"
        self._best = folder / "best.safetensors"
        self._position = _Position()
        # By what neighbours are found: the teacher's vector of each sentence, or the sum of those of each pair's two
        # sides [item, dimension].
        self._vectors: np.ndarray | None = None

    def run(self) -> History:
        """Train to the end, from the last checkpoint if there is one; the tables hold the final weights.

        With a development set the final weights are those that scored best; of several processes, in the first one.

        Raises:
            InputError: The loss is not a number, or a checkpoint cannot be written.
        """
        self._resume()
        if self._processes is not None:
            # Before the first one writes another checkpoint.
            self._processes.check_same("checkpoint", self._step, self._position.epoch, self._position.mega)
        self.history.arithmetic = self.trainer.arithmetic.as_dict()
        config, position = self.config, self._position
        points = evaluation_points(-(-self.store.pairs // config.mega_pairs), config)
        total = config.epochs * self.store.pairs
        with Progress("train", total, done=self.history.pairs, unit=self.store.unit, shown=self._first) as progress:
            saved = time.monotonic()
            while position.epoch < config.epochs and not self._is_over():
                for mega in self._prepared():
                    started = time.monotonic()
                    losses = self.trainer.train_on(mega, self._generator(position.mega))
                    position.mega += 1
                    self.history.pairs += mega.pairs
                    if losses:
                        self.history.add_loss(self._step, float(np.mean(losses)))
                    if position.mega in points:
                        self._score()
                    self.history.seconds += time.monotonic() - started
                    progress.advance_to(self.history.pairs, self._note())
                    if time.monotonic() - saved >= config.checkpoint_seconds:
                        self._save()
                        saved = time.monotonic()
                    if self._is_over():
                        break
                position.epoch, position.mega = position.epoch + 1, 0
        # If the encoder cannot be written now, nothing of this is lost.
        self._save()
        if self._first:
            self._finish()
        return self.history

    def _generator(self, mega: int) -> np.random.Generator:
        """For the random negatives of a mega-batch of this epoch."""
        return np.random.default_rng([self.config.seed, self._position.epoch, mega, 1])

    def _prepared(self) -> Iterator[MegaBatch]:
        """What is left of the epoch, each mega-batch prepared while the one before is in use."""
        prepare, megas = self._prepare, self._mega_batches()
        if prepare is None:
            return megas
        # Reading in one thread, preparing in another.
        numbered = enumerate(_ahead(megas), self._position.mega)
        return _ahead(prepare(mega, self._generator(number)) for number, mega in numbered)

    def _mega_batches(self) -> Iterator[MegaBatch]:
        """What is left of the epoch."""
        config, position, teacher = self.config, self._position, self.trainer.teacher
        generator = np.random.default_rng([config.seed, position.epoch, 0, 2])
        if isinstance(self.store, DistinctSentences):
            assert teacher is not None
            if self._vectors is None:
                self._vectors = teacher.units(self.store.keys)
            order = self._agreed(neighbour_order(self._vectors, 2 * config.batch_size, generator))
            return self.store.in_order(order, config.batch_size, config.mega_batch, start=position.mega)
        if not config.neighbours or teacher is None:
            return self.store.mega_batches(
                config.mega_pairs, seed=config.seed, epoch=position.epoch, start=position.mega
            )
        if self._vectors is None:
            self._vectors = teacher.of_pairs(self.store.keys())
        order = self._agreed(neighbour_order(self._vectors, config.batch_size, generator))
        return self.store.in_order(order, config.mega_pairs, start=position.mega)

    def _agreed(self, order: np.ndarray) -> np.ndarray:
        """Make sure that all processes have the same order, which follows from products of floating-point numbers."""
        if self._processes is not None:
            self._processes.check_same("order of sentences", zlib.crc32(order.tobytes()))
        return order

    @property
    def _step(self) -> int:
        return self.trainer.tables[0].optimizer.step

    def _is_over(self) -> bool:
        return self.config.patience is not None and self.history.stale >= self.config.patience

    def _note(self) -> str:
        note = f"loss {self.history.losses[-1][1]:.3f}" if self.history.losses else ""
        return f"{note}, dev {100 * self.history.scores[-1][1]:.1f}" if self.history.scores else note

    def _score(self) -> None:
        for table in self.trainer.tables:
            table.optimizer.catch_up()
        if self.evaluate is None:
            return
        score = self.evaluate() if self._first else 0.0
        if self._processes is not None:
            score = self._processes.first_tells(score)
        if self.history.add_score(self._step, score) and self._first:
            weights = {f"{index}": table.optimizer.weight for index, table in enumerate(self.trainer.tables)}
            write_checkpoint(self._best, weights, {"step": self._step})

    def _finish(self) -> None:
        for table in self.trainer.tables:
            table.optimizer.catch_up()
        best = read_checkpoint(self._best) if self.evaluate is not None else None
        if best is not None:
            for index, table in enumerate(self.trainer.tables):
                table.optimizer.weight.copy_(best[0][f"{index}"])

    def _save(self) -> None:
        if not self._first:
            return
        tensors: dict[str, torch.Tensor] = {}
        for index, table in enumerate(self.trainer.tables):
            tensors |= {f"{index}.{name}": value for name, value in table.optimizer.state().items()}
        state = {"epoch": self._position.epoch, "mega": self._position.mega, "history": self.history.as_dict()}
        write_checkpoint(self._checkpoint, tensors, {**state, "step": self._step})

    def _resume(self) -> None:
        checkpoint = read_checkpoint(self._checkpoint)
        if checkpoint is None:
            return
        tensors, state = checkpoint
        for index, table in enumerate(self.trainer.tables):
            prefix = f"{index}."
            own = {name.removeprefix(prefix): tensors[name] for name in tensors if name.startswith(prefix)}
            table.optimizer.restore(own, state["step"])
        self._position = _Position(state["epoch"], state["mega"])
        self.history = History.from_dict(state["history"])
        # What was chosen when the run began counts, else its bytes would not be those of a run without interruption.
        self.trainer.compute_with(Arithmetic.of_checkpoint(self.history.arithmetic))
        if self._first:
            logger.info(f"going on after {self.history.pairs:,} {self.store.unit}")


def _ahead(items: Iterator[MegaBatch]) -> Iterator[MegaBatch]:
    """Make each item in a thread while the one before is in use."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, items, None)
        while (item := waiting.result()) is not None:
            waiting = pool.submit(next, items, None)
            yield item
