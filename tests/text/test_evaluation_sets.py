"""All text of evaluation sets in any layout."""

import gzip
import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paranmt_hf.errors import InputError
from paranmt_hf.text.evaluation_sets import read_sentences


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


def test_what_is_not_read_is_said(tmp_path):
    (tmp_path / "good.txt").write_text("A dog.\n", encoding="utf8")
    (tmp_path / "model.bin").write_bytes(b"\0\1")
    (tmp_path / "bad.parquet").write_bytes(b"none")
    (tmp_path / "bad.jsonl").write_text("{", encoding="utf8")
    (tmp_path / "bad.txt.gz").write_bytes(b"none")
    (tmp_path / "README.md").write_text("All about it", encoding="utf8")
    unread = {name.rpartition("/")[2]: reason for name, reason in read_sentences(tmp_path).unread.items()}
    assert set(unread) == {"model.bin", "bad.parquet", "bad.jsonl", "bad.txt.gz", "README.md"}
    assert unread["model.bin"] == "it is not text"
    assert unread["README.md"] == "no data, by its name"
    assert unread["bad.jsonl"].startswith("it is not JSON")


def test_checksum_is_that_of_the_text(tmp_path):
    for name, text in (("a", "one\ntwo\n"), ("b", "two\tone\n"), ("c", "two\tonE\n")):
        (tmp_path / name).write_text(text, encoding="utf8")
    first, second, third = (read_sentences(tmp_path / name).checksum for name in "abc")
    assert first == second != third


def test_nothing_there(tmp_path):
    with pytest.raises(InputError, match="there is no folder .*none; expected one with evaluation sets"):
        read_sentences(tmp_path / "none")
    with pytest.raises(InputError, match="holds no evaluation set: expected text"):
        read_sentences(tmp_path)
    (tmp_path / "x.bin").write_bytes(b"\0")
    with pytest.raises(InputError, match="found x.bin: it is not text"):
        read_sentences(tmp_path)


def test_real_sets(shared_data):
    sts, tasks = read_sentences(shared_data / "sts"), read_sentences(shared_data / "senteval")
    assert "A man with a hard hat is dancing." in sts.texts
    assert "How did serfdom develop in and then leave Russia ?" in tasks.texts
    assert any("\xe9" in text for text in tasks.texts)
    assert not sts.unread and not tasks.unread
    assert len(tasks.texts) > 35_000


@settings(max_examples=60)
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


def test_a_damaged_archive_is_named(tmp_path):
    packed = bytearray(gzip.compress(b"a sentence that is packed\n" * 50))
    # A block of a kind that there is none of.
    packed[10] = 0xFF
    (tmp_path / "damaged.txt.gz").write_bytes(packed)
    (tmp_path / "good.txt").write_text("A good sentence .\n", encoding="utf8")
    found = read_sentences(tmp_path)
    assert found.texts == ["A good sentence ."]
    assert list(found.unread) == [str(tmp_path / "damaged.txt.gz")]
