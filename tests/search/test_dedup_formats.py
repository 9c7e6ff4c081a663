"""`dedup` of packed files, archives, JSON arrays and files that change: nothing is lost, nothing is taken for text."""

import bz2
import gzip
import json
import lzma
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import DedupConfig, InputError, dedup
from paranmt_hf.search.repeated_texts import Deduplication
from tests.refused import refused

EXACT = DedupConfig(by=("exact",))
TEXTS = ["A dog runs.", "two\ncats", "a DOG runs!", 'he said "no"', "x, y\tz"]
KEPT = [0, 1, 3, 4]
ZSTD = pa.Codec("zstd")
# How each suffix is packed, and unpacked.
PACK = {
    ".gz": (gzip.compress, gzip.decompress),
    ".bz2": (bz2.compress, bz2.decompress),
    ".xz": (lzma.compress, lzma.decompress),
    ".zst": (
        lambda raw: ZSTD.compress(raw, asbytes=True),
        lambda raw: pa.CompressedInputStream(pa.py_buffer(raw), "zstd").read(),
    ),
}


def content(kind):
    """Rows with names, if the format has them, as bytes."""
    if kind == ".jsonl":
        return [], [f"{json.dumps({'n': n, 'text': text})}\n".encode() for n, text in enumerate(TEXTS)]
    separator = {".csv": ",", ".tsv": "\t"}[kind]
    doubled = [text.replace('"', '""') for text in TEXTS]
    rows = [f'{n}{separator}"{text}"\n'.encode() for n, text in enumerate(doubled)]
    return [f"n{separator}text\n".encode()], rows


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("kind", [".jsonl", ".csv", ".tsv"])
def test_packed_rows_are_the_same_bytes(tmp_path, kind, suffix):
    names, rows = content(kind)
    pack, unpack = PACK[suffix]
    (tmp_path / f"in{kind}{suffix}").write_bytes(pack(b"".join(names + rows)))
    made = dedup(tmp_path / f"in{kind}{suffix}", tmp_path / f"out{kind}{suffix}", column="text", config=EXACT)
    assert made.record.dropped == {"exact": 1}
    assert unpack(made.folder.read_bytes()) == b"".join(names + [rows[row] for row in KEPT])


def test_a_packed_table_keeps_both_endings(tmp_path):
    """CSV of the name `out.gz` would be text, a row on each line, to the next command."""
    (tmp_path / "in.csv.gz").write_bytes(gzip.compress(b'n,text\n1,"a\nb"\n'))
    with refused("out", path=tmp_path / "out.gz"):
        dedup(tmp_path / "in.csv.gz", tmp_path / "out.gz", column="text", config=EXACT)
    (tmp_path / "in.en.gz").write_bytes(gzip.compress(b"a\nA\n"))
    assert dedup(tmp_path / "in.en.gz", tmp_path / "out.gz", config=EXACT).record.dropped == {"exact": 1}


@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_array_stays_one(tmp_path, indent):
    rows = [{"n": n, "text": text} for n, text in enumerate(TEXTS)]
    (tmp_path / "in.json").write_text(json.dumps(rows, indent=indent))
    made = dedup(tmp_path / "in.json", tmp_path / "out.json", column="text", config=EXACT)
    kept = [rows[row] for row in KEPT]
    assert made.folder.read_text().strip() == json.dumps(kept, indent=indent)


def test_the_only_column_of_text_needs_no_name(tmp_path):
    (tmp_path / "in.csv").write_text("n,text\n1,a b\n2,A B\n")
    assert dedup(tmp_path / "in.csv", tmp_path / "out.csv", config=EXACT).record.dropped == {"exact": 1}
    (tmp_path / "two.csv").write_text("left,right\na b,c d\nA B,e f\n")
    with refused("column", path=tmp_path / "two.csv"):
        dedup(tmp_path / "two.csv", tmp_path / "out2.csv", config=EXACT)
    assert dedup(tmp_path / "two.csv", tmp_path / "out2.csv", column="2", config=EXACT).record.dropped == {"exact": 0}


