"""Training through `Seq2SeqTrainer`: on any step a run can end and go on as if it had not."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader
from transformers import (
    PrinterCallback,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from paranmt_hf.errors import InputError
from paranmt_hf.paraphrase.config import ParaphraserTraining
from paranmt_hf.paraphrase.loading import EncoderDecoder
from paranmt_hf.paraphrase.measuring import logits_of
from paranmt_hf.paraphrase.modeling_paranmt_lstm import IGNORED, token_loss
from paranmt_hf.paraphrase.piece_store import Batches
from paranmt_hf.paraphrase.record import Course, Measured
from paranmt_hf.training.checkpoint import read_checkpoint, read_sealed, seal, write_checkpoint
from paranmt_hf.training.record import thinned
from paranmt_hf.training.trainer_run import forget_cut_off, last_checkpoint
from paranmt_hf.util.files import writing
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import from_json

WEIGHTS, BEST = "weights.safetensors", "best.safetensors"
# Losses are read from the device, and the time for a checkpoint looked at, after so many steps.
NOTED = 20
# No model that learns comes to such a loss of a piece, in natural logarithms; nor to one that is not a number.
ABSURD = 1e4
# Measures the model after a step.
Measure = Callable[[int], Measured]


class PieceTrainer(Seq2SeqTrainer):
    """A trainer whose batches are known by the number of their step, and whose checkpoints a kill cannot spoil.

    Args:
        own: The model and its tokenizer.
        args: Arguments of the trainer.
        batches: All batches of the run.
        smoothing: Label smoothing.
    """

    def __init__(
        self, own: EncoderDecoder, args: Seq2SeqTrainingArguments, batches: Batches, smoothing: float, **options: Any
    ) -> None:
        self._own, self._batches, self._smoothing = own, batches, smoothing
        self.losses: list[torch.Tensor] = []
        self.counted = torch.zeros(2, dtype=torch.int64)
        super().__init__(own.model, args, train_dataset=batches, **options)
        # The loss is a mean already, whatever arguments the model takes.
        self.model_accepts_loss_kwargs = False

    def get_train_dataloader(self) -> DataLoader:
        """All batches in their order; the seed has mixed them already."""
        loader: DataLoader = self.accelerator.prepare(DataLoader(self._batches, batch_size=1, collate_fn=_only))
        return loader

    def compute_loss(
        self, model: nn.Module, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: object = None
    ) -> Any:  # noqa: ANN401
        """Cross-entropy of the targets with label smoothing, the same for every kind of model."""
        labels = inputs["labels"]
        logits = logits_of(self._own, inputs, model)
        loss = token_loss(logits, labels, self._smoothing)
        self.losses.append(loss.detach())
        self.counted += torch.tensor([len(labels), int((labels != IGNORED).sum())])
        return (loss, {}) if return_outputs else loss

    def _save_checkpoint(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        """Write a checkpoint; of what the trainer's own files need, an error names the path."""
        with writing(Path(str(self.args.output_dir)) / f"checkpoint-{self.state.global_step}"):
            super()._save_checkpoint(*arguments, **options)

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        """Write the weights of a checkpoint, with a checksum."""
        if self.args.should_save:
            folder = Path(output_dir or str(self.args.output_dir))
            folder.mkdir(parents=True, exist_ok=True)
            write_checkpoint(folder / WEIGHTS, weights_of(self._own.model), {})

    def _load_from_checkpoint(self, checkpoint_path: str, model: nn.Module | None = None) -> None:
        """Read what `_save` wrote."""
        found = read_checkpoint(Path(checkpoint_path) / WEIGHTS)
        if found is None:
            raise InputError(f"{checkpoint_path} has no {WEIGHTS}; remove it and run again")
        set_weights(self._own.model, found[0])


