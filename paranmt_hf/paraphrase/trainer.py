"""Train an encoder-decoder with `Seq2SeqTrainer`, and measure it on held-out pairs.

A training that was interrupted continues with the same batches as if it had never been.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from transformers import (
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from paranmt_hf.corpus.translation.batches import token_batches
from paranmt_hf.corpus.translation.translator import resolve_device
from paranmt_hf.errors import DivergedError
from paranmt_hf.paraphrase.config import ParaphraseConfig, ParaphraserTraining
from paranmt_hf.paraphrase.modeling_paranmt_lstm import IGNORED, shifted, token_loss
from paranmt_hf.paraphrase.models import EncoderDecoder
from paranmt_hf.paraphrase.record import HeldOutFigures, TrainingCourse
from paranmt_hf.paraphrase.training_data import PieceStore
from paranmt_hf.training.record import thinned
from paranmt_hf.training.reporting import Reporter
from paranmt_hf.training.sealed_trainer import CourseCallback, SealedCheckpoints, trainer_arguments
from paranmt_hf.util.optional import available
from paranmt_hf.util.progress import Progress

Measure = Callable[[int], HeldOutFigures]  # Measures the model after a step


class Batches(Dataset[dict[str, torch.Tensor]]):
    """The batches of a training, by step, so that a training can continue at any step.

    A batch holds pairs of similar length. In each epoch, pairs of equal length are shuffled, and so are the batches.

    Args:
        store: The pairs.
        budget: Maximum size of a batch: number of pairs times pieces of the longest sentence.
        epochs: Number of epochs.
        seed: Seed of the order.
        pad: Id of padding.
    """

    def __init__(self, store: PieceStore, budget: int, *, epochs: int, seed: int, pad: int) -> None:
        self._store, self._seed, self._pad, self._epochs = store, seed, pad, epochs
        self._lengths = store.lengths
        # `token_batches` begins with the longest pairs; the batches here begin with the shortest.
        sizes = [len(batch) for batch in token_batches(self._lengths, budget)]
        self._starts = np.cumsum([0, *reversed(sizes)])
        self._order: tuple[int, np.ndarray, np.ndarray] | None = None

    @property
    def per_epoch(self) -> int:
        """Number of batches of an epoch."""
        return len(self._starts) - 1

    def __len__(self) -> int:
        return self._epochs * self.per_epoch

    def __getitem__(self, step: int) -> dict[str, torch.Tensor]:
        return collate(self._store.take(self.pairs(step)), self._pad)

    def pairs(self, step: int) -> np.ndarray:
        """Return the indices of the pairs in the batch of a step [pair]."""
        epoch, position = divmod(step, self.per_epoch)
        if self._order is None or self._order[0] != epoch:
            generator = np.random.default_rng([self._seed, epoch])
            ties = generator.permutation(len(self._lengths))
            order = ties[np.argsort(self._lengths[ties], kind="stable")]
            self._order = (epoch, order, generator.permutation(self.per_epoch))
        _, order, batches = self._order
        batch = int(batches[position])
        return order[self._starts[batch] : self._starts[batch + 1]]


def collate(sides: Sequence[Sequence[np.ndarray]], pad: int) -> dict[str, torch.Tensor]:
    """Create a batch for the model.

    Args:
        sides: Ids of the sources, the targets and perhaps the controls [side][pair][piece].
        pad: Id that pads sources and controls.

    Returns:
        `input_ids`, `attention_mask`, `labels`, padded with the index that the loss ignores, and perhaps `control_ids`
        [pair, position].
    """
    sources, targets, *controls = sides
    batch = {
        "input_ids": _filled(sources, pad),
        "attention_mask": _filled([np.ones_like(ids) for ids in sources], 0),
        "labels": _filled(targets, IGNORED),
    }
    if controls:
        batch["control_ids"] = _filled(controls[0], pad)
    return batch


def _filled(rows: Sequence[np.ndarray], value: int) -> torch.Tensor:
    """Return rows of ids as a tensor [row, position], padded on the right with a value."""
    filled = np.full((len(rows), max(map(len, rows))), value, np.int64)
    for row, ids in zip(filled, rows, strict=True):
        row[: len(ids)] = ids
    return torch.from_numpy(filled)


def logits_of(
    network: EncoderDecoder, batch: dict[str, torch.Tensor], wrapped: nn.Module | None = None
) -> torch.Tensor:
    """Compute the logits of the targets of a batch [sentence, position, piece].

    `wrapped` is the model of `network` as a trainer has wrapped it; by default it is not wrapped.
    """
    inputs = shifted(batch["labels"], network.start, network.pad)
    given = {name: value for name, value in batch.items() if name != "labels"}
    logits: torch.Tensor = (wrapped or network.model)(**given, decoder_input_ids=inputs, use_cache=False).logits
    return logits


class PieceTrainer(SealedCheckpoints, Seq2SeqTrainer):
    """A trainer that takes its batches by step, and whose checkpoints cannot be damaged when it is killed.

    `losses`, `pairs` and `tokens` are of the steps since they were noted last.
    """

    def __init__(
        self,
        network: EncoderDecoder,
        args: Seq2SeqTrainingArguments,
        batches: Batches,
        smoothing: float,
        **options: Any,
    ) -> None:
        self._network, self._batches, self._smoothing = network, batches, smoothing
        self.losses: list[torch.Tensor] = []
        self.pairs = self.tokens = 0
        super().__init__(network.model, args, train_dataset=batches, **options)
        # The loss is already a mean, so the trainer must not divide it again.
        self.model_accepts_loss_kwargs = False

    def get_train_dataloader(self) -> DataLoader:
        """Return all batches in the order of the steps; `Batches` has shuffled them already."""
        loader: DataLoader = self.accelerator.prepare(
            DataLoader(self._batches, batch_size=1, collate_fn=lambda batches: batches[0])
        )
        return loader

    def compute_loss(
        self, model: nn.Module, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: object = None
    ) -> Any:  # noqa: ANN401
        """Compute the cross-entropy of the targets with label smoothing, in the same way for every kind of model."""
        labels = inputs["labels"]
        logits = logits_of(self._network, inputs, model)
        loss = token_loss(logits, labels, self._smoothing)
        self.losses.append(loss.detach())
        self.pairs += len(labels)
        # The count stays on the device, because reading it would wait for the device.
        self.tokens += (labels != IGNORED).sum()
        return (loss, {}) if return_outputs else loss


class _Noting(CourseCallback):
    """A callback of the trainer that notes losses, measures the model and requests checkpoints."""

    trainer: PieceTrainer
    course: TrainingCourse

    def __init__(self, folder: Path, config: ParaphraserTraining, steps: int, measure: Measure | None) -> None:
        super().__init__(folder, TrainingCourse())
        self._config, self._steps, self._measure = config, steps, measure
        self._due: set[int] = set()
        if measure is not None:
            every = max(1, round(steps / config.evaluations))
            self._due = {*range(every, steps - every // 2, every), steps}

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Every 20 steps, note the loss; measure the model and request a checkpoint when they are due.

        Raises `DivergedError` if the loss is not finite or absurdly high.
        """
        step = state.global_step
        # Reading losses from the device takes time.
        if step not in self._due and step % 20 and step != self._steps:
            return
        trainer = self.trainer
        loss = float(torch.stack(trainer.losses).mean()) if trainer.losses else self.course.losses[-1][1]
        # Only a model that has diverged has a mean loss of 10,000 for a piece.
        if not loss < 1e4:
            raise DivergedError(f"training diverged: the loss is {loss:g} at step {step:,}; lower the learning rate")
        self.course.losses = thinned([*self.course.losses, (step, loss)])
        self.course.steps = step
        self.course.pairs += trainer.pairs
        self.course.tokens += int(trainer.tokens)
        trainer.losses.clear()
        trainer.pairs = trainer.tokens = 0
        note = f"loss {self.course.losses[-1][1]:.2f}"
        if step in self._due and self._measure is not None:
            best = self.course.best
            found = self._measure(step)
            self.course.measured.append(found)
            if best is None or found.loss < best.loss:
                self.keep_best(state)
        if self.course.measured:
            note += f", held-out perplexity {self.course.measured[-1].perplexity:.1f}"
        self.show(step, step, note)
        if self.is_due(self._config.checkpoint_seconds):
            control.should_save = True


