"""Filters of single rows, and the choice of one hypothesis of each sentence."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paranmt_hf import InputError, ReleaseFilter
from paranmt_hf.corpus.release.schema import key_columns, row_numbers
from paranmt_hf.corpus.statistics.draws import sample_ids
from paranmt_hf.text.word_rules import letters
from tests.corpus.selection.toys import chosen
from tests.refused import refused


def kept(one, **columns):
    return one.judge(pa.table(columns)).kept.tolist()


def test_a_range_holds_both_of_its_ends():
    scores = pa.array([0.1, 0.4, 0.7, None, float("nan"), 0.71], pa.float32())
    one = chosen(min={"score": 0.4}, max={"score": 0.7})
    verdict = one.judge(pa.table({"score": scores}))
    assert verdict.kept.tolist() == [False, True, True, False, False, False]
    assert verdict.number[[0, 5]].tolist() == [np.float32(0.1), np.float32(0.71)] and np.isnan(verdict.number[3])
    assert one.reason == "with score outside 0.4 to 0.7"


def test_ranges_of_whole_numbers():
    counts = pa.array([0, 1, None, 2], pa.int32())
    assert kept(chosen(max={"wrong": 0}), wrong=counts) == [True, False, False, False]
    assert kept(chosen(min={"wrong": 0.5}), wrong=counts) == [False, True, False, True]
    assert chosen(max={"wrong": 0}).reason == "with wrong above 0"
    assert chosen(min={"wrong": 0.5}).reason == "with wrong below 0.5"


HAS_SCORE = ReleaseFilter(min={"score": 0}).filters(pa.schema([]))[0]


def test_values_that_are_not_there():
    assert kept(HAS_SCORE, score=pa.array([0.5, None, float("nan"), -1], pa.float64())) == [
        True,
        False,
        False,
        True,
    ]
    assert kept(HAS_SCORE, score=pa.array([0, None], pa.int16())) == [True, False]


def test_origins():
    origin = pa.array(["news", None, "web", "law"]).dictionary_encode()
    assert kept(chosen(origin=("law", "news")), origin=origin) == [True, False, False, True]
    assert chosen(origin=("news", "law", "news")).reason == "not from law or news"


def test_length_is_that_of_either_side():
    sides = {"reference_length": [4, 5, 31, 30, 2], "translation_length": [30, 31, 5, 5, 40]}
    one = chosen(min_length=5, max_length=30)
    verdict = one.judge(pa.table(sides))
    assert verdict.kept.tolist() == [False, False, False, True, False]
    assert verdict.number.tolist() == [4, 31, 31, 30, 2]
    assert one.reason == "with a side under 5 or over 30 tokens"
    assert kept(chosen(max_length=30), **sides) == [True, False, False, True, False]
    assert kept(chosen(min_length=5), **sides) == [False, True, True, True, False]


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
        ("It is -5 °C.", "It is 5 °C.", False),
        ("It is \u22125 °C.", "it is -5 °C", True),
        ("1.5 litres", "15 litres", False),
        ("COVID-19", "COVID 19", True),
        ("5.", "5", True),
        # "He reads a book", "she reads a book": vowel signs are no letters of Unicode's.
        ("वह किताब पढ़ता है", "वह किताब पढ़ती है", False),
        ("वह किताब पढ़ता है।", "वह किताब पढ़ता है", True),
        ("I \u2764\ufe0f it", "I \u2764 it", True),
    ],
)
def test_identical_sides(first, second, same):
    assert kept(chosen(drop_identical=True), reference=[first], translation=[second]) == [not same]
    # Whatever stands around it, in a part of a larger array.
    table = pa.table({"reference": ["x", "", first, "", "y"], "translation": ["z", "q", second, "q", ""]})
    assert chosen(drop_identical=True).judge(table.slice(1, 3)).kept.tolist() == [True, not same, True]


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(st.tuples(*[st.text("aAbB12 .é-", max_size=6)] * 2), max_size=20))
def test_identical_sides_are_those_whose_letters_are_equal(pairs):
    columns = {
        "reference": pa.array([first for first, _ in pairs], pa.string()),
        "translation": pa.array([second for _, second in pairs], pa.string()),
    }
    slow = [a != b for a, b in zip(*(letters(column).to_pylist() for column in columns.values()), strict=True)]
    assert kept(chosen(drop_identical=True), **columns) == slow


BY_HAND = {
    "id": [3, 3, 3, 5, 5, 8, 9, 9],
    "rank": [1, 2, 4, 1, 2, 3, 1, 2],
    "para_score": pa.array([0.5, 0.9, 0.7, 0.8, 0.8, 0.1, 0.6, 0.9], pa.float32()),
    "trigram_overlap": pa.array([0.2, 0.0, 0.0, None, 1.0, None, 0.5, 0.25], pa.float32()),
}


def kept_hypotheses(keep, columns, folder, seen, judged):
    table = pa.table(columns)
    one = chosen(keep=keep)
    folder.mkdir()
    one.prepare(lambda: (table.slice(at, seen) for at in range(0, table.num_rows, seen)), folder)
    verdicts = [one.judge(table.slice(at, judged)) for at in range(0, table.num_rows, judged)]
    numbers = np.concatenate([verdict.number for verdict in verdicts])
    return np.concatenate([verdict.kept for verdict in verdicts]), numbers


@pytest.mark.parametrize("seen", [1, 3, 100])
@pytest.mark.parametrize(
    ("keep", "rows"), [("best", [0, 3, 5, 6]), ("most-similar", [1, 3, 5, 7]), ("most-different", [1, 3, 5, 7])]
)
def test_hypotheses_by_hand(keep, rows, seen, tmp_path):
    """Row 1 is as different as row 2, and more similar; rows 3 and 4 are equal, so the smaller rank stays."""
    found, _ = kept_hypotheses(keep, BY_HAND, tmp_path / "work", seen, 3)
    assert np.flatnonzero(found).tolist() == rows


def test_hypotheses_against_a_loop(tmp_path):
    random = np.random.default_rng(1)
    ids = np.repeat(np.arange(400), random.integers(0, 6, 400))
    ranks = np.arange(len(ids)) - np.searchsorted(ids, ids) + 1
    score = random.integers(-3, 4, len(ids)).astype(np.float32) / 4
    overlap = random.integers(0, 4, len(ids)).astype(np.float32) / 3
    empty = random.random(len(ids)) < 0.2
    columns = {"id": ids, "rank": ranks.astype(np.int32), "para_score": score}
    columns["trigram_overlap"] = pa.array(overlap, mask=empty)
    found, numbers = kept_hypotheses("most-different", columns, tmp_path / "work", 37, 50)
    expected = []
    for sentence in np.unique(ids):
        rows = np.flatnonzero(ids == sentence).tolist()
        expected.append(min(rows, key=lambda row: (1 if empty[row] else overlap[row], -score[row], ranks[row])))
    assert np.flatnonzero(found).tolist() == expected
    assert np.array_equal(np.isnan(numbers), empty)
    assert np.array_equal(numbers[~empty], overlap[~empty].astype(np.float64))


def test_nothing_is_left_to_choose_from(tmp_path):
    one = chosen(keep="best")
    one.prepare(lambda: iter(()), tmp_path)
    assert not len(one.judge(pa.table(BY_HAND).slice(0, 0)).kept)


def test_numbers_of_rows():
    table = pa.table(BY_HAND)
    numbers = row_numbers(table)
    assert (np.diff(numbers) > 0).all()
    assert numbers[0] == 3 * 256 + 1
    assert row_numbers(table.drop("rank")).tolist() == BY_HAND["id"]
    assert key_columns(["rank", "reference", "id"]) == ["id", "rank"]
    assert key_columns(["id"]) == ["id"]


NOWHERE = Path("nowhere")


def tables(columns, rows):
    """A table cut into tables of a number of rows."""
    table = pa.table(columns)
    return lambda: iter([table.slice(start, rows) for start in range(0, table.num_rows, rows)])


def judged(one, read):
    one.prepare(read, NOWHERE)
    return np.concatenate([one.judge(table).kept for table in read()])


def tenths_among(read):
    """The tenth of each row, from 1, each of which has a filter."""
    kept = [judged(chosen(tenths=str(tenth), by="score"), read) for tenth in range(1, 11)]
    return np.array(kept).T.nonzero()[1] + 1


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
    found = (
        np.array([judged(chosen(tenths=str(tenth), by="score"), read) for tenth in range(1, 11)]).T.nonzero()[1] + 1
    )
    assert (found == by_sorting(values, ids)).all()
    assert np.bincount(found)[1:].tolist() == [100, 100, 100, 99, 100, 100, 99, 100, 100, 99]


@settings(max_examples=30)
@given(st.lists(st.sampled_from([-1.5, -0.0, 0.0, 1e-40, 0.25, 3.0, float("inf")]), min_size=1, max_size=45))
def test_equal_values_are_ranked_by_id(values):
    values, ids = np.array(values, np.float32), np.arange(len(values))
    read = tables({"id": ids, "score": values}, 100)
    assert (tenths_among(read) == by_sorting(values, ids)).all()


def test_tenths_worked_by_hand():
    # Ranks: 0.1 (id 7), 0.5 (1), 0.5 (2), 0.5 (4), 0.9 (9): tenths 1, 3, 5, 7, 9.
    read = tables({"id": [1, 2, 4, 7, 9], "score": pa.array([0.5, 0.5, 0.5, 0.1, 0.9], pa.float32())}, 2)
    tenths = chosen(tenths="5-6,9", by="score")
    assert judged(tenths, read).tolist() == [False, True, False, False, True]
    assert tenths.reason == "outside tenths 5, 6, 9 of score"
    tenths.prepare(read, NOWHERE)
    verdict = tenths.judge(next(read()))
    assert verdict.number.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("rows", [1, 13, 500])
def test_a_sample_is_exact_and_does_not_depend_on_files(rows):
    ids = np.arange(0, 1500, 3)
    kept = judged(chosen(sample=77, seed=5), tables({"id": ids}, rows))
    assert kept.sum() == 77
    assert ids[kept].tolist() == sample_ids(ids, 77, 5).tolist()
    assert (judged(chosen(sample=77, seed=6), tables({"id": ids}, rows)) != kept).any()


def test_a_sample_of_all_and_of_more(caplog):
    read = tables({"id": [4, 5, 9]}, 2)
    assert judged(chosen(sample=3), read).all() and not caplog.records
    assert judged(chosen(sample=4), read).all() and [each.levelname for each in caplog.records] == ["WARNING"]


def tenths_of(text):
    return chosen(tenths=text).identity["tenths"]


def test_choices_of_tenths():
    assert tenths_of("9-10") == [9, 10]
    assert tenths_of(" 3, 1,5 - 6,5") == [1, 3, 5, 6]
    for text in ("", "x", "0", "11", "5-3", "1-", "-2", "1.5", "²"):
        with refused("tenths"):
            ReleaseFilter(tenths=text)


@given(st.text("0123456789,- ", max_size=12))
def test_any_choice_is_read_or_refused(text):
    try:
        parts = tenths_of(text)
    except InputError:
        return
    assert parts == sorted(set(parts)) and 1 <= parts[0] <= parts[-1] <= 10
