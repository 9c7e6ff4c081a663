"""Filters that look at one row at a time."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paranmt_hf.corpus.selection.filters import DifferentSides, FromOrigins, HasValue, InRange, LengthLimit
from paranmt_hf.text.letters import letters


def kept(one, **columns):
    return one.judge(pa.table(columns)).kept.tolist()


def test_a_range_holds_both_of_its_ends():
    scores = pa.array([0.1, 0.4, 0.7, None, float("nan"), 0.71], pa.float32())
    one = InRange("score", 0.4, 0.7)
    verdict = one.judge(pa.table({"score": scores}))
    assert verdict.kept.tolist() == [False, True, True, False, False, False]
    assert verdict.number[[0, 5]].tolist() == [np.float32(0.1), np.float32(0.71)] and np.isnan(verdict.number[3])
    assert one.reason == "with score outside 0.4 to 0.7"


def test_ranges_of_whole_numbers():
    counts = pa.array([0, 1, None, 2], pa.int32())
    assert kept(InRange("wrong", None, 0), wrong=counts) == [True, False, False, False]
    assert kept(InRange("wrong", 0.5, None), wrong=counts) == [False, True, False, True]
    assert InRange("wrong", None, 0).reason == "with wrong above 0"
    assert InRange("wrong", 0.5, None).reason == "with wrong below 0.5"


def test_values_that_are_not_there():
    assert kept(HasValue("score"), score=pa.array([0.5, None, float("nan"), -1], pa.float64())) == [
        True,
        False,
        False,
        True,
    ]
    assert kept(HasValue("score"), score=pa.array([0, None], pa.int16())) == [True, False]


def test_origins():
    origin = pa.array(["news", None, "web", "law"]).dictionary_encode()
    assert kept(FromOrigins(["law", "news"]), origin=origin) == [True, False, False, True]
    assert FromOrigins(["news", "law", "news"]).reason == "not from law or news"


def test_length_is_that_of_either_side():
    sides = {"reference_length": [4, 5, 31, 30, 2], "translation_length": [30, 31, 5, 5, 40]}
    one = LengthLimit(5, 30)
    verdict = one.judge(pa.table(sides))
    assert verdict.kept.tolist() == [False, False, False, True, False]
    assert verdict.number.tolist() == [4, 31, 31, 30, 2]
    assert one.reason == "with a side under 5 or over 30 tokens"
    assert kept(LengthLimit(None, 30), **sides) == [True, False, False, True, False]
    assert kept(LengthLimit(5, None), **sides) == [False, True, True, True, False]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("Yes, he can't.", "yes he ca n't", True),
        ("Yes.", "Yes?", True),
        ("No.", "Not.", False),
        ("ice cream", "icecream", True),
        ("no", "on", False),
        ("Élan", "élan!", True),
        ("Élan", "elan", False),
        ("...", "!?", True),
        ("...", "a", False),
        ("", "", True),
        ("", "b", False),
        ("1 000", "1,000", True),
        ("größe", "GRÖßE", True),
        ("中文。", "中文", True),
        # "He reads a book", "she reads a book": vowel signs are no letters of Unicode's.
        ("वह किताब पढ़ता है", "वह किताब पढ़ती है", False),
        ("वह किताब पढ़ता है।", "वह किताब पढ़ता है", True),
        ("I \u2764\ufe0f it", "I \u2764 it", True),
    ],
)
def test_identical_sides(first, second, same):
    assert kept(DifferentSides(), reference=[first], translation=[second]) == [not same]
    # Whatever stands around it, in a part of a larger array.
    table = pa.table({"reference": ["x", "", first, "", "y"], "translation": ["z", "q", second, "q", ""]})
    assert DifferentSides().judge(table.slice(1, 3)).kept.tolist() == [True, not same, True]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(*[st.text("aAbB1 .é-", max_size=5)] * 2), max_size=20))
def test_identical_sides_are_those_whose_letters_are_equal(pairs):
    columns = {
        "reference": pa.array([first for first, _ in pairs], pa.string()),
        "translation": pa.array([second for _, second in pairs], pa.string()),
    }
    slow = [a != b for a, b in zip(*(letters(column).to_pylist() for column in columns.values()), strict=True)]
    assert kept(DifferentSides(), **columns) == slow
