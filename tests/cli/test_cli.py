"""The command: help, one sentence for each kind of bad input, and no traceback."""

import gzip
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf.cli import COMMANDS, main

IMPORT = ["--out", "out", "--license", "mit", "--workers", "1"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vectors.txt").write_text("a 1 0\nb 0 1\n")
    return tmp_path


def fails(capsys, arguments, *messages):
    assert main([str(argument) for argument in arguments]) == 1
    error = capsys.readouterr().err
    last = error.strip().split("\n")[-1]
    assert last.startswith("paranmt: ")
    assert "Traceback" not in error
    for message in messages:
        assert message in last
    return last


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
    assert main(["import", "pairs.tsv", "--vectors", "vectors.txt", *IMPORT]) == 0
    assert pq.read_table(folder / "out" / "data")["para_score"].to_pylist() == [pytest.approx(0.5**0.5)]
    assert main(["score", "out", "--workers", "1", "--vectors", "vectors.txt"]) == 0
    assert "was built already" in capsys.readouterr().out


def test_import_parquet_with_mapped_columns(folder):
    pq.write_table(pa.table({"en": ["a", "b"], "mt": ["a", "a"], "set": ["x", "y"]}), folder / "p.parquet")
    columns = "reference=en,translation=mt,origin=set"
    assert main(["import", "p.parquet", "--columns", columns, "--vectors", "vectors.txt", *IMPORT]) == 0
    table = pq.read_table(folder / "out" / "data")
    assert table["para_score"].to_pylist() == [1.0, 0.0]
    assert table["origin"].to_pylist() == ["x", "y"]


def test_missing_licence(folder, capsys):
    (folder / "pairs.txt").write_text("a\tb\n")
    fails(capsys, ["import", "pairs.txt", "--out", "out"], "needs a licence", "cc-by-4.0")


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
    fails(capsys, ["import", "t.tsv", *columns, *IMPORT], "numbered 1, 2")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--source", "a"], "belong together"),
        ([], "give the bitext once"),
        (["--source", "a", "--reference", "b", "--tsv", "c"], "give the bitext once"),
        (["--source", "none.cs", "--reference", "none.en"], "none.cs"),
        (["--tsv", "none.tsv", "--columns", "source=1,reference=2"], "none.tsv"),
        (["--dataset", "no-such-folder-or-id", "--columns", "source=a,reference=b"], "no-such-folder-or-id"),
    ],
)
def test_bad_bitext(capsys, arguments, message, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    rest = ["--translator", "embedded", "--out", "out", "--license", "mit", "--vectors", "vectors.txt"]
    fails(capsys, ["build", *arguments, *rest], message)


def test_misaligned_files(folder, capsys):
    (folder / "a").write_text("1\n2\n")
    (folder / "b").write_text("1\n2\n3\n")
    arguments = ["--source", "a", "--reference", "b", "--translator", "embedded", "--out", "out", "--license", "mit"]
    fails(capsys, ["build", *arguments, "--vectors", "vectors.txt"], "a has 2, b has 3")
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [("a 1 0\nb 1\n", "line 2: expected a word and 2 numbers"), ("", "no word vectors"), ("a nan 1\n", "not finite")],
)
def test_bad_vectors(folder, capsys, content, message):
    (folder / "pairs.txt").write_text("a\tb\n")
    (folder / "v.txt").write_text(content)
    fails(capsys, ["import", "pairs.txt", "--vectors", "v.txt", *IMPORT], message)
    fails(capsys, ["import", "pairs.txt", "--vectors", "none.txt", *IMPORT], "no such file")


def test_bad_scorer_and_release(folder, capsys):
    (folder / "pairs.txt").write_text("a\tb\n")
    fails(capsys, ["import", "pairs.txt", "--scorer", "x", "--vectors", "y", *IMPORT], "not both")
    fails(capsys, ["import", "pairs.txt", "--scorer", "./none", *IMPORT], "no model './none'")
    (folder / "model").mkdir()
    (folder / "model" / "model.safetensors").write_bytes(b"broken")
    fails(
        capsys, ["import", "pairs.txt", "--scorer", "model", *IMPORT], "model is no sentence encoder", "modules.json"
    )
    fails(capsys, ["score", "nothing", "--vectors", "vectors.txt"], "nothing is not a folder")


