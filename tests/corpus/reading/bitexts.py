"""Files of sentences, and what is read of them by plain Python; tests of bitexts share these."""

import gzip
import lzma
import unicodedata
from contextlib import contextmanager

import pyarrow as pa
import pytest

from paranmt_hf.corpus.reading import arrow_tables, hub_dataset, lines
from paranmt_hf.corpus.reading.readers import LineFiles, Report

BOM = b"\xef\xbb\xbf"


@contextmanager
def in_blocks(size, rows=10_000):
    """Read files in blocks of another size, bytes, and Parquet in other numbers of rows: the result is the same."""
    with pytest.MonkeyPatch.context() as patch:
        sizes = [(lines, "BLOCK_BYTES", size), (arrow_tables, "BLOCK_ROWS", rows), (hub_dataset, "BLOCK_ROWS", rows)]
        for module, name, value in sizes:
            patch.setattr(module, name, value)
        yield


def is_space(character):
    category = unicodedata.category(character)
    return category[0] == "Z" or category == "Cc"


def plain(text):
    """What `normalise` does, one string at a time in plain Python."""
    text = "".join(" " if is_space(character) else character for character in unicodedata.normalize("NFC", text))
    return " ".join(word for word in text.split(" ") if word)


def zstandard(content):
    return pa.Codec("zstd").compress(content, asbytes=True)


COMPRESS = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard}


def read(text, rows=10_000):
    """All rows as tuples, and the report."""
    report = Report()
    table = list(text.batches(report, rows=rows))
    for batch in table:
        assert batch.schema.names == ["id", *text.columns]
        assert batch.schema.field("id").type == pa.int64()
        batch.validate(full=True)
    assert [batch.num_rows for batch in table[:-1]] == [rows] * (len(table) - 1)
    assert not table or 0 < table[-1].num_rows <= rows
    assert report.kept == sum(batch.num_rows for batch in table) == report.read - sum(report.dropped.values())
    return [tuple(row.values()) for batch in table for row in batch.to_pylist()], report


def write(path, *texts):
    path.write_bytes("".join(f"{text}\n" for text in texts).encode())
    return path


def pair(folder, left, right):
    return LineFiles({"source": write(folder / "a", *left), "reference": write(folder / "b", *right)})


def oracle(rows, limit, optional=()):
    """Plain Python: what is kept of rows of bytes, and how many rows are dropped why."""
    kept, dropped = [], {}
    for number, row in enumerate(rows):
        try:
            texts = [plain(value.decode()) for value in row]
        except UnicodeDecodeError:
            reason = "undecodable"
        else:
            required = [text for index, text in enumerate(texts) if index not in optional]
            reason = "empty" if "" in required else "over-long" if max(map(len, texts)) > limit else None
        if reason:
            dropped[reason] = dropped.get(reason, 0) + 1
        else:
            kept.append(
                (number, *(None if index in optional and not text else text for index, text in enumerate(texts)))
            )
    return kept, dropped


def lines_of(content):
    """The lines of a file by Python's own means."""
    content = content.removeprefix(BOM)
    found = content.split(b"\n")
    return found if found[-1] else found[:-1]


def translations(count, kind="string"):
    sides = [pa.array([f"{side} {n}" for n in range(count)], kind) for side in ("cs", "en")]
    return pa.table({"translation": pa.StructArray.from_arrays(sides, ["cs", "en"])})


OPUS = {"source": "translation.cs", "reference": "translation.en"}
