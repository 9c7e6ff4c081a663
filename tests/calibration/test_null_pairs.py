"""A threshold without ratings: by its definition, its interval by resampling one by one, and the command."""

from itertools import combinations

import numpy as np
import pytest

from paranmt_hf import Calibration, calibrate
from paranmt_hf.calibration.null_pairs import null_distribution, read_null_texts
from tests.refused import refused


def unit_vectors(texts: int, seed: int = 1) -> np.ndarray:
    vectors = np.random.default_rng(seed).normal(size=(texts, 8)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def smallest_cosine(cosines: np.ndarray, weights: np.ndarray, allowed: float) -> float:
    """The smallest cosine in steps of 0.0001 that pairs of at most this weight reach."""
    steps = np.floor(cosines * 10_000)
    return next(step for step in np.unique(steps) + 1 if weights[steps >= step].sum() <= allowed) / 10_000


def test_threshold_and_interval_are_those_of_counting():
    vectors, rate = unit_vectors(60), 50
    pairs = np.array(list(combinations(range(60), 2)))
    cosines = np.array([float(vectors[one].astype(float) @ vectors[two]) for one, two in pairs])
    found = null_distribution(vectors, rate, resamples=12, seed=4, block=7)
    assert found.pairs == len(pairs) == 1770
    assert found.threshold == pytest.approx(smallest_cosine(cosines, np.ones(1770), 1770 / 50), abs=1e-9)
    generator = np.random.default_rng(4)
    thresholds = []
    for _ in range(12):
        drawn = generator.integers(60, size=60)
        copies = np.bincount(drawn, minlength=60)
        weights = copies[pairs[:, 0]] * copies[pairs[:, 1]]
        # Pairs of the drawn texts, but for those of a text with its copy.
        allowed = sum(one != two for one, two in combinations(drawn, 2)) / 50
        thresholds.append(smallest_cosine(cosines, weights, allowed))
    assert found.interval == pytest.approx(np.quantile(thresholds, [0.025, 0.975], method="nearest"), abs=1e-9)
    assert found.near == len(np.unique(pairs[cosines >= found.threshold]))
    for cosine, above in found.counts:
        assert above == (cosines >= cosine).sum() >= 10
    assert [cosine for cosine, _ in found.counts] == sorted({cosine for cosine, _ in found.counts})
    assert (found.threshold, found.cosine_of(50)) == (found.cosine_of(50), found.threshold)
    assert found == null_distribution(vectors, rate, resamples=12, seed=4, block=60)


def test_vectors_of_the_plane():
    """Three pairs of equal vectors among six: 3 of 15 pairs have a cosine of 1, the others of 0."""
    vectors = np.repeat(np.eye(3, dtype=np.float32), 2, axis=0)
    found = null_distribution(vectors, 5, resamples=5)
    assert (found.threshold, found.near) == (0.0001, 6)
    with refused("null_rate"):
        null_distribution(vectors, 6, resamples=5)


def test_the_interval_holds_the_threshold_of_all_texts():
    """Not always, but nearly always: it is one of 95 %."""
    population = unit_vectors(4000, seed=3)
    wanted = null_distribution(population, 200, resamples=1).threshold
    generator = np.random.default_rng(8)
    held = 0
    for seed in range(20):
        drawn = population[generator.choice(4000, 150, replace=False)]
        low, high = null_distribution(drawn, 200, resamples=60, seed=seed).interval
        held += low <= wanted <= high
    assert held >= 17


def test_texts_are_distinct_and_drawn(tmp_path):
    lines = [f"Text number {number}." for number in range(11_000)]
    (tmp_path / "t.txt").write_text("\n".join([*lines, "TEXT  number 5.", "", "text number 6 ."]))
    found = read_null_texts(tmp_path / "t.txt", None, 10_000)
    assert (found.stated.name, found.stated.texts, found.stated.drawn, found.stated.rate) == (
        "t.txt",
        11_000,
        10_000,
        10_000,
    )
    assert len({*found.texts} & {*lines}) == len(found.texts) == 10_000
    assert found == read_null_texts(tmp_path / "t.txt", None, 10_000)
    with refused("null_rate"):
        read_null_texts(tmp_path / "t.txt", None, 5_000_000)


def test_columns(tmp_path):
    (tmp_path / "t.csv").write_text("id,one,two\n" + "".join(f"{n},first {n},second {n}\n" for n in range(60)))
    assert read_null_texts(tmp_path / "t.csv", "two", 100).texts[7] == "second 7"
    with refused("null_column", path=tmp_path / "t.csv"):
        read_null_texts(tmp_path / "t.csv", None, 100)
    with refused("null_column"):
        calibrate("small", out=tmp_path / "out", null_column="two")


def test_the_record_has_the_threshold(tmp_path):
    """With the probabilities that there are without it."""
    texts = [
        f"{who} {does} the {what}."
        for who in "Anna Ben Cleo Dan".split()
        for does in "sees buys hears".split()
        for what in "red dog,old car,big house,new song,last train".split(",")
    ]
    (tmp_path / "t.txt").write_text("\n".join(texts))
    made = calibrate("small", out=tmp_path / "out", null_text=tmp_path / "t.txt", null_rate=100)
    record = Calibration.read(tmp_path / "out")
    assert record == made.record and record.knots == Calibration.read(made.folder).knots
    assert record.settings.null.drawn == 60 and record.null.pairs == 1770
    vectors = made.load().encode(texts, normalize_embeddings=True)
    upper = (vectors @ vectors.T)[np.triu_indices(60, 1)]
    threshold = record.null_threshold()
    assert (upper >= threshold).sum() <= 17 < (upper >= threshold - 0.0002).sum()
    assert f"{threshold:.4f}" in made.summary() and f"{threshold:.4f}" in (tmp_path / "out" / "README.md").read_text()
    assert str(tmp_path) not in (tmp_path / "out" / "calibration.json").read_text()
    assert not calibrate("small", out=tmp_path / "out", null_text=tmp_path / "t.txt", null_rate=100).fresh
    with refused("out"):
        calibrate("small", out=tmp_path / "out", null_text=tmp_path / "t.txt", null_rate=120)
