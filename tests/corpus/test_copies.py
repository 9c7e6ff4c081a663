"""Exact copies against a dictionary."""

import numpy as np
import pyarrow as pa
import pytest

from paranmt_hf.corpus.selection import copies
from paranmt_hf.corpus.selection.copies import FirstCopies, _repeated

pytest.importorskip("duckdb")


def tables(columns, rows):
    table = pa.table(columns)
    return lambda: iter([table.slice(start, rows) for start in range(0, table.num_rows, rows)])


def corpus(rows=3000, words=40):
    random = np.random.default_rng(2)
    sides = [[f"word {number}" for number in random.integers(0, words, rows)] for _ in range(2)]
    # Equal when joined, and not as pairs; and upper case counts.
    sides[0][:3], sides[1][:3] = ["a b", "a", "A"], ["c", "b c", "b c"]
    return {"id": np.arange(rows) * 2 + 5, "reference": sides[0], "translation": sides[1]}


@pytest.mark.parametrize("copied", ["pair", "reference", "translation"])
@pytest.mark.parametrize("block", [700, 1_000_000])
def test_the_first_by_id_stays(tmp_path, monkeypatch, copied, block):
    monkeypatch.setattr(copies, "BLOCK_ROWS", block)
    monkeypatch.setattr(copies, "WAITING_BYTES", 10_000)
    columns = corpus()
    keys = list(zip(*(columns[name] for name in copies.SIDES[copied]), strict=True))
    first = {}
    for row, key in zip(columns["id"].tolist(), keys, strict=True):
        first.setdefault(key, row)
    one = FirstCopies(copied)
    one.prepare(tables(columns, 900), tmp_path)
    verdicts = [one.judge(table) for table in tables(columns, 333)()]
    kept = np.concatenate([verdict.kept for verdict in verdicts])
    assert kept.tolist() == [first[key] == row for row, key in zip(columns["id"].tolist(), keys, strict=True)]
    assert 0 < kept.sum() < len(kept)
    numbers = np.concatenate([verdict.number for verdict in verdicts])
    expected = np.array([first[key] for key in keys])
    assert (numbers[~kept] == expected[~kept]).all()
    assert not list(tmp_path.iterdir())


def test_nothing_is_repeated(tmp_path):
    one = FirstCopies("pair")
    read = tables({"id": [3, 4], "reference": ["a", "a"], "translation": ["b", "c"]}, 1)
    one.prepare(read, tmp_path)
    assert [one.judge(table).kept.tolist() for table in read()] == [[True], [True]]


def test_sentences_with_the_same_first_hash_are_told_apart():
    # First hash, second hash, number of the row, id.
    records = np.array([[1, 8, 0, 10], [1, 9, 1, 11], [1, 8, 2, 12], [1, 9, 3, 13], [2, 8, 4, 14]], np.uint64)
    assert _repeated(records).tolist() == [[2, 10], [3, 11]]


def test_without_duckdb(monkeypatch, tmp_path):
    monkeypatch.setattr("paranmt_hf.util.optional.available", lambda package: False)
    with pytest.raises(Exception, match=r"pip install 'paranmt-hf\[select\]'"):
        FirstCopies("pair").prepare(tables(corpus(10), 10), tmp_path)
