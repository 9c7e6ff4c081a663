"""Classifiers and regressors on sentence vectors, in SentEval's protocol (Conneau & Kiela 2018, arXiv:1803.05449).

Logistic regression by scikit-learn, its penalty tuned in one of three ways. For SICK-R relatedness as the expectation
of five classes (Tai et al. 2015, arXiv:1503.00075, section 4.2): mean squared error between the softmax and the target
distribution, Adam, batches of 64, and an end where Pearson's r on the development pairs no longer rises.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.correlation import pearson
from paranmt_hf.evaluation.transfer_data import Way
from paranmt_hf.util.machine import one_thread, visible_cores
from paranmt_hf.util.markers import Range, Seed
from paranmt_hf.util.settings import Settings

if TYPE_CHECKING:
    import torch

# Inverse strengths C of the L2 penalty that SentEval tries with scikit-learn's logistic regression.
GRIDS: Mapping[Way, tuple[float, ...]] = {
    "nested": tuple(2.0**power for power in range(-2, 4)),
    "train": tuple(2.0**power for power in range(-1, 6)),
    "dev": tuple(2.0**power for power in range(-2, 4)),
}
Tick = Callable[[], None]  # Called after each fit
# Positions of the items to train on, and of those held out.
Fold = tuple[np.ndarray, np.ndarray]
Job = TypeVar("Job")
Done = TypeVar("Done")
CLASSES = 5  # Of SICK-R's relatedness
LOOKS = 20  # The most looks at SICK-R's development pairs


@dataclass(frozen=True)
class TransferConfig(Settings):
    """Settings of the protocol; the defaults are those of published figures.

    Attributes:
        folds: Folds of cross-validation; published figures have 10, and 5 are quicker.
        seed: Seed of the folds, and of the start and order of training of SICK-R.
        scaled: Divide the vectors of each task by their mean length, so that the penalties suit short vectors too,
            such as averages of words; SentEval takes vectors as they are.
    """

    folds: Annotated[int, Range(at_least=2, at_most=100)] = 10
    seed: Seed = 1111
    scaled: bool = False

    def describe(self) -> dict[str, Any]:
        """Describe the training of the heads, as JSON values."""
        return {
            "folds": self.folds,
            "seed": self.seed,
            "scaled": self.scaled,
            "head": "scikit-learn LogisticRegression, its defaults but for C",
            "grid": dict(zip(("MR CR SUBJ MPQA", "TREC MRPC", "SST SICK-E"), map(list, GRIDS.values()), strict=True)),
            "relatedness": "softmax over 5 classes, squared error, Adam",
        }


@dataclass(frozen=True)
class LabelledVectors:
    """Vectors [item, feature], float32, and labels of items, as in `TaskPart`."""

    vectors: np.ndarray
    labels: np.ndarray

    def take(self, items: np.ndarray) -> LabelledVectors:
        """Choose items by index [chosen], in that order."""
        return LabelledVectors(self.vectors[items], self.labels[items])


@dataclass(frozen=True)
class Tuned:
    """Result of a tuned head."""

    accuracy: float  # On the test items, in [0, 1]; of nested cross-validation the mean over the folds
    dev: float  # On the items that the penalty was chosen by, in [0, 1]; the mean over the folds if there are several
    penalties: tuple[float, ...]  # The chosen inverse strength C of each test: one, or one a fold
    predictions: np.ndarray  # Class of each test item [item]; empty for nested cross-validation


def tuned_head(parts: Mapping[str, LabelledVectors], way: Way, config: TransferConfig, tick: Tick) -> Tuned:
    """Choose the penalty of a head, train it and test it, given all items of the task, or those of its splits.

    `nested` (MR, CR, SUBJ, MPQA): each fold is tested with the penalty that cross-validation inside the others
    prefers. `train` (TREC, MRPC): cross-validation on the training items chooses. `dev` (SST, SICK-E): the development
    items choose. `tick` is called after each fit, `count_fits` times.
    """
    if way == "nested":
        items = parts["all"]
        tests = []
        for inside, outside in _folds(items.labels, config):
            train = items.take(inside)
            tests.append(_tune(train, _folds(train.labels, config), train, items.take(outside), way, config, tick))
        return Tuned(
            accuracy=float(np.mean([test.accuracy for test in tests])),
            dev=float(np.mean([test.dev for test in tests])),
            penalties=tuple(test.penalties[0] for test in tests),
            predictions=np.empty(0, np.int64),
        )
    train, test = parts["train"], parts["test"]
    if way == "train":
        return _tune(train, _folds(train.labels, config), train, test, way, config, tick)
    held, count = parts["dev"], len(train.labels)
    both = LabelledVectors(np.concatenate([train.vectors, held.vectors]), np.concatenate([train.labels, held.labels]))
    fold = np.arange(count), np.arange(count, len(both.labels))
    return _tune(both, [fold], train, test, way, config, tick)


def count_fits(way: Way, config: TransferConfig) -> int:
    """The most ticks of `tuned_head`, or of `train_relatedness`."""
    if way == "relatedness":
        return LOOKS
    splits = 1 if way == "dev" else config.folds
    fits = splits * len(GRIDS[way]) + 1
    return config.folds * fits if way == "nested" else fits


def _tune(
    items: LabelledVectors,
    folds: Sequence[Fold],
    train: LabelledVectors,
    test: LabelledVectors,
    way: Way,
    config: TransferConfig,
    tick: Tick,
) -> Tuned:
    """Choose the penalty on folds of `items`, train on all of `train`, and test."""
    from sklearn.linear_model import LogisticRegression

    grid = GRIDS[way]

    def predictions(penalty: float, train: LabelledVectors, held: LabelledVectors) -> np.ndarray:
        # As SentEval has it, so that figures are equal: scikit-learn's defaults, which stop after 100 steps.
        head = LogisticRegression(C=penalty, random_state=config.seed).fit(train.vectors, train.labels)
        return np.asarray(head.predict(held.vectors))

    def accuracy(job: tuple[Fold, float]) -> float:
        (inside, outside), penalty = job
        held = items.take(outside)
        return float(np.mean(predictions(penalty, items.take(inside), held) == held.labels))

    jobs = [(fold, penalty) for fold in folds for penalty in grid]
    accuracies = np.mean(np.reshape(_on_threads(accuracy, jobs, tick), (len(folds), len(grid))), axis=0)
    # The highest accuracy, rounded as SentEval does, and of equal ones the strongest penalty.
    best = int(np.argmax(np.round(100 * accuracies, 2)))
    (found,) = _on_threads(lambda penalty: predictions(penalty, train, test), [grid[best]], tick)
    return Tuned(float(np.mean(found == test.labels)), float(accuracies[best]), (grid[best],), found)


def _on_threads(work: Callable[[Job], Done], jobs: Sequence[Job], tick: Tick) -> list[Done]:
    """Run jobs in parallel, each on one thread, so that results do not depend on the number of processors.

    There are few threads, because each holds a copy of the vectors.
    """
    from threadpoolctl import threadpool_limits

    results = []
    with threadpool_limits(1), ThreadPoolExecutor(min(visible_cores(), 8)) as pool:
        try:
            for result in pool.map(work, jobs):
                results.append(result)
                tick()
        except BaseException:
            # Ctrl-C ends the work with the fits that have begun.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return results


def _folds(labels: np.ndarray, config: TransferConfig) -> list[Fold]:
    """Training and held-out items of each fold."""
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(config.folds, shuffle=True, random_state=config.seed)
    return list(folds.split(np.empty(len(labels)), labels))


def check_folds(labels: np.ndarray, folds: int, name: str, *, nested: bool) -> None:
    """Reject items of one class, and classes [item] with fewer items than folds.

    `folds` is 1 where a development set chooses; if `nested`, each fold's other items are cut into folds again.
    """
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) < 2:
        raise InputError(f"{name}: all {len(labels):,} training items are of one class; expected two or more")
    fewest = int(counts.min())
    # Of the items outside a fold there must be one for each fold inside.
    needed = next(count for count in range(folds, 3 * folds + 1) if not nested or count - -(-count // folds) >= folds)
    if fewest < needed:
        raise InputError(
            f"{name}: {folds} folds need at least {needed} items of each class, but one has {fewest}; lower `folds`"
        )


def target_distributions(scores: np.ndarray, values: Sequence[int] = range(1, CLASSES + 1)) -> np.ndarray:
    """Convert each score to a distribution with that mean, on at most two neighbours of `values` [pair, class].

    >>> target_distributions(np.array([3.6, 5.0])).round(1).tolist()
    [[0.0, 0.0, 0.4000000059604645, 0.6000000238418579, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]]
    """
    return np.maximum(0, 1 - np.abs(scores[:, None] - np.array(values))).astype(np.float32)


@one_thread()
def train_relatedness(
    train: LabelledVectors, dev: LabelledVectors, test: LabelledVectors, seed: int, tick: Tick
) -> tuple[np.ndarray, float]:
    """Train the head of SICK-R until the development score stops improving.

    Returns the relatedness of the test pairs [pair], in [1, 5], and Pearson's r on the development pairs.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    vectors = torch.from_numpy(train.vectors)
    targets = torch.from_numpy(target_distributions(train.labels))
    head = torch.nn.Linear(vectors.shape[1], CLASSES)
    bound = vectors.shape[1] ** -0.5
    with torch.no_grad():
        for weights in head.parameters():
            weights.uniform_(-bound, bound, generator=generator)
    adam = torch.optim.Adam(head.parameters(), lr=0.001, fused=True)
    best = -2.0
    kept = {}
    left = 3  # Looks without a rise before training ends
    for _ in range(LOOKS):
        for _ in range(50):
            order = torch.randperm(len(vectors), generator=generator)
            for batch, wanted in zip(vectors[order].split(64), targets[order].split(64), strict=True):
                loss = torch.nn.functional.mse_loss(head(batch).softmax(1), wanted)
                adam.zero_grad()
                loss.backward()
                adam.step()
        tick()
        reached = pearson(_scores(head, dev.vectors), dev.labels)
        if reached > best:
            best = reached
            kept = copy.deepcopy(head.state_dict())
        elif left:
            left -= 1
        else:
            break
    head.load_state_dict(kept)
    return _scores(head, test.vectors), best


def _scores(head: torch.nn.Module, vectors: np.ndarray) -> np.ndarray:
    import torch

    with torch.no_grad():
        shares = head(torch.from_numpy(vectors)).softmax(1).double().numpy()
    return shares @ np.arange(1.0, CLASSES + 1)