def test_unwritable_output(folder, capsys):
    (folder / "pairs.txt").write_text("a\tb\n")
    (folder / "file").write_text("")
    arguments = ["import", "pairs.txt", "--vectors", "vectors.txt", "--license", "mit", "--workers", "1"]
    fails(capsys, [*arguments, "--out", "file/out"], "paranmt: cannot use ", "file", "who may write there")


def test_second_command_on_one_folder(folder):
    (folder / "pairs.txt").write_text("a\tb\n" * 10)
    code = "from paranmt_hf.util.work import locked; import time\nwith locked(__import__('pathlib').Path('out.work')): print(1, flush=True); time.sleep(60)"  # noqa: E501
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=folder)
    holder.stdout.readline()
    command = [sys.executable, "-m", "paranmt_hf.cli", "import", "pairs.txt", *IMPORT, "--vectors", "vectors.txt"]
    second = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    holder.kill()
    holder.wait()
    assert second.returncode == 1
    assert "another command is at work in" in second.stderr
    time.sleep(0.1)
    assert subprocess.run(command, capture_output=True, cwd=folder).returncode == 0


def test_damage_in_the_middle_of_a_dataset(folder, capsys):
    (folder / "corpus").mkdir()
    path = folder / "corpus" / "train.parquet"
    texts = [f"sentence {number} {number * 7919 % 1000}" for number in range(60_000)]
    pq.write_table(pa.table({"cs": texts, "en": texts}), path, row_group_size=5000, compression="zstd")
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 20_000] = bytes(20_000)
    path.write_bytes(content)
    arguments = ["--dataset", "corpus", "--columns", "source=cs,reference=en", "--translator", "embedded"]
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
    assert main(["import", "t.tsv", "--out", "link", "--license", "mit", "--workers", "1"]) == 0
    monkeypatch.chdir(folder / "empty")
    assert main(["score", ".", "--vectors", str(folder / "vectors.txt"), "--workers", "1"]) == 0
    assert "empty: 1 pairs" in capsys.readouterr().out


def test_lines_that_the_translator_has_no_piece_for(folder, capsys):
    (folder / "a").write_text("Muž hraje na kytaru.\n\u200b\n\ufffd\n")
    (folder / "b").write_text("A man plays the guitar.\nx\ny\n")
    arguments = ["--source", "a", "--reference", "b", "--translator", "embedded", "--out", "out", "--license", "mit"]
    assert main(["build", *arguments, "--workers", "1"]) == 0
    assert pq.read_table(folder / "out" / "data")["id"].to_pylist()[0] == 0


