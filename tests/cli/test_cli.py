"""Commands as a person uses them: what they print, what they write, and one sentence for bad input."""

import json
import os
import re
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf.cli import main
from tests.cli.commands import SMALL, fails

IMPORT = ["--out", "out", "--license", "mit", "--engine", "workers=1"]


def test_import_tsv_with_its_own_score(folder, capsys):
    (folder / "pairs.txt").write_text('he said "a\thow "he said a\t0.5\nx \\n y\tx\r y\t-0.25\n')
    assert main(["import", "pairs.txt", *IMPORT]) == 0
    out = capsys.readouterr().out
    assert "out: 2 pairs" in out
    assert "load_dataset('out')" in out
    rows = pq.read_table(folder / "out" / "data").to_pylist()
    assert [row["para_score"] for row in rows] == [0.5, -0.25]
    assert rows[0]["reference"] == 'he said "a'
    assert (rows[1]["reference"], rows[1]["translation"]) == ("x \\n y", "x y")


@pytest.mark.slow
def test_import_with_vectors_scores_anew(folder, capsys):
    (folder / "pairs.tsv").write_text("a b\ta\t0.9\n")
    assert main(["import", "pairs.tsv", "--scorer", "vectors.txt", *IMPORT]) == 0
    assert pq.read_table(folder / "out" / "data")["para_score"].to_pylist() == [pytest.approx(0.5**0.5)]
    assert main(["score", "out", "--engine", "workers=1", "--scorer", "vectors.txt"]) == 0
    assert "was built already" in capsys.readouterr().out


def test_import_parquet_with_mapped_columns(folder):
    pq.write_table(pa.table({"en": ["a", "b"], "mt": ["a", "a"], "set": ["x", "y"]}), folder / "p.parquet")
    columns = "reference=en,translation=mt,origin=set"
    assert main(["import", "p.parquet", "--columns", columns, "--scorer", "vectors.txt", *IMPORT]) == 0
    table = pq.read_table(folder / "out" / "data")
    assert table["para_score"].to_pylist() == [1.0, 0.0]
    assert table["origin"].to_pylist() == ["x", "y"]


@pytest.mark.slow
def test_damage_in_the_middle_of_a_dataset(folder, capsys):
    (folder / "corpus").mkdir()
    path = folder / "corpus" / "train.parquet"
    texts = [f"sentence {number} {number * 7919 % 1000}" for number in range(60_000)]
    pq.write_table(pa.table({"cs": texts, "en": texts}), path, row_group_size=5000, compression="zstd")
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 20_000] = bytes(20_000)
    path.write_bytes(content)
    arguments = ["--data", "corpus", "--columns", "source=cs,reference=en", "--translator", "captions-cs-en"]
    fails(capsys, ["build", *arguments, "--out", "out", "--license", "cc-by-nc-sa-4.0"], "cannot be read beyond row")


def test_out_may_be_the_current_folder_or_a_link(folder, capsys, monkeypatch):
    (folder / "t.tsv").write_text("a\tb\t0.5\n")
    (folder / "empty").mkdir()
    (folder / "link").symlink_to(folder / "empty")
    assert main(["import", "t.tsv", "--out", "link", "--license", "mit", "--engine", "workers=1"]) == 0
    monkeypatch.chdir(folder / "empty")
    assert main(["score", ".", "--scorer", str(folder / "vectors.txt"), "--engine", "workers=1"]) == 0
    assert "empty: 1 pair\n" in capsys.readouterr().out


@pytest.mark.slow
def test_lines_that_the_translator_has_no_piece_for(folder, capsys):
    (folder / "a").write_text("Muž hraje na kytaru.\n\u200b\n\ufffd\n")
    (folder / "b").write_text("A man plays the guitar.\nx\ny\n")
    arguments = ["--source", "a", "--reference", "b", "--translator", "captions-cs-en", "--out", "out"]
    for license in ("mit", "cc-by-4.0"):
        fails(capsys, ["build", *arguments, "--license", license], "--license must be cc-by-nc-sa-4.0, was")
    assert main(["build", *arguments, "--license", "cc-by-nc-sa-4.0", "--engine", "workers=1"]) == 0
    fails(capsys, ["publish", "out", "you/out", "--license", "mit", "--dry-run"], "--license must be cc-by-nc-sa-4.0")
    assert pq.read_table(folder / "out" / "data")["id"].to_pylist()[0] == 0


