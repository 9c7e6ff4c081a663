"""Scores and sentences in one file, as other programs write it: names in any order, none, quotes, packed."""

import bz2
import gzip
import json
import lzma

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import InputError
from paranmt_hf.evaluation.sts_data import read_scored_pairs, read_sts

LEFT = ["A plane is taking off.", 'He said "no" to it.', "A man, a plan."]
RIGHT = ["An air plane is taking off.", "He refused.", "A dog is outside."]
GOLD = [5.0, 3.8, 0.25]
ROWS = list(zip(GOLD, LEFT, RIGHT, strict=True))


def lines(separator, columns, names=None):
    found = [separator.join(str(row[column]) for column in columns) for row in ROWS]
    return "\n".join([*([separator.join(names)] if names else []), *found, ""])


def quoted(text):
    return '"' + text.replace('"', '""') + '"'


# Of STS-B in GLUE's tsv files, whose quotes are text.
GLUE = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n" + "".join(
    f"{row}\tmain-captions\tMSRvid\t2012test\t{row}\tnone\tnone\t{left}\t{right}\t{gold}\n"
    for row, (gold, left, right) in enumerate(ROWS)
)
SICK = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n" + "".join(
    f"{row}\t{left}\t{right}\t{gold}\tNEUTRAL\n" for row, (gold, left, right) in enumerate(ROWS)
)
# stsb-multi-mt's files: no names, the score last.
MULTILINGUAL = "".join(f"{quoted(left)},{quoted(right)},{gold}\n" for gold, left, right in ROWS)
PANDAS = "sentence1;sentence2;score\n" + "".join(
    f"{quoted(left)};{quoted(right)};{gold}\n" for gold, left, right in ROWS
)
JSON_LINES = "".join(
    json.dumps({"score": gold, "sentence1": left, "sentence2": right, "idx": 7}) + "\n" for gold, left, right in ROWS
)
JSON_ARRAY = json.dumps([{"sentence1": left, "sentence2": right, "label": gold} for gold, left, right in ROWS])

FILES = {
    "names.tsv": lines("\t", (0, 1, 2), ["score", "sentence1", "sentence2"]),
    "order.tsv": lines("\t", (2, 1, 0), ["Sentence 2", "Sentence 1", "Score"]),
    "first.tsv": lines("\t", (0, 1, 2)),
    "last.tsv": lines("\t", (1, 2, 0)),
    "windows.tsv": lines("\t", (0, 1, 2)).replace("\n", "\r\n"),
    "mark.tsv": "\ufeff" + lines("\t", (0, 1, 2)),
    "blank-line.tsv": lines("\t", (0, 1, 2)) + "\n",
    "glue.tsv": GLUE,
    "SICK_test_annotated.txt": SICK,
    "de-dev.csv": MULTILINGUAL,
    "pandas.csv": PANDAS,
    "lines.jsonl": JSON_LINES,
    "array.json": JSON_ARRAY,
}


def check(pairs):
    assert (pairs.left, pairs.right, pairs.gold.tolist(), pairs.skipped) == (LEFT, RIGHT, GOLD, 0)


@pytest.mark.parametrize("name", FILES)
def test_text_files(tmp_path, name):
    path = tmp_path / name
    path.write_text(FILES[name], encoding="utf8", newline="")
    (found,) = read_sts(path)
    assert found.name == path.stem
    check(found)
    check(read_scored_pairs(path))


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)])
def test_packed_files(tmp_path, suffix, pack):
    path = tmp_path / f"mine.tsv{suffix}"
    path.write_bytes(pack(FILES["names.tsv"].encode()))
    (pairs,) = read_sts(path)
    assert pairs.name == "mine"
    check(pairs)


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.decimal128(5, 2), pa.string()])
def test_parquet(tmp_path, kind):
    table = pa.table({"sentence2": RIGHT, "more": [1, 2, 3], "score": GOLD, "sentence1": LEFT})
    scores = [str(gold) for gold in GOLD] if kind == pa.string() else pa.array(GOLD).cast(kind, safe=False)
    table = table.set_column(2, "score", pa.array(scores, kind) if kind == pa.string() else scores)
    pq.write_table(table, tmp_path / "mine.parquet")
    (pairs,) = read_sts(tmp_path / "mine.parquet")
    np.testing.assert_allclose(pairs.gold, GOLD, rtol=1e-6)
    assert pairs.left == LEFT


@pytest.mark.slow
def test_a_folder_of_save_to_disk(tmp_path):
    from datasets import Dataset

    Dataset.from_dict({"sentence1": LEFT, "sentence2": RIGHT, "score": GOLD}).save_to_disk(tmp_path / "saved")
    (pairs,) = read_sts(tmp_path / "saved")
    check(pairs)


