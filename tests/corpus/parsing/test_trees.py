"""Trees in brackets, and their top levels."""

import re
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf.corpus.parsing.trees import READINGS, Tree, read_tree, top_levels
from tests.corpus.parsing.toys import LINK, PENN, trees
from tests.refused import refused


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
        with refused():
            read_tree(text)


@pytest.mark.parametrize("text", ["", "(S (NP a)", "(S a) (S b)", "S a", "(a " * 201])
def test_what_is_no_tree(text):
    with refused():
        read_tree(text)


def test_the_deepest_tree_is_written_and_cut():
    text = "(a " * 200 + "b" + ")" * 200
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
