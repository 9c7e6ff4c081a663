"""What is wrong with an input is said in one sentence: which input, what was expected, what to do; nothing hangs."""

import json
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf.cli import main
from paranmt_hf.hub.repository import ASSETS
from tests.cli.commands import SMALL, fails

IMPORT = ["--out", "out", "--license", "mit", "--engine", "workers=1"]
BUILD = ["--translator", "embedded", "--out", "out", "--license", "mit"]
# Two bytes that no text in UTF-8 holds.
BROKEN = b"a \xff\xfe b"


@pytest.fixture(autouse=True)
def in_time():
    """End a command that waits for ever."""

    def stop(*_):
        raise TimeoutError("the command hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def release(folder, capsys):
    (folder / "pairs.txt").write_text("a b\ta c\t0.5\nb c\tb d\t0.25\n")
    assert main(["import", "pairs.txt", "--out", "release", "--license", "mit", "--engine", "workers=1"]) == 0
    capsys.readouterr()
    return folder / "release"


def broken_text(rows):
    """A column of strings as a careless writer makes it: Arrow does not look whether it is UTF-8."""
    return pa.Array.from_buffers(pa.string(), len(rows), pa.array(rows, pa.binary()).buffers())


@pytest.mark.parametrize("command", ["import", "build", "train", "average", "export"])
def test_places_where_no_result_can_be(pairs, capsys, command):
    (pairs / "file").write_text("mine")
    (pairs / "pairs.txt").write_text("a\tb\n")
    before = sorted(path.name for path in pairs.iterdir())
    inputs = {
        "import": ["import", "pairs.txt", "--license", "mit"],
        "build": ["build", "--source", "pairs.txt", "--reference", "pairs.txt", *BUILD[:2], "--license", "mit"],
        "train": ["train", "--data", "pairs.parquet"],
        "average": ["encoder", "average", "embedded", "embedded"],
        "export": ["encoder", "export", "embedded", "--format", "onnx"],
    }[command]
    fails(capsys, [*inputs, "--out", "/"], "/ is the root of the file system; choose another place")
    fails(capsys, [*inputs, "--out", "."], ". is the current folder of this process")
    fails(capsys, [*inputs, "--out", "file/x/y"], f"file/x/y is below the file {pairs / 'file'}; choose another place")
    assert sorted(path.name for path in pairs.iterdir()) == before


def test_scoring_the_root(capsys):
    fails(capsys, ["score", "/"], "/ is the root of the file system")


def test_devices(pairs, capsys):
    (pairs / "pairs.txt").write_text("a\tb\n")
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        training = ["train", "--data", "pairs.parquet", "--out", "m", "--device", "cuda", *SMALL]
        fails(capsys, training, "--device cuda: there is no GPU that torch can use")
        assert not list(pairs.glob("m*"))
    build = ["build", "--source", "pairs.txt", "--reference", "pairs.txt", "--translator", "model.yaml", *BUILD[2:]]
    for device, message in (("cuda", "torch sees 0 GPUs"), ("foo", "must be cpu, cuda or cuda:N, was 'foo'")):
        Path("model.yaml").write_text(f"name: embedded\ndevice: {device}\n")
        if device == "foo" or not torch.cuda.is_available():
            fails(capsys, build, message)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (f"workers={10**6}", "must be from 0 to 10,000, was 1000000"),
        (f"shard_rows={10**12}", "must be from 0 to 10,000,000"),
    ],
)
def test_absurd_sizes_of_a_build(folder, capsys, value, message):
    for name in ("a", "b"):
        (folder / name).write_text("x\n")
    fails(capsys, ["build", "--source", "a", "--reference", "b", *BUILD, "--engine", value], message)


@pytest.mark.parametrize("option", ["--batch-size", "--mega-batch", "--epochs", "--evaluations"])
def test_absurd_sizes_of_a_training(pairs, capsys, option):
    arguments = ["train", "--data", "pairs.parquet", "--out", "m", option, 10**12]
    fails(capsys, arguments, f"{option} must be from 1 to 1,000,000")


def test_a_mega_batch_of_one_pair(pairs, capsys):
    arguments = ["train", "--data", "pairs.parquet", "--out", "m", "--batch-size", "1", "--mega-batch", "1"]
    fails(capsys, arguments, "--batch-size 1 with --mega-batch 1 leaves one pair to a mega-batch", "raise one of them")
    assert not list(pairs.glob("m*"))


