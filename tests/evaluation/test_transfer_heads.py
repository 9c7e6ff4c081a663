"""The heads of transfer tasks: against scikit-learn's own tools, by hand, and in what they refuse."""

import signal
import threading
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, PredefinedSplit, StratifiedKFold, cross_val_score

from paranmt_hf.evaluation import transfer_heads
from paranmt_hf.evaluation.transfer_heads import (
    GRIDS,
    LabelledVectors,
    TransferConfig,
    check_folds,
    count_fits,
    target_distributions,
    train_relatedness,
    tuned_head,
)
from tests.refused import refused

CONFIG = TransferConfig(folds=4, seed=3)


class Ticks:
    def __init__(self):
        self.count = 0

    def __call__(self):
        self.count += 1


def noisy(items, classes=2, seed=0, spread=1.0):
    """Items of classes whose clouds overlap, so that penalties and folds matter."""
    generator = np.random.default_rng(seed)
    labels = np.arange(items) % classes
    centres = np.random.default_rng(99).standard_normal((classes, 6))
    vectors = centres[labels] * 0.5 + spread * generator.standard_normal((items, 6))
    return LabelledVectors(vectors.astype(np.float32), labels)


def sklearn_search(grid, folds):
    """The same by scikit-learn's own search."""
    return GridSearchCV(LogisticRegression(), {"C": list(grid)}, cv=folds, scoring="accuracy")


def test_grids_are_those_of_senteval():
    assert GRIDS["nested"] == GRIDS["dev"] == (0.25, 0.5, 1, 2, 4, 8)
    assert GRIDS["train"] == (0.5, 1, 2, 4, 8, 16, 32)
    assert (TransferConfig().folds, TransferConfig().seed) == (10, 1111)
    assert [count_fits(way, TransferConfig()) for way in GRIDS] == [610, 71, 7]


@pytest.mark.slow
def test_nested_cross_validation_is_scikit_learns():
    items, ticks = noisy(80), Ticks()
    tuned = tuned_head({"all": items}, "nested", CONFIG, ticks)
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    expected = cross_val_score(sklearn_search(GRIDS["nested"], folds), items.vectors, items.labels, cv=folds)
    assert tuned.accuracy == pytest.approx(expected.mean(), abs=1e-9)
    assert 0.6 < tuned.accuracy < 0.95, "neither chance nor all right, else it shows nothing"
    assert len(tuned.penalties) == 4 and set(tuned.penalties) <= set(GRIDS["nested"])
    assert ticks.count == count_fits("nested", CONFIG)


@pytest.mark.parametrize("classes", [2, 3])
def test_tuned_on_train_is_scikit_learns(classes):
    train, test, ticks = noisy(150, classes, seed=1), noisy(90, classes, seed=2), Ticks()
    tuned = tuned_head({"train": train, "test": test}, "train", CONFIG, ticks)
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    search = sklearn_search(GRIDS["train"], folds).fit(train.vectors, train.labels)
    assert tuned.penalties == (search.best_params_["C"],)
    assert tuned.dev == pytest.approx(search.best_score_, abs=1e-9)
    assert (tuned.predictions == search.predict(test.vectors)).all()
    assert tuned.accuracy == pytest.approx(search.score(test.vectors, test.labels), abs=1e-9)
    assert ticks.count == count_fits("train", CONFIG)


def test_tuned_on_dev_is_scikit_learns():
    train, dev, test, ticks = noisy(60, 3, seed=4), noisy(60, 3, seed=5), noisy(60, 3, seed=6), Ticks()
    tuned = tuned_head({"train": train, "dev": dev, "test": test}, "dev", CONFIG, ticks)
    both = [np.concatenate(pair) for pair in ((train.vectors, dev.vectors), (train.labels, dev.labels))]
    search = sklearn_search(GRIDS["dev"], PredefinedSplit([-1] * 60 + [0] * 60)).fit(*both)
    assert tuned.penalties == (search.best_params_["C"],) and tuned.dev == pytest.approx(search.best_score_)
    # The development items choose, and do not train.
    head = LogisticRegression(C=tuned.penalties[0]).fit(train.vectors, train.labels)
    assert (tuned.predictions == head.predict(test.vectors)).all()
    assert ticks.count == count_fits("dev", CONFIG)


