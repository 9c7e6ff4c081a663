"""Trees of a file found by their sentences, as the file itself finds them."""

import gzip
import re
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf.corpus.parsing.parsers import TreeFile, TreeIndex, write_index
from paranmt_hf.corpus.parsing.trees import MAX_DEPTH, READINGS, Tree, read_tree, top_levels
from paranmt_hf.errors import InputError
from tests.corpus.parsing.toys import LINK, PENN, trees


def test_a_tree_by_hand():
    tree = read_tree("(S (NP (DT A) (NN man)) (VP sleeps))")
    nouns = Tree("NP", (Tree("DT", ("A",)), Tree("NN", ("man",))))
    assert tree == Tree("S", (nouns, Tree("VP", ("sleeps",))))
    assert tree.nodes[1].nodes == []


def test_white_space_counts_for_nothing_and_a_label_may_lack():
    assert read_tree(" ( (S\t(NP he)\n (VP ran)))  ") == Tree("", (read_tree("(S (NP he)(VP ran))"),))


def test_words_that_would_break_the_brackets():
    tree = Tree("S", ("a(b)", Tree("X Y", ("c\td",))))
    assert str(tree) == "(S a-LRB-b-RRB- (X_Y c_d))"
    assert str(read_tree(str(tree))) == str(tree)


@given(trees)
def test_brackets_and_back(tree):
    assert read_tree(str(tree)) == tree


def pieces(text):
    return re.findall(r"[()]|[^\s()]+", text)


def is_tree(text):
    """Whether a pair of brackets stands around all the rest, and those inside match."""
    found = pieces(text)
    depths = list(accumulate({"(": 1, ")": -1}.get(piece, 0) for piece in found))
    return found[:1] == ["("] and found[-1] == ")" and depths[-1] == 0 and min(depths[:-1]) > 0


@given(st.text(st.sampled_from("()ab "), max_size=12))
def test_any_text_is_a_tree_or_refused(text):
    if is_tree(text):
        assert pieces(str(read_tree(text))) == pieces(text)
    else:
        with pytest.raises(InputError, match="expected (a|one) tree"):
            read_tree(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a tree, but there is nothing at the end"),
        ("(S (NP a)", "1 closing brackets are missing at the end"),
        ("(S a) (S b)", "more at character 7"),
        ("S a", "begins with an opening bracket, got 'S' at character 1"),
        ("(a " * (MAX_DEPTH + 1), f"more than {MAX_DEPTH} levels deep"),
    ],
)
def test_what_is_no_tree(text, message):
    with pytest.raises(InputError, match=message):
        read_tree(text)


def test_the_deepest_tree_is_written_and_cut():
    text = "(a " * MAX_DEPTH + "b" + ")" * MAX_DEPTH
    assert str(read_tree(text)) == text
    assert top_levels(read_tree(text)) == "(a (a))"


@pytest.mark.parametrize(
    ("text", "reading", "top"),
    [
        (PENN, "two-levels", "(S (NP) (VP) (.))"),
        (PENN, "two-below", "(S (NP (DT) (NN)) (VP (VBZ) (NP)) (.))"),
        (PENN, "with-wrapper", "(ROOT (S))"),
        (LINK, "two-levels", "(S (NP) (VP))"),
        (LINK, "two-below", "(S (NP) (VP (NP)))"),
        (LINK, "with-wrapper", "(S (NP) (VP))"),
        # Nothing but a sentence's own wrapper is taken away.
        ("(TOP (ROOT (FRAG (NN no))))", "two-levels", "(FRAG (NN))"),
        ("(ROOT (S (VP go)) (S (VP stop)))", "two-levels", "(ROOT (S) (S))"),
        ("(S (S (NP I)))", "two-levels", "(S (S))"),
        ("(ROOT word)", "two-levels", "(ROOT)"),
    ],
)
def test_top_levels(text, reading, top):
    assert reading in READINGS
    assert top_levels(read_tree(text), reading) == top


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
    from paranmt_hf.corpus.parsing import parsers

    monkeypatch.setattr(parsers, "hash_texts", lambda column: np.zeros(len(column), np.uint64))
    index = index_of(tmp_path, ["a\t(S a)"])
    assert list(index.trees(["a", "b"])) == [Tree("S", ("a",)), None]
