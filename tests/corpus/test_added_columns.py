"""Columns that a release gets later: what changes, what stays, what the card says, and who misses one."""

import json
import re
import shutil

import pyarrow.parquet as pq
import pytest
from datasets import load_dataset

from paranmt_hf import InputError, ReleaseConfig, import_pairs, stream
from paranmt_hf.cli import main
from paranmt_hf.corpus.release.publish import check_release
from paranmt_hf.corpus.release.release import read_tables, release_files
from paranmt_hf.corpus.release.schema import ADDED, COUNTED, describe_missing
from paranmt_hf.corpus.score import rescore
from tests.refused import refused
from tests.toys import LOCAL, bytes_of

# Another column needs a calibrated scorer: test_para_probability.py.
NAMES = [name for name in ADDED if name != "para_probability"]
ADD = {"add": NAMES, "engine": LOCAL}


def table_of(folder, config="data"):
    return pq.read_table(folder / config)


def test_all_columns_are_added_and_nothing_else_changes(release, tmp_path, monkeypatch):
    before = table_of(release)
    built = rescore(release, **ADD)
    assert built.fresh
    after = table_of(release)
    assert after.column_names == [*before.column_names, *NAMES]
    assert after.select(before.column_names).equals(before)
    assert not after["number_mismatch"].null_count
    record = check_release(release)
    assert set(record.settings["columns"]) == set(NAMES)
    assert record.settings["scorer"] == built.record.settings["scorer"] == {"name": "as imported"}
    assert set(record.statistics.mismatches) == COUNTED
    assert not list(release.parent.glob("*.work"))
    # Every config has them, and `datasets` reads them.
    assert load_dataset(str(release), "sample", split="train", cache_dir=str(tmp_path / "cache")).column_names == (
        after.column_names
    )
    row = next(iter(stream(release, columns=["repeated_words"], filters=[("number_mismatch", "==", 0)])))
    assert set(row) == {"repeated_words"}
    card = (release / "README.md").read_text()
    for name in NAMES:
        assert re.search(rf"^\| `{name}` \| (int32|float32) \| .+ \|$", card, re.M)
    assert re.search(r"^Pairs with a mismatch: `number_mismatch` \d+\.\d%, `negation_mismatch` \d", card, re.M)
    # The same again is there already.
    again = bytes_of(release)
    monkeypatch.setenv("HOME", str(release.parent))
    assert not rescore(f"~/{release.name}", **ADD).fresh
    assert bytes_of(release) == again


def test_kinds_of_differences_are_counted(tmp_path):
    pairs = [
        ("The shop is open on Monday.", "The shop is closed on Monday."),
        ("All 3 tests failed in Oslo.", "Some 4 tests failed in Oslo."),
        ("The shop is open.", "The store is open."),
    ]
    (tmp_path / "pairs.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in pairs))
    options = {"release": ReleaseConfig(license="cc0-1.0"), "add": ["meaning_mismatch"], "engine": LOCAL}
    made = import_pairs(tmp_path / "pairs.tsv", tmp_path / "corpus", made_by="people", **options)
    assert table_of(made.folder)["meaning_mismatch"].to_pylist() == [1, 2, 0]


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
def test_another_score_keeps_the_columns(release):
    rescore(release, **ADD)
    before, record = table_of(release), check_release(release)
    built = rescore(release, engine=LOCAL)
    after = table_of(release)
    assert after.drop("para_score").equals(before.drop("para_score"))
    assert not after["para_score"].equals(before["para_score"])
    assert built.record.settings["columns"] == record.settings["columns"]
    assert built.record.statistics.mismatches == record.statistics.mismatches


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
    with pytest.raises(InputError, match="the columns that can be added are number_mismatch, .*not 'reference'"):
        rescore(release, add=["reference"])
    missing = "lacks the column name_mismatch; `paranmt score CORPUS --add name_mismatch` makes it"
    assert describe_missing("corpus", ["name_mismatch"]) == f"corpus {missing}"
    with pytest.raises(InputError, match=f"parquet {re.escape(missing)}"):
        list(read_tables(release_files(release), ["id", "name_mismatch"]))
    with pytest.raises(InputError, match=re.escape(missing)):
        stream(release, filters=[("name_mismatch", ">", 0)])
    assert main(["score", str(release), "--add", "nonsense"]) != 0
    assert "nonsense" in capsys.readouterr().err
