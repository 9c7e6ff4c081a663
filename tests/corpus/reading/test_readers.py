"""Bitexts in files of lines and of fields with tabs."""

import json

import numpy as np
import pyarrow as pa
import pytest

from paranmt_hf.corpus.reading.readers import LineFiles, Report, TableFiles
from tests.corpus.reading.bitexts import BOM, COMPRESS, in_blocks, pair, read, write
from tests.refused import refused


def test_line_files_by_hand(tmp_path):
    text = pair(tmp_path, ["Ein  Hund.", "", "Zwei", "x" * 1001, "y" * 1000], ["A dog.", "none", "\u3000\t", "x", "y"])
    rows, report = read(text)
    assert rows == [(0, "Ein Hund.", "A dog."), (4, "y" * 1000, "y")]
    assert report.as_dict() == {"read": 5, "kept": 2, "dropped": {"empty": 2, "over-long": 1}}
    assert report.describe() == "read 5 rows, kept 2, dropped 3 (2 empty, 1 over-long)"
    assert Report().describe() == "read 0 rows, kept 0, dropped 0"


def test_three_files_in_the_given_order(tmp_path):
    files = {name: write(tmp_path / name, *(f"{name}{n}" for n in range(3))) for name in ("z", "a", "m")}
    assert LineFiles(files).columns == ("z", "a", "m")
    assert read(LineFiles(files), rows=2)[0] == [(n, f"z{n}", f"a{n}", f"m{n}") for n in range(3)]


def test_text_can_be_read_twice(tmp_path):
    text, report = pair(tmp_path, ["a", ""], ["b", "c"]), Report()
    assert list(text.batches(report)) == list(text.batches(report))
    assert report.as_dict() == {"read": 4, "kept": 2, "dropped": {"empty": 2}}


