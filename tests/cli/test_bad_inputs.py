"""What is wrong with an input is said in one sentence: which input, what was expected, what to do; nothing hangs."""

import json
import shlex
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import InputError
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
    for name in ("models/word", "empty", "full", "data-own", "secret", "broken-judged"):
        (folder / name).mkdir(parents=True)
    (folder / "full" / "other").touch()
    write_pairs(folder / "pairs.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["import", "pairs.txt", "--out", "release", "--license", "mit", "--engine", "workers=1"]) == 0
        assert main(["train", "--data", "pairs.parquet", "--out", "encoder", *SMALL]) == 0
    damaged(folder / "release", "build.json")
    damaged(folder / "encoder", "training.json")
    rewritten(folder / "release", folder / "release-strings", para_score=pa.array(["0.5", "1"]))
    rewritten(folder / "release", folder / "release-numbers", reference=pa.array([1, 2]))
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
# Of each command line, the option and the path that the error names, if it names one.
CASES = {
    "quickstart --out file": ("out", "file"),
    "encoder vectors encoder --vocabulary none.txt --out encoder": ("out", "encoder"),
    f"{TRAIN} --data pairs.parquet --out full": ("out", "full"),
    "select release --out release --tenths 1": ("out", None),
    "build --source file --reference file --translator foo.yaml --out out --license mit": (None, "foo.yaml"),
    f"{TRAIN} --data none.parquet --selection min_score=2 --out out": ("min_score", None),
    f"{TRAIN} --data none.parquet --selection max_overlap=1.5 --out out": ("max_overlap", None),
    "paraphrase train none.parquet --selection max_score=-1.5 --out out": ("max_score", None),
    "select nowhere --out out --min para_score=2": ("min", None),
    "select nowhere --out out --max trigram_overlap=-0.1": ("max", None),
    "lexicon build nowhere --min-score 2 --out out": ("min_score", None),
    "lexicon nearest nowhere a --min-count 0": ("min_count", None),
    f"{TRAIN} --data pairs.parquet --out out --epochs 1000000000000": ("epochs", None),
    f"build --source file {BUILD}": ("reference", None),
    f"build --source none.cs --reference none.en {BUILD}": (None, "none.cs"),
    f"build --data no-such-id --columns source=a,reference=b {BUILD}": (None, None),
    f"build --source lines.cs --reference lines.en {BUILD}": (None, None),
    f"build --data two.tsv {BUILD}": ("columns", "two.tsv"),
    f"import two.tmx {IMPORT}": ("columns", "two.tmx"),
    "evaluate sts small --data two.tmx": (None, "two.tmx"),
    "import pairs.txt --out out": ("license", None),
    f"import nothing.tsv {IMPORT}": (None, "nothing.tsv"),
    f"import seven.tsv {IMPORT}": (None, None),
    f"import cut.parquet {IMPORT}": (None, "cut.parquet"),
    f"import other.parquet {IMPORT}": ("columns", "other.parquet"),
    f"import other.parquet --columns reference=en {IMPORT}": ("columns", "other.parquet"),
    f"import pairs.txt --scorer short-vectors.txt {IMPORT}": (None, "short-vectors.txt"),
    f"import pairs.txt --scorer ./none {IMPORT}": (None, None),
    f"import pairs.txt --scorer scorer {IMPORT}": (None, None),
    "score nothing --scorer vectors.txt": (None, None),
    "select nowhere --out some --tenths 1": (None, None),
    "select release --out some": (None, None),
    "select release --out some --min beauty=1": (None, None),
    "stats none": (None, "none"),
    "stats other.parquet": (None, None),
    "stats lines.en --write-samples file": ("write_samples", None),
    "stats lines.cs --parser trees --json out": (None, None),
    "score release-cut --scorer vectors.txt": (None, None),
    "publish release-lacking org/corpus --dry-run": (None, None),
    f"{TRAIN} --data release-lacking --out out": (None, None),
    "publish encoder-cut org/m --license mit --dry-run": (None, "encoder-cut/training.json"),
    "publish encoder-lacking org/m --license mit --dry-run": (None, "encoder-lacking/training.json"),
    "encoder average encoder-cut encoder-cut --out out": (None, "encoder-cut/training.json"),
    f"{TRAIN} --data none.parquet --out out": (None, "none.parquet"),
    f"{TRAIN} --data empty/none --out out": (None, None),
    f"{TRAIN} --data other.parquet --out out": ("columns", "other.parquet"),
    f"{TRAIN} --data same.parquet --out out": (None, None),
    f"{TRAIN} --data pairs.parquet --selection min_score=0.5 --out out": (None, "pairs.parquet"),
    f"{TRAIN} --data release-strings --selection min_score=0.1 --out out": (None, None),
    f"{TRAIN} --data release-numbers --out out": (None, None),
    f"{TRAIN} --data broken.parquet --out out": (None, None),
    f"{TRAIN} --data pairs.parquet --out out --model word+trigram,lstm": (None, None),
    f"{TRAIN} --data pairs.parquet --out out --vectors vectors.txt": (None, None),
    f"{TRAIN} --data pairs.parquet --out out --vectors vectors.txt --init-from x": (None, None),
    f"{TRAIN} --data pairs.parquet --out out --learning-rate nan": ("learning_rate", None),
    "train --data pairs.parquet --out out --batch-size 1 --mega-batch 1": (None, None),
    "train --text models/wort --teacher small --out out": (None, None),
    "evaluate contrast models/wort": (None, None),
    "encoder average models/wort small --out out": (None, None),
    "evaluate contrast ./models2": (None, None),
    "evaluate sts encoder nowhere --data judged.tsv": (None, None),
    "evaluate sts --data judged.tsv": ("models", None),
    "build --source file --reference file --translator caption --out out --license mit": (None, None),
    f"import pairs.txt --scorer smal {IMPORT}": (None, None),
    "evaluate sts smal --data judged.tsv": (None, None),
    f"{TRAIN} --data pairs.parquet --model wordz --out out": ("model", None),
    f"{TRAIN} --data pairs.parquet --model word,tri-gram --out out": ("model", None),
    f"{TRAIN} --data pairs.parquet --recipe bass --teacher small --out out": ("recipe", None),
    f"{TRAIN} --data pairs.parquet --development samples --out out": (None, None),
    f"{TRAIN} --data pairs.parquet --selection min-scores=1 --out out": ("selection", None),
    "tune pairs.parquet --grid words --development sample --out out": ("grid", None),
    "encoder export encoder --format onxx --out out": ("format", None),
    "evaluate sts small --data empty": (None, None),
    "evaluate sts small --data release": (None, None),
    "evaluate sts small --data broken-judged": (None, None),
    # Data files outside of their folder, which a card or a link may name.
    **dict.fromkeys(
        [f"build --data outside-{kind} --columns source=cs,reference=en {BUILD}" for kind in OUTSIDE], (None, None)
    ),
    **dict.fromkeys([f"{STS} small --data outside-{kind}" for kind in OUTSIDE], (None, None)),
}


@pytest.mark.parametrize("line", CASES)
def test_one_sentence(world, line, capsys, monkeypatch):
    monkeypatch.chdir(world)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    before = sorted(path.name for path in world.iterdir())
    option, path = CASES[line]
    with pytest.raises(InputError) as refused:
        main([*shlex.split(line), "--debug"])
    error = refused.value
    assert option is None or error.option == option
    assert path is None or error.path.resolve() == world / path
    assert "\n" not in str(error) and len(str(error)) < 600
    assert sorted(path.name for path in world.iterdir()) == before


def test_a_gpu_that_is_not_there(world, capsys, monkeypatch):
    monkeypatch.chdir(world)
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is one")
    Path("cuda.yaml").write_text("name: captions-cs-en\ndevice: cuda\n")
    build = "build --source file --reference file --translator cuda.yaml --out out --license cc-by-nc-sa-4.0"
    fails(capsys, build.split())
    fails(capsys, f"{TRAIN} --data pairs.parquet --out m --device cuda".split())


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
