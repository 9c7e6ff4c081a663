"""Scored pairs of one's own."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.scored_pairs import read_scored_pairs
from paranmt_hf.evaluation.sts_data import collect

TABLE = {"sentence1": ["a", "b"], "sentence2": ["c", "d"], "score": [1.0, 0.5]}


def test_the_sample():
    pairs = read_scored_pairs("sample")
    assert (pairs.name, len(pairs), pairs.gold.min(), pairs.gold.max()) == ("sample", 40, 0, 5)


@pytest.mark.parametrize(
    "text",
    [
        "sentence1\tsentence2\tscore\na\tc\t1\nb\td\t0.5\n",
        "id\tScore\tsentence2\tsentence1\r\n7\t1\tc\ta\r\n8\t0.5\td\tb\r\n",
        "1\ta\tc\n0.5\tb\td\n",
        "a\tc\t1\nb\td\t0.5\n",
    ],
)
def test_tsv(tmp_path, text):
    (tmp_path / "mine.tsv").write_text(text)
    pairs = read_scored_pairs(tmp_path / "mine.tsv")
    assert (pairs.name, pairs.left, pairs.right, pairs.gold.tolist()) == ("mine", ["a", "b"], ["c", "d"], [1, 0.5])


def test_parquet_files_and_folders(tmp_path):
    (tmp_path / "mine" / "data").mkdir(parents=True)
    pq.write_table(pa.table({**TABLE, "more": [1, 2]}), tmp_path / "mine" / "data" / "0.parquet")
    pq.write_table(pa.table(TABLE), tmp_path / "mine" / "data" / "1.parquet")
    assert read_scored_pairs(tmp_path / "mine").left == ["a", "b", "a", "b"]
    pairs = read_scored_pairs(tmp_path / "mine" / "data" / "0.parquet")
    assert (pairs.name, pairs.gold.tolist()) == ("0", [1, 0.5])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sentence1\tsentence2\tscore\na\tc\t1\nb\td\n", "mine.tsv, line 3: expected 3 columns, found 2"),
        ("sentence1\tsentence2\tscore\na\tc\tbest\n", "mine.tsv, line 2: expected a gold similarity.*'best'"),
        ("sentence1\tsentence2\tscore\n\tc\t1\n", "mine.tsv, line 2: expected a sentence in the first"),
        ("a\tb\tc\n", "mine.tsv, line 1: expected a score and two sentences, or a header that names"),
        ("1\ta\tb\n0\tc\n", "mine.tsv, line 2: expected a score and two sentences"),
        ("1\ta\tb\n1\tc\td\n", "all 2 scores are equal, so nothing can agree with them"),
        (
            "s1\ts2\tscore\na\tb\t1\n",
            "mine.tsv, line 1: .* names .* sentence1, sentence2 and score; found 's1, s2, score'",
        ),
        ("", "mine.tsv is empty"),
    ],
)
def test_bad_rows(tmp_path, text, message):
    (tmp_path / "mine.tsv").write_text(text)
    with pytest.raises(InputError, match=message):
        read_scored_pairs(tmp_path / "mine.tsv")


def test_dataset_on_the_hub(monkeypatch):
    asked = []

    def read_hub(name, *, split):
        asked.append((name, split))
        return collect(name, [("1", "a", "b"), ("2", "c", "d")], ("x", "x"))

    monkeypatch.setattr("paranmt_hf.evaluation.scored_pairs.read_hub", read_hub)
    assert len(read_scored_pairs("you/pairs")) == 2
    assert len(read_scored_pairs("you/pairs:dev")) == 2
    assert asked == [("you/pairs", "validation"), ("you/pairs", "dev")]


def test_bad_tables(tmp_path):
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table({"sentence1": ["a"], "score": [1]}), path)
    with pytest.raises(InputError, match="p.parquet has no column sentence2; it has sentence1, score"):
        read_scored_pairs(path)
    pq.write_table(pa.table({**TABLE, "score": [1.0, float("nan")]}), path)
    with pytest.raises(InputError, match="p.parquet, row 2: expected a gold similarity"):
        read_scored_pairs(path)
    path.write_bytes(b"PAR1")
    with pytest.raises(InputError, match="cannot read .*p.parquet"):
        read_scored_pairs(path)
    with pytest.raises(InputError, match="there is no development set .*none: expected 'sample', a TSV or Parquet"):
        read_scored_pairs(tmp_path / "none")
