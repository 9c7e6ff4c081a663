"""`paranmt stats` as a user runs it."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf.cli import main
from tests.cli.commands import fails


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


def test_a_picture(corpora, capsys):
    pytest.importorskip("matplotlib")
    assert main(["stats", "news.en", "--write", "figure.png"]) == 0
    assert (corpora / "figure.png").stat().st_size > 5000


def test_bad_input(corpora, capsys):
    before = sorted(path.name for path in corpora.iterdir())
    fails(capsys, ["stats", "none"], "none: there is no such file")
    fails(capsys, ["stats", "pairs.parquet"], "no column reference; it has english, score", "--columns reference=NAME")
    fails(capsys, ["stats", "news.en", "--json", "no/stats.json"], "no/stats.json")
    fails(capsys, ["stats", "news.en", "--write", "."], "is a folder")
    fails(capsys, ["stats", "news.en", "--write", "a.doc"], "a.doc")
    fails(capsys, ["stats", "news.en", "--write-samples", "news.en"], "news.en is a file; name a folder")
    fails(capsys, ["stats", "news.en", "--sample", "0"], "sample must be from 1 to 2,000,000, was 0")
    (corpora / "trees").write_text("(S a)\n(S (NP b)\n")
    fails(
        capsys,
        ["stats", "news.en", "--parser", "trees", "--json", "s.json"],
        "trees:2: expected a tree, but 1 closing",
    )
    (corpora / "trees").unlink()
    assert sorted(path.name for path in corpora.iterdir()) == before
