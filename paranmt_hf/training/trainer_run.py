"""Run the trainer: scores, history, checkpoints between mega-batches, and progress."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainingArguments
from transformers import TrainerControl, TrainerState, TrainingArguments

from paranmt_hf.encoders.composition import Composition, Part
from paranmt_hf.training import checkpoint
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.epochs import Evaluate, evaluation_points
from paranmt_hf.training.losses import Pull, rows_towards_initial, towards_initial, towards_zero
from paranmt_hf.training.optimizers import leave_first_row, make_optimizer
from paranmt_hf.training.pair_store import PairStore
from paranmt_hf.training.record import History
from paranmt_hf.training.reporting import Reporter
from paranmt_hf.training.sealed_trainer import CourseCallback, trainer_arguments
from paranmt_hf.training.teacher_vectors import TeacherVectors
from paranmt_hf.training.trainer import MegaBatchTrainer
from paranmt_hf.util.processes import is_rank_0
from paranmt_hf.util.progress import Progress


class HistoryCallback(CourseCallback):
    """Keeps the history of a run, scores the development set, and requests checkpoints between mega-batches.

    Args:
        folder: The folder that has the folder of checkpoints in it.
        config: How the model is trained.
        evaluate: Scores the current weights on the development set; None without one.
    """

    trainer: MegaBatchTrainer
    course: History

    def __init__(self, folder: Path, config: TrainConfig, evaluate: Evaluate | None) -> None:
        super().__init__(folder, History())
        self.config, self.evaluate = config, evaluate

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """After the last step of a mega-batch: add its loss to the history, score, and request a checkpoint if due."""
        steps, mega = self.trainer.steps, self.trainer.mega
        position = (state.global_step - 1) % len(steps)
        is_last = position + 1 == len(steps) or steps[position + 1][1] == 0
        if not is_last or mega is None:
            return
        self.course.pairs += mega.batch.pairs * args.world_size
        if self.trainer.losses:
            self.course.add_loss(state.global_step, float(np.mean(self.trainer.losses)))
            self.trainer.losses.clear()
        if self.evaluate is not None and mega.index + 1 in evaluation_points(steps[-1][0] + 1, self.config):
            if self.course.add_score(state.global_step, self._agreed(self.evaluate())):
                self.keep_best(state)
            if self.course.is_over(self.config):
                control.should_training_stop = True
        self.show(state.global_step, self.course.pairs, self.course.note)
        if self._agreed(self.is_due(checkpoint.CHECKPOINT_SECONDS)):
            control.should_save = True

    def _agreed(self, value: float) -> float:
        """Return the value that rank 0 has, so that all processes do the same."""
        if self.trainer.args.world_size == 1:
            return value
        own = torch.tensor([float(value)], dtype=torch.float64, device=self.trainer.args.device)
        return float(self.trainer.accelerator.gather(own)[0])


def _pulls(parts: Sequence[Part], config: TrainConfig, store: PairStore) -> list[Pull]:
    """Make the penalties of the weights (arXiv:1511.08198, equation 1); rows of tables without a pair never change.

    Args:
        parts: The parts of the encoder.
        config: Weights of the penalties.
        store: The pairs.
    """
    pulls: list[Pull] = []
    for part in parts:
        table = part.table.weight
        if not part.table.sparse:
            pulls += towards_initial([table], config.lambda_w)
        elif config.lambda_w:
            rows = torch.from_numpy(store.rows_of(part.unit_kind))
            pulls += rows_towards_initial(table, rows, config.lambda_w)
        towards = towards_zero if part.family.centre == "zero" else towards_initial
        pulls += towards(part.weights, config.lambda_c)
    return pulls


def _arguments(config: TrainConfig, folder: Path) -> SentenceTransformerTrainingArguments:
    """Create the arguments of the trainer, with checkpoints below `folder`."""
    use_cpu = config.device == "cpu" or not torch.cuda.is_available()
    return trainer_arguments(
        SentenceTransformerTrainingArguments,
        folder,
        learning_rate=config.learning_rate,
        precision=config.precision,
        use_cpu=use_cpu,
        seed=config.seed,
        num_train_epochs=config.epochs,
        # On the CPU the optimizer clips, because the gradients of tables are sparse there.
        max_grad_norm=0 if use_cpu or config.clip is None else config.clip,
        logging_steps=config.mega_batch,
    )


def train_with_trainer(
    model: SentenceTransformer,
    composition: Composition,
    store: PairStore,
    folder: Path,
    config: TrainConfig,
    evaluate: Evaluate | None = None,
    teacher: TeacherVectors | None = None,
) -> History:
    """Train a model to the end, from the last complete checkpoint if there is one.

    The model holds the final weights afterwards, with a development set those that scored best.

    Args:
        model: The model, with its initial weights.
        composition: The parts of the model.
        store: The pairs.
        folder: Folder for checkpoints.
        config: How the model is trained.
        evaluate: Scores the current weights on the development set; None without one.
        teacher: Vectors of the teacher; None without one.

    Returns:
        The course of the run.
    """
    callback, args, parts = HistoryCallback(folder, config, evaluate), _arguments(config, folder), composition.parts
    on_cpu = args.device.type == "cpu"
    with _trained_tables(parts, config, sparse=on_cpu):
        model.to(args.device)
        optimizer = make_optimizer(model, config, args.device)
        trainer = MegaBatchTrainer(
            model,
            args,
            store=store,
            parts=parts,
            config=config,
            pulls=_pulls(parts, config, store),
            teacher=teacher,
            callbacks=[callback],
            optimizers=(optimizer, None),
        )
        steps = config.epochs * len(trainer.steps)
        trainer.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: 1 - step / steps if config.decay else 1.0
        )
        last = callback.restore(trainer)
        service = config.report_to if is_rank_0() else None
        with (
            Progress("train", config.epochs * store.pairs, done=callback.course.pairs, unit=store.unit) as progress,
            Reporter(service, folder.with_suffix(".runs"), lambda: args) as reporter,
        ):
            callback.progress, callback.reporter = progress, reporter
            trainer.run_from(last, over=callback.course.is_over(config))
    if evaluate is not None:
        callback.load_best(model)
    return callback.course


@contextmanager
def _trained_tables(parts: Sequence[Part], config: TrainConfig, *, sparse: bool) -> Iterator[None]:
    """Set up the tables of an encoder for training, inside a `with` block.

    Args:
        parts: The parts of the encoder.
        config: How it is trained.
        sparse: Whether the gradients of tables are sparse, so that a step does not touch the whole table. That is for
            the CPU; a GPU updates a whole table faster than it sorts rows.
    """
    fixed = [part.table.weight for part in parts if config.freeze_words and part.family.units == "word"]
    for weight in fixed:
        weight.requires_grad_(False)
    hooks = []
    for part in parts:
        part.table.sparse = sparse
        weight = part.table.weight
        if weight.requires_grad and not bool(weight[0].any()):
            # Row 0, of unknown units, is zeros unless it is trained.
            hooks.append(leave_first_row(weight))
    try:
        yield
    finally:
        for part in parts:
            part.table.sparse = False
        for hook in hooks:
            hook.remove()
        for weight in fixed:
            weight.requires_grad_(True)
