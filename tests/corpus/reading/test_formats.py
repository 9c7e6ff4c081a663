"""Every format of rows gives the same rows, plain and packed; what is not read is refused by name."""

import bz2
import csv
import gzip
import json
import lzma
import sqlite3
import tarfile
import zipfile
from decimal import Decimal

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import InputError
from paranmt_hf.corpus.reading.formats import open_table
from paranmt_hf.corpus.reading.readers import LineFiles, TableFiles
from tests.corpus.reading.bitexts import read, zstandard
from tests.refused import refused

NAMES = ["id", "left", "right", "score"]
ROWS = [
    (1, "A dog runs.", "The dog is running.", 0.5),
    (2, 'He said "no".', "one\ttab", 0.25),
    (3, "two\nlines", 'all "quoted"', 1.0),
    (4, "comma, semicolon; bar |", "back\\slash \\n", 0.0),
    (5, "é 中文 🙂", "'apostrophe'", 0.75),
]
# What the reader makes of white space.
WANTED = [(n - 1, " ".join(left.split()), " ".join(right.split()), score) for n, left, right, score in ROWS]
PACK = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstandard}


def delimited(path, **options):
    """Write as Python's csv module does, which pandas 3.1 writes with."""
    with path.open("w", newline="", encoding="utf8") as file:
        csv.writer(file, **options).writerows([NAMES, *ROWS])


def objects():
    return [dict(zip(NAMES, row, strict=True)) for row in ROWS]


def columns():
    return {name: list(values) for name, values in zip(NAMES, zip(*ROWS, strict=True), strict=True)}


WRITE = {
    "minimal.csv": lambda path: delimited(path),
    "all.csv": lambda path: delimited(path, quoting=csv.QUOTE_ALL),
    "semicolon.csv": lambda path: delimited(path, delimiter=";"),
    "backslash.csv": lambda path: delimited(path, doublequote=False, escapechar="\\"),
    "unix.csv": lambda path: delimited(path, lineterminator="\n"),
    # `frame.to_csv(path, sep="\t", index=False)` of pandas 3.1.
    "quoted.tsv": lambda path: delimited(path, delimiter="\t", lineterminator="\n"),
    "quoted_text.tsv": lambda path: delimited(path, delimiter="\t", quoting=csv.QUOTE_NONNUMERIC),
    # `frame.to_json(path, orient="records", lines=True)` of pandas, `write_ndjson` of polars.
    "lines.jsonl": lambda path: path.write_text("".join(f"{json.dumps(row)}\n" for row in objects())),
    "utf8.ndjson": lambda path: path.write_text("\n".join(json.dumps(o, ensure_ascii=False) for o in objects())),
    "lines.json": lambda path: path.write_text("".join(f"{json.dumps(row)}\n" for row in objects())),
    # `write_json` of polars, `COPY ... (ARRAY true)` of DuckDB.
    "array.json": lambda path: path.write_text(json.dumps(objects())),
    "indented.json": lambda path: path.write_text(json.dumps(objects(), indent=2)),
}


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("name", WRITE)
def test_rows_of_every_format(tmp_path, name, suffix):
    WRITE[name](tmp_path / name)
    path = tmp_path / f"{name}{suffix}"
    path.write_bytes(PACK[suffix]((tmp_path / name).read_bytes()))
    by_name = TableFiles([path], {"a": "left", "b": "right", "n": "score"}, numbers=["n"])
    assert read(by_name)[0] == WANTED
    by_number = TableFiles([path], {"a": "2", "b": "3", "n": "4"}, numbers=["n"])
    assert read(by_number)[0] == WANTED
    table = open_table(path)
    assert (table.names, table.texts) == (tuple(NAMES), ("left", "right"))


