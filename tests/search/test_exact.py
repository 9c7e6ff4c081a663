"""Everything compared with everything, in blocks."""

import numpy as np
import pytest
import torch

from paranmt_hf.search import exact
from paranmt_hf.search.neighbours import Neighbours
from tests.search.oracles import assert_nearest, clustered, similarities, stored


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(exact, "BLOCK", 13)


def test_nearest_to_queries(tmp_path):
    vectors, queries = clustered(60), clustered(5, seed=1)
    found = exact.nearest(torch.from_numpy(queries), stored(vectors, tmp_path), 4)
    assert_nearest(found, similarities(queries, vectors), 4)


@pytest.mark.parametrize("count", [2, 13, 60])
def test_within(tmp_path, count):
    vectors, top = clustered(count), min(5, count - 1)
    found = Neighbours(count, top)
    parts = list(exact.within(stored(vectors, tmp_path), found))
    assert parts[-1] == 1 and parts == sorted(parts)
    assert_nearest(found, similarities(vectors), top)


def test_between(tmp_path):
    one, two = clustered(30), clustered(45, seed=1)
    forward, backward = Neighbours(30, 5), Neighbours(45, 5)
    list(exact.between(stored(one, tmp_path / "1"), stored(two, tmp_path / "2"), forward, backward))
    assert_nearest(forward, similarities(one, two), 5)
    assert_nearest(backward, similarities(two, one), 5)


def test_it_goes_on_after_any_step(tmp_path):
    vectors = stored(clustered(60), tmp_path)
    steps = len(list(exact.within(vectors, Neighbours(60, 5))))
    for stop in range(steps):
        found = Neighbours(60, 5)
        for done, _ in enumerate(exact.within(vectors, found), 1):
            if done > stop:
                break
        again = Neighbours(60, 5)
        again.scores, again.items = found.scores.clone(), found.items.clone()
        list(exact.within(vectors, again, done=stop + 1))
        assert_nearest(again, similarities(vectors.read(0, 60)), 5)
    assert steps == 15


def test_a_sentence_that_is_not_known_is_near_to_nothing(tmp_path):
    vectors = np.array([[1, 0], [0, 0], [0.6, 0.8]], np.float32)
    found = Neighbours(3, 2, at_least=0.1)
    list(exact.within(stored(vectors, tmp_path), found))
    assert found.items.tolist() == [[2, -1], [-1, -1], [0, -1]]
