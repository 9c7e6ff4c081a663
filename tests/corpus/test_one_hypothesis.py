"""One hypothesis of each sentence, by hand and against a plain loop."""

import numpy as np
import pyarrow as pa
import pytest

from paranmt_hf.corpus.schema import key_columns, row_numbers
from paranmt_hf.corpus.selection.filters import OneHypothesis

BY_HAND = {
    "id": [3, 3, 3, 5, 5, 8, 9, 9],
    "rank": [1, 2, 4, 1, 2, 3, 1, 2],
    "para_score": pa.array([0.5, 0.9, 0.7, 0.8, 0.8, 0.1, 0.6, 0.9], pa.float32()),
    "trigram_overlap": pa.array([0.2, 0.0, 0.0, None, 1.0, None, 0.5, 0.25], pa.float32()),
}


def kept(keep, columns, folder, seen, judged):
    table = pa.table(columns)
    one = OneHypothesis(keep)
    folder.mkdir()
    one.prepare(lambda: (table.slice(at, seen) for at in range(0, table.num_rows, seen)), folder)
    verdicts = [one.judge(table.slice(at, judged)) for at in range(0, table.num_rows, judged)]
    numbers = np.concatenate([verdict.number for verdict in verdicts])
    return np.concatenate([verdict.kept for verdict in verdicts]), numbers


@pytest.mark.parametrize("seen", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("keep", "rows"),
    [("best", [0, 3, 5, 6]), ("most-similar", [1, 3, 5, 7]), ("most-different", [1, 3, 5, 7])],
)
def test_by_hand(keep, rows, seen, tmp_path):
    """Row 1 is as different as row 2, and more similar; rows 3 and 4 are equal, so the smaller rank stays."""
    found, _ = kept(keep, BY_HAND, tmp_path / "work", seen, 3)
    assert np.flatnonzero(found).tolist() == rows


def test_against_a_loop(tmp_path):
    random = np.random.default_rng(1)
    ids = np.repeat(np.arange(400), random.integers(0, 6, 400))
    ranks = np.arange(len(ids)) - np.searchsorted(ids, ids) + 1
    score = random.integers(-3, 4, len(ids)).astype(np.float32) / 4
    overlap = random.integers(0, 4, len(ids)).astype(np.float32) / 3
    empty = random.random(len(ids)) < 0.2
    columns = {"id": ids, "rank": ranks.astype(np.int32), "para_score": score}
    columns["trigram_overlap"] = pa.array(overlap, mask=empty)
    found, numbers = kept("most-different", columns, tmp_path / "work", 37, 50)
    expected = []
    for sentence in np.unique(ids):
        rows = np.flatnonzero(ids == sentence).tolist()
        expected.append(min(rows, key=lambda row: (1 if empty[row] else overlap[row], -score[row], ranks[row])))
    assert np.flatnonzero(found).tolist() == expected
    assert np.array_equal(np.isnan(numbers), empty)
    assert np.array_equal(numbers[~empty], overlap[~empty].astype(np.float64))


def test_nothing_is_left_to_choose_from(tmp_path):
    one = OneHypothesis("best")
    one.prepare(lambda: iter(()), tmp_path)
    assert (tmp_path / "stay").stat().st_size == 0


def test_numbers_of_rows():
    table = pa.table(BY_HAND)
    numbers = row_numbers(table)
    assert (np.diff(numbers) > 0).all()
    assert numbers[0] == 3 * 256 + 1
    assert row_numbers(table.drop("rank")).tolist() == BY_HAND["id"]
    assert key_columns(["rank", "reference", "id"]) == ["id", "rank"]
    assert key_columns(["id"]) == ["id"]
