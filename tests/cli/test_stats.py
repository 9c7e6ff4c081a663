"""`paranmt stats` as a user runs it."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf.cli import main


@pytest.fixture
def corpora(folder):
    (folder / "news.en").write_text("A dog barks .\nA cat sleeps .\n")
    table = {"english": ["one two", "three"], "score": [0.25, 0.75]}
    pq.write_table(pa.table(table), folder / "pairs.parquet")
    return folder


def test_a_table_json_and_options(corpora, capsys):
    command = ["stats", "news.en", "pairs.parquet", "--columns", "reference=english,para_score=score"]
    assert main([*command, "--sample", "50", "--json", "stats.json"]) == 0
    lines = capsys.readouterr().out.split("\n")
    header = "Corpus         Size  Measured     Length        IDF  Para. score  Vocab. entropy  Parse entropy"
    assert lines[0] == header
    assert (
        lines[1] == "news.en           2         2  4.0 ± 0.0  0.3 ± 0.0         none             1.7      no parser"
    )
    assert lines[2].split()[:6] == ["pairs.parquet", "2", "2", "1.5", "±", "0.5"] and "0.50 ± 0.25" in lines[2]
    assert lines[-2] == "results: stats.json"
    found = json.loads((corpora / "stats.json").read_text())
    assert (found["seed"], found["sample"], len(found["corpora"])) == (0, 50, 2)
    assert found["corpora"][1]["para_score"]["mean"] == 0.5
    assert main(["stats", "--config", "stats.json.paranmt.yaml", "--json", "again.json"]) == 0
    assert json.loads((corpora / "again.json").read_text()) == found
    capsys.readouterr()
    assert main(["stats", "news.en", "--write", "table.md"]) == 0
    assert (corpora / "table.md").read_text().startswith("| Corpus ")
    assert main(["stats", "news.en", "--write", "figure.png"]) == 0
    assert (corpora / "figure.png").is_file()
