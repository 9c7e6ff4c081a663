"""Pairs to train on: sources, choices, test sentences left out, and what is told about bad files."""

import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import InputError, PairSelection
from paranmt_hf.corpus.reading.pairs import Pairs
from paranmt_hf.corpus.release.release import write_release
from paranmt_hf.corpus.statistics.draws import draw_bound, lottery
from tests.corpus.release.test_release import make_rows
from tests.refused import refused

ROWS = {
    "reference": ["r0", "r1", "r2", None, "r4", "r5"],
    "translation": ["t0", "t1", "t2", "t3", None, "t5"],
    "para_score": [0.1, 0.5, 0.9, 0.5, 0.5, None],
    "trigram_overlap": pa.array([0.0, 0.2, None, 0.2, 0.2, 0.2], pa.float32()),
    "reference_length": [5, 10, 15, 5, 5, 5],
    "translation_length": [5, 20, 5, 5, 5, 5],
}


@pytest.fixture
def file(tmp_path):
    pq.write_table(pa.table(ROWS), tmp_path / "p.parquet")
    return tmp_path / "p.parquet"


def read(*sources, unwanted=(), seed=1, rows=20_000, **settings):
    pairs = Pairs(sources, PairSelection(**settings), unwanted, seed=seed, rows=rows)
    found = [row for table in pairs.batches() for row in zip(*(table[s].to_pylist() for s in table.column_names))]  # noqa: B905
    return found, pairs


def names(found):
    return [reference for reference, _ in found]


def test_nulls_are_left_out_and_counted(file):
    found, pairs = read(file)
    assert found == [("r0", "t0"), ("r1", "t1"), ("r2", "t2"), ("r5", "t5")]
    assert (pairs.read, pairs.left_out_by) == (6, {"pairs without text on a side": 2})
    # Again, as often as wanted, with fresh counts.
    assert sum(table.num_rows for table in pairs.batches()) == 4
    assert pairs.read == 6


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"min_score": 0.5}, ["r1", "r2"]),
        ({"max_score": 0.5}, ["r0", "r1"]),
        ({"min_score": 0.2, "max_score": 0.8}, ["r1"]),
        ({"max_overlap": 0.1}, ["r0"]),
        ({"max_length": 15}, ["r0", "r2", "r5"]),
        ({"max_length": 5, "min_score": 0.1}, ["r0"]),
        ({"first_pairs": 1, "min_score": 0.9}, ["r2"]),
        ({"first_pairs": 100}, ["r0", "r1", "r2", "r5"]),
        ({"max_pairs": 100}, ["r0", "r1", "r2", "r5"]),
        ({"min_score": 1.0}, []),
    ],
)
def test_choices(file, settings, kept):
    assert names(read(file, **settings)[0]) == kept


@pytest.mark.parametrize(
    "settings",
    [
        {"max_pairs": 1, "first_pairs": 1},
        {"ppdb_score": "PPDB2.0Score"},
    ],
)
def test_impossible_choices(settings):
    with pytest.raises(InputError):
        PairSelection(**settings)


def test_several_sources_and_first_pairs_over_batches(tmp_path, file):
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(3):
        table = pa.table({"reference": [f"f{number}", "x"], "translation": ["y", "z"], "extra": [1, 2]})
        pq.write_table(table, folder / f"{number}.parquet")
    assert names(read(folder)[0]) == ["f0", "x", "f1", "x", "f2", "x"]
    assert names(read(folder, file, first_pairs=8, rows=2)[0]) == ["f0", "x", "f1", "x", "f2", "x", "r0", "r1"]
    assert names(read(str(file), folder)[0])[:5] == ["r0", "r1", "r2", "r5", "f0"]