def train_pieces(
    network: EncoderDecoder,
    batches: Batches,
    folder: Path,
    config: ParaphraserTraining,
    measure: Measure | None,
    label: str,
) -> TrainingCourse:
    """Train a model to the end in one process, continuing from the last complete checkpoint.

    Afterwards the model has the weights of the lowest held-out loss; if nothing is measured, the final weights.

    Args:
        network: The model, which is trained in place.
        batches: Its batches.
        folder: Folder of the checkpoints.
        config: Settings of the training, with the learning rate filled in.
        measure: Measures the model after a step; None if there are no held-out pairs.
        label: Label of the progress bar.

    Raises:
        DivergedError: The loss or a weight is not finite, or the loss is absurdly high.
    """
    steps = min(len(batches), config.max_steps or len(batches))
    use_cpu = resolve_device(config.device) == "cpu"
    precision = config.precision
    if precision == "auto":
        precision = "bf16" if not use_cpu and torch.cuda.is_bf16_supported() else "fp32"
    args = trainer_arguments(
        Seq2SeqTrainingArguments,
        folder,
        precision=precision,
        use_cpu=use_cpu,
        seed=config.seed,
        max_steps=steps,
        learning_rate=config.learning_rate,
        lr_scheduler_type="linear",
        warmup_steps=min(config.warmup, steps // 10),
        optim="adamw_torch",
        weight_decay=0.0,
        max_grad_norm=1.0,
        logging_strategy="no",
        # The trainer writes it into the model's configuration.
        use_cache=bool(getattr(network.model.config, "use_cache", True)),
        remove_unused_columns=False,
    )
    noting = _Noting(folder, config, steps, measure)
    trainer = PieceTrainer(network, args, batches, config.label_smoothing, callbacks=[noting])
    checkpoint = noting.restore(trainer)
    runs = folder.parent.with_suffix(".runs") / folder.name
    with (
        Progress(label, steps, done=noting.course.steps, unit="steps") as progress,
        Reporter(config.report_to, runs, lambda: args) as reporter,
    ):
        noting.progress, noting.reporter = progress, reporter
        trainer.run_from(checkpoint, over=noting.course.steps >= steps)
    if measure is not None:
        noting.load_best(network.model)
    network.model.to("cpu").eval()
    if not all(bool(weight.isfinite().all()) for weight in network.model.parameters()):
        raise DivergedError("training diverged: a weight is not finite; lower the learning rate")
    return noting.course


@torch.inference_mode()
def measure(
    network: EncoderDecoder,
    store: PieceStore,
    step: int,
    *,
    budget: int,
    longest: int,
    template_of: Callable[[str], str] | None = None,
) -> HeldOutFigures:
    """Measure a model on held-out pairs; its training mode is restored afterwards.

    Args:
        network: The model.
        store: Held-out pairs.
        step: Number of steps of training before, for the result.
        budget: Maximum size of a batch: number of pairs times pieces of the longest sentence.
        longest: Maximum number of pieces that are generated.
        template_of: Returns the template of a tree, if the targets are trees. The share of generated trees with the
            requested template is then measured in place of BLEU.
    """
    # At most 500 pairs are measured, at equal distances.
    chosen = np.unique(np.linspace(0, len(store) - 1, min(500, len(store))).round().astype(np.int64))
    lengths, sides = store.lengths[chosen], store.take(chosen)
    sources, targets, *controls = sides
    bleu = match = loss_other_tree = None
    training = network.model.training
    network.model.eval()
    try:
        loss = _mean_loss(network, sides, lengths, budget)
        if controls and template_of is None:
            # Each pair gets the tree of a pair half of all pairs away, because neighbours may share their reference.
            others = [controls[0][row] for row in np.roll(np.arange(len(chosen)), len(chosen) // 2)]
            loss_other_tree = _mean_loss(network, [sources, targets, others], lengths, budget)
        if template_of is not None:
            found = _most_probable(network, sources, controls, lengths, longest)
            wanted = network.controls.batch_decode([ids.tolist() for ids in controls[0]], skip_special_tokens=True)
            match = float(np.mean([template_of(tree) == each for tree, each in zip(found, wanted, strict=True)]))
        elif available("sacrebleu"):
            import sacrebleu

            found = _most_probable(network, sources, controls, lengths, longest)
            wanted = network.join([ids.tolist() for ids in targets])
            bleu = round(float(sacrebleu.corpus_bleu(found, [wanted]).score), 4)
    finally:
        network.model.train(training)
    return HeldOutFigures(step, loss, math.exp(min(loss, 700.0)), bleu, match, loss_other_tree)


def _mean_loss(
    network: EncoderDecoder, sides: Sequence[Sequence[np.ndarray]], lengths: np.ndarray, budget: int
) -> float:
    """Compute the mean cross-entropy of a target piece.

    Args:
        network: The model.
        sides: Ids of the sources, the targets and perhaps the controls [side][pair][piece].
        lengths: Number of pieces of the longest side of each pair [pair].
        budget: Maximum size of a batch.
    """
    total, count = 0.0, 0
    for rows in token_batches(lengths, budget):
        batch = collate([[side[row] for row in rows] for side in sides], network.pad)
        batch = {name: value.to(network.model.device) for name, value in batch.items()}
        pieces = int((batch["labels"] != IGNORED).sum())
        total += float(token_loss(logits_of(network, batch), batch["labels"])) * pieces
        count += pieces
    return total / count


def _most_probable(
    network: EncoderDecoder,
    sources: Sequence[np.ndarray],
    controls: Sequence[Sequence[np.ndarray]],
    lengths: np.ndarray,
    longest: int,
) -> list[str]:
    """Generate a target for each source by greedy search, and return its text [pair].

    `controls` is empty, or has the ids of the controls as its only item.
    """
    greedy, found = ParaphraseConfig(beams=1, max_length=longest), [""] * len(lengths)
    for rows in token_batches(lengths, 2000):
        given = [[side[row].tolist() for row in rows] for side in (sources, *controls)]
        best = network.search(given[0], greedy, *given[1:])
        for row, text in zip(rows, network.join([candidates[0] for candidates in best]), strict=True):
            found[row] = text
    return found
