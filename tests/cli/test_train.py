"""`paranmt train`, and the commands that use what it made."""

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf.cli import main
from tests.cli.commands import SMALL, fails


def test_train_tells_the_result_and_that_it_is_there(pairs, capsys):
    command = ["train", "--data", "pairs.parquet", "--out", "deep/encoder", *SMALL]
    assert main(command) == 0
    out = capsys.readouterr().out
    # Twelve words and the unknown one.
    assert "deep/encoder: 4 dimensions, 52 parameters\n" in out
    assert re.search(r"20 pairs in \d+ s, last loss ", out)
    assert "paranmt_hf.load('deep/encoder')" in out
    assert main(command) == 0
    assert "parameters (was trained already)" in capsys.readouterr().out
    fails(capsys, [*command, "--margin", "0.5"], "was made with other settings", "margin")


def test_train_tells_which_weights_it_kept(pairs, capsys):
    """The last loss is that of the last step, and the score that of the best one."""
    command = ["train", "--data", "pairs.parquet", "--out", "out", "--development", "sample", *SMALL]
    assert main(command) == 0
    record = json.loads((pairs / "out" / "training.json").read_text())["history"]
    kept = f"step {record['best_step']} of {record['scores'][-1][0]}"
    assert f"the best of {len(record['scores'])} scores; the weights are those of {kept}\n" in capsys.readouterr().out


@pytest.mark.parametrize("model", ["trigram", "word+trigram", "word,trigram", "lstm", "blstm", "word,trigram,lstm"])
def test_train_every_encoder(pairs, capsys, model):
    assert main(["train", "--data", "pairs.parquet", "--out", "out", "--model", model, "--device", "cpu", *SMALL]) == 0
    assert "last loss" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        (["--data", "none.parquet"], ["cannot read none.parquet"]),
        (["--data", "./none"], ["no pairs './none'", "release folder"]),
        (["--data", "other.parquet"], ["no column reference, translation", "it has en, mt"]),
        (["--data", "cut.parquet"], ["cannot read cut.parquet"]),
        (["--data", "pairs.parquet", "--selection", "min_score=0.5"], ["no column para_score", "paranmt import"]),
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
        (["--batch-size", "0"], ["--batch-size must be from 1 to 1,000,000, was 0"]),
        (["--margin", "-1"], ["--margin must be above 0"]),
        (["--scrambling", "2"], ["--scrambling must be from 0 to 1, was 2.0"]),
        (["--architecture", "min_count=100"], ["the word vocabulary is empty"]),
        (["--selection", "max_pairs=0"], ["max_pairs must be at least 1"]),
        (["--data", "same.parquet"], ["nothing was learned"]),
        (["--out", "pairs.parquet"], ["pairs.parquet", "choose another place"]),
        (["--out", "pairs.parquet/encoder"], ["pairs.parquet"]),
        (["--learning-rate", "1e30"], ["--learning-rate must be above 0 and at most 1, was 1e+30"]),
        (["--learning-rate", "inf"], ["--learning-rate must be above 0 and at most 1, was inf"]),
        (["--learning-rate", "1.5"], ["--learning-rate must be above 0 and at most 1, was 1.5"]),
        (["--learning-rate", "nan"], ["--learning-rate must be a number above 0 and at most 1, was nan"]),
        (["--margin", "2.5"], ["--margin must be above 0 and at most 2, was 2.5"]),
        (["--teaching", "temperature=1e-30"], ["temperature must be from 0.001 to 10, was 1e-30"]),
        (["--optimization", "lambda_w=inf"], ["lambda_w must be from 0 to 1,000,000, was inf"]),
        (["--architecture", "init_std=1e30"], ["init_std must be above 0 and at most 10, was 1e+30"]),
        (["--mining", "error_negatives=2"], ["error_negatives must be from 0 to 1, was 2.0"]),
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
    shown = capsys.readouterr().err
    assert all(word in shown for word in ("'tpu'", "--device", "'cpu'", "'cuda'"))


def test_no_pairs_left(pairs, capsys):
    table = pa.table({"reference": ["a"], "translation": ["b"], "para_score": pa.array([0.1], pa.float32())})
    pq.write_table(table, pairs / "low.parquet")
    command = ["train", "--data", "low.parquet", "--selection", "min_score=0.5", "--out", "out", *SMALL]
    fails(capsys, command, "nothing to train on: of 1 pairs 1 are outside the chosen ranges")


def test_evaluate(encoder, folder, capsys):
    (folder / "sts.tsv").write_text("5\ta x\ta y\n0\ta x\tb y\n3\tc\tc c\n")
    assert main(["evaluate", "sts", "encoder", "--data", "sts.tsv", "--json", "r.json"]) == 0
    assert "encoder" in capsys.readouterr().out
    assert (folder / "r.json").read_text().startswith("[")
    fails(capsys, ["evaluate", "sts", "encoder", "--data", "none.tsv"], "none.tsv")
    fails(capsys, ["evaluate", "sts", "./none", "--data", "sts.tsv"], "./none")
    fails(capsys, ["evaluate", "sts", "--data", "sts.tsv"], "name a model")


def test_negatives(encoder, capsys):
    command = [
        "encoder",
        "negatives",
        "a x",
        "c y",
        "--data",
        "pairs.parquet",
        "--encoder",
        "encoder",
        "--batch-size",
        "2",
    ]
    assert main([*command, "--mega-batches", "1", "5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines[1:3]] == [["M", "=", "1"], ["M", "=", "5"]]
    assert (lines[0], lines[3]) == ("a x", "c y")
    assert len(lines) == 6
    fails(capsys, [*command, "--mega-batches", "6"], "M = 6 needs 12 pairs, the data has 10")
    fails(capsys, [*command, "--mega-batches", "0"], "at least 1")
    fails(capsys, ["encoder", "negatives", "a", "--data", "none.parquet", "--encoder", "encoder"], "none.parquet")
    fails(capsys, ["encoder", "negatives", "a", "--data", "pairs.parquet", "--encoder", "./none"], "./none")


def test_vectors(encoder, folder, capsys):
    command = ["encoder", "distill", "encoder", "--out", "v.txt"]
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
    fails(capsys, [*command, "--data", "pairs.parquet", "--dimension", "9"], "v.txt was made with other settings")
    command = [*command[:-1], "w.txt"]
    fails(capsys, [*command, "--data", "pairs.parquet", "--dimension", "9"], "cannot be reduced to 9 dimensions")
    fails(capsys, [*command, "--data", "none.parquet"], "none.parquet")
    fails(capsys, ["encoder", "distill", "./none", "--data", "pairs.parquet", "--out", "w.txt"], "./none")


def test_average(encoder, folder, capsys):
    assert main(["train", "--data", "pairs.parquet", "--out", "more", "--init-from", "encoder", "--epochs", "1"]) == 0
    assert main(["encoder", "average", "encoder", "more", "--out", "mean"]) == 0
    out = capsys.readouterr().out
    assert "mean: 4 dimensions\nload it: paranmt_hf.load('mean')\n" in out
    assert main(["encoder", "average", "encoder", "more", "--out", "mean"]) == 0
    assert "mean: 4 dimensions\n" in capsys.readouterr().out
    fails(capsys, ["encoder", "average", "more", "encoder", "--out", "mean"], "mean was made with other settings")
    fails(capsys, ["encoder", "average", "encoder", "more", "--out", "more"], "choose another place")
    fails(capsys, ["encoder", "average", "encoder", "--out", "other"], "name at least two models to average")
    fails(capsys, ["encoder", "average", "encoder", "./none", "--out", "other"], "./none")
