"""Training through `SentenceTransformerTrainer`: LSTM models, GPUs, several processes under `accelerate launch`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from torch import nn
from torch.utils.data import DataLoader, Dataset
from transformers import PrinterCallback, TrainerCallback

from paranmt_hf.errors import InputError
from paranmt_hf.text.tokens import Bags
from paranmt_hf.training.checkpoint import read_checkpoint, read_sealed, write_checkpoint
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.course import Course, forget_cut_off, last_checkpoint
from paranmt_hf.training.epochs import Evaluate
from paranmt_hf.training.history import History
from paranmt_hf.training.losses import combined_loss, diverged
from paranmt_hf.training.mega_batch import minibatch, mining_precision, select
from paranmt_hf.training.optimizers import leave_first_row, make_optimizer
from paranmt_hf.training.pair_store import MegaBatch, PairStore, append
from paranmt_hf.training.regularisation import Pull, penalty, rows_towards_initial, towards_initial, towards_zero
from paranmt_hf.training.reporting import check_reporting
from paranmt_hf.training.scrambling import scramble
from paranmt_hf.training.teacher import TeacherVectors
from paranmt_hf.util.files import writing
from paranmt_hf.util.progress import Progress

Features = dict[str, torch.Tensor]
ENCODE_SENTENCES = 1000
WEIGHTS = "weights.safetensors"


@dataclass(frozen=True)
class Reading:
    """How one encoder of a model gets its features.

    Attributes:
        reader: Name of the reader whose rows it takes.
        suffix: What its features' names end with.
        features: From rows [unit] and bounds [sentence + 1] to features.
        ordered: Whether the order of the units matters, so that scrambling changes something.
        table: Its embeddings.
        weights: Its weights beside them.
        centre: What lambda_c pulls these towards, unless the settings say it.
    """

    reader: str
    suffix: str
    features: Callable[[np.ndarray, np.ndarray], Features]
    ordered: bool
    table: nn.Embedding | nn.EmbeddingBag
    weights: Sequence[nn.Parameter] = ()
    centre: Literal["zero", "initial"] = "zero"


@dataclass
class _Mega:
    """The mega-batch in hand: where it is in the run, its pairs, and the negatives."""

    epoch: int
    index: int
    batch: MegaBatch
    own: np.ndarray
    negatives: np.ndarray | None
    scrambled: list[np.ndarray]


class _Numbers(Dataset[dict[str, int]]):
    """The steps of an epoch."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, step: int) -> dict[str, int]:
        return {"step": step}


