"""`paranmt train`, and the commands that use what it made."""

import json
import re

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


@pytest.mark.parametrize("model", ["word+trigram", "lstm"])
def test_train_every_encoder(pairs, capsys, model):
    assert main(["train", "--data", "pairs.parquet", "--out", "out", "--model", model, "--device", "cpu", *SMALL]) == 0
    assert "last loss" in capsys.readouterr().out


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


def test_vectors(encoder, folder, capsys):
    command = ["encoder", "distill", "encoder", "--out", "v.txt"]
    assert main([*command, "--data", "pairs.parquet", "--reduction", "dimension=2"]) == 0
    assert "v.txt: 12 words, 2 dimensions" in capsys.readouterr().out
    assert (
        main(
            ["train", "--data", "pairs.parquet", "--out", "next", "--vectors", "v.txt", *SMALL[2:], "--dimension", "2"]
        )
        == 0
    )
    (folder / "empty").write_text("")
    fails(capsys, [*command, "--vocabulary", "empty"], "the vocabulary empty is empty")
    fails(
        capsys,
        [*command, "--data", "pairs.parquet", "--reduction", "dimension=9"],
        "v.txt was made with other settings",
    )
    command = [*command[:-1], "w.txt"]
    fails(
        capsys,
        [*command, "--data", "pairs.parquet", "--reduction", "dimension=9"],
        "cannot be reduced to 9 dimensions",
    )


def test_average(encoder, folder, capsys):
    assert main(["train", "--data", "pairs.parquet", "--out", "more", "--init-from", "encoder", "--epochs", "1"]) == 0
    assert main(["encoder", "average", "encoder", "more", "--out", "mean"]) == 0
    out = capsys.readouterr().out
    assert "mean: 4 dimensions\nload it: paranmt_hf.load('mean')\n" in out
    assert main(["encoder", "average", "encoder", "more", "--out", "mean"]) == 0
    assert "mean: 4 dimensions\n" in capsys.readouterr().out
    fails(capsys, ["encoder", "average", "more", "encoder", "--out", "mean"], "mean was made with other settings")
    fails(capsys, ["encoder", "average", "encoder", "more", "--out", "more"], "choose another path")
    fails(capsys, ["encoder", "average", "encoder", "--out", "other"], "name at least two models to average")
