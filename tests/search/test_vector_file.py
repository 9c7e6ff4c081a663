"""Vectors in a file."""

import json

import numpy as np
import pytest

from paranmt_hf.errors import InputError
from paranmt_hf.search import vector_file
from paranmt_hf.search.vector_file import Vectors, normalised, spans, write_in_order, write_vectors
from tests.search.oracles import clustered


@pytest.mark.parametrize(("precision", "gap"), [("float32", 0), ("float16", 1e-3)])
def test_round_trip(tmp_path, monkeypatch, precision, gap):
    monkeypatch.setattr(vector_file, "BLOCK_ROWS", 7)
    wanted = clustered(30)
    found = write_vectors(tmp_path, 30, lambda start, stop: wanted[start:stop], precision)
    assert (len(found), found.dimension) == (30, 16)
    assert np.abs(found.read(3, 25) - wanted[3:25]).max() <= gap
    assert np.abs(found.take(np.array([29, 0])) - wanted[[29, 0]]).max() <= gap
    # Anybody's numpy reads the file.
    assert np.load(tmp_path / "vectors.npy").dtype == precision


def test_goes_on_where_it_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(vector_file, "BLOCK_ROWS", 7)
    wanted, asked = clustered(30), []

    def encode(start, stop):
        asked.append((start, stop))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return wanted[start:stop]

    with pytest.raises(KeyboardInterrupt):
        write_vectors(tmp_path, 30, encode, "float32")
    # Half of a block, such as a kill leaves it.
    with (tmp_path / "vectors.npy").open("ab") as file:
        file.write(b"half")
    found = write_vectors(tmp_path, 30, encode, "float32")
    assert asked == [(0, 7), (7, 14), (14, 21), (14, 21), (21, 28), (28, 30)]
    assert (found.read(0, 30) == wanted).all()
    assert (tmp_path / "vectors.npy").stat().st_size == 128 + wanted.nbytes


def test_damage_is_named(tmp_path):
    (tmp_path / "vectors.json").write_text(json.dumps({"rows": "many"}))
    with pytest.raises(InputError, match="vectors.json is damaged: it has no number of 'rows'"):
        write_vectors(tmp_path, 3, lambda start, stop: clustered(3), "float32")


def test_another_order(tmp_path):
    wanted = clustered(20)
    vectors = write_vectors(tmp_path, 20, lambda start, stop: wanted[start:stop], "float32")
    order = np.random.default_rng(0).permutation(20)
    write_in_order(vectors, order, tmp_path / "sorted.npy", "float32")
    assert (Vectors(tmp_path / "sorted.npy").read(0, 20) == wanted[order]).all()


def test_lengths():
    found = normalised(np.array([[3, 4], [0, 0], [1e-30, 0], [3e30, 4e30]], np.float32))
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, 0], [1, 0], [0.6, 0.8]], rtol=1e-6)
    assert found.dtype == np.float32


def test_spans():
    assert list(spans(7, 3)) == [(0, 3), (3, 6), (6, 7)] and not list(spans(0, 3))
