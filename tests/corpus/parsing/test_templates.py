"""Templates counted shard by shard, as all at once; the file of them, and what may be wrong with it."""

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf import InputError
from paranmt_hf.corpus.parsing.template_counts import TemplateCounter, write_template_counts
from paranmt_hf.corpus.parsing.trees import (
    Tree,
    are_trees,
    linearised,
    read_template,
    read_tree,
    template_of,
    templates_of,
    top_levels,
)
from tests.corpus.parsing.toys import LINK, PENN, trees
from tests.refused import refused

PENN_LABELS = "(S(NP(DT)(NN))(VP(VBZ)(NP(DT)(NN)))(.))"


@pytest.mark.parametrize(
    ("tree", "line", "template"),
    [
        (PENN, PENN_LABELS, "(S(NP)(VP)(.))"),
        (LINK, "(S(NP)(VP(NP)))", "(S(NP)(VP))"),
        ("(ROOT (TOP (S he (VP ran))))", "(S(VP))", "(S(VP))"),
        ("( (S (NP he)))", "(S(NP))", "(S(NP))"),
        # A wrapper around more than the tree of one sentence stays.
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
        ("((S (NP) (VP)))", "(S(NP)(VP))"),
        ("(FRAG)", "(FRAG)"),
    ],
)
def test_templates_that_people_write(text, template):
    assert read_template(text) == template
    assert read_template(template) == template


@pytest.mark.parametrize(
    "text",
    ["", "(S(NP)", "(S (NP he))", "(S (NP (DT)))", "((NP)(VP))", "(S" + "(NP)" * 250 + ")"],
)
def test_text_that_is_no_template(text):
    with refused():
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
    assert are_trees(column).tolist() == [True, tree, True, False]
    assert are_trees(pa.chunked_array([column, column[1:]])).tolist()[-3:] == [tree, True, False]
    assert are_trees(pa.array([], pa.string())).tolist() == []


TREES = [None, "(S)", "(S(NP))", "(S(NP(DT)))", "(S(NP)(VP))", "(S(NP(DT)(NN))(VP))", "(FRAG(NP))"]
TEMPLATES = [None, "(S)", "(S(NP))", "(S(NP))", "(S(NP)(VP))", "(S(NP)(VP))", "(FRAG(NP))"]


def counted(shards, waiting=1000):
    counter = TemplateCounter(waiting)
    for shard, numbers in enumerate(shards):
        sentences = [f"{shard} {place}" for place in range(len(numbers))]
        parses = pa.chunked_array([[TREES[number] for number in numbers]], pa.string())
        counter.add(parses, pa.chunked_array([sentences], pa.string()))
    return counter.table()


def test_counts_by_hand():
    table = counted([[2, 4, 0, 3], [1, 6, 4, 5]])
    assert table.to_pylist() == [
        {"template": "(S(NP)(VP))", "count": 3, "example": "0 1"},
        {"template": "(S(NP))", "count": 2, "example": "0 0"},
        # Equally many: by their text.
        {"template": "(FRAG(NP))", "count": 1, "example": "1 1"},
        {"template": "(S)", "count": 1, "example": "1 0"},
    ]


@given(st.lists(st.lists(st.integers(0, len(TREES) - 1), max_size=9), max_size=5), st.sampled_from([0, 3, 1000]))
def test_counts_are_those_of_all_shards(shards, waiting):
    table = counted(shards, waiting)
    found = [
        (TEMPLATES[number], f"{shard} {place}") for shard, row in enumerate(shards) for place, number in enumerate(row)
    ]
    found = [(template, sentence) for template, sentence in found if template]
    counts = Counter(template for template, _ in found)
    first = dict(reversed(found))
    wanted = [(each, counts[each], first[each]) for each in sorted(counts, key=lambda each: (-counts[each], each))]
    assert [tuple(row.values()) for row in table.to_pylist()] == wanted


def test_the_file_of_counts(tmp_path):
    table = counted([[4, 2, 4]]).set_column(2, "example", pa.array(["a\tb  c", "d"]))
    write_template_counts(table, tmp_path / "templates.tsv")
    lines = "template\tcount\texample\n(S(NP)(VP))\t2\ta b c\n(S(NP))\t1\td\n"
    assert (tmp_path / "templates.tsv").read_bytes() == lines.encode()


def test_no_trees_at_all():
    assert counted([[0, 0]]).num_rows == 0
    assert counted([]).num_rows == 0
