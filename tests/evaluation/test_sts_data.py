"""The readers of STS data: what they read, and what they refuse."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf.evaluation.sts_data import COUNTS, DEVELOPMENT, notes, read_scored_pairs, read_sts
from paranmt_hf.training.inputs import sentences_of
from tests.evaluation.toys import write_benchmark, write_senteval
from tests.refused import refused

ROWS = [("5", "a cat", "the cat"), ("0.5", "a dog", "tea")]
# What a line of text may hold: not a tab, not the end of a line, not a zero byte, and not nothing.
sentences = st.text(st.characters(exclude_characters="\0\t\n\r\ufeff", exclude_categories=["Cs"])).map(
    lambda text: text.strip() or "x"
)
scores = st.one_of(st.just(""), st.floats(0, 5).map(str))
tables = st.lists(st.tuples(scores, sentences, sentences), min_size=1).filter(
    lambda rows: any(score for score, _, _ in rows)
)


@given(tables)
def test_senteval_round_trip(tmp_path_factory, rows):
    r"""Quotes, `\u2028` and the like are text: only a tab and the end of a line have a meaning."""
    folder = tmp_path_factory.mktemp("sts") / "STS15-en-test"
    # The official files of 2016 have the sources of both sentences in two more columns.
    write_senteval(folder, "belief", [(score, left, f"{right}\thttp://a\t") for score, left, right in rows])
    (one,) = read_sts(folder)
    kept = [row for row in rows if row[0]]
    assert list(zip(map(str, one.gold.tolist()), one.left, one.right, strict=True)) == kept
    assert (one.year, one.name, one.skipped) == ("STS15", "belief", len(rows) - len(kept))


def test_a_folder_of_everything(tmp_path, monkeypatch):
    write_senteval(tmp_path / "STS13-en-test", "FNWN", ROWS)
    write_senteval(tmp_path / "STS12-en-test", "MSRpar", ROWS)
    write_benchmark(tmp_path / "STSBenchmark")
    (tmp_path / "README.md").write_text("not data", encoding="utf8")
    monkeypatch.setenv("HOME", str(tmp_path.parent))
    # A shell expands `~` only where it stands alone, and not in a file of options.
    home = f"~/{tmp_path.name}"
    sets = read_sts(home)
    assert [(one.year, one.name, len(one)) for one in sets] == [
        ("STS12", "MSRpar", 2),
        ("STS13", "FNWN", 2),
        (None, "STSB-dev", 130),
        (None, "STSB-test", 130),
        (None, DEVELOPMENT, 250),
    ]
    assert sentences_of(home) == sentences_of(tmp_path) != set()
    captions = sets[2].subsets["captions"]
    assert captions[:5].tolist() == [True, True, False, False, False] and captions.sum() == 2 + 125
    assert (captions ^ sets[2].subsets["no captions"]).all()
    assert sets[4].gold.tolist()[:4] == [0, 1, 2, 0]
    found = notes(sets)
    assert "STS12 MSRpar has 2 scored pairs where 750 are expected." in found
    assert "STS12 lacks MSRvid: its mean is not comparable with published figures." in found
    assert all(year in found[0] for year in COUNTS)


def test_pairs_of_the_second_version_of_mteb(tmp_path):
    """mteb 2.26: pairs that are there twice, in either order, or in another split are left out, all copies of them."""
    line = "main-news\tx\t2015\t1\t{}\t{}\t{}\n"
    pairs = {
        "train": [(1, "a man", "a boy"), (2, "only", "here")],
        "dev": [(3, "in dev", "and test")],
        "test": [
            *((0, "a  Boy", "a man"), (1, "in dev", "and test")),
            *((2, "twice", "here"), (3, "here", "twice"), (4, "once", "here"), (5, "too", "here")),
        ],
    }
    for split, rows in pairs.items():
        (tmp_path / f"sts-{split}.csv").write_text("".join(line.format(*row) for row in rows))
    (one,) = read_sts(tmp_path / "sts-test.csv")
    assert len(one) == 6 and one.subsets["v2"].tolist() == [False, False, False, False, True, True]
    (tmp_path / "sts-train.csv").unlink()
    (one,) = read_sts(tmp_path / "sts-test.csv")
    assert "v2" not in one.subsets


def test_real_counts(shared_data):
    sets = read_sts(shared_data / "sts")
    pairs = {year: sum(len(one) for one in sets if one.year == year) for year in ("STS12", "STS13", "STS14")}
    assert pairs == {"STS12": 3108, "STS13": 1500, "STS14": 3750}
    alone = {one.name: (len(one), {name: int(mask.sum()) for name, mask in one.subsets.items()}) for one in sets[14:]}
    assert alone == {
        # As many as MTEB's STSBenchmark.v2 has in its splits validation and test.
        "STSB-dev": (1500, {"captions": 625, "no captions": 875, "v2": 1485}),
        "STSB-test": (1379, {"captions": 625, "no captions": 754, "v2": 1362}),
        DEVELOPMENT: (250, {}),
    }
    (train,) = read_sts(shared_data / "sts" / "STSBenchmark" / "sts-train.csv")
    assert len(train) == 5749
    assert notes(sets) == [
        "The mean of the years is that of STS12, STS13, STS14, without STS15, STS16.",
        "STS13 is without SMT, which is not free; papers that had it report the mean of four sets.",
    ]


def test_folders_of_datasets(tmp_path):
    """The columns of MTEB's sets, read by `load_dataset`; other names that files may have count too."""
    rows = [{"sentence1": left, "sentence2": right, "score": float(score)} for score, left, right in ROWS]
    rows.append({"sentence1": "no", "sentence2": "score", "score": None})
    text = "".join(json.dumps(row) + "\n" for row in rows)
    for name, content in (("sts12-sts", text), ("label", text.replace("score", "label"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "test.jsonl").write_text(content, encoding="utf8")
        (one,) = read_sts(tmp_path / name)
        assert (one.year, one.name, one.skipped, one.left) == (None, name, 1, ["a cat", "a dog"])
    for name, file in (("split", "dev.jsonl"), ("column", "test.jsonl")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text(text if name == "split" else text.replace("score", "rank"))
        with refused() as caught:
            read_sts(tmp_path / name)
        assert str(tmp_path / name) in str(caught.value)


@pytest.mark.parametrize(
    ("inputs", "golds"),
    [
        (b"a\tb\nc\td\n", b"1\n"),
        (b"a\tb\n", b"1\n\n"),
        (b"a\tb\nc d\n", b"1\n2\n"),
        (b"a\tb\nc\t \n", b"1\n2\n"),
        (b"a\tb\n\td\n", b"1\n2\n"),
        (b"a\tb\nc\td\n", b"1\nhigh\n"),
        (b"a\tb\nc\td\n", b"5\n5.1\n"),
        (b"a\tb\n", b"-1\n"),
        (b"a\tb\n", b"nan\n"),
        (b"a\tb\n", b"1_0\n"),
        (b"a\tb\nc\t\xe9t\xe9\n", b"1\n2\n"),
        (b"", b"1\n"),
        (b"a\tb\n", b"\n"),
        (b"a\tb\n", None),
        (None, b"1\n"),
    ],
)
def test_damaged_senteval_files(tmp_path, inputs, golds):
    write_senteval(tmp_path / "STS12", "MSRpar", ROWS)
    for kind, content in (("input", inputs), ("gs", golds)):
        if content is not None:
            (tmp_path / "STS12" / f"STS.{kind}.x.txt").write_bytes(content)
    with refused() as caught:
        read_sts(tmp_path)
    assert "\n" not in str(caught.value) and ".x.txt" in str(caught.value)


def test_bad_places(tmp_path):
    equal = tmp_path / "equal.tsv"
    equal.write_text("1\ta\tb\n1\tc\td\n")
    for place in (equal, tmp_path / "none"):
        with refused():
            read_scored_pairs(place)
    for place in ("nowhere", tmp_path / "none", tmp_path):
        with refused():
            read_sts(place)
    write_benchmark(tmp_path / "short", track5=249)
    for reader in (read_scored_pairs, read_sts):
        with refused():
            reader(tmp_path / "short")
    (tmp_path / "short" / "sts-dev.csv").write_text("genre,file,year,id,score,a,b\n", encoding="utf8")
    with refused():
        read_sts(tmp_path / "short")
    for name in ("STS12-en-test", "STS12-en-test-copy"):
        write_senteval(tmp_path / "same" / name, "MSRpar", ROWS)
    with refused():
        read_sts(tmp_path / "same")


def test_parquet_files_and_folders(tmp_path):
    rows = {"sentence1": ["a", "b"], "sentence2": ["c", "d"], "score": [1.0, 0.5]}
    (tmp_path / "mine" / "data").mkdir(parents=True)
    pq.write_table(pa.table({**rows, "more": [1, 2]}), tmp_path / "mine" / "data" / "0.parquet")
    pq.write_table(pa.table(rows), tmp_path / "mine" / "data" / "1.parquet")
    assert read_scored_pairs(tmp_path / "mine").left == ["a", "b", "a", "b"]
    pairs = read_scored_pairs(tmp_path / "mine" / "data" / "0.parquet")
    assert (pairs.name, pairs.gold.tolist()) == ("0", [1, 0.5])


def test_dataset_on_the_hub(monkeypatch):
    from datasets import Dataset

    asked = []

    def load_dataset(name, *, split):
        asked.append((name, split))
        return Dataset.from_dict({"score": [1, 2], "sentence1": ["a", "c"], "sentence2": ["b", "d"]})

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    assert read_scored_pairs("you/pairs").right == ["b", "d"]
    assert read_scored_pairs("you/pairs:dev").gold.tolist() == [1, 2]
    assert asked == [("you/pairs", "validation"), ("you/pairs", "dev")]


def test_the_sample():
    pairs = read_scored_pairs("sample")
    assert (pairs.name, len(pairs), np.ptp(pairs.gold)) == ("sample", 40, 5)
    (again,) = read_sts("sample")
    assert again.checksum == pairs.checksum