def test_pairs_without_a_score_are_skipped_and_counted(tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text("score\tsentence1\tsentence2\n5\ta b\tc d\n\te f\tg h\n")
    (pairs,) = read_sts(path)
    assert (pairs.left, pairs.skipped) == (["a b"], 1)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("names.tsv", "sentence1\tsentence2\tscore\na\tc\t1\nb\td\n"),
        ("number.tsv", "sentence1\tsentence2\tscore\na\tc\tbest\n"),
        ("number.csv", "1,a b,c d\n2,e,f\nbest,g,h\n"),
        ("comma.csv", "sentence1;sentence2;score\na;c;4,8\n"),
        ("empty.tsv", "sentence1\tsentence2\tscore\n\tc\t1\n"),
        ("none.tsv", "a\tb\tc\n"),
        ("short.tsv", "1\ta\tb\n0\tc\n"),
        # GLUE's test file has no scores.
        ("test.tsv", "index\tsentence1\tsentence2\n0\ta b\tc d\n"),
        ("other.tsv", "premise\thypothesis\tscore\na\tb\t1\n"),
        ("two.csv", "a b,c d\n"),
        ("text.txt", "a sentence\nanother\n"),
        ("blank.tsv", " \ta\tb\n1 \ta\n"),
        ("nothing.tsv", ""),
        ("pairs.zip", "PK\x03\x04"),
        ("large.jsonl", f'{{"sentence1": "a b", "sentence2": "c d", "score": {10**400}}}\n'),
    ],
)
def test_what_is_wrong_names_the_file(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    for read in (read_scored_pairs, read_sts):
        with pytest.raises(InputError) as caught:
            read(path)
        assert path.name in str(caught.value)


@pytest.mark.parametrize(
    "table",
    [
        pa.Table.from_arrays([pa.array(["1"])] * 4, names=["sentence1", "sentence2", "sentence2", "score"]),
        pa.table({"sentence1": ["a"], "score": [1]}),
        pa.table({"sentence1": ["a", "b"], "sentence2": ["c", "d"], "score": [1.0, float("nan")]}),
        pa.table({"sentence1": [b"\xff"], "sentence2": ["c"], "score": [1.0]}),
        pa.table({"sentence1": [["a"]], "sentence2": ["c"], "score": [1.0]}),
    ],
    ids=["twice", "absent", "nan", "not UTF-8", "lists"],
)
def test_bad_parquet(tmp_path, table):
    path = tmp_path / "p.parquet"
    pq.write_table(table, path)
    with pytest.raises(InputError) as caught:
        read_scored_pairs(path)
    assert path.name in str(caught.value)


@pytest.mark.slow
def test_the_translated_benchmark(shared_data):
    """stsb-multi-mt: 1,500 pairs of each language, without names."""
    for path in sorted((shared_data / "sts" / "multilingual").glob("*.csv")):
        (pairs,) = read_sts(path)
        assert len(pairs) == 1500 and pairs.skipped == 0
        assert 0 <= pairs.gold.min() and pairs.gold.max() == 5


@pytest.mark.parametrize(
    "before", ["{row}\t", "main-news\theadlines\t2013\t{row}\t"], ids=["numbers of rows", "years"]
)
def test_two_columns_of_numbers_need_names(tmp_path, before):
    rows = [(before.format(row=row), f"{row % 5}.5\tA man {row} plays.\tIt rains {row}.\n") for row in range(9)]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(start + end for start, end in rows))
    for read in (read_sts, read_scored_pairs):
        with pytest.raises(InputError) as caught:
            read(path)
        assert caught.value.path == path
    others = "".join(f"column{number}\t" for number in range(before.count("\t")))
    path.write_text(f"{others}score\tsentence1\tsentence2\n" + path.read_text())
    found = read_scored_pairs(path)
    assert found.gold.tolist() == [row % 5 + 0.5 for row in range(9)]
    assert (found.left[1], found.right[1]) == ("A man 1 plays.", "It rains 1.")


@pytest.mark.parametrize("column", ["SemEval_set", "split"])
def test_parts_of_a_file_are_scored_apart(tmp_path, column):
    path = tmp_path / "SICK.txt"
    rows = [("TRAIN", "4.5"), ("TEST", "1"), ("TEST", ""), ("TRAIN", "2"), ("TEST", "3"), ("TEST", "5")]
    lines = [f"{number}\ta b {number}\tb a\t{score}\t{part}" for number, (part, score) in enumerate(rows)]
    path.write_text("\n".join([f"pair_ID\tsentence_A\tsentence_B\trelatedness_score\t{column}", *lines, ""]))
    (found,) = read_sts(path)
    assert found.gold.tolist() == [4.5, 1, 2, 3, 5]
    gold = {name: found.gold[mask].tolist() for name, mask in found.subsets.items()}
    assert gold == {"TEST": [1, 3, 5], "TRAIN": [4.5, 2]}