def test_drawn_pairs_are_a_sample_of_all_sources(tmp_path):
    for number, name in enumerate("abc"):
        write_rows(tmp_path / f"{number}.parquet", [f"{name}{row}" for row in range(1000)])
    found, pairs = read(tmp_path, max_pairs=300, rows=300)
    assert len(found) == len(set(found)) == 300
    # Sorted by source; with equal chances each gives 100, with a standard deviation of 7.
    counts = [sum(name.startswith(letter) for name in names(found)) for letter in "abc"]
    assert all(75 < count < 125 for count in counts), counts
    # In the order of the data, again as often as wanted, and another seed draws others.
    assert names(found) == sorted(names(found), key=lambda name: (name[0], int(name[1:])))
    assert [row for table in pairs.batches() for row in table["reference"].to_pylist()] == names(found)
    assert pairs.read == 3000
    other = set(names(read(tmp_path, max_pairs=300, seed=2)[0]))
    assert 10 < len(other & set(names(found))) < 60
    # Batches change nothing.
    assert read(tmp_path, max_pairs=300, rows=7)[0] == found


def test_only_chosen_pairs_are_drawn(tmp_path):
    table = {"reference": [f"r{row}" for row in range(400)], "translation": ["t"] * 400}
    pq.write_table(pa.table({**table, "para_score": [row / 400 for row in range(400)]}), tmp_path / "p.parquet")
    unwanted = [f"r{row}" for row in range(300, 350)]
    found, pairs = read(tmp_path / "p.parquet", min_score=0.5, max_pairs=149, unwanted=unwanted)
    assert len(found) == 149 and {int(name[1:]) for name in names(found)} < {*range(200, 300), *range(350, 400)}
    assert pairs.left_out_by == {"pairs outside the chosen ranges": 200, "pairs with an excluded sentence": 50}


def test_each_row_is_drawn_as_often():
    """Over many seeds each of 50 rows is among the 10 drawn in a fifth of the draws."""
    times = np.zeros(50)
    for seed in range(500):
        numbers = lottery(np.arange(50), seed)
        drawn = numbers <= np.uint64(draw_bound(50, 10, seed))
        assert drawn.sum() == 10
        times += drawn
    # The standard deviation is 8.9.
    assert abs(times - 100).max() < 36


def test_draw_over_parts():
    whole = draw_bound(10_000, 100, 3)
    assert draw_bound(10_000, 100, 3, at_once=37) == whole == np.sort(lottery(np.arange(10_000), 3))[99]
    assert draw_bound(100, 100, 3) is None


def test_release_folder(tmp_path):
    write_release([make_rows(400), make_rows(600, 400)], tmp_path / "corpus")
    found, _ = read(tmp_path / "corpus")
    assert names(found) == [f"reference {number}" for number in range(1000)]
    # Of 1,000 scores the best two tenths begin with 0.8; 40 lengths in turn, 30 at most.
    filtered, _ = read(tmp_path / "corpus", subset="filtered")
    assert 0 < len(filtered) < 200
    assert set(filtered) <= set(found[800:])
    assert len(read(tmp_path / "corpus", min_score=0.9, max_length=10)[0]) < 100
    with refused("subset"):
        read(tmp_path / "corpus", subset="best")


def test_sentences_of_the_test_sets_are_left_out(tmp_path):
    table = pa.table(
        {
            "reference": ["A man, sleeps!", "a dog runs", "the man sleeps", "x", "Élan vital."],
            "translation": ["one", "A Man sleeps .", "two", "y", "z"],
        }
    )
    pq.write_table(table, tmp_path / "p.parquet")
    unwanted = ["a man sleeps.", "élan—vital."]
    found, pairs = read(tmp_path / "p.parquet", unwanted=unwanted)
    assert names(found) == ["the man sleeps", "x"]
    assert pairs.left_out_by == {"pairs with an excluded sentence": 3}
    assert pairs.identity["unwanted_sentences"] == 2


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.string_view()])
def test_other_types_of_text(tmp_path, kind):
    column = pa.chunked_array([pa.array(["a b", "c"], pa.string()).cast(kind)])
    pq.write_table(pa.table({"reference": column, "translation": column}), tmp_path / "p.parquet")
    found, pairs = read(tmp_path / "p.parquet", unwanted=["C."])
    assert found == [("a b", "a b")]
    assert next(iter(pairs.batches())).schema.types == [pa.string()] * 2


def test_columns_that_are_no_text(tmp_path):
    pq.write_table(pa.table({"reference": [1], "translation": ["a"]}), tmp_path / "p.parquet")
    with refused():
        read(tmp_path / "p.parquet")