def test_wrong_column_of_a_dataset_ends_in_order(folder):
    (folder / "corpus").mkdir()
    pq.write_table(pa.table({"translation": [{"cs": "a", "en": "b"}] * 50}), folder / "corpus" / "train.parquet")
    command = [
        sys.executable,
        "-m",
        "paranmt_hf.cli",
        "build",
        "--dataset",
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


# Encoders

SMALL = ["--dimension", "4", "--batch-size", "2", "--mega-batch", "2", "--epochs", "2"]


@pytest.fixture
def pairs(folder):
    """Ten pairs, and an encoder trained on them."""
    words = "abcdefghij"
    table = {"reference": [f"{word} x" for word in words], "translation": [f"{word} y {word}" for word in words]}
    pq.write_table(pa.table(table), folder / "pairs.parquet")
    return folder


@pytest.fixture
def encoder(pairs, capsys):
    assert main(["train", "--data", "pairs.parquet", "--out", "encoder", *SMALL]) == 0
    capsys.readouterr()
    return pairs / "encoder"


def test_train_tells_the_result_and_that_it_is_there(pairs, capsys):
    command = ["train", "--data", "pairs.parquet", "--out", "deep/encoder", *SMALL]
    assert main(command) == 0
    out = capsys.readouterr().out
    # Twelve words and the unknown one.
    assert "deep/encoder: 4 dimensions, 52 parameters\n" in out
    assert "20 pairs in 0 s, last loss " in out
    assert "paranmt_hf.load('deep/encoder')" in out
    assert main(command) == 0
    assert "parameters (was trained already)" in capsys.readouterr().out
    fails(capsys, [*command, "--margin", "0.5"], "was trained with other settings", "margin")


@pytest.mark.parametrize("model", ["trigram", "word+trigram", "word,trigram", "lstm", "blstm", "word,trigram,lstm"])
def test_train_every_encoder(pairs, capsys, model):
    assert main(["train", "--data", "pairs.parquet", "--out", "out", "--model", model, "--device", "cpu", *SMALL]) == 0
    assert "last loss" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        (["--data", "none.parquet"], ["cannot read none.parquet"]),
        (["--data", "./none"], ["no training data './none'", "release folder"]),
        (["--data", "other.parquet"], ["no column reference, translation", "it has en, mt"]),
        (["--data", "cut.parquet"], ["cannot read cut.parquet"]),
        (["--data", "pairs.parquet", "--min-score", "0.5"], ["no column para_score", "paranmt import"]),
        (["--model", "transformer"], ["one to three different ones of word, trigram, lstm, blstm", "'transformer'"]),
        (["--model", "word+trigram,lstm"], ["not both"]),
        (["--model", "word,word"], ["different ones"]),
        (["--vectors", "none.txt"], ["none.txt", "no such file"]),
        (["--vectors", "mixed.txt"], ["mixed.txt, line 2: expected a word and 2 numbers"]),
        (["--vectors", "vectors.txt"], ["the vectors have 2 dimensions, the encoder 4; set --dimension 2"]),
        (["--vectors", "vectors.txt", "--init-from", "x"], ["not both"]),
        (["--init-from", "./none"], ["./none"]),
        (["--teacher", "./none"], ["./none"]),
        (["--development", "none"], ["none"]),
        (["--development", "empty"], ["empty"]),
        (["--exclude", "none"], ["none"]),
        (["--batch-size", "0"], ["batch_size must be at least 1"]),
        (["--margin", "-1"], ["margin must be above 0"]),
        (["--scrambling", "2"], ["scrambling must be from 0 to 1, was 2.0"]),
        (["--min-count", "100"], ["the word vocabulary is empty"]),
        (["--max-pairs", "0"], ["max_pairs must be at least 1"]),
        (["--data", "same.parquet"], ["nothing was learned"]),
        (["--out", "pairs.parquet"], ["pairs.parquet exists and is no encoder"]),
        (["--out", "pairs.parquet/encoder"], ["pairs.parquet"]),
        (["--learning-rate", "1e38", "--epochs", "5"], ["the loss of step", "lower the learning rate"]),
    ],
)
def test_bad_training(pairs, capsys, arguments, messages):
    pq.write_table(pa.table({"en": ["a"], "mt": ["b"]}), pairs / "other.parquet")
    pq.write_table(pa.table({"reference": ["a b"] * 9, "translation": ["a b"] * 9}), pairs / "same.parquet")
    (pairs / "cut.parquet").write_bytes((pairs / "pairs.parquet").read_bytes()[:-20])
    (pairs / "mixed.txt").write_text("a 1 0\nb 0\n")
    (pairs / "empty").mkdir()
    given = {"--data": "pairs.parquet", "--out": "out"}
    options = SMALL + [word for name, value in given.items() if name not in arguments for word in (name, value)]
    fails(capsys, ["train", *options, *arguments], *messages)
    assert not (pairs / "out").exists()


