"""Train and test heads on sentence vectors, in SentEval's protocol (Conneau & Kiela 2018, arXiv:1803.05449).

A head is a small model that predicts the label of an item. The head of a classification task is scikit-learn's
logistic regression, whose penalty is tuned in one of three ways. The head of SICK-R predicts relatedness as the
expectation over five classes (Tai et al. 2015, arXiv:1503.00075, section 4.2). It is trained by Adam in batches of 64,
on the mean squared error between the softmax and the target distribution, until Pearson's r on the development pairs
no longer rises.
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

# Values of C, the inverse strength of the L2 penalty, that SentEval tries with scikit-learn's logistic regression.
GRIDS: Mapping[Way, tuple[float, ...]] = {
    "nested": tuple(2.0**power for power in range(-2, 4)),
    "train": tuple(2.0**power for power in range(-1, 6)),
    "dev": tuple(2.0**power for power in range(-2, 4)),
}
Tick = Callable[[], None]  # Called after each fit
# Indices of the items to train on, and of those held out.
Fold = tuple[np.ndarray, np.ndarray]
Job = TypeVar("Job")
Done = TypeVar("Done")
CLASSES = 5  # Number of classes of SICK-R's relatedness
LOOKS = 20  # Maximum number of evaluations on SICK-R's development pairs, with 50 epochs before each


@dataclass(frozen=True)
class TransferConfig(Settings):
    """Settings of the protocol of transfer tasks; the defaults are those of published figures.

    Attributes:
        folds: Number of folds of cross-validation; published figures have 10, and 5 are quicker.
        seed: Seed of the folds, and of the initial weights and the order of training of SICK-R.
        scaled: Divide the vectors of each task by their mean length, so that the penalties suit short vectors too,
            such as averages of words; SentEval takes vectors as they are.
    """

    folds: Annotated[int, Range(at_least=2, at_most=100)] = 10
    seed: Seed = 1111
    scaled: bool = False

    def describe(self) -> dict[str, Any]:
        """Return a description of the training of the heads, as JSON values."""
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
    """The input of a head for some items, with their labels."""

    vectors: np.ndarray  # Features of each item [item, feature], float32
    labels: np.ndarray  # Labels as in `TaskPart` [item]

    def take(self, items: np.ndarray) -> LabelledVectors:
        """Return the items with these indices, in this order."""
        return LabelledVectors(self.vectors[items], self.labels[items])


@dataclass(frozen=True)
class Tuned:
    """The result of a head whose penalty was tuned."""

    accuracy: float  # Accuracy on the test items, in [0, 1]; for nested cross-validation, the mean over the folds
    # Accuracy on the items that the penalty was chosen by, in [0, 1]; with several folds, the mean over them
    dev: float
    penalties: tuple[float, ...]  # The chosen C; for nested cross-validation, the C of each fold
    predictions: np.ndarray  # Predicted class of each test item [item]; empty for nested cross-validation


def tuned_head(parts: Mapping[str, LabelledVectors], way: Way, config: TransferConfig, tick: Tick) -> Tuned:
    """Choose the penalty of a head, train it and test it.

    Args:
        parts: Items of each part of the task.
        way: How the penalty is chosen:

            - `nested` (MR, CR, SUBJ, MPQA): each fold is the test set once, and the penalty for it is chosen by
              cross-validation on the other folds.
            - `train` (TREC, MRPC): by cross-validation on the training items.
            - `dev` (SST, SICK-E): by the accuracy on the development items.
        config: Folds and seed.
        tick: Called after each fit, `count_fits` times in all.
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
    """Return how many fits `tuned_head` makes, or the largest number of evaluations that `train_relatedness` makes."""
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
    """Choose the penalty of highest accuracy on the folds of `items`, train on `train` with it, and test on `test`."""
    from sklearn.linear_model import LogisticRegression

    grid = GRIDS[way]

    def predictions(penalty: float, train: LabelledVectors, held: LabelledVectors) -> np.ndarray:
        # These are scikit-learn's defaults, with at most 100 steps, as in SentEval, so that scores are the same.
        head = LogisticRegression(C=penalty, random_state=config.seed).fit(train.vectors, train.labels)
        return np.asarray(head.predict(held.vectors))

    def accuracy(job: tuple[Fold, float]) -> float:
        (inside, outside), penalty = job
        held = items.take(outside)
        return float(np.mean(predictions(penalty, items.take(inside), held) == held.labels))

    jobs = [(fold, penalty) for fold in folds for penalty in grid]
    accuracies = np.mean(np.reshape(_on_threads(accuracy, jobs, tick), (len(folds), len(grid))), axis=0)
    # The highest accuracy wins, rounded as in SentEval. Of equal ones the strongest penalty wins, which comes first.
    best = int(np.argmax(np.round(100 * accuracies, 2)))
    (predicted,) = _on_threads(lambda penalty: predictions(penalty, train, test), [grid[best]], tick)
    return Tuned(float(np.mean(predicted == test.labels)), float(accuracies[best]), (grid[best],), predicted)


