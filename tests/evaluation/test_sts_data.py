"""The readers of STS data: what they read, and what they say about what they cannot read."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf.evaluation.pair_set import ScoredPair, StsSet, collect
from paranmt_hf.evaluation.sts_data import (
    COUNTS,
    DEVELOPMENT,
    development_set,
    notes,
    read_benchmark,
    read_hub,
    read_scored_pairs,
    read_senteval,
    read_sts,
)
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


def test_senteval(tmp_path):
    write_senteval(tmp_path / "STS12-en-test", "MSRpar", [*ROWS, ("", "no", "score")])
    (one,) = read_senteval(tmp_path / "STS12-en-test")
    assert (one.year, one.name, one.skipped, len(one)) == ("STS12", "MSRpar", 1, 2)
    assert one.left == ["a cat", "a dog"]
    assert one.right == ["the cat", "tea"]
    assert one.gold.tolist() == [5, 0.5]


@given(tables)
def test_senteval_round_trip(tmp_path_factory, rows):
    r"""Quotes, `\u2028` and the like are text: only a tab and the end of a line have a meaning."""
    folder = tmp_path_factory.mktemp("sts") / "STS15"
    write_senteval(folder, "belief", rows)
    (one,) = read_senteval(folder)
    kept = [row for row in rows if row[0]]
    assert list(zip(map(str, one.gold.tolist()), one.left, one.right, strict=True)) == kept
    assert one.skipped == len(rows) - len(kept)


def test_sources_behind_the_sentences_are_left_out(tmp_path):
    """The official files of 2016 have the sources of both sentences in two more columns."""
    write_senteval(tmp_path / "STS16", "headlines", [("1", "a", "b\thttp://a\thttp://b"), ("2", "c", "d\t\t")])
    (one,) = read_senteval(tmp_path / "STS16")
    assert one.right == ["b", "d"]


def test_a_folder_of_everything(tmp_path):
    write_senteval(tmp_path / "STS13-en-test", "FNWN", ROWS)
    write_senteval(tmp_path / "STS12-en-test", "MSRpar", ROWS)
    write_benchmark(tmp_path / "STSBenchmark")
    (tmp_path / "README.md").write_text("not data", encoding="utf8")
    found = [(one.year, one.name, len(one)) for one in read_sts(tmp_path)]
    assert found == [
        ("STS12", "MSRpar", 2),
        ("STS13", "FNWN", 2),
        (None, "STSB-dev", 130),
        (None, "STSB-test", 130),
        (None, DEVELOPMENT, 250),
    ]


def test_a_folder_of_the_home_folder(tmp_path, monkeypatch):
    """A shell expands `~` only where it stands alone, and not in a file of options."""
    monkeypatch.setenv("HOME", str(tmp_path))
    write_benchmark(tmp_path / "sts")
    assert [one.name for one in read_sts("~/sts")] == ["STSB-dev", "STSB-test", DEVELOPMENT]
    assert sentences_of("~/sts") == sentences_of(tmp_path / "sts") != set()


def test_benchmark_and_its_subsets(tmp_path):
    write_benchmark(tmp_path)
    one = read_benchmark(tmp_path, "dev")
    assert one.subsets["captions"][:5].tolist() == [True, True, False, False, False]
    assert one.subsets["captions"].sum() == 2 + 125
    assert (one.subsets["captions"] ^ one.subsets["no captions"]).all()
    assert development_set(tmp_path).gold.tolist()[:4] == [0, 1, 2, 0]


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
    one = read_benchmark(tmp_path)
    assert len(one) == 6 and one.subsets["v2"].tolist() == [False, False, False, False, True, True]
    (tmp_path / "sts-train.csv").unlink()
    assert "v2" not in read_benchmark(tmp_path).subsets


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
    assert len(read_benchmark(shared_data / "sts" / "STSBenchmark", "train")) == 5749
    assert notes(sets) == [
        "The mean of the years is that of STS12, STS13, STS14, without STS15, STS16.",
        "STS13 is without SMT, which is not free; papers that had it report the mean of four sets.",
    ]


def test_what_is_missing_is_noted(tmp_path):
    write_senteval(tmp_path / "STS12", "MSRpar", ROWS)
    found = notes(read_sts(tmp_path))
    assert "STS12 MSRpar has 2 scored pairs where 750 are expected." in found
    assert "STS12 lacks MSRvid: its mean is not comparable with published figures." in found
    assert all(year in found[0] for year in COUNTS)
    assert len(found) == 6


def test_all_years_or_none_are_not_noted(tmp_path):
    assert not notes([StsSet("mine", ["a"], ["b"], np.ones(1))])
    every = [StsSet(name, ["a"], ["b"], np.ones(1), year) for year, sets in COUNTS.items() for name in sets]
    assert not any("not in the data" in note for note in notes(every))


def test_local_folder_of_a_dataset(tmp_path):
    """The columns of MTEB's sets, read by `load_dataset`."""
    rows = [{"sentence1": left, "sentence2": right, "score": float(score)} for score, left, right in ROWS]
    rows.append({"sentence1": "no", "sentence2": "score", "score": None})
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "sts12-sts").mkdir()
    (tmp_path / "sts12-sts" / "test.jsonl").write_text(text, encoding="utf8")
    (one,) = read_sts(tmp_path / "sts12-sts")
    assert (one.year, one.name, one.skipped, one.left) == (None, "sts12-sts", 1, ["a cat", "a dog"])
    with refused():
        read_hub(str(tmp_path / "sts12-sts"), split="dev")
    (tmp_path / "sts12-sts" / "test.jsonl").write_text(text.replace("score", "label"), encoding="utf8")
    with refused():
        read_sts(tmp_path / "sts12-sts")


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
        (
            b"a\tb\nc\t\xe9t\xe9\n",
            b"1\n2\n",
        ),
        (b"", b"1\n"),
        (b"a\tb\n", b"\n"),
        (b"a\tb\n", None),
    ],
)
def test_damaged_senteval_files(tmp_path, inputs, golds):
    folder = tmp_path / "STS12"
    folder.mkdir()
    for kind, content in (("input", inputs), ("gs", golds)):
        if content is not None:
            (folder / f"STS.{kind}.x.txt").write_bytes(content)
    with refused() as caught:
        read_senteval(folder)
    assert "\n" not in str(caught.value)


