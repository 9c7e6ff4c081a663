"""The head of SICK-R: relatedness as the expectation of five classes (Tai et al. 2015, arXiv:1503.00075, section 4.2).

As SentEval trains it: mean squared error between the softmax and the target distribution, Adam, batches of 64, and an
end where Pearson's r on the development pairs no longer rises.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.correlation import pearson
from paranmt_hf.evaluation.transfer.heads import Features, Tick
from paranmt_hf.util.threads import one_thread

if TYPE_CHECKING:
    import torch

CLASSES = 5
BATCH = 64
LEARNING_RATE = 0.001
# Passes over the training pairs between two looks at the development pairs, and passes in all.
PASSES, MOST_PASSES = 50, 1000
# Looks without a rise that are forgiven.
PATIENCE = 3


@dataclass(frozen=True)
class Relatedness:
    """What the head predicts.

    Attributes:
        scores: Relatedness of the test pairs [pair], in [1, 5].
        dev: Pearson's r on the development pairs, in [-1, 1].
    """

    scores: np.ndarray
    dev: float


def target_distributions(scores: np.ndarray) -> np.ndarray:
    """Give each score the distribution over 1 to 5, of at most two neighbours, whose expectation it is.

    Args:
        scores: Relatedness [pair], in [1, 5].

    Returns:
        Distributions [pair, class], float32.

    >>> target_distributions(np.array([3.6, 5.0])).round(1).tolist()
    [[0.0, 0.0, 0.4000000059604645, 0.6000000238418579, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]]
    """
    classes = np.arange(1, CLASSES + 1)
    return np.maximum(0, 1 - np.abs(scores[:, None] - classes)).astype(np.float32)


def train_relatedness(train: Features, dev: Features, test: Features, seed: int, tick: Tick) -> Relatedness:
    """Train the head and score the test pairs.

    Args:
        train: Training pairs.
        dev: Development pairs, which say when to stop and which weights to keep.
        test: Pairs to score.
        seed: Decides the first weights and the order of the pairs.
        tick: Told after each `PASSES` passes.

    Raises:
        InputError: The head gives all development pairs one score.
    """
    with one_thread():
        return _train(train, dev, test, seed, tick)


def _train(train: Features, dev: Features, test: Features, seed: int, tick: Tick) -> Relatedness:
    import torch

    generator = torch.Generator().manual_seed(seed)
    vectors = torch.from_numpy(train.vectors)
    targets = torch.from_numpy(target_distributions(train.labels))
    head = torch.nn.Linear(vectors.shape[1], CLASSES)
    bound = vectors.shape[1] ** -0.5
    with torch.no_grad():
        for weights in head.parameters():
            weights.uniform_(-bound, bound, generator=generator)
    adam = torch.optim.Adam(head.parameters(), lr=LEARNING_RATE, fused=True)
    best, kept, left = -2.0, {}, PATIENCE
    for _ in range(0, MOST_PASSES, PASSES):
        for _ in range(PASSES):
            order = torch.randperm(len(vectors), generator=generator)
            for batch, wanted in zip(vectors[order].split(BATCH), targets[order].split(BATCH), strict=True):
                loss = torch.nn.functional.mse_loss(head(batch).softmax(1), wanted)
                adam.zero_grad()
                loss.backward()
                adam.step()
        tick()
        reached = _agreement(_scores(head, dev.vectors), dev.labels)
        if reached > best:
            best, kept = reached, {name: value.clone() for name, value in head.state_dict().items()}
        elif left:
            left -= 1
        else:
            break
    head.load_state_dict(kept)
    return Relatedness(_scores(head, test.vectors), best)


def _scores(head: torch.nn.Module, vectors: np.ndarray) -> np.ndarray:
    import torch

    with torch.no_grad():
        shares = head(torch.from_numpy(vectors)).softmax(1).double().numpy()
    return shares @ np.arange(1.0, CLASSES + 1)


def _agreement(scores: np.ndarray, gold: np.ndarray) -> float:
    try:
        return pearson(scores, gold)
    except InputError as error:
        raise InputError(
            f"SICK-R, development pairs (first: the head's scores, second: the gold scores): {error}"
        ) from None
