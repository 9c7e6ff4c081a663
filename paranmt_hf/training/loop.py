"""The course of a run on the CPU: epochs, evaluations, early stopping, checkpoints, going on after a kill."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from paranmt_hf.training.arithmetic import Arithmetic
from paranmt_hf.training.averaging import AveragingTrainer
from paranmt_hf.training.checkpoint import read_checkpoint, write_checkpoint
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.history import History
from paranmt_hf.training.neighbours import neighbour_order
from paranmt_hf.training.pair_store import MegaBatch, PairStore
from paranmt_hf.util.progress import Progress

logger = logging.getLogger(__name__)
Evaluate = Callable[[], float]


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
        store: The pairs.
        folder: For checkpoints.
        evaluate: Scores the weights as they are on the development set; None if there is none.
    """

    def __init__(
        self, trainer: AveragingTrainer, store: PairStore, folder: Path, evaluate: Evaluate | None = None
    ) -> None:
        self.trainer, self.store, self.evaluate = trainer, store, evaluate
        self.config = trainer.config
        self.history = History()
        self._checkpoint = folder / "checkpoint.safetensors"
        self._best = folder / "best.safetensors"
        self._position = _Position()
        # The teacher's vectors of both sides of each pair, added up [pair, dimension].
        self._sums: np.ndarray | None = None

    def run(self) -> History:
        """Train to the end, from the last checkpoint if there is one; the tables hold the final weights.

        With a development set the final weights are those that scored best.

        Raises:
            InputError: The loss is not a number, or a checkpoint cannot be written.
        """
        self._resume()
        self.history.arithmetic = self.trainer.arithmetic.as_dict()
        config, position = self.config, self._position
        points = evaluation_points(-(-self.store.pairs // config.mega_pairs), config)
        total = config.epochs * self.store.pairs
        with Progress("train", total, done=self.history.pairs, unit="pairs") as progress:
            saved = time.monotonic()
            while position.epoch < config.epochs and not self._is_over():
                for mega in self._mega_batches():
                    started = time.monotonic()
                    generator = np.random.default_rng([config.seed, position.epoch, position.mega, 1])
                    losses = self.trainer.train_on(mega, generator)
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
        self._finish()
        return self.history

    def _mega_batches(self) -> Iterator[MegaBatch]:
        """What is left of the epoch."""
        config, position, teacher = self.config, self._position, self.trainer.teacher
        if not config.neighbours or teacher is None:
            return self.store.mega_batches(
                config.mega_pairs, seed=config.seed, epoch=position.epoch, start=position.mega
            )
        if self._sums is None:
            self._sums = teacher.of_pairs(self.store.keys())
        generator = np.random.default_rng([config.seed, position.epoch, 0, 2])
        order = neighbour_order(self._sums, config.batch_size, generator)
        return self.store.in_order(order, config.mega_pairs, start=position.mega)

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
        if self.evaluate is not None and self.history.add_score(self._step, self.evaluate()):
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
        logger.info(f"going on after {self.history.pairs:,} pairs")
