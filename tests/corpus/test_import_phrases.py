"""A file of PPDB becomes a release like other pairs."""

import gzip

import pyarrow.parquet as pq

from paranmt_hf.cli import main

LINE = "[JJ] ||| {} ||| {} ||| PPDB2.0Score={} ||| 0-0 ||| Equivalence\n"


def test_ppdb_becomes_a_release(tmp_path, capsys, caplog):
    (tmp_path / "vectors.txt").write_text("smart 1 0\nclever 1 0.1\nhard 0 1\n")
    lines = [LINE.format("smart", "clever", 1.5), LINE.format("the [NN,1]", "[NN,1]", 1)]
    lines.append(LINE.format("hard", "clever", "NA"))
    (tmp_path / "ppdb.gz").write_bytes(gzip.compress("".join(lines).encode()))
    words = ["import", str(tmp_path / "ppdb.gz"), "--format", "phrases", "--out", str(tmp_path / "out")]
    words += ["--scorer", str(tmp_path / "vectors.txt"), "--engine", "workers=1,threads=1"]
    words += ["--ppdb-score", "PPDB2.0Score"]
    assert main(words) == 1
    assert "a license is needed" in capsys.readouterr().err
    assert main([*words, "--license", "cc-by-4.0"]) == 0
    assert "dropped: 1 syntactic rules" in caplog.text
    table = pq.read_table(tmp_path / "out" / "data")
    assert table["reference"].to_pylist() == ["smart", "hard"] and table["id"].to_pylist() == [0, 2]
    assert table["ppdb_score"].to_pylist() == [1.5, None]
    assert "the feature PPDB2.0Score of PPDB (null where that is NA)" in (tmp_path / "out" / "README.md").read_text()
    # Cosines of (1, 0) with (1, 0.1), and of (0, 1) with (1, 0.1).
    assert [round(score, 3) for score in table["para_score"].to_pylist()] == [0.995, 0.1]
    assert main([*words, "--license", "cc-by-4.0", "--columns", "reference=1,translation=2"]) == 1
    assert "--columns is for TSV and Parquet files" in capsys.readouterr().err
    assert main(["import", str(tmp_path / "ppdb.gz"), "--out", str(tmp_path / "x"), "--license", "mit"]) == 1
    assert "has lines of PPDB and no tabs; give --format phrases" in capsys.readouterr().err
    assert (
        main(["import", str(tmp_path / "x"), "--ppdb-score", "X", "--out", str(tmp_path / "x"), "--license", "mit"])
        == 1
    )
    assert "--ppdb-score is for files of PPDB; give --format phrases" in capsys.readouterr().err