def test_archives_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "in.txt.zip", "w") as file:
        file.writestr("in.txt", "a\nb\n")
    with pytest.raises(InputError) as caught:
        dedup(tmp_path / "in.txt.zip", tmp_path / "out.txt.zip")
    assert caught.value.path == tmp_path / "in.txt.zip"
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt.zip"]


def test_half_a_surrogate_pair_is_a_character(tmp_path):
    """As JavaScript's JSON.stringify writes a text that was cut inside an emoji."""
    rows = [b'{"text": "a dog runs \\ud83d"}\n', b'{"text": "a cat"}\n', b'{"text": "a dog runs \\udcff"}\n']
    path, out = tmp_path / "a.jsonl", tmp_path / "out.jsonl"
    path.write_bytes(b"".join(rows))
    assert dedup(path, out, config=EXACT).record.undecodable == 0
    # Both halves are U+FFFD, and the rows that are kept are written as they were.
    assert out.read_bytes() == rows[0] + rows[1]


def test_texts_that_are_not_utf8_are_kept_and_counted(tmp_path):
    raw = b"one\ncaf\xe9\nOne!\ncaf\xe9\n"
    (tmp_path / "in.txt").write_bytes(raw)
    made = dedup(tmp_path / "in.txt", tmp_path / "out.txt", config=EXACT)
    assert made.folder.read_bytes() == b"one\ncaf\xe9\ncaf\xe9\n"
    assert (made.record.undecodable, made.record.dropped) == (2, {"exact": 1})
    assert "2 texts" in made.summary()


@pytest.mark.parametrize("name", ["in.txt", "in.jsonl", "in.csv"])
@pytest.mark.parametrize("rows", [3, 6])
def test_a_file_that_is_replaced_meanwhile(tmp_path, monkeypatch, name, rows):
    """The texts are compared, and then another program writes the file again."""

    def text(count):
        lines = [f"sentence {n}" for n in range(count)]
        if name == "in.jsonl":
            lines = [json.dumps({"text": line}) for line in lines]
        return "\n".join(["text,n", *[f"{line},1" for line in lines]] if name == "in.csv" else lines) + "\n"

    path = tmp_path / name
    path.write_text(text(5))
    column = None if name == "in.txt" else "text"
    out = tmp_path / f"out{path.suffix}"
    compare = Deduplication.run

    def replaced(*arguments):
        found = compare(*arguments)
        path.write_text(text(rows))
        return found

    monkeypatch.setattr(Deduplication, "run", replaced)
    with refused(path=path):
        dedup(path, out, column=column, config=EXACT)
    assert not out.exists() and path.read_text() == text(rows)
    monkeypatch.undo()
    path.write_text(text(5))
    assert dedup(path, out, column=column, config=EXACT).record.rows == 5


def test_views_of_text_in_parquet(tmp_path):
    """Views, as polars 1 has them, next to views of bytes, in lists and in structs; Arrow 26 cannot filter these."""
    text = pa.array(TEXTS, pa.string_view())
    tags = [[str(n), "tag"] for n in range(len(TEXTS))]
    columns = {
        "text": text,
        "bytes": text.cast(pa.binary_view()),
        "tags": pa.array(tags, pa.list_(pa.string_view())),
        "inside": pa.StructArray.from_arrays([text], ["en"]),
        "n": pa.array(range(len(TEXTS)), pa.int32()),
    }
    pq.write_table(pa.table(columns), tmp_path / "in.parquet")
    for column in ("text", "bytes", "inside.en"):
        made = dedup(tmp_path / "in.parquet", tmp_path / f"{column}.parquet", column=column, config=EXACT)
        assert made.record.dropped == {"exact": 1}
        kept = pq.read_table(made.folder)
        assert kept.schema.names == list(columns)
        assert kept["n"].to_pylist() == KEPT
        assert kept["text"].to_pylist() == [TEXTS[row] for row in KEPT]
        assert kept["bytes"].to_pylist() == [TEXTS[row].encode() for row in KEPT]
        assert kept["tags"].to_pylist() == [tags[row] for row in KEPT]
        assert kept["inside"].to_pylist() == [{"en": TEXTS[row]} for row in KEPT]