def test_choices_are_shown(pairs, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["train", "--data", "pairs.parquet", "--out", "out", "--device", "tpu"])
    assert ended.value.code == 2
    assert "argument --device: invalid choice: 'tpu' (choose from" in capsys.readouterr().err


def test_no_pairs_left(pairs, capsys):
    table = pa.table({"reference": ["a"], "translation": ["b"], "para_score": pa.array([0.1], pa.float32())})
    pq.write_table(table, pairs / "low.parquet")
    command = ["train", "--data", "low.parquet", "--min-score", "0.5", "--out", "out", *SMALL]
    fails(capsys, command, "nothing to train on: of 1 pairs 1 are outside the chosen ranges")


def test_evaluate(encoder, folder, capsys):
    (folder / "sts.tsv").write_text("5\ta x\ta y\n0\ta x\tb y\n3\tc\tc c\n")
    assert main(["evaluate", "sts", "encoder", "--data", "sts.tsv", "--bootstrap", "0", "--json", "r.json"]) == 0
    assert "encoder" in capsys.readouterr().out
    assert (folder / "r.json").read_text().startswith("[")
    fails(capsys, ["evaluate", "sts", "encoder", "--data", "none.tsv"], "none.tsv")
    fails(capsys, ["evaluate", "sts", "./none", "--data", "sts.tsv"], "./none")
    fails(capsys, ["evaluate", "sts", "--data", "sts.tsv"], "name a model")


def test_negatives(encoder, capsys):
    command = ["negatives", "a x", "c y", "--data", "pairs.parquet", "--encoder", "encoder", "--batch-size", "2"]
    assert main([*command, "--mega-batches", "1", "5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines[1:3]] == [["M", "=", "1"], ["M", "=", "5"]]
    assert (lines[0], lines[3]) == ("a x", "c y")
    assert len(lines) == 6
    fails(capsys, [*command, "--mega-batches", "6"], "M = 6 needs 12 pairs, the data has 10")
    fails(capsys, [*command, "--mega-batches", "0"], "at least 1")
    fails(capsys, ["negatives", "a", "--data", "none.parquet", "--encoder", "encoder"], "none.parquet")
    fails(capsys, ["negatives", "a", "--data", "pairs.parquet", "--encoder", "./none"], "./none")


def test_vectors(encoder, folder, capsys):
    command = ["vectors", "distill", "encoder", "--out", "v.txt"]
    assert main([*command, "--data", "pairs.parquet", "--dimension", "2"]) == 0
    assert "v.txt: 12 words, 2 dimensions" in capsys.readouterr().out
    assert (
        main(
            ["train", "--data", "pairs.parquet", "--out", "next", "--vectors", "v.txt", *SMALL[2:], "--dimension", "2"]
        )
        == 0
    )
    (folder / "empty").write_text("")
    fails(capsys, [*command, "--vocabulary", "empty"], "the vocabulary empty is empty")
    fails(capsys, [*command, "--vocabulary", "none"], "cannot read the vocabulary none")
    fails(capsys, [*command, "--data", "pairs.parquet", "--dimension", "9"], "cannot be reduced to 9 dimensions")
    fails(capsys, [*command, "--data", "none.parquet"], "none.parquet")
    fails(capsys, ["vectors", "distill", "./none", "--data", "pairs.parquet", "--out", "w.txt"], "./none")


def test_average(encoder, folder, capsys):
    assert main(["train", "--data", "pairs.parquet", "--out", "more", "--init-from", "encoder", "--epochs", "1"]) == 0
    assert main(["average", "encoder", "more", "--out", "mean"]) == 0
    out = capsys.readouterr().out
    assert "mean: the mean of 2 models\nload it: paranmt_hf.load('mean')\n" in out
    fails(capsys, ["average", "encoder", "more", "--out", "mean"], "mean is there already")
    fails(capsys, ["average", "encoder", "--out", "other"], "name at least two models to average")
    fails(capsys, ["average", "encoder", "./none", "--out", "other"], "./none")
