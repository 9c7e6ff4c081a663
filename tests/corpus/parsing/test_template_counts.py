"""Templates counted shard by shard, as all at once; the file of them, and what may be wrong with it."""

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paranmt_hf.corpus.parsing import template_counts
from paranmt_hf.corpus.parsing.template_counts import (
    TEMPLATES_FILE,
    TemplateCount,
    TemplateCounter,
    read_template_counts,
    write_template_counts,
)
from paranmt_hf.errors import InputError

TREES = [None, "(S)", "(S(NP))", "(S(NP(DT)))", "(S(NP)(VP))", "(S(NP(DT)(NN))(VP))", "(FRAG(NP))"]
TEMPLATES = [None, "(S)", "(S(NP))", "(S(NP))", "(S(NP)(VP))", "(S(NP)(VP))", "(FRAG(NP))"]


def counted(shards):
    counter = TemplateCounter()
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


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(0, len(TREES) - 1), max_size=9), max_size=5), st.sampled_from([0, 3, 1000]))
def test_counts_are_those_of_all_shards(shards, waiting):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(template_counts, "MAX_WAITING_COUNTS", waiting)
        table = counted(shards)
    found = [
        (TEMPLATES[number], f"{shard} {place}") for shard, row in enumerate(shards) for place, number in enumerate(row)
    ]
    found = [(template, sentence) for template, sentence in found if template]
    counts = Counter(template for template, _ in found)
    first = dict(reversed(found))
    wanted = [(each, counts[each], first[each]) for each in sorted(counts, key=lambda each: (-counts[each], each))]
    assert [tuple(row.values()) for row in table.to_pylist()] == wanted


def test_a_file_and_back(tmp_path):
    table = counted([[4, 2, 4]]).set_column(2, "example", pa.array(["a\tb  c", "d"]))
    write_template_counts(table, tmp_path / TEMPLATES_FILE)
    lines = "template\tcount\texample\n(S(NP)(VP))\t2\ta b c\n(S(NP))\t1\td\n"
    assert (tmp_path / TEMPLATES_FILE).read_bytes() == lines.encode()
    first = TemplateCount("(S(NP)(VP))", 2, "a b c")
    assert read_template_counts(tmp_path) == [first, TemplateCount("(S(NP))", 1, "d")]
    assert read_template_counts(tmp_path / TEMPLATES_FILE, 1) == [first]


def test_no_trees_at_all(tmp_path):
    write_template_counts(counted([[0, 0]]), tmp_path / TEMPLATES_FILE)
    assert read_template_counts(tmp_path) == []
    assert counted([]).num_rows == 0


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "line 1: expected template, count, example with tabs between"),
        (b"(S)\t1\ta\n", "line 1: expected template, count, example with tabs between"),
        (b"template\tcount\texample\n(S)\t1\ta\n(S)\t1\n", "line 3: expected a template, its count and an example"),
        (b"template\tcount\texample\n(S)\tone\ta\n", "line 2: expected a template, its count and an example"),
        (b"template\tcount\texample\nS\t1\ta\n", "line 2: expected a template, its count and an example"),
        (b"template\tcount\texample\n(S)\t1\t\xff\n", "line 2: expected UTF-8"),
    ],
)
def test_a_damaged_file(tmp_path, content, reason):
    (tmp_path / TEMPLATES_FILE).write_bytes(content)
    with pytest.raises(InputError, match=reason):
        read_template_counts(tmp_path)


def test_no_file(tmp_path):
    with pytest.raises(InputError, match=r"there are no templates .*templates.tsv; `paranmt parse` writes them"):
        read_template_counts(tmp_path)
