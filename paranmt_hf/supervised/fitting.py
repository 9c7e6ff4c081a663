"""Training of a head, and of the encoder below it: PARAGRAM-PHRASE (arXiv:1511.08198), section 4.4, equation 2."""

from __future__ import annotations

import logging
import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import nn
from torch.nn.functional import kl_div

from paranmt_hf.encoders.composition import Part
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.supervised.config import CHECKPOINT, Epoch, SuperviseConfig
from paranmt_hf.supervised.model import Head
from paranmt_hf.text.tokens import Bags
from paranmt_hf.training import checkpoint
from paranmt_hf.training.losses import Pull, diverged, penalty, towards_initial, towards_zero
from paranmt_hf.training.optimizers import ADAGRAD_START, leave_first_row
from paranmt_hf.training.trainer import encoder_features
from paranmt_hf.util.machine import one_thread
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import as_json, from_json
from paranmt_hf.util.wording import counted

logger = logging.getLogger(__name__)
# Sentences that are encoded at once without gradients.
BLOCK = 1000
Centre = Literal["zero", "initial"]


class VectorSource:
    """Provides vectors of sentences by index, without training.

    Attributes:
        tables: Embeddings that are trained, one parameter [row, dimension] for each.
        dense: Compositional parameters that are trained, of each part of an encoder.
        centres: What penalties pull those of each part towards, unless the settings say it.
    """

    tables: Sequence[nn.Parameter] = ()
    dense: Sequence[Sequence[nn.Parameter]] = ()
    centres: Sequence[Centre] = ()

    def vectors(self, sentences: np.ndarray) -> torch.Tensor:
        """Encode sentences [sentence] in training mode: [sentence, dimension], with gradients."""
        return self.all_vectors(sentences)

    def all_vectors(self, sentences: np.ndarray) -> torch.Tensor:
        """Encode sentences [sentence] in evaluation mode: [sentence, dimension], without gradients."""
        raise NotImplementedError


class FixedVectors(VectorSource):
    """Constant vectors [sentence, dimension]."""

    def __init__(self, matrix: torch.Tensor) -> None:
        self._matrix = matrix

    def all_vectors(self, sentences: np.ndarray) -> torch.Tensor:
        """See `VectorSource`."""
        return self._matrix[torch.from_numpy(sentences)]


class TrainedEncoder(VectorSource):
    """An encoder under training, over sentences that were converted to rows once.

    Only the rows of the sentences' units are kept in its tables meanwhile. The others have no gradient and no penalty
    (tables are pulled back to where they began), so the result is the same, and steps are faster.

    Args:
        model: The encoder; `put_back` makes it whole again.
        parts: Its encoders.
        bags: All sentences as rows, for each reader.
        freeze_words: Whether word embeddings are not trained.
    """

    def __init__(
        self, model: SentenceEncoder, parts: Sequence[Part], bags: Mapping[str, Bags], *, freeze_words: bool = False
    ) -> None:
        self._model, self._parts = model, parts
        # Row 0 keeps its place: it is for unknown units, and sequences are padded with it.
        self._used = {name: np.union1d([0], own.rows) for name, own in bags.items()}
        self._bags = {
            name: Bags(np.searchsorted(self._used[name], own.rows).astype(np.int32), own.offsets)
            for name, own in bags.items()
        }
        lengths = [np.diff(own.offsets) for own in bags.values()]
        self._lengths = np.max(lengths, axis=0)
        self._whole = [(part, part.table.weight.data) for part in parts]
        self.tables = []
        for part, weight in self._whole:
            table = nn.Parameter(weight[torch.from_numpy(self._used[part.unit_kind])])
            part.table.weight = table
            if freeze_words and part.family.units == "word":
                table.requires_grad_(False)
                continue
            self.tables.append(table)
            if not bool(weight[0].any()):
                leave_first_row(table)
        self.dense = [part.weights for part in parts]
        self.centres = [part.family.centre for part in parts]

    def vectors(self, sentences: np.ndarray) -> torch.Tensor:
        """See `VectorSource`."""
        self._model.train()
        return self._forward(sentences)

    @torch.no_grad()
    def all_vectors(self, sentences: np.ndarray) -> torch.Tensor:
        """See `VectorSource`; sorted by length, so that little is computed for padding."""
        self._model.eval()
        order = np.argsort(-self._lengths[sentences], kind="stable")
        ordered = sentences[order]
        parts = [self._forward(ordered[start : start + BLOCK]) for start in range(0, len(ordered), BLOCK)]
        return torch.cat(parts)[torch.from_numpy(np.argsort(order))]

    def _forward(self, sentences: np.ndarray) -> torch.Tensor:
        bags = [self._bags[part.unit_kind].take(sentences) for part in self._parts]
        vectors: torch.Tensor = self._model(encoder_features(self._parts, bags))["sentence_embedding"]
        return vectors

    def put_back(self) -> None:
        """Restore the complete encoder, including its trained rows."""
        for part, weight in self._whole:
            weight[torch.from_numpy(self._used[part.unit_kind])] = part.table.weight.data
            part.table.weight = nn.Parameter(weight)
        self._model.eval()
        self._model.forget_average()


