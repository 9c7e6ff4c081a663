"""Nearest vectors: kept, and found by comparing all."""

import numpy as np
import pytest
import torch

from paranmt_hf.errors import InputError
from paranmt_hf.search import neighbours
from paranmt_hf.search.neighbours import LOWEST, NOBODY, Neighbours, restore_neighbours, save_neighbours
from tests.search.oracles import assert_nearest, best, clustered, similarities, stored


def offered(found, table, rows, columns):
    """Offer similarities block by block, in a random order."""
    generator = np.random.default_rng(1)
    blocks = [(row, column) for row in range(0, len(found), rows) for column in range(0, found.shape[1], columns)]
    for row, column in generator.permutation(blocks):
        block = torch.from_numpy(found[row : row + rows, column : column + columns])
        own = torch.arange(row, row + len(block))
        table.offer(own, torch.arange(column, column + block.shape[1], dtype=torch.int32), block)
    return table


@pytest.mark.parametrize(("rows", "columns"), [(50, 40), (7, 3), (50, 1), (1, 40)])
def test_any_blocks_give_the_same(rows, columns):
    found = np.random.default_rng(0).normal(size=(50, 40)).astype(np.float32)
    assert_nearest(offered(found, Neighbours(50, 6), rows, columns), found, 6)


def test_more_than_there_are():
    found = np.array([[0.5, 0.25]], np.float32)
    table = offered(found, Neighbours(1, 4), 1, 2)
    assert table.items.tolist() == [[0, 1, NOBODY, NOBODY]]
    assert table.scores.tolist() == [[0.5, 0.25, LOWEST, LOWEST]]


@pytest.mark.parametrize("columns", [40, 4, 1])
def test_nothing_below_the_floor_and_what_is_on_it(columns):
    found = np.random.default_rng(0).uniform(-1, 1, size=(50, 40)).astype(np.float32)
    fourth = int(np.argsort(-found[3])[3])
    floor = float(found[3, fourth])
    table = offered(found, Neighbours(50, 6, at_least=floor), 20, columns)
    scores, items = best(np.where(found >= np.float32(floor), found, -np.inf), 6)
    assert (table.scores.numpy() == scores).all()
    assert (table.items.numpy() == np.where(np.isfinite(scores), items, NOBODY)).all()
    assert np.isfinite(scores[3]).sum() == 4 and table.items[3, 3] == fourth


@pytest.mark.parametrize("columns", [40, 3])
def test_repeats_count_once(columns):
    found = np.random.default_rng(0).normal(size=(30, 40)).astype(np.float32)
    table = Neighbours(30, 6, repeats=True)
    for _ in range(3):
        offered(found, table, 11, columns)
    assert_nearest(table, found, 6)


def test_saved_and_restored(tmp_path):
    found = np.random.default_rng(0).normal(size=(5, 9)).astype(np.float32)
    one, two, path = offered(found, Neighbours(5, 3), 5, 9), Neighbours(5, 3), tmp_path / "state.safetensors"
    assert restore_neighbours(path, {"forward": two}, "s") == 0
    save_neighbours(path, 7, {"forward": one}, "s")
    assert restore_neighbours(path, {"forward": two}, "another search") == 0 and two.items.max() == NOBODY
    assert restore_neighbours(path, {"forward": two}, "s") == 7
    assert_nearest(two, found, 3)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(InputError, match=r"state.safetensors is damaged .*; delete its folder to start again"):
        restore_neighbours(path, {"forward": two}, "s")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(neighbours, "BLOCK", 13)


def test_nearest_to_queries(tmp_path):
    vectors, queries = clustered(60), clustered(5, seed=1)
    found = neighbours.nearest_vectors(torch.from_numpy(queries), stored(vectors, tmp_path), 4)
    assert_nearest(found, similarities(queries, vectors), 4)


@pytest.mark.parametrize("count", [2, 13, 60])
def test_within(tmp_path, count):
    vectors, top = clustered(count), min(5, count - 1)
    found = Neighbours(count, top)
    parts = list(neighbours.within(stored(vectors, tmp_path), found))
    assert parts[-1] == 1 and parts == sorted(parts)
    assert_nearest(found, similarities(vectors), top)


def test_between(tmp_path):
    one, two = clustered(30), clustered(45, seed=1)
    forward, backward = Neighbours(30, 5), Neighbours(45, 5)
    list(neighbours.between(stored(one, tmp_path / "1"), stored(two, tmp_path / "2"), forward, backward))
    assert_nearest(forward, similarities(one, two), 5)
    assert_nearest(backward, similarities(two, one), 5)


def test_it_continues_after_any_step(tmp_path):
    vectors = stored(clustered(60), tmp_path)
    steps = len(list(neighbours.within(vectors, Neighbours(60, 5))))
    for stop in range(steps):
        found = Neighbours(60, 5)
        for done, _ in enumerate(neighbours.within(vectors, found), 1):
            if done > stop:
                break
        again = Neighbours(60, 5)
        again.scores, again.items = found.scores.clone(), found.items.clone()
        list(neighbours.within(vectors, again, done=stop + 1))
        assert_nearest(again, similarities(vectors.read(0, 60)), 5)
    assert steps == 15


def test_a_sentence_that_is_not_known_is_near_to_nothing(tmp_path):
    vectors = np.array([[1, 0], [0, 0], [0.6, 0.8]], np.float32)
    found = Neighbours(3, 2, at_least=0.1)
    list(neighbours.within(stored(vectors, tmp_path), found))
    assert found.items.tolist() == [[2, -1], [-1, -1], [0, -1]]
