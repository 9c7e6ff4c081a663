"""Columns that a release gets later: what changes, what stays, what the card says, and who misses one."""

import json
import re
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from datasets import load_dataset

from paranmt_hf.cli import main
from paranmt_hf.corpus import score
from paranmt_hf.corpus.jobs.stages import ColumnStage
from paranmt_hf.corpus.release.publish import check_release
from paranmt_hf.corpus.release.release import read_tables, release_files
from paranmt_hf.corpus.release.schema import ADDED, describe_missing
from paranmt_hf.corpus.release.stream import stream
from paranmt_hf.corpus.score import rescore
from paranmt_hf.corpus.scoring.authorship import Authorship, AuthorshipConfig
from tests.refused import refused
from tests.toys import LOCAL, bytes_of

SMALL = AuthorshipConfig(folds=2, bits=10, epochs=1)
# Another column needs a calibrated scorer: test_para_probability.py.
NAMES = [name for name in ADDED if name != "para_probability"]
ADD = {"add": NAMES, "engine": LOCAL}


@pytest.fixture(autouse=True)
def small_classifier(monkeypatch):
    monkeypatch.setattr(score, "AuthorshipConfig", lambda: SMALL)


def table_of(folder, config="data"):
    return pq.read_table(folder / config)


def test_all_columns_are_added_and_nothing_else_changes(release, tmp_path, monkeypatch):
    before = table_of(release)
    built = rescore(release, **ADD)
    assert built.fresh
    after = table_of(release)
    assert after.column_names == [*before.column_names, *NAMES]
    assert after.select(before.column_names).equals(before)
    assert not after["number_mismatch"].null_count and not after["human_score"].null_count
    record = check_release(release)
    assert set(record.settings["columns"]) == set(NAMES)
    assert record.settings["scorer"] == built.record.settings["scorer"] == {"name": "as imported"}
    assert record.held_out is not None and record.held_out.pairs == 60
    assert set(record.statistics.mismatches) == set(ADDED[:6])
    assert not list(release.parent.glob("*.work"))
    # Every config has them, and `datasets` reads them.
    assert load_dataset(str(release), "sample", split="train", cache_dir=str(tmp_path / "cache")).column_names == (
        after.column_names
    )
    assert set(next(iter(stream(release, columns=["human_score"], filters=[("number_mismatch", "==", 0)])))) == {
        "human_score"
    }
    card = (release / "README.md").read_text()
    for name in NAMES:
        assert re.search(rf"^\| `{name}` \| (int32|float32) \| .+ \|$", card, re.M)
    assert re.search(r"^Pairs with a mismatch: `number_mismatch` \d+\.\d%, `negation_mismatch` \d", card, re.M)
    assert f"the reference the higher score in {record.held_out.ordered:.1%} of 60 held-out pairs" in card
    # The same again is there already.
    again = bytes_of(release)
    monkeypatch.setenv("HOME", str(release.parent))
    assert not rescore(f"~/{release.name}", **ADD).fresh
    assert bytes_of(release) == again


@pytest.mark.slow
def test_one_after_the_other_is_all_at_once(release, made, tmp_path):
    other = shutil.copytree(made, tmp_path / "other" / release.name)
    rescore(release, **ADD)
    for name in reversed(NAMES):
        rescore(other, add=[name], engine=LOCAL)
    assert table_of(other).equals(table_of(release))
    assert bytes_of(other)["README.md"] == bytes_of(release)["README.md"]


def test_settings_of_the_release_are_checked(release):
    path, values = release / "build.json", json.loads((release / "build.json").read_text())
    values["settings"]["release"]["keep_source"] = "x"
    path.write_text(json.dumps(values))
    with refused(path=path):
        rescore(release, add=["number_mismatch"], engine=LOCAL)
    # What a later version might write beside.
    values["settings"]["release"].update(keep_source=False, later=1)
    path.write_text(json.dumps(values))
    assert rescore(release, add=["number_mismatch"], engine=LOCAL).fresh


@pytest.mark.slow
def test_another_score_keeps_the_columns(release, monkeypatch):
    rescore(release, **ADD)
    before, record = table_of(release), check_release(release)
    built = rescore(release, engine=LOCAL)
    after = table_of(release)
    assert after.drop("para_score").equals(before.drop("para_score"))
    assert not after["para_score"].equals(before["para_score"])
    assert built.record.held_out == record.held_out
    assert built.record.settings["columns"] == record.settings["columns"]
    assert built.record.statistics.mismatches == record.statistics.mismatches
    # Another classifier gives other scores, and only these.
    monkeypatch.setattr(score, "AuthorshipConfig", lambda: AuthorshipConfig(folds=3, bits=10))
    rescore(release, add=["human_score"], engine=LOCAL)
    last = table_of(release)
    assert last.drop("human_score").equals(after.drop("human_score"))
    assert not last["human_score"].equals(after["human_score"])


@pytest.mark.slow
def test_interrupted_learning_and_adding(release, made, tmp_path, monkeypatch):
    from paranmt_hf.corpus.jobs import job

    other = shutil.copytree(made, tmp_path / "other" / release.name)
    rescore(other, **ADD)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(job, "run_shard", killed)
        with pytest.raises(KeyboardInterrupt):
            rescore(release, **ADD)
    assert list(release.with_name(f"{release.name}.work").glob("*human-score.safetensors"))
    monkeypatch.setattr("paranmt_hf.corpus.jobs.stages.learn", killed)  # it has learned already
    rescore(release, **ADD)
    assert bytes_of(release) == bytes_of(other)


def test_a_classifier_that_learned_otherwise_is_not_taken(release, tmp_path):
    files = release_files(release)
    rows = sum(pq.read_metadata(file).num_rows for file in files)
    shards = SimpleNamespace(checksum="0" * 64, rows=rows, paths=lambda: files)
    for config in (SMALL, replace(SMALL, epochs=2)):
        stage = ColumnStage(("human_score",), config).ready(shards, tmp_path)
        assert Authorship.load(stage.weights).config == config


def test_import_and_build_add_columns(release, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.tsv").write_text("I see 3 dogs\tI see 4 dogs\t0.5\nI do not go\tI go\t0.25\n")
    options = ["--license", "mit", "--engine", "workers=1", "--add", "negation_mismatch", "number_mismatch"]
    assert main(["import", "pairs.tsv", "--out", "out", *options]) == 0
    table = table_of(tmp_path / "out")
    assert table["number_mismatch"].to_pylist() == [2, 0]
    assert table["negation_mismatch"].to_pylist() == [0, 1]
    # Columns that it has besides, as after `score --add`, do not make it another release.
    capsys.readouterr()
    assert main(["import", "pairs.tsv", "--out", "out", *options[:-1]]) == 0
    assert "was built already" in capsys.readouterr().out
    assert main(["import", "pairs.tsv", "--out", "out", *options, "name_mismatch"]) == 1
    assert "was made with other" in capsys.readouterr().err


def test_bad_input(release, capsys):
    with refused():
        rescore(release, add=["reference"])
    with refused("folds"):
        AuthorshipConfig(folds=1)
    missing = "lacks the column human_score; `paranmt score CORPUS --add human_score` makes it"
    assert describe_missing("corpus", ["human_score"]) == f"corpus {missing}"
    with refused():
        list(read_tables(release_files(release), ["id", "human_score"]))
    with refused():
        stream(release, filters=[("human_score", ">", 0.5)])
    assert main(["score", str(release), "--add", "nonsense"]) != 0
    assert "nonsense" in capsys.readouterr().err
