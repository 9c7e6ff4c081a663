import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paranmt_hf.apps.annotate.ranges import PAPER, ScoreRange, equal_ranges, given_ranges, range_of
from paranmt_hf.errors import InputError


def test_the_ranges_of_the_paper():
    ranges = given_ranges(PAPER)
    assert [part.label for part in ranges] == ["(-0.1, 0.2]", "(0.2, 0.4]", "(0.4, 0.6]", "(0.6, 0.8]", "(0.8, 1.0]"]
    scores = np.array([-0.2, -0.1, -0.09, 0.2, 0.20001, 0.4, 0.6, 0.8, 1.0, 1.1, np.nan], np.float32)
    # An edge belongs to the lower range; what is on the lowest edge, or above the highest, is in none.
    assert range_of(scores, ranges).tolist() == [-1, -1, 0, 0, 1, 1, 2, 3, 4, -1, -1]


def test_labels():
    assert ScoreRange(None, 0.70092).label == "up to 0.7009"
    assert ScoreRange(0.9, None).label == "above 0.9"
    assert ScoreRange(None, None).label == "all"
    assert ScoreRange(-1.0, 0.0).label == "(-1.0, 0.0]"


def test_edges_that_make_no_ranges():
    for edges in ((0.5,), (0.2, 0.2), (0.1, 0.4, 0.3)):
        with pytest.raises(InputError, match="--ranges must be at least two ascending scores"):
            given_ranges(edges)


def test_quintiles_by_hand():
    ranges = equal_ranges(lambda: [np.arange(10, dtype=np.float32) / 10], 5)
    assert [part.label for part in ranges] == ["up to 0.1", "(0.1, 0.3]", "(0.3, 0.5]", "(0.5, 0.7]", "above 0.7"]
    assert equal_ranges(lambda: [np.ones(3, np.float32)], 1) == [ScoreRange(None, None)]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=60),
    st.integers(1, 7),
    st.integers(1, 9),
)
def test_quantiles_are_exact(values, count, batch):
    scores = np.array(values, np.float32)
    edges = [float(np.sort(scores)[-(-index * len(scores) // count) - 1]) for index in range(1, count)]

    def columns():
        return [scores[start : start + batch] for start in range(0, len(scores), batch)]

    if len(set(edges)) < len(edges):
        with pytest.raises(InputError, match="so many pairs have the score"):
            equal_ranges(columns, count)
        return
    ranges = equal_ranges(columns, count)
    assert np.float32([part.high for part in ranges[:-1]]).tolist() == edges
    found = range_of(scores, ranges)
    expected = np.searchsorted(np.array(edges), scores, side="left")
    assert found.tolist() == expected.tolist()


def test_no_scores():
    with pytest.raises(InputError, match="no pair has a paraphrase score"):
        equal_ranges(lambda: [np.empty(0, np.float32)], 5)