def test_memory_does_not_grow_with_the_file(tmp_path):
    count = 30_000
    text = pair(tmp_path, [f"Věta číslo {n}  ." for n in range(count)], [f"Sentence {n}." for n in range(count)])
    size, before, peak, read = text.files["source"].stat().st_size, pa.total_allocated_bytes(), 0, 0
    with in_blocks(1 << 14):
        for batch in text.batches(Report(), rows=100):
            read += batch.num_rows
            peak = max(peak, pa.total_allocated_bytes() - before)
    assert read == count
    assert size > 600_000
    assert 0 < peak < 300_000


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_compressed_in_several_members(tmp_path, suffix):
    path = tmp_path / f"text{suffix}"
    path.write_bytes(COMPRESS[suffix](b"one\ntw") + COMPRESS[suffix](b"o\nthree"))
    assert read(LineFiles({"a": path}))[0] == [(0, "one"), (1, "two"), (2, "three")]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_file_that_was_cut_off(tmp_path, suffix):
    content = "".join(f"{n:03}\n" for n in np.random.default_rng(0).integers(0, 999, 100_000)).encode()
    packed = COMPRESS[suffix](content)
    path = tmp_path / f"text{suffix}"
    path.write_bytes(packed[: len(packed) // 2])
    with in_blocks(1000), refused(path=path):
        read(LineFiles({"a": path}))


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_file_that_is_not_what_its_suffix_says(tmp_path, suffix):
    path = write(tmp_path / f"text{suffix}", "plain text", "and more")
    with refused(path=path):
        read(TableFiles([path], {"a": "1"}))


@pytest.mark.parametrize("content", [b"", BOM])
@pytest.mark.parametrize("suffix", sorted(COMPRESS))
def test_an_empty_file(tmp_path, suffix, content):
    path = tmp_path / f"text{suffix}"
    path.write_bytes(COMPRESS[suffix](content))
    with refused(path=path):
        read(LineFiles({"a": path}))


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-32"])
def test_another_encoding_is_refused(tmp_path, encoding, suffix):
    for number, text in enumerate(("one\n" * 3, "one")):
        path = tmp_path / f"{number}{suffix}"
        path.write_bytes(COMPRESS[suffix](text.encode(encoding)))
        with refused(path=path):
            read(LineFiles({"a": path}))


def test_missing_files_and_folders(tmp_path):
    here = write(tmp_path / "here", "a")
    with refused(path=tmp_path / "absent"):
        LineFiles({"source": here, "reference": tmp_path / "absent"})
    with refused(path=tmp_path):
        TableFiles([tmp_path], {"a": "1"})
    with refused(path=tmp_path / "absent"):
        TableFiles([tmp_path / "absent"], {"a": "a"})
    with refused():
        TableFiles([], {"a": "1"})


@pytest.mark.parametrize("block", [1, 5, 1 << 20])
@pytest.mark.parametrize(("left", "right"), [(3, 5), (400, 399)])
def test_files_of_different_length(tmp_path, left, right, block):
    text = pair(tmp_path, map(str, range(left)), map(str, range(right)))
    with in_blocks(block), refused():
        read(text)


def test_a_line_without_end(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"fine\nfine\n" + b"x" * (1 << 26) + b"xx")
    with refused(path=path):
        read(LineFiles({"a": path}))
    with in_blocks(10):
        assert read(LineFiles({"a": write(tmp_path / "b", "x" * 45, "y")}))[1].kept == 2


def test_tab_file_keeps_quotes_and_carriage_returns(tmp_path):
    path = tmp_path / "text.tsv"
    path.write_bytes(
        b'"He said\tit\'s "ok""\r\nopen "quote\tinner\rreturn\x85\xe2\x80\xa8end\n\\t\\n\t\\N\r\n'.replace(
            b"\x85", b""
        )
    )
    rows, report = read(TableFiles([path], {"a": "1", "b": "2"}))
    assert rows == [(0, '"He said', 'it\'s "ok""'), (1, 'open "quote', "inner return end"), (2, "\\t\\n", "\\N")]
    assert report.dropped == {}


def test_czeng_columns(tmp_path):
    row = "filter\tnews-1\t0.75\t{}\tČeská věta {}.\tEnglish sentence {}.".format
    first = write(tmp_path / "czeng-1", row("train", 0, 0), row("train", 1, 1))
    second = write(tmp_path / "czeng-2", row("", 2, 2))
    columns = {"source": "5", "reference": "6", "score": "3", "origin": "4"}
    text = TableFiles([first, second], columns, numbers=["score"], optional=["origin"])
    rows, _ = read(text)
    assert rows == [
        (0, "Česká věta 0.", "English sentence 0.", 0.75, "train"),
        (1, "Česká věta 1.", "English sentence 1.", 0.75, "train"),
        (2, "Česká věta 2.", "English sentence 2.", 0.75, None),
    ]
    types = next(text.batches(Report())).schema.types
    assert types == [pa.int64(), pa.string(), pa.string(), pa.float32(), pa.string()]


@pytest.mark.parametrize("block", [1, 8, 1 << 20])
def test_a_line_with_other_fields_than_the_first(tmp_path, block):
    good = write(tmp_path / "good", *["a\tb\tc"] * 5)
    # In the last, lines that lack and have too many fields make up for each other in the sum.
    for lines in (["a\tb"], ["a"], ["a\tb\tc\td"], ["a\tb\tc\td", "a\tb"]):
        path = write(tmp_path / "bad.tsv", "a\tb\tc", "a\tb\tc", *lines, "a\tb\tc")
        with in_blocks(block), refused(path=path):
            read(TableFiles([good, path], {"a": "1", "b": "2"}))


def test_names_of_columns_are_no_row(tmp_path):
    path = write(tmp_path / "pairs.tsv", "Sentence1\tsentence2\tscore", "a\tb\t1")
    for numbers in ({}, {"score": "3"}):
        rows, _ = read(TableFiles([path], {"reference": "1", "translation": "2", **numbers}, numbers=list(numbers)))
        assert rows == [(0, "a", "b", *[1.0 for _ in numbers])]
    assert read(TableFiles([write(tmp_path / "words", "sentence\tphrase")], {"a": "1", "b": "2"}))[1].kept == 1


@pytest.mark.parametrize("name", ["a.tsv", "a.csv.gz", "a.jsonl"])
def test_files_of_columns_are_no_sentences(tmp_path, name):
    with refused(path=tmp_path / name):
        LineFiles({"a": write(tmp_path / name, "a sentence\t1")})


def test_too_few_fields(tmp_path):
    path = write(tmp_path / "text", "a\tb", "a\tb")
    with refused("columns", path=path):
        read(TableFiles([path], {"source": "5", "reference": "6"}))


def test_a_bad_number_in_a_later_block_of_a_later_file(tmp_path):
    good = write(tmp_path / "good", *["a\t1"] * 9)
    bad = write(tmp_path / "bad", *["a\t0.5"] * 20, "a\tNaN", "a\t1")
    with in_blocks(16), refused():
        read(TableFiles([good, bad], {"text": "1", "score": "2"}, numbers=["score"]))


def test_numbers_that_may_be_missing(tmp_path):
    file = write(tmp_path / "good", "a\t0.5", "b\t", "c\t \u00a0", "d\t-1")
    options = {"numbers": ["score"], "optional": ["score"]}
    rows, _ = read(TableFiles([file], {"text": "1", "score": "2"}, **options))
    assert [score for _, _, score in rows] == [0.5, None, None, -1.0]
    for wrong in ("NaN", "x"):
        with refused():
            read(TableFiles([write(tmp_path / "bad", f"a\t{wrong}")], {"text": "1", "score": "2"}, **options))
    with refused():
        read(TableFiles([file], {"text": "1", "score": "2"}, numbers=["score"]))


def test_identity_of_files(tmp_path):
    text = pair(tmp_path, ["a"], ["b"])
    sha = "87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7"  # of "a\n"
    assert text.identity["files"]["source"] == {"name": "a", "bytes": 2, "sha256": sha}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert pair(elsewhere, ["a"], ["b"]).identity == text.identity
    assert str(tmp_path) not in json.dumps(text.identity)
    tab = write(tmp_path / "t", "a\tb")
    different = [
        text,
        pair(elsewhere, ["a"], ["B"]),
        LineFiles(text.files, max_characters=999),
        LineFiles({"reference": tmp_path / "a", "source": tmp_path / "b"}),
        TableFiles([tab], {"a": "1"}),
        TableFiles([tab], {"a": "2"}),
        TableFiles([tab, tab], {"a": "1"}),
        TableFiles([tab], {"a": "1"}, optional=["a"]),
        TableFiles([tab], {"a": "1"}, numbers=["a"]),
    ]
    assert len({json.dumps(text.identity) for text in different}) == len(different)
