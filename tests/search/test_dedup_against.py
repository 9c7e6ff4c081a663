"""Texts that repeat one of other files, and pairs whose sides may change places."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import DedupConfig, InputError, dedup

TRAIN = [
    "The cat sat on the mat today.",
    "It rains a lot here in the month of May.",
    "Turn the lights in the kitchen on.",
    "the cat sat on the mat today",
    "The train to the north is late again.",
]
OTHER = [
    "Nothing of this is in the other file.",
    "It rains a lot here in the month of May!",
    "It rains a lot here in the month of May, too.",
    "Please turn the lights in the kitchen off.",
    "The train to the north is late again today.",
]


def files(folder):
    (folder / "train.txt").write_text("\n".join(TRAIN) + "\n")
    (folder / "other.txt").write_text("\n".join(OTHER) + "\n")
    return folder / "train.txt", folder / "other.txt"


def test_repeats_of_another_file_go(tmp_path):
    train, other = files(tmp_path)
    gone = tmp_path / "gone.parquet"
    config = DedupConfig(by=("near", "meaning"), cosine=0.8)
    made = dedup(train, tmp_path / "out.txt", against=[other], config=config, keep_dropped=gone)
    assert made.folder.read_text().splitlines() == [TRAIN[0], TRAIN[2]]
    assert made.record.dropped == {"exact": 2, "near": 1, "meaning": 0}
    assert (made.record.rows, made.record.leaked) == (5, 2)
    rows = pq.read_table(gone).to_pylist()
    assert [(row["line"], row["like_line"], row["like_file"]) for row in rows] == [
        (2, 2, str(other)),
        (4, 1, None),
        (5, 5, str(other)),
    ]
    assert rows[0]["like_text"] == OTHER[1]
    # The lights that are off are no repetition, unless that is asked for.
    loose = DedupConfig(by=("meaning",), cosine=0.8, same_meaning=False)
    made = dedup(train, tmp_path / "loose.txt", against=[other], config=loose)
    assert made.folder.read_text().splitlines() == [TRAIN[0]]
    assert not dedup(train, tmp_path / "loose.txt", against=[other], config=loose).fresh


def test_a_text_that_the_other_file_repeats_itself_is_compared_with_all(tmp_path):
    # The second text of the other file is near to the first, and only it is near to the row.
    words = [f"w{number}" for number in range(40)]
    (tmp_path / "other.txt").write_text("\n".join([" ".join(words[:30]), " ".join(words[2:33])]) + "\n")
    (tmp_path / "train.txt").write_text(" ".join(words[6:36]) + "\n")
    config = DedupConfig(by=("near",), similarity=0.7)
    made = dedup(tmp_path / "train.txt", tmp_path / "out.txt", against=[tmp_path / "other.txt"], config=config)
    assert made.record.dropped == {"exact": 0, "near": 1}


def test_pairs_may_change_sides(tmp_path):
    train = {"a": ["A dog runs.", "It rains.", "Hello there."], "b": ["The dog is running.", "Rain falls.", "Hi."]}
    test = {"a": ["the dog is running", "Rain falls a lot."], "b": ["a dog runs", "It rains."]}
    pq.write_table(pa.table(train), tmp_path / "train.parquet")
    pq.write_table(pa.table(test), tmp_path / "test.parquet")
    options = {"column": "a", "second_column": "b", "config": DedupConfig(by=("exact",))}
    made = dedup(tmp_path / "train.parquet", tmp_path / "out.parquet", against=[tmp_path / "test.parquet"], **options)
    assert pq.read_table(made.folder)["b"].to_pylist() == train["b"][1:]
    both = {name: train[name] + train[other] for name, other in (("a", "b"), ("b", "a"))}
    pq.write_table(pa.table(both), tmp_path / "both.parquet")
    made = dedup(tmp_path / "both.parquet", tmp_path / "one.parquet", **options)
    assert pq.read_table(made.folder).to_pydict() == train


def test_where_a_side_ends_and_sides_that_are_not_text(tmp_path):
    rows = [
        b"big cat\tsat",
        b"big\tcat sat",
        b"Hello\t\xff\xfe",
        b"Hello\t\xff\xfd",
        b"Hello\t",
        b"Hello\t",
        b"sat\tbig cat",
    ]
    (tmp_path / "in.tsv").write_bytes(b"\n".join([b"x\ty", *rows]) + b"\n")
    made = dedup(tmp_path / "in.tsv", tmp_path / "out.tsv", column="x", second_column="y")
    assert made.folder.read_bytes().splitlines()[1:] == rows[:6]
    assert (made.record.dropped["exact"], made.record.undecodable) == (1, 2)


def test_split_documents_against_others(tmp_path):
    pytest.importorskip("sentencex")
    (tmp_path / "train.txt").write_text("One is here. The second sentence stays. A third one.\nA third one.\n")
    (tmp_path / "other.txt").write_text("No such thing. One is here.\n")
    gone = tmp_path / "gone.parquet"
    made = dedup(
        tmp_path / "train.txt", tmp_path / "out.txt", against=[tmp_path / "other.txt"], split=True, keep_dropped=gone
    )
    assert made.folder.read_text() == "The second sentence stays. A third one.\n"
    rows = [
        (row["line"], row["sentence"], row["like_line"], row["like_sentence"], row["like_file"] is not None)
        for row in pq.read_table(gone).to_pylist()
    ]
    assert rows == [(1, 1, 1, 2, True), (2, 1, 1, 3, False)]


def test_bad_input(tmp_path):
    train, other = files(tmp_path)
    (tmp_path / "table.tsv").write_text("a\tb\nx\ty\n")
    table = tmp_path / "table.tsv"
    for source, options, option, path in (
        (train, {"against": [train]}, "against", train),
        (train, {"against": [tmp_path / "no.txt"]}, None, tmp_path / "no.txt"),
        (table, {"column": "a", "second_column": "a"}, "second_column", None),
        (table, {"column": "a", "second_column": "c"}, "column", table),
        (table, {"column": "a", "second_column": "b", "against": [other]}, "column", other),
        (table, {"column": "a", "second_column": "b", "split": True}, "second_column", None),
    ):
        with pytest.raises(InputError) as raised:
            dedup(source, tmp_path / f"out{source.suffix}", **options)
        assert (raised.value.option, raised.value.path) == (option, path), options