class MegaBatchTrainer(SentenceTransformerTrainer):
    """A trainer that mines negatives once per mega-batch and then makes one step for each mini-batch.

    Under `accelerate launch` every process takes mega-batches of its own and mines there, or, with
    `gather_negatives`, among the mega-batches of all processes.

    Args:
        model: The encoder.
        args: Arguments of the trainer.
        store: The pairs.
        readings: How the model's encoders get their features.
        config: The settings.
        teacher: The teacher's vectors, if similarities are learned too.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        args: SentenceTransformerTrainingArguments,
        *,
        store: PairStore,
        readings: Sequence[Reading],
        config: TrainConfig,
        teacher: TeacherVectors | None = None,
        **options: Any,
    ) -> None:
        self._teacher = teacher
        self._store, self._readings, self._config = store, readings, config
        self._mega: _Mega | None = None
        self._stream: tuple[tuple[int, int], Iterator[MegaBatch]] | None = None
        # Losses of the steps of the mega-batch in hand.
        self.losses: list[float] = []
        self._pulls = pulls_of(readings, config, store)
        super().__init__(model, args, loss=nn.Identity(), **options)

    @cached_property
    def plan(self) -> list[tuple[int, int]]:
        """Mega-batch and mini-batch of each step of an epoch of one process."""
        config, world = self._config, self.args.world_size
        whole, rest = divmod(self._store.pairs, config.mega_pairs)
        sizes = [config.mega_batch] * (whole // world)
        if world == 1 and rest > 1:
            sizes.append(-(-rest // config.batch_size))
        if not sizes:
            raise InputError(
                f"{self._store.pairs} {self._store.unit} do not fill a mega-batch of {config.mega_pairs} for each of "
                f"{world} processes; lower --mega-batch"
            )
        return [(mega, mini) for mega, minis in enumerate(sizes) for mini in range(minis)]

    def get_train_dataloader(self) -> DataLoader:
        """Count the steps; `compute_loss` finds the pairs of each by itself, at the time the step is made."""
        return DataLoader(_Numbers(len(self.plan)), batch_size=1)

    def compute_loss(
        self, model: nn.Module, inputs: object, return_outputs: bool = False, num_items_in_batch: object = None
    ) -> Any:  # noqa: ANN401
        """Compute the margin loss of the next mini-batch."""
        plan = self.plan
        epoch, position = divmod(self.state.global_step, len(plan))
        index, mini = plan[position]
        mega = self._take(model, epoch, index)
        start = mini * self._config.batch_size
        pairs = mega.own[start : start + self._config.batch_size]
        sentences = minibatch(pairs, mega.batch.pairs, mega.negatives, one_sided=self._config.one_sided)
        if not sentences.size:
            # No pair has a negative: a step that changes nothing but Adam's averages.
            alone = model(self._features(mega, pairs))["sentence_embedding"].float()
            return (alone.sum() * 0, {}) if return_outputs else alone.sum() * 0
        features = self._features(mega, sentences.ravel())
        vectors = model(features)["sentence_embedding"].float()
        loss = combined_loss(vectors, mega.batch.keys, sentences, self._config, self._teacher)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise diverged(self._describe(epoch, index, mini), value)
        self.losses.append(value)
        loss = loss + penalty(self._pulls)
        return (loss, {}) if return_outputs else loss

    def _describe(self, epoch: int, index: int, mini: int) -> str:
        return f"{self.state.global_step + 1} (mega-batch {index + 1}, mini-batch {mini + 1} of epoch {epoch + 1})"

    def _save_checkpoint(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        """Write a checkpoint; of what the trainer's own files need, an error names the path."""
        with writing(Path(str(self.args.output_dir)) / f"checkpoint-{self.state.global_step}"):
            super()._save_checkpoint(*arguments, **options)

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        """Write the weights of a checkpoint, in full precision whatever the model is released in."""
        # transformers 5 calls this in every process.
        if not self.args.should_save:
            return
        folder = Path(output_dir or str(self.args.output_dir))
        folder.mkdir(parents=True, exist_ok=True)
        weights = {name: value.detach().cpu().contiguous() for name, value in self.model.state_dict().items()}
        write_checkpoint(folder / WEIGHTS, weights, {})

    def _load_from_checkpoint(self, checkpoint_path: str) -> None:
        """Read what `_save` wrote."""
        found = read_checkpoint(Path(checkpoint_path) / WEIGHTS)
        if found is None:
            raise InputError(f"{checkpoint_path} has no {WEIGHTS}; remove it and run again")
        self.model.load_state_dict(found[0])

    def _get_grad_norm(self, model: nn.Module, grad_norm: float | None = None) -> float | None:
        """No norm is logged: torch has none for the sparse gradients of the tables."""
        return grad_norm

    def _take(self, model: nn.Module, epoch: int, index: int) -> _Mega:
        if self._mega is None or (self._mega.epoch, self._mega.index) != (epoch, index):
            self._mega = self._mine(model, epoch, index)
        return self._mega

    def _mine(self, model: nn.Module, epoch: int, index: int) -> _Mega:
        config, world, rank = self._config, self.args.world_size, self.args.process_index
        if self._stream is None or self._stream[0] != (epoch, index):
            stream = self._store.mega_batches(
                config.mega_pairs, seed=config.seed, epoch=epoch, start=index * world, least=2
            )
            self._stream = ((epoch, index), stream)
        batches = list(islice(self._stream[1], world))
        self._stream = ((epoch, index + 1), self._stream[1])
        generator = np.random.default_rng([config.seed, epoch, index, rank, 1])
        ends = np.cumsum([0, *(batch.pairs for batch in batches)])
        gather = config.gather_negatives and world > 1
        if gather:
            batch, own = _joined(batches), np.arange(ends[rank], ends[rank + 1])
        else:
            batch, own = batches[rank], np.arange(batches[rank].pairs)
        scrambled = [self._scramble(batch.bags[reading.reader], reading, generator) for reading in self._readings]
        mega = _Mega(epoch, index, batch, own, None, scrambled)
        if not config.margin_weight:
            return mega
        vectors = None
        if config.negatives != "rand":
            vectors = self._encode_all(model, mega) if not gather else self._encode_gathered(model, mega)
            if not torch.isfinite(vectors).all():
                raise diverged(self._describe(epoch, index, 0), float("nan"))
        precision, one_sided = mining_precision(config), config.one_sided
        keys, way = batch.keys, config.negatives
        mega.negatives = select(vectors, keys, way, generator, one_sided=one_sided, precision=precision)
        return mega

    def _scramble(self, bags: Bags, reading: Reading, generator: np.random.Generator) -> np.ndarray:
        return scramble(bags.rows, bags.offsets, self._config.scrambling if reading.ordered else 0, generator)

    def _features(self, mega: _Mega, sentences: np.ndarray) -> Features:
        features: Features = {}
        for reading, rows in zip(self._readings, mega.scrambled, strict=True):
            bags = Bags(rows, mega.batch.bags[reading.reader].offsets).take(sentences)
            for name, value in reading.features(bags.rows, bags.offsets).items():
                # Lengths are asked for on the host, where sequences are packed.
                stays = name == "sentence_lengths"
                features[name + reading.suffix] = value if stays else value.to(self.args.device)
        return features

    @torch.no_grad()
    def _encode_all(self, model: nn.Module, mega: _Mega, sentences: np.ndarray | None = None) -> torch.Tensor:
        """Encode sentences [sentence] of a mega-batch, all of them if none are named, sorted by length."""
        chosen = np.arange(2 * mega.batch.pairs) if sentences is None else sentences
        lengths = np.diff(mega.batch.bags[self._readings[0].reader].offsets)[chosen]
        order = np.argsort(-lengths, kind="stable")
        with self.compute_loss_context_manager():
            parts = [
                self.model(self._features(mega, chosen[order[start : start + ENCODE_SENTENCES]]))["sentence_embedding"]
                for start in range(0, len(order), ENCODE_SENTENCES)
            ]
        vectors = torch.cat(parts).float()
        back = torch.from_numpy(np.argsort(order)).to(vectors.device)
        return vectors[back]

    def _encode_gathered(self, model: nn.Module, mega: _Mega) -> torch.Tensor:
        """Encode the own pairs of each process and collect them from all [sentence, dimension]."""
        own = np.concatenate([mega.own, mega.own + mega.batch.pairs])
        gathered = self.accelerator.gather(self._encode_all(model, mega, own).contiguous())
        sides = gathered.view(self.args.world_size, 2, len(mega.own), -1)
        return sides.transpose(0, 1).reshape(2 * mega.batch.pairs, -1)


