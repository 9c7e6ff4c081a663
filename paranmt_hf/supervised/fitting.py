"""Train a head, and the encoder below it: PARAGRAM-PHRASE (arXiv:1511.08198), section 4.4, equation 2."""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import kl_div

from paranmt_hf.encoders.composition import Part
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.errors import DivergedError
from paranmt_hf.supervised.config import CHECKPOINT, Epoch, SuperviseConfig
from paranmt_hf.supervised.model import Head
from paranmt_hf.text.tokens import Bags
from paranmt_hf.training.checkpoint import CheckpointFile
from paranmt_hf.training.losses import Pull, diverged, penalty, towards_initial, towards_zero
from paranmt_hf.training.optimizers import ADAGRAD_START, leave_first_row
from paranmt_hf.training.trainer import encoder_features
from paranmt_hf.util.machine import one_thread
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import as_json, from_json
from paranmt_hf.util.wording import counted

logger = logging.getLogger(__name__)
# Computes, from probabilities [item, class], the figure that decides which epoch is kept; higher is better.
Measure = Callable[[np.ndarray], float]


class FixedVectors:
    """Sentence vectors that training does not change, in place of an encoder.

    Args:
        matrix: Vectors of all sentences [sentence, dimension].
    """

    parameters: Sequence[nn.Parameter] = ()

    def __init__(self, matrix: torch.Tensor) -> None:
        self._matrix = matrix

    def pulls(self, config: SuperviseConfig) -> list[Pull]:
        """Return the penalties on the vectors: none."""
        return []

    def trained_vectors(self, sentences: np.ndarray) -> torch.Tensor:
        """Return the vectors of sentences [sentence] for a training step: [sentence, dimension], without gradients."""
        return self.vectors(sentences)

    def vectors(self, sentences: np.ndarray) -> torch.Tensor:
        """Return the vectors of sentences [sentence] for predictions: [sentence, dimension], without gradients."""
        return self._matrix[torch.from_numpy(sentences)]


class TrainedEncoder:
    """An encoder under training, over sentences that were converted to rows once.

    During training its tables have only the rows of units in the sentences. Other rows would have no gradient and no
    penalty (tables are pulled back to where they began), so the result is the same, and steps are faster.

    Args:
        model: The encoder; `put_back` gives it its complete tables again.
        parts: The parts of the encoder.
        bags: All sentences as rows, for each kind of unit.
        freeze_words: Whether word embeddings are not trained.
    """

    def __init__(
        self, model: SentenceEncoder, parts: Sequence[Part], bags: Mapping[str, Bags], *, freeze_words: bool = False
    ) -> None:
        self._model, self._parts = model, parts
        self._used: dict[str, np.ndarray] = {}
        self._bags: dict[str, Bags] = {}
        for name, units in bags.items():
            # Row 0 keeps its place: it is for unknown units, and sequences are padded with it.
            self._used[name] = np.union1d([0], units.rows)
            rows = np.searchsorted(self._used[name], units.rows).astype(np.int32)
            self._bags[name] = Bags(rows, units.offsets)
        self._lengths = np.max([np.diff(units.offsets) for units in bags.values()], axis=0)
        self._whole = [part.table.weight.data for part in parts]
        self._tables: list[nn.Parameter] = []
        for part, weight in zip(parts, self._whole, strict=True):
            table = nn.Parameter(weight[torch.from_numpy(self._used[part.unit_kind])])
            part.table.weight = table
            if freeze_words and part.family.units == "word":
                table.requires_grad_(False)
            else:
                self._tables.append(table)
                if not bool(weight[0].any()):
                    leave_first_row(table)

    @property
    def parameters(self) -> list[nn.Parameter]:
        """The weights that are trained: tables, and compositional parameters."""
        dense = [weight for part in self._parts for weight in part.weights]
        return [*self._tables, *dense]

    def pulls(self, config: SuperviseConfig) -> list[Pull]:
        """Return the penalties: half of lambda_w on tables, and half of lambda_c on compositional parameters."""
        pulls = towards_initial(self._tables, (config.lambda_w or 0.0) / 2)
        for part in self._parts:
            initial = config.way == "regularised" or part.family.centre == "initial"
            towards = towards_initial if initial else towards_zero
            pulls += towards(part.weights, config.lambda_c / 2)
        return pulls

    def trained_vectors(self, sentences: np.ndarray) -> torch.Tensor:
        """See `FixedVectors`."""
        self._model.train()
        return self._forward(sentences)

    @torch.no_grad()
    def vectors(self, sentences: np.ndarray) -> torch.Tensor:
        """See `FixedVectors`; sentences are sorted by length, so that little is computed for padding."""
        self._model.eval()
        order = np.argsort(-self._lengths[sentences], kind="stable")
        ordered = sentences[order]
        # In blocks of 1000 sentences, which bounds the memory.
        blocks = map(self._forward, np.split(ordered, range(1000, len(ordered), 1000)))
        return torch.cat(list(blocks))[torch.from_numpy(np.argsort(order))]

    def _forward(self, sentences: np.ndarray) -> torch.Tensor:
        """Encode sentences, given by position [sentence], into vectors [sentence, dimension]."""
        bags = [self._bags[part.unit_kind].take(sentences) for part in self._parts]
        vectors: torch.Tensor = self._model(encoder_features(self._parts, bags))["sentence_embedding"]
        return vectors

    def put_back(self) -> None:
        """Give the encoder its complete tables, with the trained rows in them."""
        for part, weight in zip(self._parts, self._whole, strict=True):
            weight[torch.from_numpy(self._used[part.unit_kind])] = part.table.weight.data
            part.table.weight = nn.Parameter(weight)
        self._model.eval()
        self._model.forget_average()


