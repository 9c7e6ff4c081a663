"""Nearest vectors: kept, and found by comparing all."""

import numpy as np
import pytest

from paranmt_hf.search.neighbours import (
    LOWEST,
    NOBODY,
    ItemPairs,
    Neighbours,
    compare_all,
    margin_scores,
    mean_similarity,
    nearest_vectors,
    pairs_of,
    restore_neighbours,
    save_neighbours,
)
from tests.search.toys import assert_nearest, best, clustered, similarities, stored


def offered(found, table, rows, columns):
    """Offer similarities block by block, in a random order."""
    generator = np.random.default_rng(1)
    blocks = [(row, column) for row in range(0, len(found), rows) for column in range(0, found.shape[1], columns)]
    for row, column in generator.permutation(blocks):
        block = found[row : row + rows, column : column + columns]
        own = np.arange(row, row + len(block))
        table.offer(own, np.arange(column, column + block.shape[1], dtype=np.int32), block)
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
    assert (table.scores == scores).all()
    assert (table.items == np.where(np.isfinite(scores), items, NOBODY)).all()
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


def compared(vectors, found, **options):
    return compare_all(vectors, vectors, found, found, block=13, **options)


def test_nearest_to_queries(tmp_path):
    vectors, queries = clustered(60), clustered(5, seed=1)
    found = nearest_vectors(queries, stored(vectors, tmp_path), 4, block_rows=13)
    assert_nearest(found, similarities(queries, vectors), 4)


@pytest.mark.parametrize("count", [2, 13, 60])
def test_within(tmp_path, count):
    vectors, top = clustered(count), min(5, count - 1)
    found = Neighbours(count, top)
    parts = list(compared(stored(vectors, tmp_path), found))
    assert parts[-1] == 1 and parts == sorted(parts)
    assert_nearest(found, similarities(vectors), top)


def test_between(tmp_path):
    one, two = clustered(30), clustered(45, seed=1)
    forward, backward = Neighbours(30, 5), Neighbours(45, 5)
    list(compare_all(stored(one, tmp_path / "1"), stored(two, tmp_path / "2"), forward, backward, block=13))
    assert_nearest(forward, similarities(one, two), 5)
    assert_nearest(backward, similarities(two, one), 5)


def test_it_continues_after_any_step(tmp_path):
    vectors = stored(clustered(60), tmp_path)
    steps = len(list(compared(vectors, Neighbours(60, 5))))
    for stop in range(steps):
        found = Neighbours(60, 5)
        for done, _ in enumerate(compared(vectors, found), 1):
            if done > stop:
                break
        again = Neighbours(60, 5)
        again.scores, again.items = found.scores.copy(), found.items.copy()
        list(compared(vectors, again, done=stop + 1))
        assert_nearest(again, similarities(vectors.read(0, 60)), 5)
    assert steps == 15


def test_a_sentence_that_is_not_known_is_near_to_nothing(tmp_path):
    vectors = np.array([[1, 0], [0, 0], [0.6, 0.8]], np.float32)
    found = Neighbours(3, 2, at_least=0.1)
    list(compared(stored(vectors, tmp_path), found))
    assert found.items.tolist() == [[2, -1], [-1, -1], [0, -1]]


def table(found, top):
    made = Neighbours(len(found), top)
    scores, items = best(found, top)
    made.scores, made.items = scores, items.astype(np.int32)
    return made


def as_set(pairs):
    found = list(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
    assert len(set(found)) == len(found)
    return set(found)


@pytest.mark.parametrize("mutual", [False, True])
@pytest.mark.parametrize("at_least", [-1.0, 0.6])
def test_pairs_within(mutual, at_least):
    found = similarities(clustered(60))
    _, items = best(found, 4)
    near = [(row, int(item)) for row in range(60) for item in items[row] if found[row, item] >= at_least]
    wanted = {tuple(sorted(pair)) for pair in near if not mutual or pair[::-1] in near}
    near_table = table(found, 4)
    pairs = pairs_of(near_table, near_table, mutual=mutual, at_least=at_least)
    assert as_set(pairs) == wanted and 10 < len(wanted)
    np.testing.assert_array_equal(pairs.cosine, found[pairs.first, pairs.second])


@pytest.mark.parametrize("mutual", [False, True])
def test_pairs_between(mutual):
    found = similarities(clustered(40), clustered(30, seed=1))
    forward = {(row, int(item)) for row, items in enumerate(best(found, 3)[1]) for item in items}
    backward = {(int(item), row) for row, items in enumerate(best(found.T, 3)[1]) for item in items}
    wanted = forward & backward if mutual else forward | backward
    pairs = pairs_of(table(found, 3), table(found.T, 3), mutual=mutual, at_least=-1)
    assert as_set(pairs) == wanted and len(forward & backward) > 10 and forward != backward


def test_margin_scores_by_hand():
    """Artetxe & Schwenk 2019, equation 2, for k = 2: means (0.9 + 0.5) / 2 = 0.7 and (0.9 + 0.1) / 2 = 0.5."""
    first, second = Neighbours(1, 3), Neighbours(1, 2)
    first.scores = np.array([[0.9, 0.5, 0.4]], np.float32)
    second.scores = np.array([[0.9, 0.1]], np.float32)
    means = mean_similarity(first, 2), mean_similarity(second, 2)
    assert means[0] == pytest.approx([0.7]) and means[1] == pytest.approx([0.5])
    pair = ItemPairs(np.array([0]), np.array([0]), np.array([0.9], np.float32))
    assert margin_scores(pair, *means, "ratio") == pytest.approx([0.9 / 0.6])
    assert margin_scores(pair, *means, "distance") == pytest.approx([0.3])


def test_means_of_fewer_neighbours_and_ratios_over_nothing():
    found = Neighbours(2, 3)
    found.scores[0, 0] = 0.5
    assert mean_similarity(found, 3).tolist() == [0.5, 0]
    pair = ItemPairs(np.array([1]), np.array([1]), np.array([0.2], np.float32))
    zeros = np.zeros(2)
    assert margin_scores(pair, zeros, zeros, "ratio").tolist() == [np.inf]
    assert margin_scores(pair, zeros, zeros, "distance") == pytest.approx([0.2])
