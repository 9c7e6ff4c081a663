"""Sentences and vectors on disk."""

import os

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paranmt_hf.search import storage
from paranmt_hf.search import storage as module
from paranmt_hf.search.storage import (
    StoredSentences,
    Vectors,
    normalised,
    spans,
    write_encoded,
    write_in_order,
    write_sentences,
)
from tests.search.oracles import clustered


def batches(texts, size=3):
    for start in range(0, len(texts), size):
        yield np.arange(start, min(start + size, len(texts))) * 2, pa.array(texts[start : start + size], pa.string())


@settings(max_examples=60)
@given(st.lists(st.text(alphabet="aé\x00 z", max_size=4), max_size=30))
def test_each_distinct_sentence_once_where_it_first_occurs(tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("sentences")
    counted = write_sentences(batches(texts), folder, copies=False)
    distinct = list(dict.fromkeys(texts))
    assert (counted.lines, counted.items) == (len(texts), len(distinct))
    found, every = StoredSentences(folder), np.arange(len(distinct))
    assert len(found) == len(distinct)
    assert found.take(every).to_pylist() == distinct
    assert found.lines(every).tolist() == [2 * texts.index(text) for text in distinct]


def test_copies_stay_if_wanted(tmp_path):
    assert write_sentences(batches(["b", "a", "b", "b"]), tmp_path, copies=True).items == 4
    assert StoredSentences(tmp_path).take(np.array([3, 1, 0])).to_pylist() == ["b", "a", "b"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["items.bin", "lines.bin", "offsets.bin", "text.bin"]


def test_equal_hashes_are_no_proof(tmp_path, monkeypatch):
    """Sentences of one hash are compared; steps of one place, so that every step is used."""
    monkeypatch.setattr(module, "text_hashes", lambda column: np.zeros(len(column), np.uint64))
    monkeypatch.setattr(module, "STEP", 1)
    # All are compared with the first, so a copy of it is found, and other sentences are kept, copies or not.
    write_sentences(batches(["a", "b", "a", "c"]), tmp_path, copies=False)
    assert StoredSentences(tmp_path).take(np.arange(3)).to_pylist() == ["a", "b", "c"]


def test_vectors_are_on_the_disk_before_they_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "BLOCK_ROWS", 4)
    synced, fsync, count = [], os.fsync, storage.write_bytes
    monkeypatch.setattr(os, "fsync", lambda file: (synced.append(os.fstat(file).st_ino), fsync(file)))
    monkeypatch.setattr(storage, "write_bytes", lambda path, text: (synced.append("counted"), count(path, text)))
    write_encoded(tmp_path, 7, lambda start, stop: np.ones((stop - start, 2), np.float32), "float32")
    vectors = (tmp_path / "vectors.npy").stat().st_ino
    assert [each for each in synced if each in (vectors, "counted")] == [vectors, "counted"] * 2


@pytest.mark.parametrize(("precision", "gap"), [("float32", 0), ("float16", 1e-3)])
def test_round_trip(tmp_path, monkeypatch, precision, gap):
    monkeypatch.setattr(storage, "BLOCK_ROWS", 7)
    wanted = clustered(30)
    found = write_encoded(tmp_path, 30, lambda start, stop: wanted[start:stop], precision)
    assert (len(found), found.dimension) == (30, 16)
    assert np.abs(found.read(3, 25) - wanted[3:25]).max() <= gap
    assert np.abs(found.take(np.array([29, 0])) - wanted[[29, 0]]).max() <= gap
    # Anybody's numpy reads the file.
    assert np.load(tmp_path / "vectors.npy").dtype == precision


def test_continues_where_it_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "BLOCK_ROWS", 7)
    wanted, asked = clustered(30), []

    def encode(start, stop):
        asked.append((start, stop))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return wanted[start:stop]

    with pytest.raises(KeyboardInterrupt):
        write_encoded(tmp_path, 30, encode, "float32")
    # Half of a block, such as a kill leaves it.
    with (tmp_path / "vectors.npy").open("ab") as file:
        file.write(b"half")
    found = write_encoded(tmp_path, 30, encode, "float32")
    assert asked == [(0, 7), (7, 14), (14, 21), (14, 21), (21, 28), (28, 30)]
    assert (found.read(0, 30) == wanted).all()
    assert (tmp_path / "vectors.npy").stat().st_size == 128 + wanted.nbytes


def test_another_order(tmp_path):
    wanted = clustered(20)
    vectors = write_encoded(tmp_path, 20, lambda start, stop: wanted[start:stop], "float32")
    order = np.random.default_rng(0).permutation(20)
    write_in_order(vectors, order, tmp_path / "sorted.npy", "float32")
    assert (Vectors(tmp_path / "sorted.npy").read(0, 20) == wanted[order]).all()


def test_lengths():
    found = normalised(np.array([[3, 4], [0, 0], [1e-30, 0], [3e30, 4e30]], np.float32))
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, 0], [1, 0], [0.6, 0.8]], rtol=1e-6)
    assert found.dtype == np.float32


def test_spans():
    assert list(spans(7, 3)) == [(0, 3), (3, 6), (6, 7)] and not list(spans(0, 3))
