"""`paranmt evaluate transfer`, from Python and from the command line."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from paranmt_hf import StaticEncoder
from paranmt_hf.cli import main
from paranmt_hf.evaluation.evaluate import transfer
from paranmt_hf.evaluation.results import read_results
from paranmt_hf.evaluation.transfer_heads import TransferConfig
from paranmt_hf.evaluation.word_averages import WordAverage
from paranmt_hf.evaluation.word_weights import WordWeighting
from paranmt_hf.hub.repository import ASSETS, weights_checksum
from paranmt_hf.text.word_vectors import WordVectors, write_vectors
from paranmt_hf.util.files import checksum
from tests.cli.commands import fails
from tests.evaluation.toys import WORDS, write_all
from tests.refused import refused

OPTIONS = ["--tasks", "CR", "MRPC", "--folds", "3"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_all(tmp_path / "senteval", items=20)
    write_vectors(tmp_path / "v.txt", WordVectors([*WORDS, "of"], np.eye(7, dtype=np.float32)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_command_prints_and_writes_what_python_gives(folder, capsys):
    (folder / "other").mkdir()
    write_vectors(folder / "other" / "v.txt", WordVectors([*WORDS, "of"], 2 * np.eye(7, dtype=np.float32)))
    command = ["evaluate", "transfer", "small", "--vectors", "v.txt", "other/v.txt", "--data", "senteval", *OPTIONS]
    assert main([*command, "--json", "r.json"]) == 0
    out = capsys.readouterr().out
    config = TransferConfig(folds=3)
    records = transfer("small", data="senteval", vectors=["v.txt", "other/v.txt"], tasks=["CR", "MRPC"], config=config)
    assert [record.model for record in records] == ["small", "average of v.txt", "average of other/v.txt"]
    assert records[0].weights == weights_checksum(ASSETS / "small")
    assert records[1].weights == f"sha256:{checksum(folder / 'v.txt')}" != records[2].weights
    assert [record.settings["dimension"] for record in records] == [256, 7, 7]
    assert [row.name for row in records[0].tables["Task"]] == ["CR", "MRPC"]
    assert records[1].value("CR") > 0.8 and records[0].data == records[1].data
    assert out == f"{records.summary()}\nresults: r.json\n"
    assert json.loads((folder / "r.json").read_text()) == records.to_json()
    assert read_results(folder / "r.json") == records.results
    # Its record repeats it.
    assert main(["evaluate", "transfer", "--config", "r.json.json", "--json", "again.json"]) == 0
    assert (folder / "again.json").read_bytes() == (folder / "r.json").read_bytes()


@pytest.mark.slow
def test_weighted_averages_of_the_tasks_that_are_there(folder, capsys):
    for path in [*(folder / "senteval" / "SUBJ").iterdir(), *(folder / "senteval" / "SICK").iterdir()]:
        path.unlink()
    counts = [f"word{number} 60\n" for number in range(24)]
    (folder / "counts.txt").write_text("".join([*counts, "of 50\nzero 5\none 5\n"]))
    command = ["evaluate", "transfer", "--vectors", "v.txt", "--data", "senteval", "--folds", "2"]
    weighted = ["--weighting", "sif", "blacklist", "--frequencies", "counts.txt"]
    assert main([*command, *weighted, "--json", "r.json"]) == 0
    records = read_results("r.json")
    assert [record.model for record in records] == ["SIF of v.txt", "blacklist of v.txt"]
    assert "first principal component of the sentences of each data set" in records[0].text()
    assert "without the 25 most frequent words. Frequencies of words: counts.txt." in records[1].text()
    assert len(records[0].tables["Task"]) == 7 and records[0].tables["Mean"] == []
    assert "are not there: SUBJ, SICK-R, SICK-E." in records[0].text()


def test_bad_input(folder, capsys):
    base = ["evaluate", "transfer", "--data", "senteval"]
    for options, part in (
        ([], "name a model to evaluate"),
        (["nowhere"], "no model 'nowhere'"),
        (["--vectors", "no.txt"], "no encoder 'no.txt'"),
        (["--vectors", "v.txt", "--folds", "1"], "folds must be from 2 to 100, was 1"),
        (["--vectors", "v.txt", "--folds", "30"], "MR: 30 folds need at least"),
        (["--vectors", "v.txt", "--json", "no/r.json"], "no/r.json"),
        (["--vectors", "v.txt", "--weighting", "sif", "--frequencies", "no.txt"], "no.txt"),
        (["--vectors", "v.txt", "--data", "none"], "there is no folder none; expected"),
    ):
        fails(capsys, [*base, *options], part)
    (folder / "senteval" / "MR" / "rt-polarity.neg").unlink()
    fails(capsys, [*base, "--vectors", "v.txt"], "holds no MR/rt-polarity.neg, but MR/rt-polarity.pos")
    assert sorted(path.name for path in folder.iterdir()) == ["senteval", "v.txt"]


@pytest.mark.slow
def test_word_vectors_alone_need_no_sentence_transformers(folder):
    code = (
        "import sys; from paranmt_hf.evaluation.evaluate import transfer\n"
        "records = transfer([], data='senteval', vectors=['v.txt'], tasks=['SST5'])\n"
        "print(len(records), 'sentence_transformers' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "1 False\n", result.stderr


def test_finished_tasks_are_kept(folder, killed_after):
    """An evaluation that ends in the second task goes on with it, and gives what it gives without the end."""
    given = {"data": folder / "senteval", "vectors": [folder / "v.txt"], "tasks": ["CR", "MRPC"]}
    config = TransferConfig(folds=3)
    whole = transfer(**given, config=config)
    killed_after(1, transfer, kind=WordAverage, name="encode", **given, config=config, out=folder / "out")
    (kept,) = (folder / "out").glob("CR-*.json")
    before = kept.stat().st_mtime_ns
    again = transfer(**given, config=config, out=folder / "out")
    assert again.to_json() == whole.to_json() and kept.stat().st_mtime_ns == before
    # Other settings have results of their own.
    transfer(**given, config=TransferConfig(folds=4), out=folder / "out")
    assert len(list((folder / "out").glob("CR-*.json"))) == 2
    with refused("out"):
        transfer(**given, config=config, out=folder / "senteval")


def scores(models, folder, **options):
    """Figures of CR, without and with a folder of finished tasks."""
    given = {"data": folder / "senteval", "tasks": ["CR"], "config": TransferConfig(folds=2), **options}
    return [transfer(models, **given, out=out)[0].tables["Task"][0].values for out in (None, folder / "out")]


def test_other_word_weights_are_not_taken_for_finished(folder):
    for name, first, second in (("a", 1, 10**6), ("b", 10**6, 1)):
        half = len(WORDS) // 2
        counts = [(word, first if place < half else second) for place, word in enumerate(WORDS)]
        (folder / name).write_text("".join(f"{word} {count}\n" for word, count in counts))
        weighting = WordWeighting(weighting=("inverse-frequency",), frequencies=str(folder / name))
        scores([], folder, vectors=[folder / "v.txt"], averages=weighting)
    assert len(list((folder / "out").glob("CR-*.json"))) == 2


def test_a_changed_encoder_is_not_taken_for_finished(folder):
    """Its weights are the same: its settings changed, in its folder or in memory."""
    shutil.copytree(ASSETS / "small", folder / "model")
    path = folder / "model" / "config_sentence_transformers.json"
    for dimension in (None, 2):
        path.write_text(json.dumps({**json.loads(path.read_text()), "truncate_dim": dimension}))
        whole, kept = scores(folder / "model", folder)
        assert whole == kept
    encoder = StaticEncoder.from_pretrained()
    for dimension in (256, 2):
        encoder.settings["truncate_dim"] = dimension
        whole, kept = scores({"mine": encoder}, folder)
        assert whole == kept
    found = [json.loads(each.read_text())["details"]["dimension"] for each in (folder / "out").glob("CR-*.json")]
    assert sorted(found) == [2, 2, 256, 256]


def test_what_a_kill_left_among_finished_tasks(folder):
    scores([], folder, vectors=[folder / "v.txt"])
    [kept] = (folder / "out").iterdir()
    left = folder / "out" / f".{kept.name}.4194305-0a1b2c3d.tmp"
    left.write_text("{")
    whole, found = scores([], folder, vectors=[folder / "v.txt"])
    assert whole == found
    kept.unlink()
    scores([], folder, vectors=[folder / "v.txt"])
    assert list((folder / "out").iterdir()) == [kept]
