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

from paranmt_hf.encoders.composition import Composition
from paranmt_hf.encoders.sequences import sequence_features
from paranmt_hf.errors import InputError
from paranmt_hf.text.tokens import Bags
from paranmt_hf.training.checkpoint import read_checkpoint, write_checkpoint
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.losses import combined_loss, diverged
from paranmt_hf.training.mega_batch import minibatch, mining_precision, select
from paranmt_hf.training.pair_store import MegaBatch, PairStore, append
from paranmt_hf.training.regularisation import Pull, penalty
from paranmt_hf.training.teacher import TeacherVectors
from paranmt_hf.util.files import writing

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
        centre: What lambda_c pulls these towards.
    """

    reader: str
    suffix: str
    features: Callable[[np.ndarray, np.ndarray], Features]
    ordered: bool
    table: nn.Embedding | nn.EmbeddingBag
    weights: Sequence[nn.Parameter] = ()
    centre: Literal["zero", "initial"] = "zero"


def readings(composition: Composition) -> list[Reading]:
    """Describe how each part of an encoder gets its features from rows."""
    return [
        Reading(
            reader=part.reader,
            # A combination passes features whose names end with the index of a part to that part.
            suffix=f"_{index}" if len(composition.parts) > 1 else "",
            features=bag_features if part.is_bag else sequence_features,
            ordered=part.family.ordered,
            table=part.table,
            weights=part.weights,
            centre=part.family.centre,
        )
        for index, part in enumerate(composition.parts)
    ]


def bag_features(rows: np.ndarray, offsets: np.ndarray) -> Features:
    """Features of averaging modules: `input_ids` [unit] and `offsets` [sentence]."""
    return {"input_ids": torch.from_numpy(rows.astype(np.int64)), "offsets": torch.from_numpy(offsets[:-1])}


@dataclass
class _Mega:
    """The current mega-batch: where it is in the run, its pairs, and the negatives."""

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

    Under `accelerate launch` every process takes mega-batches of its own and mines there, or, with `mine_over` "all",
    among the mega-batches of all processes.

    Args:
        model: The encoder.
        args: Arguments of the trainer.
        store: The pairs.
        readings: How the model's encoders get their features.
        config: The settings.
        pulls: What is regularised.
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
        pulls: Sequence[Pull] = (),
        teacher: TeacherVectors | None = None,
        **options: Any,
    ) -> None:
        self._teacher = teacher
        self._store, self._readings, self._config = store, readings, config
        self._mega: _Mega | None = None
        self._stream: tuple[tuple[int, int], Iterator[MegaBatch]] | None = None
        # Losses of the steps of the current mega-batch.
        self.losses: list[float] = []
        self._pulls = pulls
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
        """Count the steps; `compute_loss` finds the pairs of each when the step is made."""
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
            # No pair has a negative: a step that changes only Adam's averages.
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
        """Write a checkpoint; an error about the trainer's own files names the path."""
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
        """Log no norm: torch does not compute it for the sparse gradients of tables."""
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
        gather = config.mine_over == "all" and world > 1
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
                # Lengths are read on the host, where sequences are packed.
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


def _joined(batches: list[MegaBatch]) -> MegaBatch:
    whole = batches[0]
    for batch in batches[1:]:
        whole = append(whole, batch)
    return whole


def scramble(rows: np.ndarray, offsets: np.ndarray, share: float, generator: np.random.Generator) -> np.ndarray:
    """Shuffle the words of a share of the sentences.

    Args:
        rows: Word of each position [word], sentence after sentence.
        offsets: Bounds [sentence + 1].
        share: Probability that a sentence is shuffled, in [0, 1].
        generator: Random generator.

    Returns:
        The words [word], each within its sentence.
    """
    if not share:
        return rows
    lengths = np.diff(offsets)
    sentences = np.repeat(np.arange(len(lengths)), lengths)
    chosen = (generator.random(len(lengths)) < share)[sentences]
    # Sorting by the sentence and then by a random key shuffles; other sentences keep their positions as keys.
    keys = np.where(chosen, generator.random(len(rows)), np.arange(len(rows)) / max(1, len(rows)))
    return rows[np.lexsort((keys, sentences))]