def _on_threads(work: Callable[[Job], Done], jobs: Sequence[Job], tick: Tick) -> list[Done]:
    """Run jobs in parallel, and return their results in the order of the jobs.

    Each job runs on one thread, so that results do not depend on the number of processors. There are at most 8
    threads, because each holds a copy of the vectors. `tick` is called for each finished job.
    """
    from threadpoolctl import threadpool_limits

    results = []
    with threadpool_limits(1), ThreadPoolExecutor(min(visible_cores(), 8)) as pool:
        try:
            for result in pool.map(work, jobs):
                results.append(result)
                tick()
        except BaseException:
            # After Ctrl-C, only the fits that have begun still run.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return results


def _folds(labels: np.ndarray, config: TransferConfig) -> list[Fold]:
    """Split items into folds of equal shares of classes; returns the training and held-out items of each fold."""
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(config.folds, shuffle=True, random_state=config.seed)
    return list(folds.split(np.empty(len(labels)), labels))


def check_folds(labels: np.ndarray, folds: int, name: str, *, nested: bool) -> None:
    """Raise `InputError` if training items are all of one class, or if a class has too few items for the folds.

    Args:
        labels: Class of each training item [item].
        folds: Number of folds; 1 if a development set chooses the penalty.
        name: Name of the task, for the error.
        nested: Whether the items outside of each fold are split into folds again.
    """
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) < 2:
        raise InputError(f"{name}: all {len(labels):,} training items are of one class; expected two or more")
    fewest = int(counts.min())
    # In nested cross-validation, the items of a class outside a fold must be enough for one in each inner fold.
    needed = next(count for count in range(folds, 3 * folds + 1) if not nested or count - -(-count // folds) >= folds)
    if fewest < needed:
        raise InputError(
            f"{name}: {folds} folds need at least {needed} items of each class, but one has {fewest}; lower `folds`"
        )


def target_distributions(scores: np.ndarray, values: Sequence[int] = range(1, CLASSES + 1)) -> np.ndarray:
    """Convert each score to a distribution over classes whose mean is the score [pair, class], float32.

    Only the classes next to the score, at most two, have a share. `values` are the values of the classes.

    >>> target_distributions(np.array([3.6, 5.0])).round(1).tolist()
    [[0.0, 0.0, 0.4000000059604645, 0.6000000238418579, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]]
    """
    return np.maximum(0, 1 - np.abs(scores[:, None] - np.array(values))).astype(np.float32)


@one_thread()
def train_relatedness(
    train: LabelledVectors, dev: LabelledVectors, test: LabelledVectors, seed: int, tick: Tick
) -> tuple[np.ndarray, float]:
    """Train the head of SICK-R until Pearson's r on the development pairs stops rising, and apply it to test pairs.

    Args:
        train: Training pairs.
        dev: Development pairs.
        test: Test pairs.
        seed: Seed of the initial weights and of the order of training.
        tick: Called after every 50 epochs, at most `LOOKS` times.

    Returns:
        The predicted relatedness of the test pairs [pair], in [1, 5], and the best Pearson's r on the development
        pairs.
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
    patience = 3  # How many more evaluations may pass without a rise
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
        elif patience:
            patience -= 1
        else:
            break
    head.load_state_dict(kept)
    return _scores(head, test.vectors), best


def _scores(head: torch.nn.Module, vectors: np.ndarray) -> np.ndarray:
    """Return the relatedness that a head predicts for each pair [pair], float64, in [1, 5]."""
    import torch

    with torch.no_grad():
        shares = head(torch.from_numpy(vectors)).softmax(1).double().numpy()
    return shares @ np.arange(1.0, CLASSES + 1)