def _only(items: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    (item,) = items
    return item


def weights_of(model: nn.Module) -> dict[str, torch.Tensor]:
    """Weights by name, shared ones once."""
    return {name: value.detach().cpu().contiguous() for name, value in model.named_parameters()}


def set_weights(model: nn.Module, weights: dict[str, torch.Tensor]) -> None:
    """Put weights into a model.

    Raises:
        InputError: They are not this model's.
    """
    names = [name for name, _ in model.named_parameters()]
    if sorted(names) != sorted(weights):
        raise InputError("a checkpoint is of another model; remove the work folder and run again, from the start")
    model.load_state_dict(weights, strict=False)


class _Noting(TrainerCallback):
    """Notes the course, measures, asks for checkpoints, tells the progress."""

    def __init__(self, folder: Path, config: ParaphraserTraining, steps: int, measure: Measure | None) -> None:
        self.folder, self.config, self.steps, self.measure = folder, config, steps, measure
        self.course = Course()
        self.trainer: PieceTrainer | None = None
        self.progress: Progress | None = None
        self._saved = self._noted = time.monotonic()
        every = max(1, round(steps / config.evaluations))
        self._measured = {*range(every, steps - every // 2, every), steps} if measure is not None else set()

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Start the clocks."""
        self._saved = self._noted = time.monotonic()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Note the loss from time to time, measure where it is time, ask for a checkpoint."""
        step = state.global_step
        measured = step in self._measured
        if not (measured or step % NOTED == 0 or step == self.steps):
            return
        assert self.trainer is not None
        self._note(step)
        if measured:
            self._measure(step, state)
        self.course.seconds += time.monotonic() - self._noted
        self._noted = time.monotonic()
        if self.progress is not None:
            note = f"loss {self.course.losses[-1][1]:.2f}"
            if self.course.measured:
                note += f", held-out perplexity {self.course.measured[-1].perplexity:.1f}"
            self.progress.advance_to(step, note)
        if time.monotonic() - self._saved >= self.config.checkpoint_seconds:
            control.should_save = True

    def _note(self, step: int) -> None:
        trainer = self.trainer
        assert trainer is not None
        loss = float(torch.stack(trainer.losses).mean()) if trainer.losses else self.course.losses[-1][1]
        if not loss < ABSURD:
            raise InputError(f"training diverged: the loss is {loss:g} at step {step:,}; lower --learning-rate")
        self.course.losses = thinned([*self.course.losses, (step, loss)])
        self.course.steps = step
        pairs, tokens = trainer.counted.tolist()
        self.course.pairs += pairs * trainer.args.world_size
        self.course.tokens += tokens * trainer.args.world_size
        trainer.losses.clear()
        trainer.counted.zero_()

    def _measure(self, step: int, state: TrainerState) -> None:
        assert self.measure is not None and self.trainer is not None
        found = self.measure(step)
        best = self.course.best
        self.course.measured.append(found)
        if state.is_world_process_zero and (best is None or found.loss < best.loss):
            write_checkpoint(self.folder / BEST, weights_of(self.trainer._own.model), {"step": step})

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Mark a checkpoint as whole."""
        self._saved = time.monotonic()
        if state.is_world_process_zero:
            folder = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
            seal(folder, asdict(self.course))


def train_pieces(
    own: EncoderDecoder,
    batches: Batches,
    folder: Path,
    config: ParaphraserTraining,
    measure: Measure | None = None,
    callbacks: tuple[TrainerCallback, ...] = (),
    label: str = "train",
) -> Course:
    """Train to the end, from the last whole checkpoint if there is one.

    Args:
        own: The model; it holds the weights of the lowest held-out loss afterwards, without held-out pairs the last.
        batches: All batches of the run.
        folder: For checkpoints.
        config: The settings, resolved.
        measure: Measures the model on held-out pairs.
        callbacks: More callbacks for the trainer.
        label: What is trained, for the progress.

    Raises:
        InputError: A loss is not a number, a checkpoint cannot be written or is damaged.
    """
    use_cpu = config.device == "cpu" or not torch.cuda.is_available()
    precision = config.precision
    if precision == "auto":
        precision = "bf16" if not use_cpu and torch.cuda.is_bf16_supported() else "fp32"
    args = Seq2SeqTrainingArguments(
        output_dir=str(folder / "trainer"),
        num_train_epochs=1,
        per_device_train_batch_size=1,
        learning_rate=config.learning_rate,
        # The loss is reported as often as it is noted.
        logging_steps=NOTED,
        optim="adamw_torch",
        weight_decay=0.0,
        max_grad_norm=config.clip,
        logging_strategy="steps" if config.report_to else "no",
        save_strategy="no",
        save_total_limit=2,
        report_to=[config.report_to] if config.report_to else "none",
        bf16=precision == "bf16",
        fp16=precision == "fp16",
        use_cpu=use_cpu,
        seed=config.seed,
        disable_tqdm=True,
        # It would go into the model's configuration, and to its users.
        use_cache=bool(getattr(own.model.config, "use_cache", True)),
        remove_unused_columns=False,
    )
    # Several GPUs are for several processes; one process would otherwise cut batches apart.
    if args.device.type == "cuda":
        args._n_gpu = 1
    steps = max(1, len(batches) // args.world_size)
    steps = min(steps, config.max_steps or steps)
    args.max_steps = steps
    noting = _Noting(folder, config, steps, measure)
    own.model.to(args.device)
    # Adam of torch without decay of weights, as the trainer makes it, under our own schedule.
    optimizer = torch.optim.AdamW(own.model.parameters(), lr=args.learning_rate, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: config.rate(step, steps))
    trainer = PieceTrainer(
        own,
        args,
        batches,
        config.label_smoothing,
        callbacks=[noting, *callbacks],
        optimizers=(optimizer, schedule),
    )
    trainer.remove_callback(PrinterCallback)
    noting.trainer = trainer
    checkpoint = last_checkpoint(folder / "trainer")
    if args.process_index == 0:
        # Also where no whole one is there: one of a later step would push those out that come now.
        forget_cut_off(folder / "trainer")
    if checkpoint is not None:
        noting.course = from_json(Course, read_sealed(checkpoint), checkpoint)
    with Progress(label, steps, done=noting.course.steps, unit="steps") as progress:
        noting.progress = progress
        if noting.course.steps >= steps:
            trainer._load_from_checkpoint(str(checkpoint))
        else:
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    best = read_checkpoint(folder / BEST) if measure is not None else None
    if best is not None:
        set_weights(own.model, best[0])
    own.model.to("cpu").eval()
    if not all(bool(weight.isfinite().all()) for weight in own.model.parameters()):
        raise InputError("training diverged: a weight is not a number; lower --learning-rate")
    return noting.course
