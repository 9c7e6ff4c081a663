"""Pairs out of neighbours, and their margin scores."""

import numpy as np
import pytest
import torch

from paranmt_hf.search.margin import ItemPairs, margin_scores, mean_similarity, pairs_between, pairs_within
from paranmt_hf.search.neighbours import Neighbours
from tests.search.oracles import best, clustered, similarities


def table(found, top):
    made = Neighbours(len(found), top)
    scores, items = best(found, top)
    made.scores, made.items = torch.from_numpy(scores), torch.from_numpy(items.astype(np.int32))
    return made


def as_set(pairs):
    found = list(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
    assert len(set(found)) == len(found)
    return set(found)


@pytest.mark.parametrize("mutual", [False, True])
@pytest.mark.parametrize("at_least", [-1.0, 0.6])
def test_pairs_within(monkeypatch, mutual, at_least):
    monkeypatch.setattr("paranmt_hf.search.margin.AT_ONCE", 50)
    found = similarities(clustered(60))
    _, items = best(found, 4)
    near = [(row, int(item)) for row in range(60) for item in items[row] if found[row, item] >= at_least]
    wanted = {tuple(sorted(pair)) for pair in near if not mutual or pair[::-1] in near}
    pairs = pairs_within(table(found, 4), mutual=mutual, at_least=at_least)
    assert as_set(pairs) == wanted and 10 < len(wanted)
    np.testing.assert_array_equal(pairs.cosine, found[pairs.first, pairs.second])


@pytest.mark.parametrize("mutual", [False, True])
def test_pairs_between(mutual):
    found = similarities(clustered(40), clustered(30, seed=1))
    forward = {(row, int(item)) for row, items in enumerate(best(found, 3)[1]) for item in items}
    backward = {(int(item), row) for row, items in enumerate(best(found.T, 3)[1]) for item in items}
    wanted = forward & backward if mutual else forward | backward
    pairs = pairs_between(table(found, 3), table(found.T, 3), mutual=mutual, at_least=-1)
    assert as_set(pairs) == wanted and len(forward & backward) > 10 and forward != backward


def test_margin_scores_by_hand():
    """Artetxe & Schwenk 2019, equation 2, for k = 2: means (0.9 + 0.5) / 2 = 0.7 and (0.9 + 0.1) / 2 = 0.5."""
    first, second = Neighbours(1, 3), Neighbours(1, 2)
    first.scores = torch.tensor([[0.9, 0.5, 0.4]])
    second.scores = torch.tensor([[0.9, 0.1]])
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
