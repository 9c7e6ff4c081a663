"""Rows that cannot be used get a sentence, and what is written can be read again."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import InputError
from paranmt_hf.paraphrase.adversarial import find_classifier
from paranmt_hf.paraphrase.labelled_file import LabelledFile, TableWriter


def read(path):
    return [row for table in LabelledFile(path).batches() for row in table.to_pylist()]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"x", r"ends in .tsv or .csv or .jsonl or .parquet"),
        ("a.tsv", b"text\tclass\nx\ty\n", "no column 'label'; it has text, class. Name them with `columns`"),
        ("a.tsv", b"text\tlabel\nx\ty\nx\n", "Expected 2 columns, got 1"),
        ("a.tsv", b"text\tlabel\nx\ty\nx\t\n", "row 2 has no 'label'"),
        ("a.tsv", b"text\tlabel\n", "has no row"),
        ("a.tsv", b"text\tlabel\n\xff\ta\n", "cannot read"),
        ("a.csv", b"text,text,label\na,b,c\n", "has several columns 'text'"),
        ("a.jsonl", b'{"text": "x", "label": 1}\n{"text": "x"}\n', "line 2: expected 'text' and 'label', found text"),
        ("a.jsonl", b"nothing\n", "line 1: not JSON"),
        ("a.jsonl", b"[" * 100_000 + b"\n", "line 1: not JSON"),
        ("a.jsonl", b'{"text": "x", "label": 1.5}\n', "holds double; expected text or whole numbers"),
        ("a.jsonl", b'{"text": "x", "label": 1}\n{"text": "x", "label": "b"}\n', "'label' is of several types"),
        ("a.jsonl", b'{"text": 1, "label": 1}\n', "holds int64, expected text"),
        ("a.jsonl", b'{"text":"\\ud800","label":"a"}\n', "'text' is of several types, or holds no text"),
        ("a.jsonl", b'{"text":"a","label":99999999999999999999999}\n', "'label' is of several types"),
    ],
)
def test_rows_that_cannot_be_used(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read(tmp_path / name)


def test_labels_that_the_new_file_cannot_hold(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a", "label": "x"}\n{"text": "b", "label": "x\\ty"}\n')
    message = r"the 'label' of row 2 holds a tab or a line break, which TSV cannot hold; write .jsonl, .csv"
    with pytest.raises(InputError, match=message):
        list(LabelledFile(path, out=tmp_path / "out.TSV").batches())
    (table,) = LabelledFile(path, out=tmp_path / "out.csv").batches()
    assert table["label"].to_pylist() == ["x", "x\ty"]


def test_large_numbers_and_damaged_pages(tmp_path):
    pq.write_table(pa.table({"text": ["a"], "label": pa.array([2**64 - 1], pa.uint64())}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="larger than 64 bits can hold"):
        read(tmp_path / "a.parquet")
    path = tmp_path / "b.parquet"
    pq.write_table(pa.table({"text": ["a b"] * 50, "label": ["x"] * 50}), path, compression="none")
    damaged = bytearray(path.read_bytes())
    damaged[4:24] = b"\xff" * 20
    path.write_bytes(damaged)
    with pytest.raises(InputError, match="cannot read"):
        read(path)


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".jsonl", ".parquet"])
def test_what_is_written_can_be_read_again(tmp_path, suffix):
    rows = pa.table({"text": ['say "a, b"', "c"], "label": ["a\nb\tc", "x"]})
    with TableWriter(tmp_path / f"out{suffix}", rows.schema) as writer:
        writer.write(rows)
    found = read(tmp_path / f"out{suffix}")
    assert [row["source"] for row in found] == ['say "a, b"', "c"]
    # TSV has no way to write a new line or a tab.
    assert [row["label"] for row in found] == ["a b c" if suffix == ".tsv" else "a\nb\tc", "x"]


def test_a_function_that_gives_other_labels():
    judge = find_classifier(lambda sentences: ["positive" for _ in sentences])
    with pytest.raises(InputError, match="a label that is not a whole number; those of the file are, such as 1"):
        judge.labels_of(["a"], 1)
    assert json.loads(json.dumps(judge.labels_of(["a"], "x"))) == ["positive"]


def test_parquet_whose_text_is_not_utf8(tmp_path):
    text = pa.array([b"a dog", b"\xff"]).view(pa.string())
    pq.write_table(pa.table({"text": text, "label": [0, 1]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"^cannot read .*a.parquet: .*UTF8"):
        read(tmp_path / "a.parquet")
