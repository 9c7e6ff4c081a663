import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf.corpus.parsing import templates
from paranmt_hf.corpus.parsing.templates import linearised, read_template, template_of, templates_of
from paranmt_hf.corpus.parsing.trees import Tree, read_tree, top_levels
from paranmt_hf.errors import InputError

PENN = "(ROOT (S (NP (DT A) (NN man)) (VP (VBZ plays) (NP (DT a) (NN guitar))) (. .)))"
PENN_LABELS = "(S(NP(DT)(NN))(VP(VBZ)(NP(DT)(NN)))(.))"
LINK = "(S (NP a man.n) (VP plays.v (NP a guitar.s)) .)"

labels = st.text(st.sampled_from("ABC-.,$'é"), min_size=1, max_size=4)
trees = st.recursive(
    st.builds(Tree, labels, st.lists(labels, max_size=3).map(tuple)),
    lambda inner: st.builds(Tree, labels, st.lists(inner | labels, max_size=4).map(tuple)),
)


@pytest.mark.parametrize(
    ("tree", "line", "template"),
    [
        (PENN, PENN_LABELS, "(S(NP)(VP)(.))"),
        (LINK, "(S(NP)(VP(NP)))", "(S(NP)(VP))"),
        ("(ROOT (TOP (S he (VP ran))))", "(S(VP))", "(S(VP))"),
        ("( (S (NP he)))", "(S(NP))", "(S(NP))"),
        # A wrapper around more than the tree of one sentence stays.
        ("(ROOT (S a) (S b))", "(ROOT(S)(S))", "(ROOT(S)(S))"),
        ("(S hello)", "(S)", "(S)"),
        ("(S (-LRB- -LRB-) (NP (PRP$ my) (NN dog)))", "(S(-LRB-)(NP(PRP$)(NN)))", "(S(-LRB-)(NP))"),
    ],
)
def test_trees_without_words_and_their_templates_by_hand(tree, line, template):
    assert linearised(read_tree(tree)) == line
    assert template_of(line) == template


def test_labels_that_would_break_the_brackets():
    assert linearised(Tree("A (b", (Tree("c)"),))) == "(A_-LRB-b(c-RRB-))"


@given(trees)
def test_templates_are_the_top_levels_of_trees(tree):
    assert template_of(linearised(tree)) == top_levels(tree).replace(" (", "(")


@given(trees)
def test_a_linearised_tree_is_read_as_a_tree(tree):
    line = linearised(tree)
    assert linearised(read_tree(line)) == line


@given(st.lists(st.none() | trees.map(linearised), max_size=8), st.integers(0, 3))
def test_columns_have_the_templates_of_each_tree(lines, skipped):
    whole = pa.array(lines, pa.string())
    for column in (whole.slice(skipped), pa.chunked_array([whole, whole.slice(skipped)], pa.string())):
        cut = templates_of(column)
        assert cut.type == pa.string()
        assert cut.to_pylist() == [None if line is None else template_of(line) for line in column.to_pylist()]


@pytest.mark.parametrize(
    ("text", "template"),
    [
        ("(S(NP)(VP))", "(S(NP)(VP))"),
        (" ( S ( NP )\t(VP) (.) )\n", "(S(NP)(VP)(.))"),
        ("(ROOT (S (NP) (VP)))", "(S(NP)(VP))"),
        ("((S (NP) (VP)))", "(S(NP)(VP))"),
        ("(FRAG)", "(FRAG)"),
    ],
)
def test_templates_that_people_write(text, template):
    assert read_template(text) == template
    assert read_template(template) == template


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not a template such as \\(S\\(NP\\)\\(VP\\)\\): expected a tree, but there is nothing"),
        ("(S(NP)", "1 closing brackets are missing"),
        ("(S(NP)(VP)))", "after its last bracket there is more at character 12"),
        ("NP VP", "begins with an opening bracket, got 'NP' at character 1"),
        ("(S (NP) VP)", "has no words: 'VP' at character 9; write nodes as \\(VP\\)"),
        ("(S (NP he))", "has no words: 'he' at character 8"),
        ("(S (NP (DT)))", "one level below it: the node at character 8 is deeper"),
        ("(ROOT (S (NP (DT))))", "the node at character 14 is deeper"),
        ("((NP)(VP))", "the node at character 1 has no label"),
        ("(S()(VP))", "the node at character 3 has no label"),
        ("()", "the node at character 1 has no label"),
        ("(S" + "(NP)" * 250 + ")", "at most 1,000 characters, got 1,003"),
    ],
)
def test_text_that_is_no_template(text, reason):
    with pytest.raises(InputError, match=reason):
        read_template(text)


@given(st.text(st.sampled_from("()ab "), max_size=14))
def test_any_text_is_a_template_or_refused(text):
    try:
        template = read_template(text)
    except InputError:
        return
    assert template_of(template) == template == read_template(template)
    assert linearised(read_tree(text)) == template


@pytest.mark.parametrize(
    "text, tree",
    [
        ("(S(NP)(VP))", True),
        ("(S)", True),
        ("(S(NP", False),
        ("(A))((B)", False),
        ("(A)(B)", False),
        (")(", False),
        ("", False),
        (None, False),
        ("(S (NP)(VP))", False),
        ("(S(NP)x)", False),
        ("(S(NP()))", False),
    ],
)
def test_what_is_a_linearised_tree(text, tree):
    """Beside others, so that what is open in one does not count for the next."""
    column = pa.array(["(S(NP))", text, "(S(VP(VB)))", "(S(NP"])
    assert templates.are_trees(column).tolist() == [True, tree, True, False]
    assert templates.are_trees(pa.chunked_array([column, column[1:]])).tolist()[-3:] == [tree, True, False]
    assert templates.are_trees(pa.array([], pa.string())).tolist() == []
