"""Options from a file: `--config`, and the record of a result."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from paranmt_hf import InputError, publish
from paranmt_hf.cli import find_command, main, run_command
from paranmt_hf.errors import OtherSettingsError
from paranmt_hf.training.record import TrainingRecord
from tests.cli.commands import SMALL, fails, kept_options, recorded_options, write_pairs
from tests.refused import refused


def write(folder, text, name="options.yaml"):
    (folder / name).write_text(text)
    return name


def test_a_result_can_be_repeated_from_its_file(pairs, capsys):
    words = "train --data pairs.parquet --out one --optimization decay=true --learning-rate 1e-3"
    command = [*words.split(), *SMALL]
    assert main(command) == 0
    options = recorded_options("one/training.json")
    assert options["data"] == ["pairs.parquet"] and options["batch-size"] == 2 and options["decay"] is True
    assert options["margin"] == 0.4, "defaults too, which may change"
    assert not {"out", "config", "debug", "vectors", "teacher-cache"} & options.keys()
    assert main(["train", "--config", "one/training.json", "--out", "two"]) == 0
    assert recorded_options("two/training.json") == options
    (one,) = (pairs / "one").rglob("model.safetensors")
    assert one.read_bytes() == (pairs / "two" / one.relative_to(pairs / "one")).read_bytes()
    # The same command again finds it there and leaves the record as it is.
    before = (pairs / "one" / "training.json").stat().st_mtime_ns
    assert main(command) == 0
    assert "was trained already" in capsys.readouterr().out
    assert (pairs / "one" / "training.json").stat().st_mtime_ns == before


def test_the_command_line_counts_more(pairs):
    write(
        pairs,
        "data: pairs.parquet\nout: from-file\ndimension: 4\nbatch_size: 2\nmega-batch: 2\nepochs: 1\ndecay: true",
    )
    assert (
        main(["train", "--config", "options.yaml", "--out", "mine", "--epochs", "2", "--optimization", "decay=false"])
        == 0
    )
    options = recorded_options("mine/training.json")
    assert (options["epochs"], options["decay"], options["dimension"]) == (2, False, 4)
    assert not (pairs / "from-file").exists()
    assert main(["train", "--config=options.yaml"]) == 0
    assert (pairs / "from-file").is_dir()


def test_positions_and_columns(folder):
    (folder / "pairs.tsv").write_text("a b\tb a\t0.5\n")
    write(
        folder,
        "data: pairs.tsv\nout: corpus\nlicense: mit\nworkers: 1\ncolumns: reference=2,translation=1,para_score=3\n",
    )
    assert main(["import", "--config", "options.yaml"]) == 0
    assert pq.read_table(folder / "corpus" / "data")["reference"].to_pylist() == ["b a"]
    options = recorded_options("corpus/build.json")
    assert options["columns"] == "reference=2,translation=1,para_score=3"
    assert options["data"] == ["pairs.tsv"] and "workers" not in options
    # Scored again, it still says how it was made, and how it was scored.
    assert main(["score", "corpus", "--scorer", "vectors.txt", "--engine", "workers=1"]) == 0
    assert json.loads((folder / "corpus" / "build.json").read_text())["options"] == {
        "import": options,
        "score": {"corpus": "corpus", "scorer": "vectors.txt"},
    }
    assert main(["import", "--config", "corpus/build.json", "--out", "again", "--engine", "workers=1"]) == 0


def test_options_of_an_encoder_are_not_published(encoder, capsys):
    assert recorded_options(encoder / "training.json")["data"] == ["pairs.parquet"]
    planned = publish(encoder, "you/encoder", license="mit", dry_run=True)
    sent = json.loads(planned.repository.files["training.json"])
    assert "options" not in sent and sent["settings"] == TrainingRecord.read(encoder).to_json()["settings"]


def test_beside_a_file(encoder, folder):
    (folder / "sts.tsv").write_text("5\ta\ta\n3\ta\tb\n0\ta\tc d\n")
    options = ["--data", "sts.tsv", "--json", "r.json"]
    assert main(["evaluate", "sts", "encoder", *options]) == 0
    kept = recorded_options("r.json.json")
    assert kept == {"models": ["encoder"], "data": ["sts.tsv"], "speed": False} | AVERAGE
    assert main(["evaluate", "sts", "--config", "r.json.json"]) == 0


@pytest.mark.parametrize("options", [3, ["train"], {"train": 3}, {"train": {"epochs": {"a": [1]}}}])
def test_a_damaged_record(folder, options):
    values = {"settings": {}, "versions": {}, "machine": "x86_64", "paranmt_hf": "0.1.0", "options": options}
    (folder / "training.json").write_text(json.dumps(values))
    with pytest.raises(InputError) as caught:
        run_command(*find_command(["train", "--config", "training.json", "--out", "out"]))
    assert "training.json" in str(caught.value)


def test_a_record_of_another_command(encoder, folder):
    for words in (["distill", "--config", "encoder/training.json"], ["train", "--config", "made/training.json"]):
        if words[0] == "train":
            # As Python makes it.
            shutil.copytree("encoder", "made")
            values = json.loads((folder / "made" / "training.json").read_text())
            (folder / "made" / "training.json").write_text(json.dumps({**values, "options": {}}))
        with pytest.raises(InputError) as caught:
            run_command(*find_command([*words, "--out", "out"]))
        assert (caught.value.option, caught.value.path) == ("config", Path(words[2]))
        assert f"`paranmt {words[0]}`" in str(caught.value)


# What averages of word vectors have when there are none.
AVERAGE = {"weighting": ["average"], "frequencies": "rank"}


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("epoch: 3", None),
        ("epochs: many", "epochs"),
        ("epochs: 1:30", "epochs"),
        ("decay: 1", "decay"),
        ("margin: [0.4]", "margin"),
        (f"margin: {'9' * 400}", "margin"),
        ("epochs: 1\nepochs: 2", None),
        ("- a\n- b", None),
        ("!!python/object/apply:os.system ['echo']", None),
        ("config: other.yaml", None),
        ("caf\xe9", None),
    ],
)
def test_bad_files(pairs, text, option):
    (pairs / "seed.yaml").write_text(text, encoding="latin1")
    with refused(option):
        main(["train", "--data", "pairs.parquet", "--out", "out", "--config", "seed.yaml", "--debug"])
    assert not (pairs / "out").exists() and not (pairs / "out.work").exists()


def test_a_file_named_like_an_option(pairs, capsys):
    (pairs / "seed.yaml").write_text("seed: many")
    assert "paranmt: seed.yaml: seed" in fails(capsys, ["train", "--out", "out", "--config", "seed.yaml"])
    fails(capsys, ["train", "--config", "none.yaml"])


def test_numbers_are_read_as_they_are_written(folder):
    write(folder, "epochs: 010\nmodel: '010'\nvectors: 010\nlearning_rate: 1e-2\nclip: none\nteacher: null")
    options = kept_options(["train", "--config", "options.yaml", "--out", "o"])
    assert (options["epochs"], options["model"], options["vectors"], options["learning-rate"]) == (
        10,
        "010",
        "010",
        0.01,
    )
    assert "clip" not in options and "teacher" not in options


def test_threads_are_kept_where_they_decide_the_result():
    words = ["train-sent2vec", "text.txt", "--out", "model", "--threads", "2"]
    assert kept_options(words)["threads"] == 2
    words = ["build", "--source", "a", "--reference", "b", "--translator", "c", "--out", "d", "--engine", "threads=2"]
    assert "threads" not in kept_options(words)


def test_settings_that_differ_from_those_of_a_result_are_named(encoder):
    words = ["train", "--data", "pairs.parquet", "--out", "encoder", *SMALL, "--batch-size", "3", "--mining"]
    with pytest.raises(OtherSettingsError) as caught:
        run_command(*find_command([*words, "one_sided=true"]))
    assert (caught.value.option, caught.value.path) == ("out", encoder)
    text = str(caught.value)
    assert "batch_size: was 2, now 3" in text and "one_sided: was false, now true" in text and "epochs" not in text
    write_pairs(encoder.parent / "pairs.parquet", "klmnop")
    with pytest.raises(OtherSettingsError) as caught:
        run_command(*find_command(words[:-3]))
    assert "sha256" in str(caught.value)