@pytest.mark.parametrize("name", [*WRITE, "table.parquet"])
def test_rows_are_written_as_they_were(tmp_path, name):
    if name == "table.parquet":
        pq.write_table(pa.table(columns()), tmp_path / name)
    else:
        WRITE[name](tmp_path / name)
    kept = np.array([True, False, True, False, True])
    open_table(tmp_path / name).write(tmp_path / f"some-{name}", kept)
    rows, _ = read(TableFiles([tmp_path / f"some-{name}"], {"a": "left", "b": "right"}))
    assert [row[1:] for row in rows] == [WANTED[index][1:3] for index in (0, 2, 4)]
    open_table(tmp_path / name).write(tmp_path / f"all-{name}", np.ones(5, bool))
    if name not in ("utf8.ndjson", "array.json", "indented.json", "table.parquet"):
        assert (tmp_path / f"all-{name}").read_bytes() == (tmp_path / name).read_bytes()
    if name.endswith("array.json"):
        assert json.loads((tmp_path / f"all-{name}").read_text()) == objects()


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dictionary", "binary", "binary_view"])
def test_types_of_parquet(tmp_path, kind):
    """Text as pandas, polars and DuckDB write it, and DECIMAL, which DuckDB gives numbers such as 0.5."""
    text = pa.array(["a dog", None, "a cat"])
    typed = text.dictionary_encode() if kind == "dictionary" else text.cast(kind)
    score = pa.array([Decimal("0.50"), Decimal("1.25"), Decimal("2.00")])
    pq.write_table(pa.table({"text": typed, "score": score, "flag": [True, False, True]}), tmp_path / "t.parquet")
    found = TableFiles([tmp_path / "t.parquet"], {"t": "text", "n": "score", "f": "flag"}, numbers=["n", "f"])
    rows, report = read(found)
    assert rows == [(0, "a dog", 0.5, 1.0), (2, "a cat", 2.0, 1.0)]
    assert report.dropped == {"empty": 1}


def test_lists_of_objects_are_refused_by_name(tmp_path):
    pq.write_table(pa.table({"pairs": [[{"text": "a"}]], "text": ["b"]}), tmp_path / "t.parquet")
    with refused():
        read(TableFiles([tmp_path / "t.parquet"], {"t": "pairs"}))
    assert open_table(tmp_path / "t.parquet").texts == ("text",)


def test_a_dataset_on_disk(tmp_path):
    datasets.Dataset.from_dict(columns()).save_to_disk(str(tmp_path / "one"))
    found = TableFiles([tmp_path / "one"], {"a": "left", "b": "right", "n": "score"}, numbers=["n"])
    assert read(found)[0] == WANTED
    datasets.DatasetDict({"train": datasets.Dataset.from_dict(columns())}).save_to_disk(str(tmp_path / "splits"))
    for folder in ("splits", "."):
        with refused(path=tmp_path / folder):
            open_table(tmp_path / folder)


@pytest.mark.parametrize("padding", [0, 4, 1000])
def test_padding_between_streams_of_xz(tmp_path, padding):
    """`xz -t` calls it valid; Python's lzma module ends at it without an error."""
    path = tmp_path / "text.txt.xz"
    path.write_bytes(lzma.compress(b"one\n") + bytes(padding) + lzma.compress(b"two\n") + bytes(padding))
    assert read(LineFiles({"a": path}))[0] == [(0, "one"), (1, "two")]


@pytest.mark.parametrize("pack", PACK.values())
def test_packing_is_found_by_content(tmp_path, pack):
    (tmp_path / "text.txt").write_bytes(pack(b"one\ntwo\n"))
    assert read(LineFiles({"a": tmp_path / "text.txt"}))[0] == [(0, "one"), (1, "two")]
    if pack is not bytes:
        (tmp_path / "text.txt.gz").write_bytes(pack(b"one\ntwo\n"))
        assert read(LineFiles({"a": tmp_path / "text.txt.gz"}))[0] == [(0, "one"), (1, "two")]
    (tmp_path / "letters.txt").write_bytes(b"BZh9 is how a file of bzip2 begins\n")
    assert read(LineFiles({"a": tmp_path / "letters.txt"}))[1].kept == 1


def archive(path):
    if ".tar" in path.name:
        with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as file:
            file.add(__file__, "a.txt")
    else:
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("a.txt", "one\n")


def database(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE pairs (left TEXT)")
    connection.close()


def arrow(path):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, pa.schema({"a": pa.string()})) as file:
        file.write_table(pa.table({"a": ["x"]}))