def test_missing_columns_and_files(tmp_path, file):
    pq.write_table(pa.table({"en": ["a"], "mt": ["b"]}), tmp_path / "q.parquet")
    with refused("columns", path=tmp_path / "q.parquet"):
        read(tmp_path / "q.parquet")
    pq.write_table(pa.table({"reference": ["a"], "translation": ["b"]}), tmp_path / "r.parquet")
    with refused(path=tmp_path / "r.parquet"):
        read(tmp_path / "r.parquet", min_score=0.5)
    with refused(path=tmp_path / "none.parquet"):
        read(tmp_path / "none.parquet")
    with pytest.raises(InputError):
        read("./none")
    with refused():
        read()
    (tmp_path / "empty").mkdir()
    with refused(path=tmp_path / "empty"):
        read(tmp_path / "empty")


@pytest.mark.parametrize(
    ("twice", "everything", "option"),
    [
        ("reference", False, "columns"),
        ("translation", False, "columns"),
        ("reference", True, "columns"),
        ("extra", True, None),
    ],
)
def test_columns_of_one_name_are_refused_if_they_are_read(tmp_path, twice, everything, option):
    path = tmp_path / "p.parquet"
    names = ["reference", "translation", "extra", twice]
    pq.write_table(pa.Table.from_arrays([pa.array(["a", "b"])] * 4, names=names), path)
    with refused(option, path=path):
        Pairs([path], PairSelection(), all_columns=everything)
    if twice == "extra":
        assert len(list(Pairs([path], PairSelection()).batches())) == 1


def test_truncated_and_damaged_files(tmp_path, file):
    content = file.read_bytes()
    (tmp_path / "cut.parquet").write_bytes(content[: len(content) // 2])
    (tmp_path / "bad.parquet").write_bytes(content[:4] + bytes(56) + content[60:])
    for name in ("cut.parquet", "bad.parquet"):
        with refused(path=tmp_path / name):
            read(tmp_path / name)


def test_identity_tells_sources_and_choices_apart(tmp_path, file):
    first = Pairs([file], PairSelection()).identity
    assert first == Pairs([str(file)], PairSelection()).identity
    drawn = Pairs([file], PairSelection(max_pairs=3)).identity
    assert first != drawn != Pairs([file], PairSelection(max_pairs=3), seed=2).identity
    assert first != Pairs([file], PairSelection(first_pairs=3)).identity != drawn
    assert first != Pairs([file, file], PairSelection()).identity
    assert first != Pairs([file], PairSelection(min_score=0.1)).identity
    assert first["sources"][0][0].startswith("p.parquet ")


def write_rows(path, references, **options):
    pq.write_table(pa.table({"reference": references, "translation": references}), path, **options)
    return path


def test_files_without_rows_are_named(tmp_path):
    empty = write_rows(tmp_path / "empty.parquet", pa.array([], pa.string()))
    with refused(path=empty):
        Pairs([empty], PairSelection())
    # A part of several may be empty.
    write_rows(tmp_path / "full.parquet", ["a"])
    assert [table.num_rows for table in Pairs([tmp_path], PairSelection()).batches()] == [1]


@pytest.mark.parametrize("rows", [3, 100_000])
def test_another_file_of_the_same_name_and_size_is_told(tmp_path, rows):
    """Neither compression nor statistics tell these apart by their size."""
    options = {"compression": "none", "use_dictionary": False, "write_statistics": rows > 3}
    texts = [f"sentence {number:06}" for number in range(rows)]
    path = write_rows(tmp_path / "p.parquet", texts, **options)
    before, size = Pairs([path], PairSelection()).identity, path.stat().st_size
    assert f"p.parquet {size} bytes, {rows} rows, sha256:" in before["sources"][0][0]
    (tmp_path / "copy").mkdir()
    copy = shutil.copyfile(path, tmp_path / "copy" / "p.parquet")
    os.utime(copy, (1, 1))
    assert Pairs([copy], PairSelection()).identity == before
    write_rows(path, [text.replace("sentence", "sequence") for text in texts], **options)
    assert path.stat().st_size == size
    assert Pairs([path], PairSelection()).identity != before
