"""The text of evaluation sets of any layout, and what is said of files that hold none."""

import bz2
import gzip
import json
import lzma
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paranmt_hf.corpus.reading.evaluation_sets import read_sentences
from tests.refused import refused


def test_layouts(tmp_path):
    sts = tmp_path / "STS12-en-test"
    sts.mkdir()
    (sts / "STS.input.x.txt").write_text("A dog.\tA cat.\n", encoding="utf8")
    (sts / "STS.gs.x.txt").write_text("3.0\n", encoding="utf8")
    (tmp_path / "TREC.train").write_text("NUM:dist How far is it ?\nNote: this stays\n", encoding="utf8")
    (tmp_path / "rt-polarity.pos").write_bytes("a na\xefve film\n".encode("latin-1"))
    (tmp_path / "sts-dev.csv").write_text('main\tx\t1\t2\t5.0\t"Quoted, half\tAnother\n', encoding="utf8")
    (tmp_path / "table.csv").write_text('id,text\n1,"One, two"\n', encoding="utf8")
    (tmp_path / "lines.jsonl").write_text(json.dumps({"a": ["x y", {"b": "z"}], "c": 3}) + "\n\n", encoding="utf8")
    (tmp_path / "all.json").write_text(json.dumps(["in json"]), encoding="utf8")
    (tmp_path / "more.txt.gz").write_bytes(gzip.compress(b"\xef\xbb\xbfpacked text\r\n"))
    pq.write_table(pa.table({"s": ["from parquet", None], "n": [1, 2]}), tmp_path / "a.parquet")
    found = read_sentences(tmp_path)
    assert set(found.texts) == {
        "A dog.", "A cat.", "How far is it ?", "Note: this stays", "a naïve film", "main", "x", '"Quoted, half',
        "Another", "id", "text", "One, two", "x y", "z", "in json", "packed text", "from parquet",
    }  # fmt: skip
    assert found.texts == sorted(found.texts)
    assert not found.unread
    assert found.files[str(sts / "STS.gs.x.txt")] == 0


def test_formats_of_single_files(tmp_path):
    """Each as other programs write it: packed, quoted TSV of pandas, CSV with semicolons, ragged rows."""
    contents = {
        "a.txt.bz2": bz2.compress(b"of bzip2\n"),
        "a.txt.xz": lzma.compress(b"of xz\n") + bytes(4) + lzma.compress(b"behind zeros\n"),
        "a.txt.zst": pa.compress(b"of zstandard\n", "zstd", asbytes=True),
        "a.jsonl.gz": gzip.compress(json.dumps({"text": "of packed json"}).encode()),
        "quoted.tsv": b'one\ttwo\n"He said ""no""."\t"with\ttab"\n',
        "semicolons.csv": b'"left; side";right side\n"more; text";"end"\n',
        "ragged.tsv": b"a b\tc d\ne f\tg h\ti j\n",
        "ragged.csv": b"k l,m n\no p,q r,s t\n",
        "indented.json": json.dumps({"data": [{"a": "u v"}, {"a": ["w x"]}]}, indent=2).encode(),
        "lines.json": b'{"a": "y z"}\n\n{"a": "z z"}\n',
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    found = read_sentences(tmp_path)
    assert not found.unread
    assert set(found.texts) == {
        "of bzip2", "of xz", "behind zeros", "of zstandard", "of packed json", "one", "two", 'He said "no".',
        "with tab", "left; side", "right side", "more; text", "end", "a b", "c d", "e f", "g h", "i j", "k l", "m n",
        "o p", "q r", "s t", "u v", "w x", "y z", "z z",
    }  # fmt: skip


def test_quotes_that_are_text_in_csv(tmp_path):
    """Rows of the STS benchmark have 7 or 9 fields; quotes need not end with the field, or at all."""
    rows = [f"news\tx\t1\t{n}\t4.4\tThe man {n}.\tA man {n}." + "\tsource\tsource" * (n % 3 == 0) for n in range(9)]
    rows[4] = 'news\tx\t1\t4\t4.4\t"It is black," he said.\t"A black eye'
    (tmp_path / "sts-test.csv").write_text("\n".join(rows), encoding="utf8")
    (tmp_path / "plain.csv").write_text('one,"two, three"\n"Four," he said.,five\n', encoding="utf8")
    found = read_sentences(tmp_path)
    assert not found.unread
    expected = {'"It is black," he said.', '"A black eye', "one", "two, three", "five", "The man 8.", "A man 0."}
    assert expected <= set(found.texts)


def test_what_is_not_read_is_said(tmp_path):
    (tmp_path / "good.txt").write_text("A dog.\n", encoding="utf8")
    (tmp_path / "model.bin").write_bytes(b"\0\1")
    (tmp_path / "bad.parquet").write_bytes(b"none")
    (tmp_path / "bad.jsonl").write_text("{", encoding="utf8")
    (tmp_path / "bad.txt.gz").write_bytes(b"none")
    (tmp_path / "README.md").write_text("All about it", encoding="utf8")
    packed = bytearray(gzip.compress(b"a sentence that is packed\n" * 50))
    # A block of a kind that there is none of.
    packed[10] = 0xFF
    (tmp_path / "damaged.txt.gz").write_bytes(packed)
    unread = {name.rpartition("/")[2]: reason for name, reason in read_sentences(tmp_path).unread.items()}
    assert set(unread) == {"model.bin", "bad.parquet", "bad.jsonl", "bad.txt.gz", "README.md", "damaged.txt.gz"}
    assert all(reason and str(tmp_path) not in reason for reason in unread.values())


def test_checksum_is_that_of_the_text(tmp_path):
    for name, text in (("a", "one\ntwo\n"), ("b", "two\tone\n"), ("c", "two\tonE\n")):
        (tmp_path / name).write_text(text, encoding="utf8")
    first, second, third = (read_sentences(tmp_path / name).checksum for name in "abc")
    assert first == second != third


def test_nothing_there(tmp_path):
    with refused():
        read_sentences(tmp_path / "none")
    with refused():
        read_sentences(tmp_path)
    (tmp_path / "x.bin").write_bytes(b"\0")
    with refused():
        read_sentences(tmp_path)


@pytest.mark.slow
def test_real_sets(shared_data):
    sts, tasks = read_sentences(shared_data / "sts"), read_sentences(shared_data / "senteval")
    assert "A man with a hard hat is dancing." in sts.texts
    assert "How did serfdom develop in and then leave Russia ?" in tasks.texts
    assert any("\xe9" in text for text in tasks.texts)
    assert not sts.unread and not tasks.unread
    assert len(tasks.texts) > 35_000


@example(b"\rtext,more", "a.csv")
@given(
    st.binary(max_size=200), st.sampled_from(["a.txt", "a.csv", "a.tsv", "a.json", "a.jsonl", "a.txt.gz", "a.parquet"])
)
def test_any_bytes_are_read_or_named(content, name):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(content)
        (Path(folder) / "good.txt").write_text("good", encoding="utf8")
        found = read_sentences(folder)
        assert len(found.files) + len(found.unread) == 2
        assert "good" in found.texts