# From probabilities [item, class] to the figure that decides which epoch is kept; higher is better.
Measure = Callable[[np.ndarray], float]


@dataclass(frozen=True)
class Items:
    """The items of a part.

    Attributes:
        sentences: Index of the sentence of each side [side, item], int64.
        targets: The distribution over the classes that each item is to get [item, class], float32.
    """

    sentences: np.ndarray
    targets: torch.Tensor

    def __len__(self) -> int:
        return len(self.targets)


def penalties_of(source: VectorSource, head: Head, config: SuperviseConfig) -> list[Pull]:
    """List the penalties: half of lambda_s on the head, of lambda_c on composition, of lambda_w on tables."""
    projection = [] if head.project is None else head.project.parameters()
    pulls = towards_zero(head.classifying(), config.lambda_s / 2)
    pulls += towards_zero(projection, config.lambda_c / 2)
    for weights, centre in zip(source.dense, source.centres, strict=True):
        initial = config.way == "regularised" or centre == "initial"
        pulls += (towards_initial if initial else towards_zero)(weights, config.lambda_c / 2)
    return pulls + towards_initial(source.tables, (config.lambda_w or 0.0) / 2)


def fit_head(
    source: VectorSource, head: Head, train: Items, dev: Items, config: SuperviseConfig, measure: Measure, folder: Path
) -> list[Epoch]:
    """Train all epochs and restore the best one on the development items, the first of equals.

    The result depends on the seed and not on the number of threads, of which one is used; nor on interruptions, after
    which training continues from the last checkpoint.

    Args:
        source: What the vectors come from, with its initial weights.
        head: The head, with its initial weights.
        train: Items to learn from.
        dev: Items that choose the epoch.
        config: The settings, resolved.
        measure: The main figure of the development items' probabilities.
        folder: For checkpoints.
    """
    return _Fitting(source, head, train, config, folder).run(dev, measure)


