"""`paranmt select` as a person uses it."""

import json

import pyarrow.parquet as pq
import pytest

from paranmt_hf.cli import main

SELECT = ["select", "release", "--out", "some"]


@pytest.fixture
def release(folder, capsys):
    """Twenty pairs; the score of pair `n` is 0.05 `n`."""
    lines = [f"a {number} b\tc {number // 2}\t{number / 20}\n" for number in range(20)]
    (folder / "pairs.txt").write_text("".join(lines))
    assert main(["import", "pairs.txt", "--out", "release", "--license", "mit", "--engine", "workers=1"]) == 0
    capsys.readouterr()
    return folder


def ids(folder):
    return pq.read_table(next((folder / "data").iterdir()))["id"].to_pylist()


def test_the_table_and_the_files(release, capsys):
    pytest.importorskip("duckdb")
    words = ["--tenths", "4-9", "--max", "para_score=0.8", "--drop-copies", "translation"]
    assert main([*SELECT, *words, "--keep-dropped", "dropped.parquet", "--json", "counts.json"]) == 0
    out = capsys.readouterr().out
    assert f"{release / 'some'}: 6 pairs\n" in out
    table = [line.split(maxsplit=2) for line in out.split("\n")[3:6]]
    assert table == [
        ["8", "12", "outside tenths 4, 5, 6, 7, 8, 9 of para_score"],
        ["1", "11", "with para_score above 0.8"],
        ["5", "6", "with the translation of an earlier row"],
    ]
    assert ids(release / "some") == [6, 8, 10, 12, 14, 16]
    assert json.loads((release / "counts.json").read_text())["left"] == 6
    dropped = pq.read_table("dropped.parquet")
    assert dropped["id"].to_pylist() == [0, 1, 2, 3, 4, 5, 7, 9, 11, 13, 15, 17, 18, 19]
    assert dropped["number"].to_pylist()[6:8] == [6, 8] and dropped["number_is"][6].as_py() == "id of the first"
    # The options that lie beside it repeat it.
    again = ["select", "--config", "some/paranmt.yaml", "--out", "again"]
    assert main(again) == 0
    assert ids(release / "again") == ids(release / "some")
    assert main([*SELECT, *words]) == 0
    assert "6 pairs (was selected already)" in capsys.readouterr().out


def test_bounds_of_columns(release):
    pytest.importorskip("duckdb")
    assert main([*SELECT, "--min", "para_score=0.5,reference_length=3", "--max", "id=12"]) == 0
    assert ids(release / "some") == [10, 11, 12]
    assert main(["select", "--config", "some/paranmt.yaml", "--out", "other", "--min", "para_score=0.55"]) == 0
    assert ids(release / "other") == [11, 12]
