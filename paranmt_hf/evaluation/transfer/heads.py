"""What is trained on sentence vectors, in SentEval's protocol (Conneau & Kiela 2018, arXiv:1803.05449).

Logistic regression by scikit-learn, its penalty tuned in one of three ways. For SICK-R relatedness as the expectation
of five classes (Tai et al. 2015, arXiv:1503.00075, section 4.2): mean squared error between the softmax and the target
distribution, Adam, batches of 64, and an end where Pearson's r on the development pairs no longer rises.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event, Lock
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.correlation import pearson
from paranmt_hf.util.machine import one_thread
from paranmt_hf.util.settings import Range, Seed, check

if TYPE_CHECKING:
    import torch

# Inverse strengths C of the L2 penalty that SentEval tries with scikit-learn's logistic regression.
NESTED_GRID = tuple(2.0**power for power in range(-2, 4))
TRAIN_GRID = tuple(2.0**power for power in range(-1, 6))
DEV_GRID = tuple(2.0**power for power in range(-2, 4))
# Told after each fit.
Tick = Callable[[], None]
# Items to train on, and items held out.
Fold = tuple[np.ndarray, np.ndarray]
Part = TypeVar("Part")
Result = TypeVar("Result")
# Each of them holds a copy of the vectors.
MOST_THREADS = 8
# Of SICK-R.
CLASSES = 5
BATCH = 64
LEARNING_RATE = 0.001
# Passes over the training pairs between two looks at the development pairs, and passes in all.
PASSES, MOST_PASSES = 50, 1000
# Looks without a rise that are forgiven.
PATIENCE = 3


@dataclass(frozen=True)
class TransferConfig:
    """What may be chosen of the protocol; the defaults are those of published figures.

    Attributes:
        folds: Folds of cross-validation; published figures have 10, and 5 are quicker.
        seed: Seed of the folds, and of the start and order of training of SICK-R.
    """

    folds: Annotated[int, Range(at_least=2, at_most=100)] = 10
    seed: Seed = 1111

    def __post_init__(self) -> None:
        check(self)

    def describe(self) -> dict[str, Any]:
        """Say how the heads are trained, as JSON values."""
        return {
            "folds": self.folds,
            "seed": self.seed,
            "head": "scikit-learn LogisticRegression, its defaults but for C",
            "grid": {"MR CR SUBJ MPQA": [*NESTED_GRID], "TREC MRPC": [*TRAIN_GRID], "SST SICK-E": [*DEV_GRID]},
            "relatedness": "softmax over 5 classes, squared error, Adam",
        }


@dataclass(frozen=True)
class Features:
    """What a head sees of the items of a part.

    Attributes:
        vectors: A row for each item [item, feature], float32.
        labels: Classes from 0 [item], int64; of SICK-R relatedness from 1 to 5, float64.
    """

    vectors: np.ndarray
    labels: np.ndarray

    def take(self, items: np.ndarray) -> Features:
        """Choose items by index [chosen], in that order."""
        return Features(self.vectors[items], self.labels[items])


@dataclass(frozen=True)
class Tuned:
    """What a tuned head reached.

    Attributes:
        accuracy: On the test items, in [0, 1]; of nested cross-validation the mean over the folds.
        dev: On the items that the penalty was chosen by, in [0, 1]; the mean over the folds where there are several.
        penalties: The chosen inverse strength C of each test: one, or one a fold.
        predictions: Class of each test item [item]; empty for nested cross-validation.
    """

    accuracy: float
    dev: float
    penalties: tuple[float, ...]
    predictions: np.ndarray


def nested_cross_validation(items: Features, config: TransferConfig, tick: Tick, name: str) -> Tuned:
    """Test each fold with the penalty that cross-validation inside the others prefers: MR, CR, SUBJ, MPQA.

    Args:
        items: All items of the task.
        config: Folds and seed.
        tick: Told after each fit, `nested_fits` times.
        name: Name of the task, for errors.
    """
    check_folds(items.labels, config.folds, name, nested=True)

    def test_fold(fold: Fold, tick: Tick) -> tuple[float, float, float]:
        inside, outside = items.take(fold[0]), items.take(fold[1])
        accuracies = [
            _along_the_grid(inside.take(train), inside.take(held), NESTED_GRID, config, tick)
            for train, held in _folds(inside.labels, config)
        ]
        penalty, dev = _preferred(np.mean(accuracies, axis=0), NESTED_GRID)
        head = _head(penalty, config).fit(inside.vectors, inside.labels)
        tick()
        return head.score(outside.vectors, outside.labels), dev, penalty

    results = _on_threads(test_fold, _folds(items.labels, config), tick)
    accuracies, devs, penalties = zip(*results, strict=True)
    return Tuned(float(np.mean(accuracies)), float(np.mean(devs)), penalties, np.empty(0, np.int64))


def tuned_on_train(train: Features, test: Features, config: TransferConfig, tick: Tick, name: str) -> Tuned:
    """Test with the penalty that cross-validation on the training items prefers: TREC, MRPC.

    Args:
        train: Training items.
        test: Test items.
        config: Folds and seed.
        tick: Told after each fit, `train_fits` times.
        name: Name of the task, for errors.
    """
    check_folds(train.labels, config.folds, name, nested=False)

    def try_fold(fold: Fold, tick: Tick) -> np.ndarray:
        return _along_the_grid(train.take(fold[0]), train.take(fold[1]), TRAIN_GRID, config, tick)

    accuracies = _on_threads(try_fold, _folds(train.labels, config), tick)
    penalty, dev = _preferred(np.mean(accuracies, axis=0), TRAIN_GRID)
    predictions = _predictions(train, test, penalty, config, tick)
    return Tuned(float(np.mean(predictions == test.labels)), dev, (penalty,), predictions)


def tuned_on_dev(
    train: Features, dev: Features, test: Features, config: TransferConfig, tick: Tick, name: str
) -> Tuned:
    """Test with the penalty that the development items prefer: SST, SICK-E.

    Args:
        train: Training items.
        dev: Development items.
        test: Test items.
        config: Seed.
        tick: Told after each fit, `dev_fits` times.
        name: Name of the task, for errors.
    """
    check_folds(train.labels, 1, name, nested=False)

    def try_penalty(penalty: float, tick: Tick) -> float:
        return float(_along_the_grid(train, dev, [penalty], config, tick)[0])

    accuracies = np.array(_on_threads(try_penalty, DEV_GRID, tick))
    penalty, best = _preferred(accuracies, DEV_GRID)
    predictions = _predictions(train, test, penalty, config, tick)
    return Tuned(float(np.mean(predictions == test.labels)), best, (penalty,), predictions)


def nested_fits(config: TransferConfig) -> int:
    """Number of fits of `nested_cross_validation`."""
    return config.folds * (config.folds * len(NESTED_GRID) + 1)


def train_fits(config: TransferConfig) -> int:
    """Number of fits of `tuned_on_train`."""
    return config.folds * len(TRAIN_GRID) + 1


def dev_fits(config: TransferConfig) -> int:
    """Number of fits of `tuned_on_dev`."""
    return len(DEV_GRID) + 1


def _predictions(train: Features, test: Features, penalty: float, config: TransferConfig, tick: Tick) -> np.ndarray:
    """Class of each test item [item], from a head trained on all training items."""

    def predict(penalty: float, tick: Tick) -> np.ndarray:
        head = _head(penalty, config).fit(train.vectors, train.labels)
        tick()
        return np.asarray(head.predict(test.vectors))

    return _on_threads(predict, [penalty], tick)[0]


def _on_threads(work: Callable[[Part, Tick], Result], parts: Sequence[Part], tick: Tick) -> list[Result]:
    """Work on several parts at once, each on one thread, so that results do not depend on the number of processors."""
    from threadpoolctl import threadpool_limits

    lock, stopped = Lock(), Event()

    def locked_tick() -> None:
        if stopped.is_set():
            raise InterruptedError
        with lock:
            tick()

    with threadpool_limits(1), ThreadPoolExecutor(min(_processors(), MOST_THREADS)) as pool:
        try:
            return list(pool.map(lambda part: work(part, locked_tick), parts))
        except BaseException:
            # Ctrl-C ends the other parts at their next fit.
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _along_the_grid(
    train: Features, held: Features, grid: Sequence[float], config: TransferConfig, tick: Tick
) -> np.ndarray:
    """Accuracy on held-out items for each penalty [penalty]."""
    accuracies = []
    for penalty in grid:
        head = _head(penalty, config).fit(train.vectors, train.labels)
        accuracies.append(head.score(held.vectors, held.labels))
        tick()
    return np.array(accuracies)


def _preferred(accuracies: np.ndarray, grid: Sequence[float]) -> tuple[float, float]:
    """The penalty of the highest accuracy, of equal ones the strongest; rounded as SentEval does."""
    best = int(np.argmax(np.round(100 * accuracies, 2)))
    return grid[best], float(accuracies[best])


def _head(penalty: float, config: TransferConfig) -> Any:  # noqa: ANN401 - scikit-learn's
    """A head as SentEval has it, so that figures are equal: scikit-learn's defaults, which stop after 100 steps."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=penalty, random_state=config.seed)


def _folds(labels: np.ndarray, config: TransferConfig) -> list[Fold]:
    """Training and held-out items of each fold."""
    from sklearn.model_selection import StratifiedKFold

    return list(
        StratifiedKFold(config.folds, shuffle=True, random_state=config.seed).split(np.empty(len(labels)), labels)
    )


def check_folds(labels: np.ndarray, folds: int, name: str, *, nested: bool) -> None:
    """Refuse items of one class, and folds that some class has too few items for.

    Args:
        labels: Class of each training item [item].
        folds: How many folds; 1 where a development set chooses.
        name: Of the task, for the error.
        nested: Whether each fold's other items are cut into folds again.
    """
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) < 2:
        raise InputError(f"{name}: all {len(labels):,} training items are of one class; expected two or more")
    fewest = int(counts.min())
    # Of the items outside a fold there must be one for each fold inside.
    needed = next(count for count in range(folds, 3 * folds + 1) if not nested or count - -(-count // folds) >= folds)
    if fewest < needed:
        raise InputError(
            f"{name}: {folds} folds need at least {needed} items of each class, but one has {fewest}; lower --folds"
        )


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
