"""Trees of a file found by their sentences, as the file itself finds them."""

import gzip

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf.corpus.draws import text_hashes
from paranmt_hf.corpus.parsing.tree_file import TreeFile, TreeIndex, write_index
from paranmt_hf.corpus.parsing.trees import Tree
from paranmt_hf.errors import InputError


def index_of(tmp_path, lines):
    path = tmp_path / "trees.tsv.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    write_index(TreeFile(path), tmp_path / "index")
    return TreeIndex(tmp_path / "index", "trees.tsv.gz")


def test_trees_of_a_file(tmp_path):
    index = index_of(
        tmp_path, ["  a   b\t(S a b)", "other\t(S", "why ?\t", "c\t(S c)", "c\t(X c)", "Übung é\t(NP Übung é)"]
    )
    found = list(index.trees(["c", "unknown", "a b", "why ?", "c", "Übung é"]))
    assert found == [
        Tree("S", ("c",)),
        None,
        Tree("S", ("a", "b")),
        None,
        Tree("S", ("c",)),
        Tree("NP", ("Übung", "é")),
    ]
    assert list(index.trees([])) == []
    with pytest.raises(InputError, match=r"^trees.tsv.gz:2: expected a tree, .* correct that line"):
        list(index.trees(["other"]))


def test_a_file_of_sentences_without_trees(tmp_path):
    index = index_of(tmp_path, ["a\t", "b\t"])
    assert list(index.trees(["b", "z"])) == [None, None]


def test_many_sentences_are_found_as_in_the_file(tmp_path):
    random = np.random.default_rng(0)
    sentences = [" ".join(map(str, random.integers(0, 9, 3))) for _ in range(3000)]
    lines = [f"{sentence}\t(S {number})" for number, sentence in enumerate(sentences)]
    index = index_of(tmp_path, lines)
    wanted = sentences[::7] + ["none of these"]
    assert list(index.trees(wanted)) == list(TreeFile(tmp_path / "trees.tsv.gz").trees(wanted))


def test_a_sentence_with_the_hash_of_another_is_not_taken_for_it(tmp_path, monkeypatch):
    from paranmt_hf.corpus.parsing import tree_file

    monkeypatch.setattr(tree_file, "text_hashes", lambda column: np.zeros(len(column), np.uint64))
    index = index_of(tmp_path, ["a\t(S a)"])
    assert list(index.trees(["a", "b"])) == [Tree("S", ("a",)), None]


@given(st.lists(st.text(max_size=6), unique=True, max_size=20), st.integers(0, 4))
def test_hashes_are_those_of_the_bytes_of_each_sentence(sentences, skipped):
    whole = text_hashes(pa.array(sentences, pa.string()))
    assert len(set(whole.tolist())) == len(sentences)
    assert text_hashes(pa.array(sentences, pa.large_string()).slice(skipped)).tolist() == whole[skipped:].tolist()
    assert [text_hashes(pa.array([each]))[0] for each in sentences] == whole.tolist()
