"""Training of a head, and of the encoder below it: PARAGRAM-PHRASE (arXiv:1511.08198), section 4.4, equation 2."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn.functional import kl_div

from paranmt_hf.supervised.config import SuperviseConfig
from paranmt_hf.supervised.head import Head
from paranmt_hf.supervised.record import Epoch
from paranmt_hf.supervised.sources import Source
from paranmt_hf.training.averaging import diverged
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.threads import one_thread

# What AdaGrad's sums of squares begin with, which keeps the first steps of tiny gradients small.
ADAGRAD_START = 1e-6

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


@dataclass(frozen=True)
class Pull:
    """A penalty: half of `weight` times the squared distance of a parameter from `centre`, or from zero."""

    parameter: nn.Parameter
    weight: float
    centre: torch.Tensor | None = None

    def add_gradient(self) -> None:
        """Add its gradient to the parameter's."""
        own, gradient = self.parameter.data, self.parameter.grad
        if gradient is not None:
            gradient.add_(own if self.centre is None else own - self.centre, alpha=self.weight)


def pulls_of(source: Source, head: Head, config: SuperviseConfig) -> list[Pull]:
    """List the penalties of a run: lambda_s on the head, lambda_c on composition, lambda_w on tables.

    Args:
        source: What the vectors come from, as it is before training.
        head: The head.
        config: The settings, resolved.
    """
    towards_start = config.way == "regularised"
    projection = [] if head.project is None else list(head.project.parameters())
    pulls = [Pull(own, config.lambda_s) for own in head.classifying()]
    pulls += [Pull(own, config.lambda_c) for own in projection]
    pulls += [Pull(own, config.lambda_c, own.detach().clone() if towards_start else None) for own in source.dense]
    pulls += [Pull(own, config.lambda_w or 0.0, own.detach().clone()) for own in source.tables]
    return [pull for pull in pulls if pull.weight]


def fit(
    source: Source, head: Head, train: Items, dev: Items, config: SuperviseConfig, measure: Measure
) -> list[Epoch]:
    """Train to the last epoch and go back to the one that was best on the development items, the first of equals.

    The result depends on the seed and not on the number of threads, of which one is used.

    Args:
        source: What the vectors come from.
        head: The head.
        train: Items to learn from.
        dev: Items that choose the epoch.
        config: The settings, resolved.
        measure: The figure of the development items' probabilities.

    Returns:
        What happened in each epoch.

    Raises:
        InputError: A loss is not a number.
    """
    parameters = [*source.tables, *source.dense, *head.parameters()]
    frozen = [table for table in source.tables if not bool(table[0].any())]
    pulls, optimiser = pulls_of(source, head, config), _optimiser(parameters, config)
    epochs: list[Epoch] = []
    best, kept = -math.inf, []
    steps = -(-len(train) // config.batch_size)
    with one_thread(), Progress(f"{config.task}: training", (config.epochs or 0) * steps, unit="steps") as progress:
        for epoch in range(config.epochs or 0):
            order = np.random.default_rng([config.seed, epoch]).permutation(len(train))
            losses = []
            for start in range(0, len(train), config.batch_size):
                items = order[start : start + config.batch_size]
                loss = _loss(source, head, train, items)
                losses.append(float(loss.detach()))
                if not math.isfinite(losses[-1]):
                    raise diverged(f"{epoch * steps + len(losses)}", losses[-1])
                optimiser.zero_grad()
                loss.backward()
                _finish_gradients(pulls, frozen)
                optimiser.step()
                progress.advance_to(epoch * steps + len(losses))
            reached = measure(probabilities(source, head, dev))
            epochs.append(Epoch(float(np.mean(losses)), reached))
            if reached > best:
                best, kept = reached, [parameter.detach().clone() for parameter in parameters]
    for parameter, value in zip(parameters, kept, strict=True):
        parameter.data.copy_(value)
    return epochs


def _optimiser(parameters: list[nn.Parameter], config: SuperviseConfig) -> torch.optim.Optimizer:
    assert config.learning_rate is not None
    if config.optimiser == "adagrad":
        return torch.optim.Adagrad(parameters, lr=config.learning_rate, initial_accumulator_value=ADAGRAD_START, eps=0)
    return torch.optim.Adam(parameters, lr=config.learning_rate, fused=True)


def _loss(source: Source, head: Head, part: Items, items: np.ndarray) -> torch.Tensor:
    """Mean KL divergence of the predictions from the targets; of a single class its negative log-likelihood."""
    sentences = part.sentences[:, items]
    sides = source.vectors(sentences.ravel()).float().chunk(len(sentences))
    return kl_div(head(*sides), part.targets[torch.from_numpy(items)], reduction="batchmean")


def _finish_gradients(pulls: list[Pull], frozen: list[nn.Parameter]) -> None:
    for pull in pulls:
        pull.add_gradient()
    for table in frozen:
        # Row 0, of unknown units, stays zeros unless it is trained.
        if table.grad is not None:
            table.grad[0] = 0


@torch.no_grad()
def probabilities(source: Source, head: Head, part: Items) -> np.ndarray:
    """Predict the classes of items with the weights as they are [item, class], float64."""
    distinct, places = np.unique(part.sentences, return_inverse=True)
    vectors = source.all_vectors(distinct).float()
    sides = [vectors[torch.from_numpy(own)] for own in places.reshape(part.sentences.shape)]
    return head(*sides).double().exp().numpy()
