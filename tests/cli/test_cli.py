"""The command: help, one sentence for each kind of bad input, and no traceback."""

import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf.cli import main
from tests.cli.commands import fails

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


def test_damage_in_the_middle_of_a_dataset(folder, capsys):
    (folder / "corpus").mkdir()
    path = folder / "corpus" / "train.parquet"
    texts = [f"sentence {number} {number * 7919 % 1000}" for number in range(60_000)]
    pq.write_table(pa.table({"cs": texts, "en": texts}), path, row_group_size=5000, compression="zstd")
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 20_000] = bytes(20_000)
    path.write_bytes(content)
    arguments = ["--data", "corpus", "--columns", "source=cs,reference=en", "--translator", "embedded"]
    fails(capsys, ["build", *arguments, "--out", "out", "--license", "mit"], "cannot be read beyond row")


def test_out_may_be_the_current_folder_or_a_link(folder, capsys, monkeypatch):
    (folder / "t.tsv").write_text("a\tb\t0.5\n")
    (folder / "empty").mkdir()
    (folder / "link").symlink_to(folder / "empty")
    assert main(["import", "t.tsv", "--out", "link", "--license", "mit", "--engine", "workers=1"]) == 0
    monkeypatch.chdir(folder / "empty")
    assert main(["score", ".", "--scorer", str(folder / "vectors.txt"), "--engine", "workers=1"]) == 0
    assert "empty: 1 pairs" in capsys.readouterr().out


def test_lines_that_the_translator_has_no_piece_for(folder, capsys):
    (folder / "a").write_text("Muž hraje na kytaru.\n\u200b\n\ufffd\n")
    (folder / "b").write_text("A man plays the guitar.\nx\ny\n")
    arguments = ["--source", "a", "--reference", "b", "--translator", "embedded", "--out", "out", "--license", "mit"]
    assert main(["build", *arguments, "--engine", "workers=1"]) == 0
    assert pq.read_table(folder / "out" / "data")["id"].to_pylist()[0] == 0


@pytest.mark.slow
def test_wrong_column_of_a_dataset_ends_in_order(folder):
    (folder / "corpus").mkdir()
    pq.write_table(pa.table({"translation": [{"cs": "a", "en": "b"}] * 50}), folder / "corpus" / "train.parquet")
    command = [
        sys.executable,
        "-m",
        "paranmt_hf.cli",
        "build",
        "--data",
        "corpus",
        "--out",
        "out",
        "--license",
        "mit",
    ]
    command += ["--columns", "source=cs,reference=en", "--translator", "embedded"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert "there is no column 'cs'" in result.stderr
    assert result.returncode == 1, result.stderr


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
