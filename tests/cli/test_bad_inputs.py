"""What is wrong with an input is said in one sentence: which input, what was expected, what to do; nothing hangs."""

import json
import os
import shlex
import shutil
import signal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf.cli import main
from tests.cli.commands import SMALL, fails, write_pairs

# Two bytes that no text in UTF-8 holds.
BROKEN = b"a \xff\xfe b"
FILES = {
    "vectors.txt": "a 1 0\nb 0 1\n",
    "short-vectors.txt": "a 1 0\nb 1\n",
    "pairs.txt": "a b\ta c\t0.5\nb c\tb d\t0.25\n",
    "two.tsv": "a\tb\n",
    "two.tmx": '<tmx version="1.4"><header/><body><tu><tuv xml:lang="cs"><seg>a</seg></tuv></tu></body></tmx>',
    "file": "mine",
    "nothing.tsv": "",
    "seven.tsv": "a\tb\t7\n",
    "lines.cs": "1\n2\n",
    "lines.en": "1\n2\n3\n",
    "trees": "(S a)\n(S (NP b)\n",
    "judged.tsv": "1\ta\tb\n2\tb\tc\n3\ta b\tc\n",
    "foo.yaml": "name: captions-cs-en\ndevice: foo\n",
}
PIPES = ("pipe", "pipe.tsv.gz", "judged/STS12-en-test/STS.input.a.txt")
OUTSIDE = {
    "above": "data_files: ../secret/s.parquet",
    "absolute": "data_files: {secret}",
    "link": "data_files: s.parquet",
    "data_dir": "data_dir: ../secret",
    "address": "data_files: file://{secret}",
}


def broken_text(rows):
    """A column of strings as a careless writer makes it: Arrow does not look whether it is UTF-8."""
    return pa.Array.from_buffers(pa.string(), len(rows), pa.array(rows, pa.binary()).buffers())


def rewritten(release, folder, **columns):
    """A copy of a release with other columns in its file, and without a record."""
    shutil.copytree(release, folder)
    (path,) = (folder / "data").iterdir()
    table = pq.read_table(path)
    for name, values in columns.items():
        table = table.set_column(table.column_names.index(name), name, values)
    pq.write_table(table, path)
    (folder / "build.json").unlink()