def pulls_of(readings: Sequence[Reading], config: TrainConfig, store: PairStore) -> list[Pull]:
    """What is regularised (arXiv:1511.08198, equation 1). With `lambda_w` every row of the pairs has a gradient.

    Args:
        readings: The encoders, with their weights before the first step.
        config: lambda_w, lambda_c, and what the latter pulls towards.
        store: The pairs; rows of a table that none of them has rest where they are.
    """
    pulls: list[Pull] = []
    for reading in readings:
        table = reading.table.weight
        if not reading.table.sparse:
            pulls += towards_initial([table], config.lambda_w)
        elif config.lambda_w:
            rows = torch.from_numpy(store.rows_of(reading.reader))
            pulls += rows_towards_initial(table, rows, config.lambda_w)
        centre = config.regularise_to or reading.centre
        pulls += (towards_zero if centre == "zero" else towards_initial)(reading.weights, config.lambda_c)
    return pulls


def _joined(batches: list[MegaBatch]) -> MegaBatch:
    whole = batches[0]
    for batch in batches[1:]:
        whole = append(whole, batch)
    return whole


def train_with_trainer(
    model: SentenceTransformer,
    readings: Sequence[Reading],
    store: PairStore,
    folder: Path,
    config: TrainConfig,
    evaluate: Evaluate | None = None,
    teacher: TeacherVectors | None = None,
    callbacks: Sequence[TrainerCallback] = (),
) -> History:
    """Train to the end, from the last whole checkpoint if there is one.

    Args:
        model: The encoder; it holds the final weights afterwards, with a development set those that scored best.
        readings: How its encoders get their features.
        store: The pairs.
        folder: For checkpoints.
        config: The settings.
        evaluate: Scores the model as it is on the development set.
        teacher: The teacher's vectors, if similarities are learned too.
        callbacks: More callbacks for the trainer.
    """
    if config.report_to:
        check_reporting(config.report_to)
    course = Course(folder, store, config, evaluate)
    use_cpu = config.device == "cpu" or not torch.cuda.is_available()
    args = SentenceTransformerTrainingArguments(
        output_dir=str(folder / "trainer"),
        num_train_epochs=config.epochs,
        per_device_train_batch_size=1,
        learning_rate=config.learning_rate,
        # On the CPU the optimiser clips, for the gradients of tables are sparse there.
        max_grad_norm=0 if use_cpu or config.clip is None else config.clip,
        logging_steps=config.mega_batch,
        save_strategy="no",
        save_total_limit=2,
        report_to=[config.report_to] if config.report_to else "none",
        bf16=config.precision == "bf16",
        fp16=config.precision == "fp16",
        use_cpu=use_cpu,
        seed=config.seed,
        disable_tqdm=True,
    )
    # Several GPUs are for several processes; one process would otherwise cut the bags of a batch apart.
    if args.device.type == "cuda":
        args._n_gpu = 1
    # On the CPU a step must not touch the whole table; a GPU does that faster than it sorts rows.
    for reading in readings:
        reading.table.sparse = args.device.type == "cpu"
    model.to(args.device)
    optimizer = make_optimizer(model, config, args.device)
    # Row 0, of unknown units, is zeros unless it is trained.
    tables = [reading.table.weight for reading in readings]
    kept = [leave_first_row(weight) for weight in tables if weight.requires_grad and not bool(weight[0].any())]
    given: dict[str, Any] = {"callbacks": [course, *callbacks], "optimizers": (optimizer, None)}
    trainer = MegaBatchTrainer(model, args, store=store, readings=readings, config=config, teacher=teacher, **given)
    trainer.remove_callback(PrinterCallback)
    steps = config.epochs * len(trainer.plan)
    trainer.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: 1 - step / steps if config.decay else 1.0
    )
    course.trainer = trainer
    checkpoint = last_checkpoint(folder / "trainer")
    if args.process_index == 0:
        # Also where no whole one is there: one of a later step would push those out that come now.
        forget_cut_off(folder / "trainer")
    if checkpoint is not None:
        course.history = History.from_dict(read_sealed(checkpoint))
    total = config.epochs * store.pairs
    with Progress("train", total, done=course.history.pairs, unit=store.unit) as progress:
        course.progress = progress
        if checkpoint is not None and course.is_over:
            trainer._load_from_checkpoint(str(checkpoint))
        else:
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    for reading in readings:
        reading.table.sparse = False
    for hook in kept:
        hook.remove()
    best = read_checkpoint(folder / "best.safetensors") if evaluate is not None else None
    if best is not None:
        model.load_state_dict(best[0])
    return course.history