class _Fitting:
    """Training in progress; arguments as in `fit_head`."""

    def __init__(self, source: VectorSource, head: Head, train: Items, config: SuperviseConfig, folder: Path) -> None:
        self._source, self._head, self._train, self._config = source, head, train, config
        self._checkpoint = folder / CHECKPOINT
        self._parameters = [*source.tables, *chain.from_iterable(source.dense), *head.parameters()]
        # Before a checkpoint is read, because weights are pulled to where they began.
        self._pulls = penalties_of(source, head, config)
        self._optimizer = _optimizer(self._parameters, config)
        self._steps = -(-len(train) // config.batch_size)
        # The finished epochs, the losses of the current one, and the best weights.
        self._epochs: list[Epoch] = []
        self._losses: list[float] = []
        self._best: list[torch.Tensor] = []
        self._resume()
        self._saved = time.monotonic()

    @property
    def _step(self) -> int:
        """Number of steps made."""
        return len(self._epochs) * self._steps + len(self._losses)

    def run(self, dev: Items, measure: Measure) -> list[Epoch]:
        """Train to the end; the parameters are those of the best epoch."""
        total = (self._config.epochs or 0) * self._steps
        with (
            one_thread(),
            Progress(f"{self._config.task}: training", total, done=self._step, unit="steps") as progress,
        ):
            while self._step < total:
                self._finish_epoch(progress)
                reached = self._measure(dev, measure)
                progress.advance_to(self._step, f"{reached:.3f} on the development items")
                self._save_if_due()
        # If the model cannot be written, nothing is lost.
        self._save()
        for parameter, value in zip(self._parameters, self._best, strict=True):
            parameter.data.copy_(value)
        return self._epochs

    def _finish_epoch(self, progress: Progress) -> None:
        """Make the steps that are left of the current epoch."""
        size = self._config.batch_size
        order = np.random.default_rng([self._config.seed, len(self._epochs)]).permutation(len(self._train))
        for start in range(len(self._losses) * size, len(order), size):
            loss = _loss(self._source, self._head, self._train, order[start : start + size])
            self._losses.append(float(loss.detach()))
            if not math.isfinite(self._losses[-1]):
                raise diverged(f"{self._step}", self._losses[-1])
            self._optimizer.zero_grad()
            (loss + penalty(self._pulls)).backward()
            self._optimizer.step()
            progress.advance_to(self._step)
            if len(self._losses) < self._steps:
                self._save_if_due()

    def _measure(self, dev: Items, measure: Measure) -> float:
        """End an epoch: measure it, and keep its weights if they are the best."""
        shares = probabilities(self._source, self._head, dev)
        if not np.isfinite(shares).all():
            # What the last step did shows in no loss.
            raise diverged(f"{self._step}", math.nan)
        reached = measure(shares)
        if reached > max((epoch.development for epoch in self._epochs), default=-math.inf):
            self._best = [parameter.detach().clone() for parameter in self._parameters]
        self._epochs.append(Epoch(float(np.mean(self._losses)), reached))
        self._losses = []
        return reached

    def _save_if_due(self) -> None:
        if time.monotonic() - self._saved >= checkpoint.CHECKPOINT_SECONDS:
            self._save()
            self._saved = time.monotonic()

    def _save(self) -> None:
        tensors = {f"weight.{index}": parameter.detach() for index, parameter in enumerate(self._parameters)}
        tensors |= {f"best.{index}": value for index, value in enumerate(self._best)}
        for index, values in self._optimizer.state_dict()["state"].items():
            tensors |= {f"state.{index}.{name}": value for name, value in values.items()}
        state = {"epochs": [as_json(epoch) for epoch in self._epochs], "losses": self._losses}
        checkpoint.write_checkpoint(self._checkpoint, tensors, state)

    def _resume(self) -> None:
        found = checkpoint.read_checkpoint(self._checkpoint)
        if found is None:
            return
        tensors, state = found
        for index, parameter in enumerate(self._parameters):
            parameter.data.copy_(tensors[f"weight.{index}"])
        self._best = [tensors[f"best.{index}"] for index in range(len(self._parameters)) if f"best.{index}" in tensors]
        own = self._optimizer.state_dict()
        own["state"] = defaultdict(dict)
        for name, value in tensors.items():
            if name.startswith("state."):
                _, number, key = name.split(".")
                own["state"][int(number)][key] = value
        self._optimizer.load_state_dict(own)
        self._epochs = from_json(list[Epoch], state["epochs"], self._checkpoint)
        self._losses = state["losses"]
        logger.info(f"continuing after {counted(self._step, 'step')}")


def _optimizer(parameters: list[nn.Parameter], config: SuperviseConfig) -> torch.optim.Optimizer:
    assert config.learning_rate is not None
    if config.optimizer == "adagrad":
        return torch.optim.Adagrad(parameters, lr=config.learning_rate, initial_accumulator_value=ADAGRAD_START, eps=0)
    return torch.optim.Adam(parameters, lr=config.learning_rate, fused=True)


def _loss(source: VectorSource, head: Head, part: Items, items: np.ndarray) -> torch.Tensor:
    """Mean KL divergence of the predictions from the targets; for single classes their negative log-likelihood."""
    sentences = part.sentences[:, items]
    sides = source.vectors(sentences.ravel()).float().chunk(len(sentences))
    return kl_div(head(*sides), part.targets[torch.from_numpy(items)], reduction="batchmean")


@torch.no_grad()
def probabilities(source: VectorSource, head: Head, part: Items) -> np.ndarray:
    """Predict the classes of items with the weights as they are [item, class], float64."""
    distinct, places = np.unique(part.sentences, return_inverse=True)
    vectors = source.all_vectors(distinct).float()
    sides = [vectors[torch.from_numpy(own)] for own in places.reshape(part.sentences.shape)]
    return head(*sides).double().exp().numpy()
