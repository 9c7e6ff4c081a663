"""Tiny valid files in every format of docs/formats.md; tests of the table share these."""

import csv
import io
import json
import struct
import tarfile
import zipfile
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.util.packed import PACKINGS


def packed(write):
    """A writer that packs what another one writes, by the end of the name."""

    def write_packed(path, columns):
        plain = path.with_suffix("")
        content = write(plain, columns).read_bytes()
        plain.unlink()
        packing = next(each for each in PACKINGS if each.suffix == path.suffix)
        with packing.create(path) as file:
            file.write(content)
        return path

    return write_packed


def text(path, columns):
    """The first column, a line for each row."""
    first = next(iter(columns.values()))
    path.write_text("".join(f"{value}\n" for value in first))
    return path


def separated(separator, names):
    """As Python 3's csv writes it."""

    def write(path, columns):
        held = io.StringIO()
        writer = csv.writer(held, delimiter=separator, lineterminator="\n")
        if names:
            writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        path.write_text(held.getvalue())
        return path

    return write


def rows_of(columns):
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def json_lines(path, columns):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows_of(columns)))
    return path


def json_array(path, columns):
    path.write_text(json.dumps(rows_of(columns)))
    return path


def parquet(path, columns):
    pq.write_table(pa.table(columns), path)
    return path


def large_parquet(path, columns):
    """With large strings and dictionaries, as polars and pandas write them."""
    table = pa.table(columns)
    kinds = [pa.large_string() if pa.types.is_string(field.type) else field.type for field in table.schema]
    pq.write_table(table.cast(pa.schema(list(zip(columns, kinds, strict=True)))), path)
    return path


def saved_dataset(path, columns):
    from datasets import Dataset

    Dataset.from_dict(columns).save_to_disk(str(path))
    return path


def tmx(path, columns):
    units = ""
    for row in rows_of(columns):
        variants = [f'<tuv xml:lang="{name}"><seg>{escape(str(value))}</seg></tuv>' for name, value in row.items()]
        units += f"<tu>{''.join(variants)}</tu>"
    path.write_text(f'<tmx version="1.4"><header srclang="cs"/><body>{units}</body></tmx>')
    return path


def xliff(path, columns):
    first, second = columns
    units = ""
    for row in rows_of(columns):
        units += f'<trans-unit id="1"><source>{row[first]}</source><target>{row[second]}</target></trans-unit>'
    path.write_text(
        f'<xliff version="1.2"><file source-language="{first}" target-language="{second}"><body>{units}</body></file>'
        "</xliff>"
    )
    return path


def xliff_2(path, columns):
    first, second = columns
    units = ""
    for row in rows_of(columns):
        units += f"<segment><source>{row[first]}</source><target>{row[second]}</target></segment>"
    path.write_text(
        '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" '
        f'srcLang="{first}" trgLang="{second}"><file id="a"><unit id="1">{units}</unit></file></xliff>'
    )
    return path


def po(path, columns):
    """English messages, translated."""
    first, second = reversed(columns)
    entries = [f'msgid "{row[first]}"\nmsgstr "{row[second]}"\n' for row in rows_of(columns)]
    path.write_text("\n".join([f'msgid ""\nmsgstr "Language: {second}\\n"\n', *entries]))
    return path


def wmt_xml(path, columns):
    sides = ""
    for (name, values), tag in zip(columns.items(), ("src", "ref"), strict=True):
        segments = "".join(f'<seg id="{number}">{value}</seg>' for number, value in enumerate(values, 1))
        sides += f'<{tag} lang="{name}"><p>{segments}</p></{tag}>'
    path.write_text(f'<dataset id="a"><doc id="b">{sides}</doc></dataset>')
    return path


def wmt_sgml(path, columns):
    """The first column, as one side of a test set."""
    values = next(iter(columns.values()))
    segments = "".join(f"<seg id={number}>{value}</seg>\n" for number, value in enumerate(values, 1))
    path.write_text(f'<refset setid="a" trglang="en"><doc docid=b>\n{segments}</doc></refset>\n')
    return path


def opus_links(path, columns):
    path.write_text('<?xml version="1.0"?>\n<cesAlign version="1.0"><linkGrp fromDoc="a" toDoc="b"/></cesAlign>')
    return path


def zipped(path, columns):
    with zipfile.ZipFile(path, "w") as archive:
        for name, values in columns.items():
            archive.writestr(f"corpus.{name}", "".join(f"{value}\n" for value in values))
    return path


def tarred(path, columns):
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
        for name, values in columns.items():
            content = "".join(f"{value}\n" for value in values).encode()
            member = tarfile.TarInfo(f"corpus.{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def word2vec_binary(path, columns):
    """As gensim 4 writes `save_word2vec_format(binary=True)`."""
    rows = [word + struct.pack("<2f", 0.5, 1.0) + b"\n" for word in (b"dog ", b"cat ")]
    path.write_bytes(b"2 2\n" + b"".join(rows))
    return path


def fasttext_binary(path, columns):
    """The start of a file of fastText 0.9: magic number and version."""
    path.write_bytes(struct.pack("<2i", 793712314, 12) + bytes(range(1, 250)) * 4)
    return path


LINES, NAMED, NUMBERED, LANGUAGES, SIDE = "lines", "named", "numbered", "languages", "side"

# The formats by their names on the page: what their columns are, and names and writers of files.
FORMATS = {
    "text, a sentence on a line": (LINES, {"a.txt": text, "a.en": text}),
    "text, packed": (LINES, {f"a.txt{each.suffix}": packed(text) for each in PACKINGS}),
    "TSV with names": (NAMED, {"a.tsv": separated("\t", True)}),
    "TSV without names": (NUMBERED, {"a.tsv": separated("\t", False)}),
    "CSV with names": (NAMED, {"a.csv": separated(",", True)}),
    "CSV without names": (NUMBERED, {"a.csv": separated(",", False)}),
    "JSON lines": (NAMED, {"a.jsonl": json_lines, "a.ndjson": json_lines}),
    "JSON array": (NAMED, {"a.json": json_array}),
    "TSV, CSV, JSON lines, packed": (
        NAMED,
        {
            "a.tsv.gz": packed(separated("\t", True)),
            "a.csv.bz2": packed(separated(",", True)),
            "a.jsonl.xz": packed(json_lines),
            "a.jsonl.zst": packed(json_lines),
        },
    ),
    "Parquet": (NAMED, {"a.parquet": parquet, "b.parquet": large_parquet}),
    "a dataset on disk": (NAMED, {"a": saved_dataset}),
    "TMX": (LANGUAGES, {"a.tmx": tmx, "a.tmx.gz": packed(tmx)}),
    "XLIFF": (LANGUAGES, {"a.xlf": xliff, "a.xliff": xliff_2}),
    "PO": (LANGUAGES, {"a.po": po}),
    "WMT XML": (LANGUAGES, {"a.xml": wmt_xml}),
    "WMT SGML": (SIDE, {"a.en.sgm": wmt_sgml}),
    "links of OPUS (XCES)": (NAMED, {"a.xml": opus_links, "a.xml.gz": packed(opus_links)}),
    "zip": (NAMED, {"a.zip": zipped, "cs-en.txt.zip": zipped}),
    "tar": (NAMED, {"a.tar": tarred, "a.tar.gz": tarred}),
    "word2vec `.bin`": (NAMED, {"a.bin": word2vec_binary}),
    "fastText or Sent2Vec `.bin`": (NAMED, {"a.bin": fasttext_binary}),
}
