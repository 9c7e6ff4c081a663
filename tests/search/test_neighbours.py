"""The most similar items, while blocks go past."""

import numpy as np
import pytest
import torch

from paranmt_hf.errors import InputError
from paranmt_hf.search.neighbours import LOWEST, NOBODY, Neighbours, restore, save
from tests.search.oracles import assert_nearest, best


def offered(found, table, rows, columns):
    """Offer similarities block by block, in an order that is drawn."""
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
    assert restore(path, {"forward": two}, "s") == 0
    save(path, 7, {"forward": one}, "s")
    assert restore(path, {"forward": two}, "another search") == 0 and two.items.max() == NOBODY
    assert restore(path, {"forward": two}, "s") == 7
    assert_nearest(two, found, 3)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(InputError, match=r"state.safetensors is damaged .*; delete its folder to begin anew"):
        restore(path, {"forward": two}, "s")
