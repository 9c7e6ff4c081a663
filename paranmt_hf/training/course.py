"""The course of a run through the trainer: scores, history, checkpoints between mega-batches, progress."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from paranmt_hf.training.checkpoint import COMPLETE, seal, write_checkpoint
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.epochs import Evaluate, evaluation_points
from paranmt_hf.training.history import History
from paranmt_hf.training.pair_store import PairStore
from paranmt_hf.util.progress import Progress


class Course(TrainerCallback):
    """Scores the development set, notes the history, checkpoints between mega-batches, tells the progress."""

    def __init__(self, folder: Path, store: PairStore, config: TrainConfig, evaluate: Evaluate | None) -> None:
        self.folder, self.store, self.config, self.evaluate = folder, store, config, evaluate
        self.history = History()
        self.trainer: Any = None
        self._saved = self._ended = time.monotonic()
        self.progress: Progress | None = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Start the clocks."""
        self._saved = self._ended = time.monotonic()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """After the last step of a mega-batch: note, score, ask for a checkpoint."""
        assert self.trainer is not None
        plan = self.trainer.plan
        position = (state.global_step - 1) % len(plan)
        at_end = position + 1 == len(plan) or plan[position + 1][1] == 0
        mega = self.trainer._mega
        if not at_end or mega is None:
            return
        self.history.pairs += len(mega.own) * args.world_size
        if self.trainer.losses:
            self.history.add_loss(state.global_step, float(np.mean(self.trainer.losses)))
            self.trainer.losses.clear()
        done = plan[position][0] + 1
        if done in evaluation_points(plan[-1][0] + 1, self.config):
            self._score(state, control)
        self.history.seconds += time.monotonic() - self._ended
        self._ended = time.monotonic()
        if self.progress is not None:
            note = f"dev {100 * self.history.scores[-1][1]:.1f}" if self.history.scores else ""
            self.progress.advance_to(self.history.pairs, note)
        if self._agreed(time.monotonic() - self._saved >= self.config.checkpoint_seconds):
            control.should_save = True

    def _agreed(self, value: float) -> float:
        """What the first process has, so that all of them do the same."""
        assert self.trainer is not None
        if self.trainer.args.world_size == 1:
            return value
        own = torch.tensor([float(value)], dtype=torch.float64, device=self.trainer.args.device)
        return float(self.trainer.accelerator.gather(own)[0])

    def _score(self, state: TrainerState, control: TrainerControl) -> None:
        if self.evaluate is None or self.trainer is None:
            return
        better = self.history.add_score(state.global_step, self._agreed(self.evaluate()))
        if better and state.is_world_process_zero:
            weights = {name: value.detach().cpu() for name, value in self.trainer.model.state_dict().items()}
            write_checkpoint(self.folder / "best.safetensors", weights, {"step": state.global_step})
        if self.is_over:
            control.should_training_stop = True

    @property
    def is_over(self) -> bool:
        """Whether the development score has not risen for too long."""
        return self.config.patience is not None and self.history.stale >= self.config.patience

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Mark a checkpoint as whole."""
        self._saved = time.monotonic()
        if state.is_world_process_zero:
            folder = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
            seal(folder, self.history.as_dict())


def forget_cut_off(folder: Path) -> None:
    """Remove checkpoints that were cut off, lest they push whole ones out."""
    for path in folder.glob("checkpoint-*"):
        if not (path / COMPLETE).exists():
            shutil.rmtree(path)


def last_checkpoint(folder: Path) -> Path | None:
    """Find the last checkpoint of the trainer that was written to its end."""
    whole = [path.parent for path in folder.glob(f"checkpoint-*/{COMPLETE}")]
    return max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)
