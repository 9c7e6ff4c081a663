"""Logistic regression over sentence vectors by scikit-learn, its penalty tuned in one of SentEval's three ways."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event, Lock
from typing import Any, TypeVar

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.transfer.protocol import (
    DEV_GRID,
    NESTED_GRID,
    TRAIN_GRID,
    TransferConfig,
)

# Told after each fit.
Tick = Callable[[], None]
# Items to train on, and items held out.
Fold = tuple[np.ndarray, np.ndarray]
Part = TypeVar("Part")
Result = TypeVar("Result")
# Each of them holds a copy of the vectors.
MOST_THREADS = 8


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

    Raises:
        InputError: A class has too few items for so many folds.
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

    Raises:
        InputError: A class has too few items for so many folds.
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

    Raises:
        InputError: The training items are all of one class.
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

    Raises:
        InputError: A class has too few items.
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