UNREADABLE = {
    "text.txt.zip": archive,
    "text.tar": archive,
    "text.tar.gz": archive,
    "text": archive,
    "book.xlsx": archive,
    "book.ods": archive,
    "letter.docx": archive,
    "paper.pdf": lambda path: path.write_bytes(b"%PDF-1.7\n"),
    "rows.db": database,
    "rows": database,
    "frame.feather": arrow,
    "frame": arrow,
    "vectors.npy": lambda path: np.save(path, np.zeros(3)),
    "frame.pkl": lambda path: path.write_bytes(b"\x80\x05\x95\x0f\x00\x00\x00\x00\x00\x00\x00."),
    "model.bin": lambda path: path.write_bytes(b"2 3\nthe \x00\x00\x80\xbf\xff\x00\x00\x00\x3f"),
    "utf16.txt": lambda path: path.write_text("one\ntwo\n", encoding="utf-16"),
    "utf16_without_mark.txt": lambda path: path.write_bytes("one\ntwo\n".encode("utf-16-le")),
    "talk.srt": lambda path: path.write_text("1\n00:00:01,000 --> 00:00:02,000\nHello.\n"),
    "talk.txt": lambda path: path.write_text("WEBVTT\n\n00:01.000 --> 00:02.000\nHello.\n"),
    "excel.csv": lambda path: path.write_text("sep=;\nleft;right\na;b\n"),
    # "CSV (Macintosh)" of Excel.
    "macintosh.csv": lambda path: path.write_bytes(b"left,right\ra,b\rc,d\r"),
    "macintosh.tsv": lambda path: path.write_bytes(b"left\tright\ra\tb\rc\td\r"),
    "macintosh.txt": lambda path: path.write_bytes(b"one\rtwo\rthree"),
    "empty.json": lambda path: path.write_text("[]"),
    "page.txt": lambda path: path.write_text("<!DOCTYPE html>\n<html><body>Not found</body></html>\n"),
    "pointer.jsonl": lambda path: path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
    "not_gzip.gz": lambda path: path.write_text("one\ntwo\n"),
    "object.json": lambda path: path.write_text(json.dumps({"data": objects()})),
    # `frame.to_json(path)` of pandas 3.1.
    "columns.json": lambda path: path.write_text(json.dumps({"left": {"0": "a", "1": "b"}})),
    "lists.json": lambda path: path.write_text('[["a", "b"], ["c", "d"]]'),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_is_not_read_is_refused(tmp_path, name):
    UNREADABLE[name](tmp_path / name)
    for reading in (
        lambda: read(TableFiles([tmp_path / name], {"a": "1"})),
        lambda: LineFiles({"a": tmp_path / name}),
    ):
        with pytest.raises(InputError) as caught:
            reading()
            read(LineFiles({"a": tmp_path / name}))
        assert caught.value.path in (tmp_path / name, None)


def test_columns_that_hold_all_rows_are_no_row_if_one_is_named(tmp_path):
    path = tmp_path / "frame.json"
    # `frame.to_json(path)` of pandas 3.1; its columns are not `left.0` and so on.
    path.write_text(json.dumps({"left": {"0": "a", "1": "b"}}))
    with refused(None, path=path):
        TableFiles([path], {"a": "left"})
    path.write_text('{"left": "a", "data": [[1]]}')
    assert read(TableFiles([path], {"a": "left"}))[0] == [(0, "a")]


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("a.csv", 'left,right\na,b\nc,"d\ne,f\n', 3),
        ("a.csv", 'left,right\na,b\n"c" d,e\n', 3),
        ("a.csv", 'left,right\n"two\nlines",b\nc,d,e\n', 4),
        ("a.csv", 'left,right\n"a \\"b\\"",c\n"d ""e""",f\ng,h,i\n', 2),
        ("a.tsv", "left\tright\na\tb\nc\td\te\n", 3),
        # Neither raw, for line 2 ends in quotes, nor quoted, for line 4 has a quote inside.
        ("a.tsv", 'left\tright\n"two\nlines"\tb\nc "d" e\tf\n', 2),
        ("a.jsonl", '{"left": "a", "right": "b"}\n{"left": "a"\n', 2),
        ("a.jsonl", '{"left": "a", "right": "b"}\n["left"]\n', 2),
        ("a.json", '{\n  "left": "a",\n  "right": "b"\n}\n', 1),
        ("a.jsonl", '{"left": "a", "right": "b"}\n{"left": "a", "right": 3}\n', 2),
        ("a.json", '[{"left": "a", "right": "b"},\n{"left": "a"\n]', 2),
        ("a.json", '[{"left": "a", "right": "b"}\n{"left": "a", "right": "b"}]', 1),
    ],
)
def test_a_broken_row_is_refused_with_its_line(tmp_path, name, content, line):
    (tmp_path / name).write_text(content)
    with refused(path=tmp_path / name):
        read(TableFiles([tmp_path / name], {"a": "left", "b": "right"}))
