"""The measure of overfitting: by hand, against plain loops, and of trained models."""

import numpy as np
import pytest

from paranmt_hf.cli import main
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.encoders.loading import load
from paranmt_hf.evaluation.results import read_results
from paranmt_hf.training import overfitting
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.overfitting import OverfittingConfig, evaluate_overfitting, mean_margin, pool_margins
from paranmt_hf.training.train import train
from tests.refused import refused
from tests.training.toys import synonyms, write_data


class Fixed:
    """Sentences whose vectors are known."""

    def __init__(self, vectors):
        self.vectors = vectors

    def encode(self, sentences):
        return np.array([self.vectors[sentence] for sentence in sentences])


def cos(left, right):
    return float(np.dot(left, right) / np.linalg.norm(left) / np.linalg.norm(right))


def test_two_pairs_by_hand():
    # a = (1, 0) with b = (3, 4), and c = (0, 2) with d = (-1, 0).
    vectors = np.array([[1.0, 0], [0, 2], [3, 4], [-1, 0]])
    # a and b: cos 0.6; the negatives of a are c (0) and d (-1), those of b are c (0.8) and d (-0.6).
    # c and d: cos 0; the negatives of c are a (0) and b (0.8), those of d are a (-1) and b (-0.6).
    found = pool_margins(vectors, np.arange(4))
    assert found == pytest.approx([2 * 0.6 - 0 - 0.8, 0 - 0.8 + 0.6])
    encoder = Fixed({"a": [1.0, 0], "c": [0, 2], "b": [3, 4], "d": [-1, 0]})
    assert mean_margin(encoder, ["a", "c"], ["b", "d"]) == pytest.approx((0.4 - 0.2) / 2)


def test_plain_loops(monkeypatch):
    random = np.random.default_rng(3)
    names = [f"s{index}" for index in range(24)]
    # Sentences 0 and 5 are one; so 0's partner and 5's partner are no negatives of it, nor of each other.
    names[5] = names[0]
    vectors = {name: random.normal(size=4) for name in names}
    first, second = names[:12], names[12:]
    group = {0: 0, 5: 0}
    expected = []
    for pair in range(12):
        related = {other for other in range(12) if group.get(other, other) == group.get(pair, pair)}
        free = [name for other in range(12) if other not in related for name in (first[other], second[other])]
        best = [max(cos(vectors[side[pair]], vectors[name]) for name in free) for side in (first, second)]
        expected.append(2 * cos(vectors[first[pair]], vectors[second[pair]]) - sum(best))
    assert mean_margin(Fixed(vectors), first, second) == pytest.approx(np.mean(expected), abs=1e-6)
    # In pools of its own a pair has fewer rivals.
    small = mean_margin(Fixed(vectors), first, second, pool=3)
    assert small > np.mean(expected)
    assert small == mean_margin(Fixed(vectors), first, second, pool=3)
    assert small != mean_margin(Fixed(vectors), first, second, pool=3, seed=2)
    # Encoded in three parts.
    monkeypatch.setattr(overfitting, "ENCODED_PAIRS", 4)
    assert small == mean_margin(Fixed(vectors), first, second, pool=3)


def test_pairs_without_negatives():
    encoder = Fixed({"a": [1.0, 0], "b": [0, 1.0]})
    with refused():
        mean_margin(encoder, ["a", "a"], ["b", "b"])


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("overfitting")
    write_data(root / "pairs.parquet", synonyms(60))
    left, right = synonyms(30, seed=7)
    lines = [f"{index}\t{a}\t{b}" for index, (a, b) in enumerate(zip(left, right, strict=True))]
    (root / "other.tsv").write_text("\n".join(lines) + "\n")
    for name, epochs in (("little", 1), ("long", 15)):
        config = TrainConfig(batch_size=10, mega_batch=1, epochs=epochs, learning_rate=0.02)
        train(root / "pairs.parquet", root / name, encoder=EncoderConfig(dimension=8), config=config)
    return root


def test_a_long_training_sets_its_pairs_apart(root):
    config = OverfittingConfig(pool=20)
    models = [root / "little", root / "long"]
    data = root / "pairs.parquet"
    little, long = evaluate_overfitting(models, data=data, development=root / "other.tsv", config=config)
    assert long.value("train") > little.value("train") and long.model == str(root / "long")
    assert [row.items for row in long.tables["Pairs"]] == [60, 30, None]
    assert long.value("difference") == long.value("train") - long.value("development")
    expected = mean_margin(load(root / "long"), *synonyms(60), pool=20)
    assert long.value("train") == pytest.approx(expected, abs=1e-6)
    (alone,) = evaluate_overfitting(root / "long", data=data, config=OverfittingConfig(pairs=30))
    assert [(row.name, row.items) for row in alone.rows] == [("train", 30)]
    with refused("models"):
        evaluate_overfitting([], data=data)


def test_the_command(root, capsys):
    words = [
        "evaluate",
        "overfitting",
        str(root / "little"),
        str(root / "long"),
        "--data",
        str(root / "pairs.parquet"),
    ]
    words += ["--development", str(root / "other.tsv"), "--json", str(root / "result.json")]
    assert main(words) == 0
    out = capsys.readouterr().out
    results = read_results(root / "result.json")
    assert [row.name for row in results[0].rows] == ["train", "development", "difference"]
    assert all(f"{each.value('train'):+.3f}" in out for each in results)