def test_training_data_that_is_not_there(folder, capsys, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (folder / "w").mkdir()
    fails(
        capsys,
        ["train", "--data", "w/nope", "--out", "m"],
        "the folder w holds no 'nope'; taken for an id on the Hub: ",
    )
    fails(capsys, ["train", "--data", "w/nope.parquet", "--out", "m"], "w/nope.parquet")


def test_a_mistyped_folder_of_a_model_is_told_before_the_hub(folder, capsys, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (folder / "models" / "word").mkdir(parents=True)
    told = "the folder models holds no 'wort', but 'word'; taken for an id on the Hub: "
    for command in (
        ["evaluate", "contrast", "models/wort"],
        ["encoder", "average", "models/wort", "embedded", "--out", "m"],
        ["encoder", "rotate", "models/wort", "--out", "m"],
        ["encoder", "export", "models/wort", "--format", "onnx", "--out", "m"],
        ["train", "--text", "models/wort", "--teacher", "embedded", "--out", "m"],
    ):
        fails(capsys, command, told)
    assert not list(folder.glob("m"))
    fails(capsys, ["evaluate", "contrast", "./models2"], "no model './models2' ('models' is there): expected a folder")


def test_a_folder_without_sts_files(folder, release, capsys):
    (folder / "empty").mkdir()
    fails(capsys, ["evaluate", "sts", "embedded", "--data", "empty"], "empty holds no STS data: expected STS.input")
    message = "cannot load the split 'test' of release, which has train; STS data are STS.input.*.txt and"
    told = fails(capsys, ["evaluate", "sts", "embedded", "--data", "release"], message)
    assert told.endswith("a dataset with the split 'test' and the columns score, sentence1 and sentence2")


def test_broken_text_in_parquet(folder, capsys):
    table = pa.table({"reference": broken_text([b"a", BROKEN, b"c"]), "translation": ["a x", "b x", "c x"]})
    pq.write_table(table, folder / "p.parquet")
    message = "p.parquet, row (from 0) 1: the column reference is not UTF-8; write the file again"
    fails(capsys, ["train", "--data", "p.parquet", "--out", "m", *SMALL], message)
    fails(capsys, ["encoder", "negatives", "a", "--data", "p.parquet"], message)
    # An import counts such rows and leaves them out.
    assert main(["import", "p.parquet", "--scorer", "vectors.txt", *IMPORT]) == 0
    assert "dropped             1 undecodable" in capsys.readouterr().out


def test_broken_text_in_a_data_set_of_similarities(folder, capsys):
    (folder / "sts").mkdir()
    table = {"score": [1.0, 2.0], "sentence1": broken_text([b"a", BROKEN]), "sentence2": ["a", "b"]}
    pq.write_table(pa.table(table), folder / "sts" / "test.parquet")
    fails(capsys, ["evaluate", "sts", "embedded", "--data", "sts"], "sts: expected text in UTF-8, found other bytes")


def rewritten(release, **columns):
    """Write other columns into the file of a release, with a record that knows it."""
    (path,) = (release / "data").iterdir()
    table = pq.read_table(path)
    for name, values in columns.items():
        table = table.set_column(table.column_names.index(name), name, values)
    pq.write_table(table, path)
    (release / "build.json").unlink()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"para_score": pa.array(["0.5", "1"])},
            "the column para_score holds values of type string, expected numbers",
        ),
        ({"reference": pa.array([1, 2])}, "the column reference holds values of type int64, expected text"),
    ],
)
def test_wrong_types_in_a_release(release, capsys, columns, message):
    rewritten(release, **columns)
    fails(capsys, ["train", "--data", "release", "--selection", "min_score=0.1", "--out", "m", *SMALL], message)


