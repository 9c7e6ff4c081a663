"""Exact ranks and samples against sorting everything."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paranmt_hf.corpus.draws import sample_ids
from paranmt_hf.corpus.selection.filters import ExactSample, Tenths, parse_tenths, parts_by_rank
from paranmt_hf.errors import InputError

NOWHERE = Path("nowhere")


def tables(columns, rows):
    """A table cut into tables of so many rows."""
    table = pa.table(columns)
    return lambda: iter([table.slice(start, rows) for start in range(0, table.num_rows, rows)])


def judged(one, read):
    one.prepare(read, NOWHERE)
    return np.concatenate([one.judge(table).kept for table in read()])


def by_sorting(values, ids, parts=10):
    """The part of each row, from 1, by the definition."""
    order = np.lexsort((ids, values))
    part = np.empty(len(values), int)
    part[order] = np.arange(len(values)) * parts // len(values) + 1
    return part


@pytest.mark.parametrize(
    "kind", [np.float32, np.float64, np.float16, np.int32, np.int64, np.int8, np.uint8, np.uint64]
)
def test_tenths_are_those_of_sorting(kind):
    random = np.random.default_rng(7)
    values = random.normal(0, 40, 997).clip(0 if np.dtype(kind).kind == "u" else -100, 100).astype(kind)
    ids = np.cumsum(random.integers(1, 5, len(values)))
    read = tables({"id": ids, "score": values}, 100)
    found = np.array([judged(Tenths("score", [tenth]), read) for tenth in range(1, 11)]).T.nonzero()[1] + 1
    assert (found == by_sorting(values, ids)).all()
    assert np.bincount(found)[1:].tolist() == [100, 100, 100, 99, 100, 100, 99, 100, 100, 99]


@settings(max_examples=30)
@given(
    st.lists(st.sampled_from([-1.5, -0.0, 0.0, 1e-40, 0.25, 3.0, float("inf")]), min_size=1, max_size=45),
    st.integers(2, 12),
)
def test_equal_values_are_ranked_by_id(values, parts):
    values = np.array(values, np.float32)
    assert (parts_by_rank(values, parts) == by_sorting(values, np.arange(len(values)), parts)).all()


def test_tenths_worked_by_hand():
    # Ranks: 0.1 (id 7), 0.5 (1), 0.5 (2), 0.5 (4), 0.9 (9): tenths 1, 3, 5, 7, 9.
    read = tables({"id": [1, 2, 4, 7, 9], "score": pa.array([0.5, 0.5, 0.5, 0.1, 0.9], pa.float32())}, 2)
    tenths = Tenths("score", [5, 6, 9])
    assert judged(tenths, read).tolist() == [False, True, False, False, True]
    assert tenths.reason == "outside tenths 5, 6, 9 of score"
    tenths.prepare(read, NOWHERE)
    verdict = tenths.judge(next(read()))
    assert verdict.number.tolist() == [0.5, 0.5]


def test_no_rows():
    assert not len(parts_by_rank(np.empty(0), 10))


@pytest.mark.parametrize("rows", [1, 13, 500])
def test_a_sample_is_exact_and_does_not_depend_on_files(rows):
    ids = np.arange(0, 1500, 3)
    kept = judged(ExactSample(77, seed=5), tables({"id": ids}, rows))
    assert kept.sum() == 77
    assert ids[kept].tolist() == sample_ids(ids, 77, 5).tolist()
    assert (judged(ExactSample(77, seed=6), tables({"id": ids}, rows)) != kept).any()


def test_a_sample_of_all_and_of_more():
    read = tables({"id": [4, 5, 9]}, 2)
    assert judged(ExactSample(3, 0), read).all()
    with pytest.raises(InputError) as caught:
        ExactSample(4, 0).prepare(read, NOWHERE)
    assert caught.value.option == "sample"


def test_choices_of_tenths():
    assert parse_tenths("9-10") == [9, 10]
    assert parse_tenths(" 3, 1,5 - 6,5") == [1, 3, 5, 6]
    for text in ("", "x", "0", "11", "5-3", "1-", "-2", "1.5", "²"):
        with pytest.raises(InputError, match="tenths must be"):
            parse_tenths(text)


@given(st.text("0123456789,- ", max_size=12))
def test_any_choice_is_read_or_refused(text):
    try:
        parts = parse_tenths(text)
    except InputError:
        return
    assert parts == sorted(set(parts)) and 1 <= parts[0] <= parts[-1] <= 10
