"""Train with `SentenceTransformerTrainer`: LSTM models, GPUs, several processes under `accelerate launch`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from torch import nn
from torch.utils.data import DataLoader

from paranmt_hf.encoders.composition import Part
from paranmt_hf.encoders.prefixes import PrefixLSTM, prefix_features, sequence_features
from paranmt_hf.errors import InputError
from paranmt_hf.text.tokens import Bags
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.losses import Pull, combined_loss, diverged, penalty
from paranmt_hf.training.mega_batch import minibatch, select_negatives
from paranmt_hf.training.pair_store import MegaBatch, PairStore
from paranmt_hf.training.sealed_trainer import SealedCheckpoints
from paranmt_hf.training.teacher_vectors import TeacherVectors

CPU = torch.device("cpu")


def bag_features(rows: np.ndarray, offsets: np.ndarray) -> dict[str, torch.Tensor]:
    """Create the features of averaging modules: `input_ids` [unit] and `offsets` [sentence].

    Args:
        rows: Row of each unit [unit].
        offsets: Bounds of the sentences in them [sentence + 1].
    """
    return {"input_ids": torch.from_numpy(rows.astype(np.int64)), "offsets": torch.from_numpy(offsets[:-1])}


def encoder_features(parts: Sequence[Part], bags: Sequence[Bags], device: torch.device = CPU) -> dict[str, Any]:
    """Create the features of some sentences for an encoder.

    In a combination the names of features end with the index of their part.

    Args:
        parts: The parts of the encoder.
        bags: Rows of the sentences, for each part.
        device: The device that encodes.
    """
    features = {}
    for index, (part, units) in enumerate(zip(parts, bags, strict=True)):
        second = part.modules[1] if part.family.ordered else None
        if second is None:
            of_part: dict[str, Any] = bag_features(units.rows, units.offsets)
        elif isinstance(second, PrefixLSTM) and device.type == "cpu":
            of_part = prefix_features(units.rows, units.offsets, bidirectional=second.bidirectional)
        else:
            of_part = sequence_features(units.rows, units.offsets)
        suffix = f"_{index}" if len(parts) > 1 else ""
        for name, value in of_part.items():
            # Lengths stay on the host, where sequences are packed by them; prefixes exist only on the CPU.
            stays = name in ("sentence_lengths", "prefixes")
            features[name + suffix] = value if stays else value.to(device)
    return features


@dataclass
class _MegaBatch:
    """The mega-batch that this process trains on."""

    epoch: int
    index: int  # Its number in the epoch
    batch: MegaBatch
    scrambled: list[Bags]  # Rows of its sentences for each part of the encoder, some with their words shuffled
    negatives: np.ndarray | None = None  # Negative of each sentence, see `mine_negatives`; None without a margin loss


class MegaBatchTrainer(SealedCheckpoints, SentenceTransformerTrainer):
    """A trainer that mines negatives once per mega-batch, and then performs one step for each mini-batch.

    Under `accelerate launch` every process trains on its own mega-batches, and mines there.

    Args:
        model: The model under training.
        args: Arguments of the trainer.
        store: The pairs.
        parts: The parts of the model.
        config: How it is trained.
        pulls: Penalties of weights.
        teacher: Vectors of the teacher; None without one.
        options: Other arguments of `SentenceTransformerTrainer`.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        args: SentenceTransformerTrainingArguments,
        *,
        store: PairStore,
        parts: Sequence[Part],
        config: TrainConfig,
        pulls: Sequence[Pull] = (),
        teacher: TeacherVectors | None = None,
        **options: Any,
    ) -> None:
        self._store, self._parts, self._config, self._pulls, self._teacher = store, parts, config, pulls, teacher
        self.mega: _MegaBatch | None = None
        self._waiting: Iterator[MegaBatch] = iter(())
        # Losses of the steps of the current mega-batch.
        self.losses: list[float] = []
        super().__init__(model, args, loss=nn.Identity(), **options)

    @cached_property
    def steps(self) -> list[tuple[int, int]]:
        """Numbers of the mega-batch and of the mini-batch in it, for each step of an epoch of one process."""
        config, world = self._config, self.args.world_size
        whole, rest = divmod(self._store.pairs, config.mega_pairs)
        sizes = [config.mega_batch] * (whole // world)
        if world == 1 and rest > 1:
            sizes.append(-(-rest // config.batch_size))
        if not sizes:
            raise InputError(
                f"{self._store.pairs} {self._store.unit} do not fill a mega-batch of {config.mega_pairs} for each of "
                f"{world} processes; lower `mega_batch`",
                option="mega_batch",
            )
        return [(mega, mini) for mega, minis in enumerate(sizes) for mini in range(minis)]

    def get_train_dataloader(self) -> DataLoader:
        """Return a loader that yields the numbers of steps; `compute_loss` finds the pairs of each step."""
        steps: list[dict[str, int]] = [{"step": step} for step in range(len(self.steps))]
        return DataLoader(steps, batch_size=1)  # type: ignore[arg-type]

    def compute_loss(
        self, model: nn.Module, inputs: object, return_outputs: bool = False, num_items_in_batch: object = None
    ) -> Any:  # noqa: ANN401
        """Compute the loss of the next mini-batch, with penalties; other arguments are the trainer's and not used."""
        epoch, position = divmod(self.state.global_step, len(self.steps))
        index, mini = self.steps[position]
        mega = self._mega_batch(epoch, index)
        start = mini * self._config.batch_size
        pairs = np.arange(start, min(start + self._config.batch_size, mega.batch.pairs))
        sentences = minibatch(pairs, mega.batch.pairs, mega.negatives, one_sided=self._config.one_sided)
        if sentences.size:
            vectors = self._encode(model, mega, sentences.ravel())
            loss = combined_loss(vectors, mega.batch.keys, sentences, self._config, self._teacher)
            value = float(loss.detach())
            if not math.isfinite(value):
                raise diverged(self._describe(epoch, index, mini), value)
            self.losses.append(value)
            loss = loss + penalty(self._pulls)
        else:
            # No pair has a negative. The trainer needs a loss; one of 0 has no gradient, so only Adam's moments
            # change.
            loss = self._encode(model, mega, pairs).sum() * 0
        return (loss, {}) if return_outputs else loss

    def _describe(self, epoch: int, index: int, mini: int) -> str:
        """Return text that names the current step, for errors."""
        return f"{self.state.global_step + 1} (mega-batch {index + 1}, mini-batch {mini + 1} of epoch {epoch + 1})"

    def _get_grad_norm(self, model: nn.Module, grad_norm: float | None = None) -> float | None:
        """Return no norm, because torch cannot compute it for the sparse gradients of tables."""
        return grad_norm

    def _mega_batch(self, epoch: int, index: int) -> _MegaBatch:
        """Return the mega-batch of a step; it is read and mined before its first mini-batch, or after a resumption."""
        if self.mega is None or (self.mega.epoch, self.mega.index) != (epoch, index):
            if self.mega is None or index == 0:
                size = self._config.mega_pairs * self.args.world_size
                self._waiting = self._store.mega_batches(size, seed=self._config.seed, epoch=epoch, start=index)
            self.mega = self._mine(epoch, index, next(self._waiting))
        return self.mega

    def _mine(self, epoch: int, index: int, batch: MegaBatch) -> _MegaBatch:
        """Take the pairs of this process from the mega-batches of all, shuffle words, and choose the negatives.

        Args:
            epoch: The epoch.
            index: Number of the mega-batch in it.
            batch: Mega-batches of all processes.
        """
        config, rank = self._config, self.args.process_index
        pairs = np.arange(rank * config.mega_pairs, min((rank + 1) * config.mega_pairs, batch.pairs))
        batch = batch.take(np.concatenate([pairs, pairs + batch.pairs]))
        generator = np.random.default_rng([config.seed, epoch, index, rank, 1])
        scrambled = []
        for part in self._parts:
            bags = batch.bags[part.unit_kind]
            share = config.scrambling if part.family.ordered else 0
            scrambled.append(Bags(scramble(bags.rows, bags.offsets, share, generator), bags.offsets))
        mega = _MegaBatch(epoch, index, batch, scrambled)
        if config.margin_weight:
            vectors = None
            if config.negatives != "rand":
                vectors = self._encode_all(mega)
                if not torch.isfinite(vectors).all():
                    raise diverged(self._describe(epoch, index, 0), float("nan"))
            mega.negatives = select_negatives(vectors, batch.keys, config, generator)
        return mega

    def _encode(self, model: nn.Module, mega: _MegaBatch, sentences: np.ndarray) -> torch.Tensor:
        """Encode sentences of a mega-batch, given by position, into vectors [sentence, dimension], float32."""
        features = encoder_features(self._parts, [bags.take(sentences) for bags in mega.scrambled], self.args.device)
        vectors: torch.Tensor = model(features)["sentence_embedding"]
        return vectors.float()

    @torch.no_grad()
    def _encode_all(self, mega: _MegaBatch) -> torch.Tensor:
        """Encode all sentences of a mega-batch [sentence, dimension], in blocks of about the same length."""
        order = np.argsort(-np.diff(mega.scrambled[0].offsets), kind="stable")
        with self.compute_loss_context_manager():
            parts = [
                self._encode(self.model, mega, sentences)
                for sentences in np.split(order, range(1000, len(order), 1000))
            ]
        vectors = torch.cat(parts)
        return vectors[torch.from_numpy(np.argsort(order)).to(vectors.device)]


def scramble(rows: np.ndarray, offsets: np.ndarray, share: float, generator: np.random.Generator) -> np.ndarray:
    """Shuffle the words of a share of the sentences, each within its sentence.

    Args:
        rows: Row of each word [word].
        offsets: Bounds of the sentences in them [sentence + 1].
        share: Share of the sentences, from 0 to 1.
        generator: Chooses and shuffles.

    Returns:
        The rows in the new order [word].
    """
    if not share:
        return rows
    lengths = np.diff(offsets)
    sentences = np.repeat(np.arange(len(lengths)), lengths)
    chosen = (generator.random(len(lengths)) < share)[sentences]
    # Sort words by sentence, and within a sentence by a key: a random number to shuffle it, or the position to keep
    # it.
    keys = np.where(chosen, generator.random(len(rows)), np.arange(len(rows)) / max(1, len(rows)))
    return rows[np.lexsort((keys, sentences))]