@pytest.mark.parametrize("name", ["build.json", "training.json"])
def test_damaged_records(release, encoder, capsys, name):
    path = {"build.json": release, "training.json": encoder}[name] / name
    whole = path.read_text()
    commands = {
        "build.json": [
            ["score", "release", "--scorer", "vectors.txt"],
            ["publish", "release", "org/corpus", "--dry-run"],
            ["train", "--data", "release", "--out", "m", *SMALL],
            ["import", "pairs.txt", "--out", "release", "--license", "mit", "--engine", "workers=1"],
        ],
        "training.json": [
            ["publish", "encoder", "org/m", "--license", "mit", "--dry-run"],
            ["encoder", "average", "encoder", "encoder", "--out", "m"],
            ["train", "--data", "pairs.parquet", "--out", "encoder", *SMALL],
        ],
    }[name]
    for command in commands:
        path.write_text(whole[: len(whole) // 2])
        fails(capsys, command, f"{name} is damaged: it is not JSON")
        if "average" not in command:
            values = json.loads(whole)
            del values["settings"]
            path.write_text(json.dumps(values))
            fails(capsys, command, f"{name} is damaged: it has no 'settings'")


def test_pipes_are_not_waited_for(pairs, encoder, release, capsys, tmp_path):
    for name in ("pipe", "pipe.parquet", "pipe.tsv.gz", "pipe.md"):
        os.mkfifo(pairs / name)
    message = "is a pipe, a socket or a device; expected a file"
    fails(capsys, ["import", "pipe", *IMPORT], f"pipe {message}")
    fails(capsys, ["import", "pipe.tsv.gz", *IMPORT], message)
    fails(capsys, ["import", "pipe.parquet", *IMPORT], message)
    fails(capsys, ["import", "/dev/zero", *IMPORT], f"/dev/zero {message}")
    fails(capsys, ["build", "--source", "pipe", "--reference", "pipe", *BUILD], message)
    fails(capsys, ["train", "--data", "pipe.parquet", "--out", "m", *SMALL], message)
    fails(capsys, ["train", "--data", "pairs.parquet", "--out", "m", "--vectors", "pipe", *SMALL], message)
    fails(capsys, ["import", "pairs.txt", "--scorer", "pipe", *IMPORT], message)
    fails(capsys, ["encoder", "distill", "embedded", "--vocabulary", "pipe", "--out", "v.txt"], message)
    fails(capsys, ["evaluate", "sts", "embedded", "--data", "pipe"], message)
    model = ["publish", "encoder", "org/m", "--dry-run", "--license", "mit"]
    fails(capsys, [*model, "--about", "pipe"], message)
    fails(capsys, [*model, "--results", "pipe"], message)
    sts = pairs / "STS12-en-test"
    sts.mkdir()
    os.mkfifo(sts / "STS.input.a.txt")
    fails(capsys, ["evaluate", "sts", "embedded", "--data", str(sts)], message)
    os.mkfifo(encoder / "tokenizer_config.json")
    fails(capsys, ["evaluate", "sts", "encoder", "--data", str(ASSETS / "sample" / "similarity.tsv")], message)
    (release / "build.json").unlink()
    os.mkfifo(release / "build.json")
    fails(capsys, ["score", "release", "--scorer", "vectors.txt"], "release is not a finished release")


def test_yaml_that_grows(encoder, capsys):
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]" for old, new in zip("abcdefgh", "bcdefghi", strict=True)]
    Path("about.yaml").write_text("\n".join(lines))
    command = ["publish", "encoder", "org/m", "--about", "about.yaml", "--dry-run"]
    fails(capsys, command, "cannot read about.yaml: line 2: references such as *a are not read; write the value")
    Path("about.yaml").write_text("[" * 100_000)
    fails(capsys, command, "cannot read about.yaml: it is nested too deeply")


@pytest.mark.parametrize("kind", ["above", "absolute", "link", "data_dir", "address"])
def test_data_files_outside_of_their_folder(folder, capsys, kind):
    (folder / "secret").mkdir()
    secret = folder / "secret" / "s.parquet"
    pq.write_table(pa.table({"cs": ["a"], "en": ["b"]}), secret)
    data = folder / "data"
    data.mkdir()
    pq.write_table(pa.table({"cs": ["a"], "en": ["b"]}), data / "own.parquet")
    entry = {
        "above": "data_files: ../secret/s.parquet",
        "absolute": f"data_files: {secret}",
        "link": "data_files: s.parquet",
        "data_dir": "data_dir: ../secret",
        "address": f"data_files: file://{secret}",
    }[kind]
    if kind == "link":
        (data / "s.parquet").symlink_to(secret)
    (data / "README.md").write_text(f"---\nconfigs:\n- config_name: default\n  {entry}\n---\n")
    command = ["build", "--data", "data", "--columns", "source=cs,reference=en", *BUILD]
    fails(capsys, command, "data names the data file", "outside of that folder")
    pq.write_table(pa.table({"score": [1.0], "sentence1": ["b"], "sentence2": ["c"]}), secret)
    fails(capsys, ["evaluate", "sts", "embedded", "--data", "data"], "data names the data file", "outside of that")


def test_training_data_behind_links(pairs, release, capsys):
    (pairs / "data").mkdir()
    (pairs / "data" / "p.parquet").symlink_to(pairs / "pairs.parquet")
    message = f"data/p.parquet is a link that leads out of data and is not read; name {pairs / 'pairs.parquet'} itself"
    fails(capsys, ["train", "--data", "data", "--out", "m", *SMALL], message)
    (path,) = (release / "data").iterdir()
    shutil.move(path, pairs / "moved.parquet")
    path.symlink_to(pairs / "moved.parquet")
    fails(capsys, ["train", "--data", "release", "--out", "m", *SMALL], "is a link that leads out of release")


def test_links_inside_of_the_clients_cache_are_read(folder, capsys):
    """There a snapshot holds links to the folder of blobs beside it."""
    blobs, snapshot = folder / "cache" / "blobs", folder / "cache" / "snapshots" / "abc"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    table = {"score": [1.0, 2.0, 3.0], "sentence1": ["a", "b", "c"], "sentence2": ["a", "c", "d"]}
    pq.write_table(pa.table(table), blobs / "1234")
    (snapshot / "test.parquet").symlink_to(blobs / "1234")
    assert main(["evaluate", "sts", "--baselines", "bleu", "--data", str(snapshot)]) == 0


def test_sizes_of_numbers_are_not_types(release):
    """Scores of another width and text of another type are what a column is for."""
    rewritten(
        release,
        para_score=pa.array(np.array([0.5, 0.25])),
        reference=pa.array(["a b", "b c"], pa.large_string()).dictionary_encode(),
    )
    assert main(["train", "--data", "release", "--selection", "min_score=0.1", "--out", "m", *SMALL]) == 0
    shutil.rmtree("m")


def test_quickstart_into_a_result(encoder, capsys):
    before = sorted(Path("encoder").rglob("*"))
    fails(capsys, ["quickstart", "--out", "encoder"], "encoder is a release or an encoder: it holds modules.json")
    Path("file").touch()
    fails(capsys, ["quickstart", "--out", "file"], "file is a file; the quickstart makes a folder")
    assert sorted(Path("encoder").rglob("*")) == before


def test_vectors_into_a_folder(encoder, capsys):
    command = ["encoder", "distill", "encoder", "--vocabulary", "missing.txt", "--out", "encoder"]
    fails(capsys, command, "encoder is a folder; name a file")


def test_models_are_looked_for_before_the_first_is_evaluated(encoder, capsys):
    Path("mine.tsv").write_text("1\ta\tb\n2\tb\tc\n3\ta b\tc\n")
    fails(capsys, ["evaluate", "sts", "encoder", "nowhere", "--data", "mine.tsv"], "no model 'nowhere'")
    assert "encoder" not in capsys.readouterr().out


def test_tsv_without_columns(folder, capsys):
    Path("t.tsv").write_text("a\tb\n")
    command = ["build", "--data", "t.tsv", "--translator", "embedded", "--out", "out", "--license", "mit"]
    fails(capsys, command, "need --columns, which numbers them from 1")


def test_pipe_as_configuration(folder, capsys):
    os.mkfifo("pipe")
    command = ["import", "pairs.txt", "--config", "pipe", "--out", "out", "--license", "mit"]
    fails(capsys, command, "pipe is a pipe, a socket or a device")


def test_pipes_as_data_vectors_and_models(pairs, encoder, capsys):
    Path("sub").mkdir()
    os.mkfifo("sub/pipe")
    expected = "sub/pipe is a pipe, a socket or a device"
    fails(capsys, ["train", "--data", "sub/pipe", "--out", "out"], expected)
    fails(capsys, ["train", "--data", pairs, "--vectors", "sub/pipe", "--out", "../out"], expected)
    Path("mine.tsv").write_text("1\ta\tb\n2\tb\tc\n3\ta b\tc\n")
    fails(capsys, ["evaluate", "sts", "sub/pipe", "--data", "mine.tsv"], expected)