def damaged(source, record):
    """Copies of a result whose record is cut off, and lacks an entry."""
    whole = (source / record).read_text()
    lacking = {name: value for name, value in json.loads(whole).items() if name != "settings"}
    for name, text in (("cut", whole[: len(whole) // 2]), ("lacking", json.dumps(lacking))):
        shutil.copytree(source, source.with_name(f"{source.name}-{name}"))
        (source.with_name(f"{source.name}-{name}") / record).write_text(text)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with a release, an encoder, and many files that something is wrong with."""
    folder = tmp_path_factory.mktemp("world")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    for name in ("models/word", "empty", "full", "judged/STS12-en-test", "data-own", "secret", "broken-judged"):
        (folder / name).mkdir(parents=True)
    (folder / "full" / "other").touch()
    for name in PIPES:
        os.mkfifo(folder / name)
    write_pairs(folder / "pairs.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["import", "pairs.txt", "--out", "release", "--license", "mit", "--engine", "workers=1"]) == 0
        assert main(["train", "--data", "pairs.parquet", "--out", "encoder", *SMALL]) == 0
    damaged(folder / "release", "build.json")
    damaged(folder / "encoder", "training.json")
    rewritten(folder / "release", folder / "release-strings", para_score=pa.array(["0.5", "1"]))
    rewritten(folder / "release", folder / "release-numbers", reference=pa.array([1, 2]))
    shutil.copytree(folder / "encoder", folder / "encoder-pipe")
    os.mkfifo(folder / "encoder-pipe" / "tokenizer_config.json")
    (folder / "cut.parquet").write_bytes((folder / "pairs.parquet").read_bytes()[:-20])
    (folder / "scorer").mkdir()
    (folder / "scorer" / "model.safetensors").write_bytes(b"broken")
    tables = {
        "other.parquet": {"en": ["a"], "mt": ["b"]},
        "same.parquet": {"reference": ["a b"] * 9, "translation": ["a b"] * 9},
        "broken.parquet": {"reference": broken_text([b"a", BROKEN, b"c"]), "translation": ["a x", "b x", "c x"]},
        "broken-judged/test.parquet": {
            **{"score": [1.0, 2.0], "sentence1": broken_text([b"a", BROKEN]), "sentence2": ["a", "b"]}
        },
        "secret/s.parquet": {"cs": ["a"], "en": ["b"], "score": [1.0], "sentence1": ["b"], "sentence2": ["c"]},
    }
    for name, table in tables.items():
        pq.write_table(pa.table(table), folder / name)
    for kind, entry in OUTSIDE.items():
        data = folder / f"outside-{kind}"
        data.mkdir()
        (data / "own.parquet").write_bytes((folder / "secret" / "s.parquet").read_bytes())
        entry = entry.format(secret=folder / "secret" / "s.parquet")
        (data / "README.md").write_text(f"---\nconfigs:\n- config_name: default\n  {entry}\n---\n")
    (folder / "outside-link" / "s.parquet").symlink_to(folder / "secret" / "s.parquet")
    return folder


IMPORT = "--out out --license mit --engine workers=1"
BUILD = "--translator captions-cs-en --out out --license cc-by-nc-sa-4.0"
TRAIN = f"train {' '.join(SMALL)}"
STS = "evaluate sts"
PIPE = "is a pipe, a socket or a device; expected a file"
ROOT = "is the root of the file system; choose another path"
CASES = {
    # Places where no result can be.
    "import pairs.txt --license mit --out /": ROOT,
    "build --source file --reference file --translator captions-cs-en --license mit --out file/x": "is below the file",
    "encoder export small --format onnx --out .": "is the current folder of this process",
    "score /": "/ is the root of the file system",
    "quickstart --out file": "file is a file, and the quickstart makes a folder",
    "encoder vectors encoder --vocabulary none.txt --out encoder": "encoder is a folder; name a file",
    f"{TRAIN} --data pairs.parquet --out full": "full exists and was not made by this command",
    "select release --out release --tenths 1": "release is the corpus that rows are selected from",
    # Devices.
    "build --source file --reference file --translator foo.yaml --out out --license mit": "cuda or cuda:N, was 'foo'",
    # Ranges of settings, before any data are read.
    f"{TRAIN} --data none.parquet --selection min_score=2 --out out": "--selection min_score",
    f"{TRAIN} --data none.parquet --selection max_overlap=1.5 --out out": "--selection: max_overlap",
    "paraphrase train none.parquet --selection max_score=-1.5 --out out": "--selection max_score",
    "select nowhere --out out --min para_score=2": "--min of para_score",
    "select nowhere --out out --max trigram_overlap=-0.1": "--max of trigram_overlap",
    "lexicon build nowhere --min-score 2 --out out": "--min-score",
    "lexicon nearest nowhere a --min-count 0": "--min-count",
    # Numbers that are too large.
    f"build --source file --reference file {BUILD} --engine workers=1000000": "must be from 0 to 10,000",
    f"build --source file --reference file {BUILD} --engine shard_rows=1000000000000": "must be from 0 to 10,000,000",
    f"{TRAIN} --data pairs.parquet --out out --epochs 1000000000000": "--epochs must be from 1 to 1,000,000",
    # Text of a bitext and of pairs.
    f"build --source file {BUILD}": "--source needs --reference",
    f"build --source none.cs --reference none.en {BUILD}": "none.cs",
    f"build --data no-such-id --columns source=a,reference=b {BUILD}": "no-such-id",
    f"build --source lines.cs --reference lines.en {BUILD}": "lines.cs has 2, lines.en has 3",
    f"build --data two.tsv {BUILD}": "--columns source=NAME,reference=NAME",
    f"import two.tmx {IMPORT}": "paranmt build --data two.tmx",
    "evaluate sts small --data two.tmx": "TMX",
    "import pairs.txt --out out": "a license is needed",
    f"import nothing.tsv {IMPORT}": "nothing.tsv",
    f"import seven.tsv {IMPORT}": "para_score of row 0",
    f"import cut.parquet {IMPORT}": "cut.parquet",
    f"import other.parquet {IMPORT}": "reference=en,translation=mt",
    f"import other.parquet --columns reference=en {IMPORT}": "no column translation",
    # Vectors, scorers, releases.
    f"import pairs.txt --scorer short-vectors.txt {IMPORT}": "line 2: expected a word and 2 numbers",
    f"import pairs.txt --scorer ./none {IMPORT}": "./none",
    f"import pairs.txt --scorer scorer {IMPORT}": "scorer is not a sentence encoder",
    "score nothing --scorer vectors.txt": "nothing is not a finished corpus",
    "select nowhere --out some --tenths 1": "nowhere is not a finished corpus",
    "select release --out some": "nothing says which rows are kept",
    "select release --out some --min beauty=1": "release has no column beauty",
    "stats none": "none: there is no such file",
    "stats other.parquet": "no column reference; it has en, mt",
    "stats lines.en --write-samples file": "file is a file; name a folder",
    "stats lines.cs --parser trees --json out": "trees:2: expected a tree",
    # Records.
    "score release-cut --scorer vectors.txt": "build.json is damaged: it is not JSON",
    "publish release-lacking org/corpus --dry-run": "build.json is damaged: it has no 'settings'",
    f"{TRAIN} --data release-lacking --out out": "build.json is damaged: it has no 'settings'",
    "publish encoder-cut org/m --license mit --dry-run": "training.json is damaged: it is not JSON",
    "publish encoder-lacking org/m --license mit --dry-run": "training.json is damaged: it has no 'settings'",
    "encoder average encoder-cut encoder-cut --out out": "training.json is damaged: it is not JSON",
    # Training.
    f"{TRAIN} --data none.parquet --out out": "none.parquet: there is no such file",
    f"{TRAIN} --data empty/none --out out": "the folder empty holds no 'none'; taken for an id on the Hub: ",
    f"{TRAIN} --data other.parquet --out out": "no column reference, translation",
    f"{TRAIN} --data same.parquet --out out": "nothing was learned",
    f"{TRAIN} --data pairs.parquet --selection min_score=0.5 --out out": "the column para_score",
    f"{TRAIN} --data release-strings --selection min_score=0.1 --out out": "para_score holds values of type string",
    f"{TRAIN} --data release-numbers --out out": "reference holds values of type int64, expected text",
    f"{TRAIN} --data broken.parquet --out out": "row (from 0) 1: the column reference is not UTF-8",
    f"{TRAIN} --data pairs.parquet --out out --model word+trigram,lstm": "not both",
    f"{TRAIN} --data pairs.parquet --out out --vectors vectors.txt": "set --dimension 2",
    f"{TRAIN} --data pairs.parquet --out out --vectors vectors.txt --init-from x": "not both",
    f"{TRAIN} --data pairs.parquet --out out --learning-rate nan": "--learning-rate must be a number above 0",
    "train --data pairs.parquet --out out --batch-size 1 --mega-batch 1": "--batch-size 1 with --mega-batch 1",
    "train --text models/wort --teacher small --out out": "'models/word'",
    # Models that are not there are named before the Hub is asked, and before another one is evaluated.
    "evaluate contrast models/wort": "'models/word'",
    "encoder average models/wort small --out out": "'models/word'",
    "evaluate contrast ./models2": "'models'",
    f"{STS} encoder nowhere --data judged.tsv": "no model 'nowhere'",
    f"{STS} --data judged.tsv": "name a model",
    # A mistyped name of a small set, where a file or an id is possible too.
    "build --source file --reference file --translator caption --out out --license mit": "'captions-cs-en'",
    f"import pairs.txt --scorer smal {IMPORT}": "'small'",
    f"{STS} smal --data judged.tsv": "'small'",
    f"{TRAIN} --data pairs.parquet --model wordz --out out": "'word'",
    f"{TRAIN} --data pairs.parquet --model word,tri-gram --out out": "'trigram'",
    f"{TRAIN} --data pairs.parquet --recipe bass --teacher small --out out": "'base'",
    f"{TRAIN} --data pairs.parquet --development samples --out out": "'sample'",
    f"{TRAIN} --data pairs.parquet --selection min-scores=1 --out out": "'min_score'",
    "tune pairs.parquet --grid words --development sample --out out": "'word'",
    "encoder export encoder --format onxx --out out": "'onnx'",
    # STS data.
    f"{STS} small --data empty": "empty holds no STS data: expected STS.input",
    f"{STS} small --data release": "cannot load the split 'test' of release, which has train",
    f"{STS} small --data broken-judged": "broken-judged: expected text in UTF-8, found other bytes",
    # Data files outside of their folder, which a card or a link may name.
    **{
        f"{command} outside-{kind}{more}": f"outside-{kind} names the data file"
        for kind in OUTSIDE
        for command, more in (
            ("build --data", f" --columns source=cs,reference=en {BUILD}"),
            (f"{STS} small --data", ""),
        )
    },
    # Pipes and devices are not waited for.
    f"import pipe {IMPORT}": f"pipe {PIPE}",
    f"import pipe.tsv.gz {IMPORT}": PIPE,
    f"import /dev/zero {IMPORT}": f"/dev/zero {PIPE}",
    f"import pairs.txt --config pipe {IMPORT}": PIPE,
    f"build --source pipe --reference pipe {BUILD}": PIPE,
    f"{TRAIN} --data pipe --out out": PIPE,
    f"{TRAIN} --data pairs.parquet --vectors pipe --out out": PIPE,
    "encoder vectors small --vocabulary pipe --out out": PIPE,
    f"{STS} small --data pipe": PIPE,
    f"{STS} small --data judged": PIPE,
    f"{STS} pipe --data judged.tsv": PIPE,
    f"{STS} encoder-pipe --data judged.tsv": PIPE,
    "publish encoder org/m --dry-run --license mit --about pipe": PIPE,
}


@pytest.mark.parametrize("line", CASES)
def test_one_sentence(world, line, capsys, monkeypatch):
    monkeypatch.chdir(world)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    before = sorted(path.name for path in world.iterdir())

    def stop(*_):
        raise TimeoutError("the command hangs")

    former = signal.signal(signal.SIGALRM, stop)
    signal.alarm(300)
    try:
        fails(capsys, shlex.split(line), CASES[line])
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)
    assert sorted(path.name for path in world.iterdir()) == before


def test_a_gpu_that_is_not_there(world, capsys, monkeypatch):
    monkeypatch.chdir(world)
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is one")
    Path("cuda.yaml").write_text("name: captions-cs-en\ndevice: cuda\n")
    build = "build --source file --reference file --translator cuda.yaml --out out --license cc-by-nc-sa-4.0"
    fails(capsys, build.split(), "torch sees 0 GPUs")
    fails(capsys, f"{TRAIN} --data pairs.parquet --out m --device cuda".split(), "no GPU that torch can use")


def test_rows_that_are_no_text_are_counted_by_an_import(folder, capsys):
    table = {"reference": broken_text([b"a", BROKEN, b"b"]), "translation": ["a", "b", "a"]}
    pq.write_table(pa.table(table), folder / "p.parquet")
    assert main(shlex.split(f"import p.parquet --scorer vectors.txt {IMPORT}")) == 0
    assert "dropped             1 undecodable" in capsys.readouterr().out


def test_links_inside_of_the_clients_cache_are_read(folder):
    """There a snapshot holds links to the folder of blobs beside it."""
    blobs, snapshot = folder / "cache" / "blobs", folder / "cache" / "snapshots" / "abc"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    table = {"score": [1.0, 2.0, 3.0], "sentence1": ["a", "b", "c"], "sentence2": ["a", "c", "d"]}
    pq.write_table(pa.table(table), blobs / "1234")
    (snapshot / "test.parquet").symlink_to(blobs / "1234")
    assert main(["evaluate", "sts", "--baselines", "bleu", "--data", str(snapshot)]) == 0


def test_sizes_of_numbers_are_not_types(world, folder):
    """Scores of another width and text of another type are what a column is for."""
    scores, text = np.array([0.5, 0.25]), pa.array(["a b", "b c"], pa.large_string()).dictionary_encode()
    rewritten(world / "release", folder / "release", para_score=pa.array(scores), reference=text)
    assert main(["train", "--data", "release", "--selection", "min_score=0.1", "--out", "m", *SMALL]) == 0
    assert Path("m").is_dir()
