"""Training of a head, and of the encoder below it: PARAGRAM-PHRASE (arXiv:1511.08198), section 4.4, equation 2."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from torch import nn
from torch.nn.functional import kl_div

from paranmt_hf.training.averaging import diverged
from paranmt_hf.training.regularisation import Pull, penalty, towards_initial, towards_zero
from paranmt_hf.training.rowwise import ADAGRAD_START
from paranmt_hf.training.supervised.config import SuperviseConfig
from paranmt_hf.training.supervised.head import Head
from paranmt_hf.training.supervised.record import Epoch
from paranmt_hf.training.supervised.sources import Source
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.threads import one_thread

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


def pulls_of(source: Source, head: Head, config: SuperviseConfig) -> list[Pull]:
    """List the penalties of a run: lambda_s on the head, lambda_c on composition, lambda_w on tables; half of each.

    Args:
        source: What the vectors come from, as it is before training.
        head: The head.
        config: The settings, resolved.
    """
    projection = [] if head.project is None else head.project.parameters()
    pulls = towards_zero(head.classifying(), config.lambda_s / 2)
    pulls += towards_zero(projection, config.lambda_c / 2)
    for weights, centre in zip(source.dense, source.centres, strict=True):
        initial = config.way == "regularised" or centre == "initial"
        pulls += (towards_initial if initial else towards_zero)(weights, config.lambda_c / 2)
    return pulls + towards_initial(source.tables, (config.lambda_w or 0.0) / 2)


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
    parameters = [*source.tables, *chain.from_iterable(source.dense), *head.parameters()]
    pulls, optimizer = pulls_of(source, head, config), _optimizer(parameters, config)
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
                optimizer.zero_grad()
                (loss + penalty(pulls)).backward()
                optimizer.step()
                progress.advance_to(epoch * steps + len(losses))
            shares = probabilities(source, head, dev)
            if not np.isfinite(shares).all():
                # What the last step did shows in no loss.
                raise diverged(f"{(epoch + 1) * steps}", math.nan)
            reached = measure(shares)
            progress.advance_to((epoch + 1) * steps, f"{reached:.3f} on the development items")
            epochs.append(Epoch(float(np.mean(losses)), reached))
            if reached > best:
                best, kept = reached, [parameter.detach().clone() for parameter in parameters]
    for parameter, value in zip(parameters, kept, strict=True):
        parameter.data.copy_(value)
    return epochs


def _optimizer(parameters: list[nn.Parameter], config: SuperviseConfig) -> torch.optim.Optimizer:
    assert config.learning_rate is not None
    if config.optimizer == "adagrad":
        return torch.optim.Adagrad(parameters, lr=config.learning_rate, initial_accumulator_value=ADAGRAD_START, eps=0)
    return torch.optim.Adam(parameters, lr=config.learning_rate, fused=True)


def _loss(source: Source, head: Head, part: Items, items: np.ndarray) -> torch.Tensor:
    """Mean KL divergence of the predictions from the targets; of a single class its negative log-likelihood."""
    sentences = part.sentences[:, items]
    sides = source.vectors(sentences.ravel()).float().chunk(len(sentences))
    return kl_div(head(*sides), part.targets[torch.from_numpy(items)], reduction="batchmean")


@torch.no_grad()
def probabilities(source: Source, head: Head, part: Items) -> np.ndarray:
    """Predict the classes of items with the weights as they are [item, class], float64."""
    distinct, places = np.unique(part.sentences, return_inverse=True)
    vectors = source.all_vectors(distinct).float()
    sides = [vectors[torch.from_numpy(own)] for own in places.reshape(part.sentences.shape)]
    return head(*sides).double().exp().numpy()