Source = FixedVectors | TrainedEncoder


@dataclass(frozen=True)
class Items:
    """The items of a part of a task, such as `train`.

    Attributes:
        sentences: Index of the sentence of each side [side, item], int64.
        targets: The distribution over the classes that each item should get [item, class], float32.
    """

    sentences: np.ndarray
    targets: torch.Tensor

    def __len__(self) -> int:
        return len(self.targets)


def fit_head(
    source: Source, head: Head, train: Items, dev: Items, config: SuperviseConfig, measure: Measure, folder: Path
) -> list[Epoch]:
    """Train all epochs, and restore the best one on the development items, the first of equals.

    The result depends on the seed and not on the number of threads, because one thread is used; nor on interruptions,
    after which training continues from the last checkpoint.

    Args:
        source: What the vectors come from, with its initial weights.
        head: The head, with its initial weights.
        train: Items to learn from.
        dev: Items that choose the epoch.
        config: The settings, resolved.
        measure: Computes the main figure from the probabilities of the development items.
        folder: Folder of the checkpoint.

    Returns:
        All epochs, in order.

    Raises:
        DivergedError: A loss or a prediction is not finite.
    """
    fitting = _Fitting(source, head, train, config)
    kept = CheckpointFile(folder / CHECKPOINT)
    fitting.resume(kept)
    label = f"{config.task}: training"
    with one_thread(), Progress(label, config.epochs, done=len(fitting.epochs), unit="epochs") as progress:
        while len(fitting.epochs) < (config.epochs or 0):
            loss = fitting.run_epoch()
            shares = probabilities(source, head, dev)
            if not np.isfinite(shares).all():
                # The loss of a step is computed before its update, so the last update shows only here.
                epoch = len(fitting.epochs) + 1
                raise DivergedError(f"predictions after epoch {epoch} are not finite; lower `learning_rate`")
            fitting.end_epoch(Epoch(loss, measure(shares)))
            progress.advance_to(len(fitting.epochs), f"{fitting.epochs[-1].development:.3f} on the development items")
            if kept.is_due:
                kept.write(*fitting.state())
    # If writing the model fails, a later run continues from here.
    kept.write(*fitting.state())
    fitting.restore_best()
    return fitting.epochs


