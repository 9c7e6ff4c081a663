"""A run with the trainer: scores, history, checkpoints between mega-batches, progress."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainingArguments
from transformers import PrinterCallback, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from paranmt_hf.encoders.composition import Part
from paranmt_hf.encoders.prefixes import by_prefix
from paranmt_hf.training import checkpoint
from paranmt_hf.training.checkpoint import (
    read_checkpoint,
    read_sealed,
    seal,
    set_weights,
    weights_of,
    write_checkpoint,
)
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.epochs import Evaluate, evaluation_points
from paranmt_hf.training.losses import Pull, rows_towards_initial, towards_initial, towards_zero
from paranmt_hf.training.optimizers import leave_first_row, make_optimizer
from paranmt_hf.training.pair_store import PairStore
from paranmt_hf.training.record import History
from paranmt_hf.training.reporting import Reporter
from paranmt_hf.training.teacher import TeacherVectors
from paranmt_hf.training.trainer import MegaBatchTrainer
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import as_json, from_json

BEST = "best.safetensors"


class HistoryCallback(TrainerCallback):
    """Scores the development set, keeps the history, checkpoints between mega-batches and shows the progress."""

    # Set before training begins.
    trainer: MegaBatchTrainer
    progress: Progress
    reporter: Reporter

    def __init__(self, folder: Path, config: TrainConfig, evaluate: Evaluate | None) -> None:
        self.folder, self.config, self.evaluate = folder, config, evaluate
        self.history = History()
        self._saved = self._ended = time.monotonic()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """After the last step of a mega-batch: add the loss, score, and request a checkpoint."""
        plan, mega = self.trainer.plan, self.trainer._mega
        position = (state.global_step - 1) % len(plan)
        at_end = position + 1 == len(plan) or plan[position + 1][1] == 0
        if not at_end or mega is None:
            return
        self.history.pairs += len(mega.own) * args.world_size
        if self.trainer.losses:
            self.history.add_loss(state.global_step, float(np.mean(self.trainer.losses)))
            self.trainer.losses.clear()
        if plan[position][0] + 1 in evaluation_points(plan[-1][0] + 1, self.config):
            self._score(state, control)
        self.history.seconds += time.monotonic() - self._ended
        self._ended = time.monotonic()
        self.reporter.log(state.global_step, self.history.last)
        note = f"dev {100 * self.history.scores[-1][1]:.1f}" if self.history.scores else ""
        self.progress.advance_to(self.history.pairs, note)
        if self._agreed(time.monotonic() - self._saved >= checkpoint.CHECKPOINT_SECONDS):
            control.should_save = True

    def _agreed(self, value: float) -> float:
        """Return the value of rank 0, so that all processes do the same."""
        if self.trainer.args.world_size == 1:
            return value
        own = torch.tensor([float(value)], dtype=torch.float64, device=self.trainer.args.device)
        return float(self.trainer.accelerator.gather(own)[0])

    def _score(self, state: TrainerState, control: TrainerControl) -> None:
        if self.evaluate is None:
            return
        better = self.history.add_score(state.global_step, self._agreed(self.evaluate()))
        if better and state.is_world_process_zero:
            write_checkpoint(self.folder / BEST, weights_of(self.trainer.model), {"step": state.global_step})
        if self.history.is_over(self.config):
            control.should_training_stop = True

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Mark a checkpoint as complete."""
        self._saved = time.monotonic()
        if state.is_world_process_zero:
            folder = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
            seal(folder, as_json(self.history))


def _pulls(parts: Sequence[Part], config: TrainConfig, store: PairStore) -> list[Pull]:
    """The regularised weights (arXiv:1511.08198, equation 1); table rows without a pair never change."""
    pulls: list[Pull] = []
    for part in parts:
        table = part.table.weight
        if not part.table.sparse:
            pulls += towards_initial([table], config.lambda_w)
        elif config.lambda_w:
            rows = torch.from_numpy(store.rows_of(part.reader))
            pulls += rows_towards_initial(table, rows, config.lambda_w)
        pulls += (towards_zero if part.family.centre == "zero" else towards_initial)(part.weights, config.lambda_c)
    return pulls


def _arguments(config: TrainConfig, folder: Path) -> SentenceTransformerTrainingArguments:
    use_cpu = config.device == "cpu" or not torch.cuda.is_available()
    args = SentenceTransformerTrainingArguments(
        output_dir=str(folder),
        num_train_epochs=config.epochs,
        per_device_train_batch_size=1,
        learning_rate=config.learning_rate,
        # On the CPU the optimizer clips, because the gradients of tables are sparse there.
        max_grad_norm=0 if use_cpu or config.clip is None else config.clip,
        logging_steps=config.mega_batch,
        save_strategy="no",
        save_total_limit=2,
        report_to="none",
        bf16=config.precision == "bf16",
        fp16=config.precision == "fp16",
        use_cpu=use_cpu,
        seed=config.seed,
        disable_tqdm=True,
    )
    # With several GPUs one process would otherwise split the bags of a batch.
    if args.device.type == "cuda":
        args._n_gpu = 1
    return args


def train_with_trainer(
    model: SentenceTransformer,
    parts: Sequence[Part],
    store: PairStore,
    folder: Path,
    config: TrainConfig,
    evaluate: Evaluate | None = None,
    teacher: TeacherVectors | None = None,
) -> History:
    """Train to the end, from the last complete checkpoint in `folder` if there is one.

    The model holds the final weights afterwards; if `evaluate` scores it on a development set, those that scored best.
    """
    callback, args = HistoryCallback(folder, config, evaluate), _arguments(config, folder / "trainer")
    on_cpu, tables = args.device.type == "cpu", [part.table.weight for part in parts]
    fixed = [part.table.weight for part in parts if config.freeze_words and part.family.units == "word"]
    for weight in fixed:
        weight.requires_grad_(False)
    with by_prefix(model.modules() if on_cpu else ()):
        # On the CPU a step must not touch the whole table; a GPU does that faster than it sorts rows.
        for part in parts:
            part.table.sparse = on_cpu
        model.to(args.device)
        optimizer = make_optimizer(model, config, args.device)
        # Row 0, of unknown units, is zeros unless it is trained.
        hooks = [leave_first_row(weight) for weight in tables if weight.requires_grad and not bool(weight[0].any())]
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
        trainer.remove_callback(PrinterCallback)
        steps = config.epochs * len(trainer.plan)
        trainer.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: 1 - step / steps if config.decay else 1.0
        )
        if (last := trainer.last_checkpoint()) is not None:
            callback.history = from_json(History, read_sealed(last), last)
        total = config.epochs * store.pairs
        # Rank 0 reports.
        service = config.report_to if args.process_index == 0 else None
        with (
            Progress("train", total, done=callback.history.pairs, unit=store.unit) as progress,
            Reporter(service, folder.with_suffix(".runs"), args) as reporter,
        ):
            callback.trainer, callback.progress, callback.reporter = trainer, progress, reporter
            trainer.run_from(last, over=callback.history.is_over(config))
        for part in parts:
            part.table.sparse = False
        for hook in hooks:
            hook.remove()
    for weight in fixed:
        weight.requires_grad_(True)
    best = read_checkpoint(folder / BEST) if evaluate is not None else None
    if best is not None:
        set_weights(model, best[0])
    return callback.history
