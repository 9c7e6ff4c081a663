"""Sentences on disk, and which are distinct."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from paranmt_hf.search import sentences as module
from paranmt_hf.search.sentences import SentenceHashes, Sentences, write_sentences


def batches(texts, size=3):
    for start in range(0, len(texts), size):
        yield np.arange(start, min(start + size, len(texts))) * 2, pa.array(texts[start : start + size], pa.string())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(alphabet="aé\x00 z", max_size=4), max_size=30))
def test_each_distinct_sentence_once_where_it_first_stands(tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("sentences")
    counted = write_sentences(batches(texts), folder, copies=False)
    distinct = list(dict.fromkeys(texts))
    assert (counted.lines, counted.items) == (len(texts), len(distinct))
    found, every = Sentences(folder), np.arange(len(distinct))
    assert len(found) == len(distinct)
    assert found.take(every).to_pylist() == distinct
    assert found.lines(every).tolist() == [2 * texts.index(text) for text in distinct]


def test_copies_stay_if_wanted(tmp_path):
    assert write_sentences(batches(["b", "a", "b", "b"]), tmp_path, copies=True).items == 4
    assert Sentences(tmp_path).take(np.array([3, 1, 0])).to_pylist() == ["b", "a", "b"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["items.bin", "lines.bin", "offsets.bin", "text.bin"]


def test_equal_hashes_are_no_proof(tmp_path, monkeypatch):
    """Sentences of one hash are compared; steps of one place, so that every step is used."""
    monkeypatch.setattr(SentenceHashes, "of", lambda self, column: np.zeros(len(column), np.uint64))
    monkeypatch.setattr(module, "STEP", 1)
    # All are compared with the first, so a copy of it is found, and other sentences are kept, copies or not.
    write_sentences(batches(["a", "b", "a", "c"]), tmp_path, copies=False)
    assert Sentences(tmp_path).take(np.arange(3)).to_pylist() == ["a", "b", "c"]


def test_hashes():
    hashing = SentenceHashes()
    texts = ["", "a", "b", "ab", "bc", "a b", "a  b", "\x00", "\x00\x00", "é"]
    found = hashing.of(pa.array(texts))
    assert len(set(found.tolist())) == len(texts) and found[0] == 0
    # Of a part of a column, and after longer sentences.
    hashing.of(pa.array(["long " * 100]))
    assert (hashing.of(pa.array(["x", *texts]).slice(1)) == found).all()