class _Fitting:
    """A training in progress; arguments as in `fit_head`."""

    def __init__(self, source: Source, head: Head, train: Items, config: SuperviseConfig) -> None:
        self._source, self._head, self._train, self._config = source, head, train, config
        self._parameters = [*source.parameters, *head.parameters()]
        # Parameters of the two layers that classify. Those of the projection count as compositional.
        classifying = [*head.hidden.parameters(), *head.output.parameters()]
        # Created before a checkpoint is read, because penalties pull weights to where they began.
        self._pulls = source.pulls(config) + towards_zero(classifying, config.lambda_s / 2)
        if head.project is not None:
            self._pulls += towards_zero(head.project.parameters(), config.lambda_c / 2)
        self._optimizer: torch.optim.Optimizer
        rate = config.learning_rate or 0.0
        if config.optimizer == "adagrad":
            start = ADAGRAD_START
            self._optimizer = torch.optim.Adagrad(self._parameters, rate, initial_accumulator_value=start, eps=0)
        else:
            self._optimizer = torch.optim.Adam(self._parameters, rate, fused=True)
        self.epochs: list[Epoch] = []
        self._best: list[torch.Tensor] = []

    def run_epoch(self) -> float:
        """Perform the steps of one epoch, and return their mean loss."""
        losses: list[float] = []
        size = self._config.batch_size
        order = np.random.default_rng([self._config.seed, len(self.epochs)]).permutation(len(self._train))
        for start in range(0, len(order), size):
            loss = self._loss(order[start : start + size])
            losses.append(float(loss.detach()))
            if not math.isfinite(losses[-1]):
                raise diverged(f"{len(losses)} of epoch {len(self.epochs) + 1}", losses[-1])
            self._optimizer.zero_grad()
            (loss + penalty(self._pulls)).backward()
            self._optimizer.step()
        return float(np.mean(losses))

    def _loss(self, items: np.ndarray) -> torch.Tensor:
        """Compute the mean KL divergence of the predictions from the targets.

        For targets of a single class it is the negative log-likelihood.
        """
        sentences = self._train.sentences[:, items]
        sides = self._source.trained_vectors(sentences.ravel()).float().chunk(len(sentences))
        return kl_div(self._head(*sides), self._train.targets[torch.from_numpy(items)], reduction="batchmean")

    def end_epoch(self, epoch: Epoch) -> None:
        """Add an epoch to the course, and remember its weights if it is the best so far."""
        if epoch.development > max((earlier.development for earlier in self.epochs), default=-math.inf):
            self._best = [parameter.detach().clone() for parameter in self._parameters]
        self.epochs.append(epoch)

    def restore_best(self) -> None:
        """Set the parameters to the weights of the best epoch."""
        for parameter, value in zip(self._parameters, self._best, strict=True):
            parameter.data.copy_(value)

    def state(self) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """Return the tensors and the JSON values of a checkpoint, at the end of an epoch."""
        tensors: dict[str, torch.Tensor] = {}
        states = self._optimizer.state_dict()["state"]
        for index, (parameter, best) in enumerate(zip(self._parameters, self._best, strict=True)):
            tensors |= {f"weight.{index}": parameter.detach(), f"best.{index}": best}
            tensors |= {f"{name}.{index}": value for name, value in states.get(index, {}).items()}
        return tensors, {"epochs": [as_json(epoch) for epoch in self.epochs]}

    def resume(self, kept: CheckpointFile) -> None:
        """Continue from a checkpoint, if there is one."""
        found = kept.read()
        if found is None:
            return
        tensors, state = found
        for index, parameter in enumerate(self._parameters):
            parameter.data.copy_(tensors.pop(f"weight.{index}"))
            self._best.append(tensors.pop(f"best.{index}"))
        states: dict[int, dict[str, Any]] = defaultdict(dict)
        for name, value in tensors.items():
            entry, number = name.rsplit(".", 1)
            states[int(number)][entry] = value
        self._optimizer.load_state_dict({**self._optimizer.state_dict(), "state": states})
        self.epochs = from_json(list[Epoch], state["epochs"], kept.path)
        logger.info(f"continuing after {counted(len(self.epochs), 'epoch')}")


@torch.no_grad()
def probabilities(source: Source, head: Head, part: Items) -> np.ndarray:
    """Predict the probability of each class of items with the current weights [item, class], float64.

    Args:
        source: What the vectors come from.
        head: The head.
        part: The items.
    """
    distinct, places = np.unique(part.sentences, return_inverse=True)
    vectors = source.vectors(distinct).float()
    sides = [vectors[torch.from_numpy(side)] for side in places.reshape(part.sentences.shape)]
    return head(*sides).double().exp().numpy()