@pytest.mark.slow
def test_wrong_column_of_a_dataset_ends_in_order(folder):
    (folder / "corpus").mkdir()
    pq.write_table(pa.table({"translation": [{"cs": "a", "en": "b"}] * 50}), folder / "corpus" / "train.parquet")
    command = [sys.executable, "-m", "paranmt_hf.cli", "build", "--data", "corpus", "--out", "out"]
    command += ["--columns", "source=cs,reference=en", "--translator", "captions-cs-en"]
    command += ["--license", "cc-by-nc-sa-4.0"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert "there is no column 'cs'" in result.stderr
    assert result.returncode == 1, result.stderr


@pytest.mark.slow
def test_a_reader_that_has_seen_enough(tmp_path):
    """As with `| head -1`: nothing is said about a pipe, and no traceback."""
    (tmp_path / "text.txt").write_text("a b\n" * 3)
    code = "import sys; from paranmt_hf.cli import console_main; sys.argv[0] = 'paranmt'; console_main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "stats", str(tmp_path / "text.txt")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    process.stdout.close()
    said = process.stderr.read()
    assert process.wait(60) == 1
    assert "Broken" not in said and "Traceback" not in said
    process.stderr.close()


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


@pytest.mark.slow
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
    # The options in its record repeat it.
    again = ["select", "--config", "some/build.json", "--out", "again"]
    assert main(again) == 0
    assert ids(release / "again") == ids(release / "some")
    assert main([*SELECT, *words]) == 0
    assert "6 pairs (was selected already)" in capsys.readouterr().out


def test_bounds_of_columns(release):
    pytest.importorskip("duckdb")
    assert main([*SELECT, "--min", "para_score=0.5,reference_length=3", "--max", "id=12"]) == 0
    assert ids(release / "some") == [10, 11, 12]
    assert main(["select", "--config", "some/build.json", "--out", "other", "--min", "para_score=0.55"]) == 0
    assert ids(release / "other") == [11, 12]


@pytest.fixture
def corpora(folder):
    (folder / "news.en").write_text("A dog barks .\nA cat sleeps .\n")
    table = {"english": ["one two", "three"], "score": [0.25, 0.75]}
    pq.write_table(pa.table(table), folder / "pairs.parquet")
    return folder


@pytest.mark.slow
def test_a_table_json_and_options(corpora, capsys, drawing):
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
    assert main(["stats", "--config", "stats.json.json", "--json", "again.json"]) == 0
    assert json.loads((corpora / "again.json").read_text()) == found
    capsys.readouterr()
    assert main(["stats", "news.en", "--write", "table.md"]) == 0
    assert (corpora / "table.md").read_text().startswith("| Corpus ")
    assert main(["stats", "news.en", "--write", "figure.png"]) == 0
    assert (corpora / "figure.png").is_file()


@pytest.mark.slow
def test_train_tells_the_result_and_that_it_is_there(pairs, capsys):
    command = ["train", "--data", "pairs.parquet", "--out", "deep/encoder", "--development", "sample", *SMALL]
    assert main(command) == 0
    out = capsys.readouterr().out
    # The last loss is that of the last step, and the score that of the best one.
    record = json.loads((pairs / "deep" / "encoder" / "training.json").read_text())["history"]
    kept = f"step {record['best_step']} of {record['scores'][-1][0]}"
    assert f"the best of {len(record['scores'])} scores; the weights are those of {kept}\n" in out
    # Twelve words and the unknown one.
    assert "deep/encoder: 4 dimensions, 52 parameters\n" in out
    assert re.search(r"20 pairs in \d+ s, last loss ", out)
    assert "paranmt_hf.load('deep/encoder')" in out
    assert main(command) == 0
    assert "parameters (was trained already)" in capsys.readouterr().out
    fails(capsys, [*command, "--margin", "0.5"], "was made with other", "margin")


def test_vectors(encoder, folder, capsys):
    command = ["encoder", "vectors", "encoder", "--out", "v.txt"]
    assert main([*command, "--data", "pairs.parquet", "--reduction", "dimension=2"]) == 0
    assert "v.txt: 12 words, 2 dimensions" in capsys.readouterr().out
    words = ["train", "--data", "pairs.parquet", "--vectors", "v.txt", *SMALL[2:], "--dimension", "2"]
    assert main([*words, "--out", "next"]) == 0
    (folder / "empty").write_text("")
    fails(capsys, [*command, "--vocabulary", "empty"], "the vocabulary empty is empty")
    large = ["--data", "pairs.parquet", "--reduction", "dimension=9"]
    fails(capsys, [*command, *large], "v.txt was made with other")
    fails(capsys, [*command[:-1], "w.txt", *large], "cannot be reduced to 9 dimensions")


def test_average(encoder, folder, capsys):
    assert main(["train", "--data", "pairs.parquet", "--out", "more", "--init-from", "encoder", "--epochs", "1"]) == 0
    assert main(["encoder", "average", "encoder", "more", "--out", "mean"]) == 0
    out = capsys.readouterr().out
    assert "mean: 4 dimensions" in out
    assert main(["encoder", "average", "encoder", "more", "--out", "mean"]) == 0
    assert "mean: 4 dimensions" in capsys.readouterr().out
    fails(capsys, ["encoder", "average", "more", "encoder", "--out", "mean"], "mean was made with other")
    fails(capsys, ["encoder", "average", "encoder", "more", "--out", "more"], "choose another path")
    fails(capsys, ["encoder", "average", "encoder", "--out", "other"], "name at least two models to average")
