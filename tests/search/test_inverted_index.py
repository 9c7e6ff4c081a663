"""Inverted lists: with all lists the exact search, with a few nearly all of it."""

import numpy as np
import pytest

from paranmt_hf.search import inverted_index, neighbours
from paranmt_hf.search.inverted_index import InvertedIndex
from paranmt_hf.search.neighbours import Neighbours
from paranmt_hf.search.storage import Vectors, write_in_order
from tests.search.toys import assert_nearest, best, clustered, similarities, stored


def listed(vectors, folder, count, seed=1):
    """Vectors in lists: the lists, and the vectors in their order."""
    made = InvertedIndex.make(stored(vectors, folder), count, seed)
    made.save(folder)
    found = InvertedIndex.read(folder)
    write_in_order(Vectors(folder / "vectors.npy"), found.order, folder / "sorted.npy", "float32")
    return found, Vectors(folder / "sorted.npy")


pytestmark = pytest.mark.usefixtures("small_blocks")


def test_each_vector_lies_in_the_list_of_its_nearest_centroid(tmp_path):
    vectors = clustered(200)
    made, ordered = listed(vectors, tmp_path, 9)
    assert sorted(made.order.tolist()) == list(range(200)) and made.bounds[[0, -1]].tolist() == [0, 200]
    nearest = (vectors @ made.centroids.T).argmax(axis=1)
    for number in range(9):
        members = made.order[made.bounds[number] : made.bounds[number + 1]]
        assert sorted(members.tolist()) == np.flatnonzero(nearest == number).tolist()
    assert (ordered.read(0, 200) == vectors[made.order]).all()
    np.testing.assert_allclose(np.linalg.norm(made.centroids, axis=1), 1, atol=1e-6)


def test_the_seed_decides(tmp_path):
    vectors = stored(clustered(200), tmp_path)
    one, same, other = (InvertedIndex.make(vectors, 9, seed).order.tolist() for seed in (1, 1, 2))
    assert one == same and one != other


def test_centroids_are_means_of_their_lists(tmp_path):
    """On groups that are far apart k-means converges: each centroid points where the sum of its list does."""
    # Few enough for all of them to be sampled.
    vectors = clustered(200, groups=4, spread=0.01)
    made, ordered = listed(vectors, tmp_path, 4, seed=3)
    for number in range(4):
        members = ordered.read(made.bounds[number], made.bounds[number + 1])
        if len(members):
            mean = members.sum(axis=0)
            np.testing.assert_allclose(made.centroids[number], mean / np.linalg.norm(mean), atol=1e-4)


def test_all_lists_are_the_exact_search(tmp_path):
    vectors, queries = clustered(200), clustered(7, seed=1)
    made, ordered = listed(vectors, tmp_path, 9)
    found = inverted_index.nearest_in_lists(queries, ordered, made, 5, 9)
    assert_nearest(found, similarities(queries, vectors[made.order]), 5)
    inside = Neighbours(200, 5, repeats=True)
    parts = list(inverted_index.compare_lists(ordered, ordered, made, 9, inside, inside))
    assert parts[-1] == 1 and len(parts) == 3 * 9
    assert_nearest(inside, similarities(vectors[made.order]), 5)
    forward, backward = Neighbours(7, 5), Neighbours(200, 5)
    list(inverted_index.compare_lists(stored(queries, tmp_path / "queries"), ordered, made, 99, forward, backward))
    assert_nearest(forward, similarities(queries, vectors[made.order]), 5)
    assert_nearest(backward, similarities(vectors[made.order], queries), 5)


def recall(found, wanted):
    return np.mean(
        [len(set(one) & set(two)) / len(two) for one, two in zip(found.tolist(), wanted.tolist(), strict=True)]
    )


@pytest.mark.slow
def test_a_few_lists_find_nearly_all(tmp_path):
    """Seeded, so these are numbers: the share of the ten nearest of 2,000 vectors that is found."""
    vectors = clustered(2000, groups=60, dimension=32, spread=0.6)
    made, ordered = listed(vectors, tmp_path, 40)
    wanted = best(similarities(vectors[made.order]), 10)[1]
    shares = []
    for probes in (1, 2, 4):
        inside = Neighbours(2000, 10, repeats=True)
        list(inverted_index.compare_lists(ordered, ordered, made, probes, inside, inside))
        shares.append(recall(inside.items, wanted))
    assert shares == pytest.approx([0.984, 0.998, 1.0], abs=0.002)
    single = inverted_index.nearest_in_lists(ordered.read(0, 2000), ordered, made, 11, 2)
    # Who looks is also found: two vectors are compared where either looks into the list of the other.
    assert recall(single.items[:, 1:], wanted) == pytest.approx(0.994, abs=0.002)


@pytest.mark.slow
def test_it_continues_after_any_step(tmp_path):
    vectors = clustered(150)
    made, ordered = listed(vectors, tmp_path, 5)
    whole = Neighbours(150, 4, repeats=True)
    steps = len(list(inverted_index.compare_lists(ordered, ordered, made, 2, whole, whole)))
    for stop in range(1, steps):
        found = Neighbours(150, 4, repeats=True)
        for done, _ in enumerate(inverted_index.compare_lists(ordered, ordered, made, 2, found, found), 1):
            if done == stop:
                break
        list(inverted_index.compare_lists(ordered, ordered, made, 2, found, found, done=stop))
        assert (found.items == whole.items).all() and (found.scores == whole.scores).all()
    assert steps == 15


def test_vectors_of_zeros_and_lists_without_members(tmp_path):
    vectors = np.zeros((20, 3), np.float32)
    vectors[:4] = clustered(4, dimension=3)
    made, ordered = listed(vectors, tmp_path, 6)
    inside = Neighbours(20, 3, repeats=True)
    list(inverted_index.compare_lists(ordered, ordered, made, 6, inside, inside))
    np.testing.assert_allclose(inside.scores, best(similarities(vectors[made.order]), 3)[0], atol=1e-6)
    assert (neighbours.nearest_vectors(vectors[:1], ordered, 1).scores > 0.99).all()