def test_of_equal_penalties_the_strongest():
    # Clouds so far apart that every penalty gets all right.
    items = LabelledVectors(np.repeat([[5.0], [-5.0]], 20, axis=0).astype(np.float32), np.repeat([1, 0], 20))
    parts = dict.fromkeys(("train", "dev", "test"), items)
    assert [tuned_head(parts, way, CONFIG, Ticks()).penalties for way in ("dev", "train")] == [(0.25,), (0.5,)]


@pytest.mark.slow
def test_equal_seeds_give_equal_results_and_others_other_folds():
    items = noisy(200)
    runs = [tuned_head({"all": items}, "nested", TransferConfig(folds=3, seed=seed), Ticks()) for seed in (1, 1, 2)]
    assert replace(runs[0], predictions=0) == replace(runs[1], predictions=0) and runs[0].dev != runs[2].dev


@pytest.mark.slow
def test_the_number_of_threads_changes_nothing(monkeypatch):
    items, found = noisy(120), []
    for processors in (1, 5):
        monkeypatch.setattr(transfer_heads, "visible_cores", lambda processors=processors: processors)
        found.append(tuned_head({"all": items}, "nested", CONFIG, Ticks()))
    assert replace(found[0], predictions=0) == replace(found[1], predictions=0)


def test_an_interruption_ends_all_folds(monkeypatch):
    monkeypatch.setattr(transfer_heads, "visible_cores", lambda: 2)
    ticks = Ticks()

    def tick():
        ticks()
        if ticks.count == 3:
            # As Ctrl-C does.
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    # Processes that run tests in parallel ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            tuned_head({"all": noisy(120)}, "nested", CONFIG, tick)
    finally:
        signal.signal(signal.SIGINT, before)
    assert ticks.count < count_fits("nested", CONFIG) / 2


def test_too_few_items():
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    check_folds(labels, 4, "TREC", nested=False)
    for wrong, folds, nested in ((labels, 4, True), (labels, 5, False), (0 * labels, 1, False)):
        with refused():
            check_folds(wrong, folds, "MR", nested=nested)


@pytest.mark.parametrize("folds", range(2, 14))
def test_the_fewest_items_are_enough(folds):
    """Every fold inside a fold has an item of each class, and with one item less some has none."""
    for count in range(2, 3 * folds):
        labels = np.repeat([0, 1], count)
        outside = min(
            (labels[train] == 0).sum()
            for train, _ in StratifiedKFold(min(folds, count), shuffle=True, random_state=1111).split(labels, labels)
        )
        with nullcontext() if min(count, outside) >= folds else refused():
            check_folds(labels, folds, "MR", nested=True)


def test_target_distributions_by_hand():
    """Tai et al. 2015, section 4.2: the two neighbours of a score share it so that it is the expectation."""
    scores = np.array([1, 1.25, 3.6, 5])
    found = target_distributions(scores)
    expected = [[1, 0, 0, 0, 0], [0.75, 0.25, 0, 0, 0], [0, 0, 0.4, 0.6, 0], [0, 0, 0, 0, 1]]
    assert found == pytest.approx(np.array(expected), abs=1e-6)


def related(items, seed):
    """Pairs whose relatedness is a line through one feature."""
    generator = np.random.default_rng(seed)
    vectors = generator.uniform(0, 1, (items, 4)).astype(np.float32)
    return LabelledVectors(vectors, np.round(1 + 4 * vectors[:, 0], 1).astype(np.float64))


@pytest.mark.slow
def test_relatedness_learns_and_repeats():
    train, dev, test = related(64, 1), related(64, 2), related(64, 3)
    ticks = Ticks()
    scores, reached = train_relatedness(train, dev, test, 7, ticks)
    assert np.corrcoef(scores, test.labels)[0, 1] > 0.94 and reached > 0.94
    assert (scores >= 1).all() and (scores <= 5).all()
    assert 4 <= ticks.count <= count_fits("relatedness", CONFIG)
    again = train_relatedness(train, dev, test, 7, Ticks())
    assert (again[0] == scores).all() and again[1] == reached
    assert (train_relatedness(train, dev, test, 8, Ticks())[0] != scores).any()


def test_relatedness_of_vectors_of_zeros():
    train = related(64, 1)
    nothing = LabelledVectors(np.zeros_like(train.vectors), train.labels)
    with refused():
        train_relatedness(nothing, nothing, nothing, 1, Ticks())
