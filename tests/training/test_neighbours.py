"""Mini-batches of pairs that the teacher finds similar."""

import numpy as np
import pytest
import torch

from paranmt_hf.training.neighbours import along, neighbour_order


def groups_of(order, size):
    return [order[start : start + size] for start in range(0, len(order), size)]


@pytest.mark.parametrize(("count", "size"), [(1, 4), (4, 4), (5, 4), (64, 8), (103, 8), (1000, 7)])
def test_every_item_once_and_the_rest_last(count, size):
    vectors = np.random.default_rng(1).standard_normal((count, 6)).astype(np.float16)
    order = neighbour_order(torch.from_numpy(vectors), size, np.random.default_rng(2))
    assert sorted(order.tolist()) == list(range(count))
    assert order.dtype == np.int64
    again = neighbour_order(torch.from_numpy(vectors), size, np.random.default_rng(2))
    np.testing.assert_array_equal(order, again)


def test_far_clusters_are_not_mixed():
    # Sixteen clusters of eight, each around a corner of a cube in four dimensions.
    corners = np.array([[bit >> place & 1 for place in range(4)] for bit in range(16)])
    shuffle = np.random.default_rng(1).permutation(128)
    cluster = np.repeat(np.arange(16), 8)[shuffle]
    noise = np.random.default_rng(2).standard_normal((128, 4)) * 1e-3
    vectors = (corners[cluster] + noise).astype(np.float32)
    order = neighbour_order(torch.from_numpy(vectors), 32, np.random.default_rng(3))
    spread = [vectors[group].var(axis=0).sum() for group in groups_of(order, 32)]
    # The whole has a variance of a quarter in each of four dimensions; two halvings take away at least some.
    assert vectors.var(axis=0).sum() == pytest.approx(1, abs=0.01)
    assert np.mean(spread) < 0.8


def test_groups_are_nearer_than_random_ones():
    generator = np.random.default_rng(1)
    vectors = generator.standard_normal((2000, 20)) * np.geomspace(1, 0.05, 20)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)

    def cosine(order):
        parts = [vectors[group].astype(np.float64) for group in groups_of(order, 20)]
        return np.mean([(part @ part.T).sum() - 20 for part in parts]) / (20 * 19)

    assert abs(cosine(generator.permutation(2000))) < 0.05
    assert cosine(neighbour_order(torch.from_numpy(vectors), 20, np.random.default_rng(2))) > 0.5


def test_places_on_a_line():
    vectors = np.array([[1, 2], [3, 4], [5, 6]], np.float16)
    # More items than are converted to 32 bits at a time.
    items = np.array([2, 0, 1] * 200)
    places = along(torch.from_numpy(vectors), items, torch.tensor([10.0, 1.0]))
    np.testing.assert_array_equal(places, np.array([56, 12, 34] * 200, np.float32))
    assert places.dtype == np.float32
