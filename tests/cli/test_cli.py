"""The command: help, one sentence for each kind of bad input, and no traceback."""

import gzip
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf.cli import COMMANDS, main
from tests.cli.commands import fails

IMPORT = ["--out", "out", "--license", "mit", "--engine", "workers=1"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command(command, capsys):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    assert "usage: paranmt" in capsys.readouterr().out


def test_help_is_fast_and_light():
    code = "import sys; from paranmt_hf.cli import main\ntry: main(['--help'])\nfinally: print(sorted(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    for heavy in ("'torch'", "'datasets'", "'pyarrow'", "'numpy'"):
        assert heavy not in result.stdout
    assert "quickstart" in result.stdout


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


def test_missing_licence(folder, capsys):
    (folder / "pairs.txt").write_text("a\tb\n")
    fails(capsys, ["import", "pairs.txt", "--out", "out"], "a license is needed", "cc-by-4.0")


@pytest.mark.parametrize(
    ("content", "messages"),
    [
        (b"", ["pairs.tsv", "empty"]),
        (b"a\tb\t0.5\na\tb\n", ["pairs.tsv:2"]),
        (b"a\tb\t0.5\na\tb\tbest\n", ["pairs.tsv:2", "best"]),
        (b"a\tb\tnan\n", ["pairs.tsv:1", "nan"]),
        (b"a\tb\t7\n", ["para_score of row 0", "is 7"]),
        (b"\xff\tb\t0.5\n\t\t0.5\n", ["no usable line", "1 undecodable", "1 empty"]),
    ],
)
def test_bad_tsv(folder, capsys, content, messages):
    (folder / "pairs.tsv").write_bytes(content)
    fails(capsys, ["import", "pairs.tsv", *IMPORT], *messages)
    assert not (folder / "out").exists()


def test_truncated_gzip(folder, capsys):
    content = gzip.compress(b"a\tb\t0.5\n" * 10_000)
    (folder / "pairs.tsv.gz").write_bytes(content[: len(content) // 2])
    fails(capsys, ["import", "pairs.tsv.gz", *IMPORT], "pairs.tsv.gz")


def test_truncated_parquet(folder, capsys):
    pq.write_table(pa.table({"reference": ["a"], "translation": ["b"]}), folder / "p.parquet")
    content = (folder / "p.parquet").read_bytes()
    (folder / "p.parquet").write_bytes(content[:-20])
    fails(capsys, ["import", "p.parquet", *IMPORT], "p.parquet")


def test_wrong_columns(folder, capsys):
    pq.write_table(pa.table({"en": ["a"], "mt": ["b"]}), folder / "p.parquet")
    fails(capsys, ["import", "p.parquet", *IMPORT], "'reference'", "en, mt")
    fails(capsys, ["import", "p.parquet", "--columns", "reference=en", *IMPORT], "translation is missing")
    (folder / "t.tsv").write_text("a\tb\n")
    columns = ["--columns", "reference=en,translation=2"]
    fails(capsys, ["import", "t.tsv", *columns, *IMPORT], "numbered from 1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--source", "a"], "give the text once"),
        ([], "give the text once"),
        (["--source", "a", "--reference", "b", "--data", "c"], "give the text once"),
        (["--source", "none.cs", "--reference", "none.en"], "none.cs"),
        (["--data", "none.tsv", "--columns", "source=1,reference=2"], "none.tsv"),
        (["--data", "no-such-folder-or-id", "--columns", "source=a,reference=b"], "no-such-folder-or-id"),
    ],
)
def test_bad_bitext(capsys, arguments, message, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    rest = ["--translator", "embedded", "--out", "out", "--license", "mit", "--scorer", "vectors.txt"]
    fails(capsys, ["build", *arguments, *rest], message)


def test_misaligned_files(folder, capsys):
    (folder / "a").write_text("1\n2\n")
    (folder / "b").write_text("1\n2\n3\n")
    arguments = ["--source", "a", "--reference", "b", "--translator", "embedded", "--out", "out", "--license", "mit"]
    fails(capsys, ["build", *arguments, "--scorer", "vectors.txt"], "a has 2, b has 3")
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [("a 1 0\nb 1\n", "line 2: expected a word and 2 numbers"), ("", "no word vectors"), ("a nan 1\n", "not finite")],
)
def test_bad_vectors(folder, capsys, content, message):
    (folder / "pairs.txt").write_text("a\tb\n")
    (folder / "v.txt").write_text(content)
    fails(capsys, ["import", "pairs.txt", "--scorer", "v.txt", *IMPORT], message)
    fails(capsys, ["import", "pairs.txt", "--scorer", "none.txt", *IMPORT], "no encoder 'none.txt'")


def test_bad_scorer_and_release(folder, capsys):
    (folder / "pairs.txt").write_text("a\tb\n")
    fails(capsys, ["import", "pairs.txt", "--scorer", "./none", *IMPORT], "no encoder './none'")
    (folder / "model").mkdir()
    (folder / "model" / "model.safetensors").write_bytes(b"broken")
    fails(
        capsys,
        ["import", "pairs.txt", "--scorer", "model", *IMPORT],
        "model is not a sentence encoder",
        "modules.json",
    )
    fails(capsys, ["score", "nothing", "--scorer", "vectors.txt"], "nothing is not a finished release")


def test_unwritable_output(folder, capsys):
    (folder / "pairs.txt").write_text("a\tb\n")
    (folder / "file").write_text("")
    arguments = ["import", "pairs.txt", "--scorer", "vectors.txt", "--license", "mit", "--engine", "workers=1"]
    fails(capsys, [*arguments, "--out", "file/out"], "is below the file")


def test_second_command_on_one_folder(folder, capsys):
    (folder / "pairs.txt").write_text("a\tb\n" * 10)
    code = """
import time
from pathlib import Path
from filelock import FileLock
Path("out.work").mkdir()
with FileLock("out.work/lock"):
    print(1, flush=True)
    time.sleep(60)
"""
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=folder)
    holder.stdout.readline()
    command = ["import", "pairs.txt", *IMPORT, "--scorer", "vectors.txt"]
    fails(capsys, command, "another process is working in")
    holder.kill()
    holder.wait()
    assert main(command) == 0


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


def test_unknown_column_name(folder, capsys):
    (folder / "t.tsv").write_text("a\tb\tc\n")
    columns = ["--columns", "reference=1,translation=2,orgin=3"]
    fails(
        capsys,
        ["import", "t.tsv", *columns, *IMPORT],
        "can name reference, translation, para_score, origin, not orgin",
    )


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
    code = "import sys; from paranmt_hf.cli import run; sys.argv[0] = 'paranmt'; run()"
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