def test_gold_scores_without_sentences(tmp_path):
    write_senteval(tmp_path / "STS12", "MSRpar", ROWS)
    (tmp_path / "STS12" / "STS.gs.MSRvid.txt").write_text("1\n", encoding="utf8")
    with refused():
        read_sts(tmp_path)


def test_damaged_benchmark(tmp_path):
    with refused():
        development_set(tmp_path)
    write_benchmark(tmp_path, track5=249)
    with refused():
        development_set(tmp_path)
    (tmp_path / "sts-dev.csv").write_text("genre,file,year,id,score,a,b\n", encoding="utf8")
    with refused():
        read_sts(tmp_path)


def test_places_without_data(tmp_path):
    with refused():
        read_sts("nowhere")
    with refused():
        read_sts(tmp_path)


def test_the_same_year_twice(tmp_path):
    for folder in ("STS12-en-test", "STS12-en-test-copy"):
        write_senteval(tmp_path / folder, "MSRpar", ROWS)
    with refused():
        read_sts(tmp_path)


TABLE = {"sentence1": ["a", "b"], "sentence2": ["c", "d"], "score": [1.0, 0.5]}


def test_the_sample():
    pairs = read_scored_pairs("sample")
    assert (pairs.name, len(pairs), pairs.gold.min(), pairs.gold.max()) == ("sample", 40, 0, 5)


def test_parquet_files_and_folders(tmp_path):
    (tmp_path / "mine" / "data").mkdir(parents=True)
    pq.write_table(pa.table({**TABLE, "more": [1, 2]}), tmp_path / "mine" / "data" / "0.parquet")
    pq.write_table(pa.table(TABLE), tmp_path / "mine" / "data" / "1.parquet")
    assert read_scored_pairs(tmp_path / "mine").left == ["a", "b", "a", "b"]
    pairs = read_scored_pairs(tmp_path / "mine" / "data" / "0.parquet")
    assert (pairs.name, pairs.gold.tolist()) == ("0", [1, 0.5])


def test_dataset_on_the_hub(monkeypatch):
    asked = []

    def read_hub(name, *, split):
        asked.append((name, split))
        pairs = [ScoredPair("1", "a", "b", "row 1", "row 1"), ScoredPair("2", "c", "d", "row 2", "row 2")]
        return collect(name, pairs, Path(name))

    monkeypatch.setattr("paranmt_hf.evaluation.sts_data.read_hub", read_hub)
    assert len(read_scored_pairs("you/pairs")) == 2
    assert len(read_scored_pairs("you/pairs:dev")) == 2
    assert asked == [("you/pairs", "validation"), ("you/pairs", "dev")]


def test_bad_places(tmp_path):
    path = tmp_path / "equal.tsv"
    path.write_text("1\ta\tb\n1\tc\td\n")
    with refused():
        read_scored_pairs(path)
    with refused():
        read_scored_pairs(tmp_path / "none")


def test_the_sample_is_data_for_evaluation():
    (pairs,) = read_sts("sample")
    assert (pairs.name, len(pairs)) == ("sample", 40) and pairs.checksum == read_scored_pairs("sample").checksum
