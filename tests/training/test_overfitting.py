"""The measure of overfitting: by hand, against plain loops, and pools that change nothing but the negatives."""

import numpy as np
import pytest

from paranmt_hf.errors import InputError
from paranmt_hf.training import overfitting
from paranmt_hf.training.overfitting import margins, mean_margin


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
    found = margins(vectors, np.arange(4))
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
    with pytest.raises(InputError, match="none of the 2 pairs has a negative"):
        mean_margin(encoder, ["a", "a"], ["b", "b"])
