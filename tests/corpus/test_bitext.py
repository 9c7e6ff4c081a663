import gzip
import json
import lzma
from types import SimpleNamespace

import datasets
import huggingface_hub
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from paranmt_hf.corpus import bitext, lines
from paranmt_hf.corpus.bitext import HubDataset, LineFiles, ParquetFiles, Report, TabFile, tab_fields
from paranmt_hf.errors import InputError
from tests.corpus.test_normalisation import plain

BOM = b"\xef\xbb\xbf"


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


def values(without):
    """Bytes of a line or a field: text of all kinds, sometimes no text at all."""
    text = st.text(st.characters(exclude_categories=["Cs", "Cn"], exclude_characters=without), max_size=12)
    spaces = st.text(
        st.sampled_from("a\u0301é \r\t\xa0\x00\u3000".translate({ord(c): None for c in without})), max_size=12
    )
    raw = st.binary(max_size=6).map(lambda value: value.translate(None, without.encode()))
    return text.map(str.encode) | spaces.map(str.encode) | raw


@st.composite
def settings(draw):
    return {
        "block": draw(st.integers(1, 9) | st.just(1 << 20)),
        "rows": draw(st.integers(1, 4) | st.just(1000)),
        "suffix": draw(st.sampled_from(sorted(COMPRESS))),
        "bom": draw(st.booleans()),
        "last": draw(st.booleans()),
    }


def content_of(rows, chosen):
    return (BOM if chosen["bom"] else b"") + b"\n".join(rows) + (b"\n" if chosen["last"] else b"")


@given(st.lists(st.tuples(values("\n"), values("\n")), min_size=1, max_size=12), settings())
def test_line_files_equal_plain_python(tmp_path_factory, pairs, chosen):
    folder = tmp_path_factory.mktemp("lines")
    contents = [content_of(side, chosen) for side in zip(*pairs, strict=True)]
    sides = [lines_of(content) for content in contents]
    assume(len(sides[0]) == len(sides[1]) > 0)
    files = {name: folder / f"{name}{chosen['suffix']}" for name in ("left", "right")}
    for path, content in zip(files.values(), contents, strict=True):
        path.write_bytes(COMPRESS[chosen["suffix"]](content))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", chosen["block"])
        rows, report = read(LineFiles(files, max_characters=8), chosen["rows"])
    expected, dropped = oracle(zip(*sides, strict=True), 8)
    assert (rows, report.dropped, report.read) == (expected, dropped, len(sides[0]))


@given(st.lists(st.tuples(*[values("\n\t")] * 3), min_size=1, max_size=12), st.permutations([1, 2, 3]), settings())
def test_tab_files_equal_plain_python(tmp_path_factory, fields, order, chosen):
    path = tmp_path_factory.mktemp("tabs") / f"text{chosen['suffix']}"
    content = content_of([b"\t".join(row) for row in fields], chosen)
    path.write_bytes(COMPRESS[chosen["suffix"]](content))
    columns = dict(zip(["a", "b", "c"], order, strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", chosen["block"])
        rows, report = read(TabFile([path], columns, optional=["b"], max_characters=8), chosen["rows"])
    parsed = [line.split(b"\t") for line in lines_of(content)]
    expected, dropped = oracle(([row[n - 1] for n in order] for row in parsed), 8, optional=[1])
    assert (rows, report.dropped) == (expected, dropped)


@given(st.lists(st.tuples(*[st.none() | values("")] * 2), max_size=12), st.integers(1, 5), st.integers(1, 4))
def test_parquet_files_equal_plain_python(tmp_path_factory, pairs, block, rows):
    assume(pairs)
    path = tmp_path_factory.mktemp("parquet") / "text.parquet"
    pq.write_table(
        pa.table(
            {name: pa.array(side) for name, side in zip("ab", zip(*pairs, strict=True), strict=True)},
            schema=pa.schema([("a", pa.binary()), ("b", pa.binary())]),
        ),
        path,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bitext, "BLOCK_ROWS", block)
        found, report = read(ParquetFiles([path], {"b": "b", "a": "a"}, optional=["a"], max_characters=8), rows)
    expected, dropped = oracle(([b or b"", a or b""] for a, b in pairs), 8, optional=[1])
    assert (found, report.dropped) == (expected, dropped)


def test_line_files_by_hand(tmp_path):
    text = pair(tmp_path, ["Ein  Hund.", "", "Zwei", "x" * 1001, "y" * 1000], ["A dog.", "none", "\u3000\t", "x", "y"])
    rows, report = read(text)
    assert rows == [(0, "Ein Hund.", "A dog."), (4, "y" * 1000, "y")]
    assert report.as_dict() == {"read": 5, "kept": 2, "dropped": {"empty": 2, "over-long": 1}}
    assert report.describe() == "read 5 rows, kept 2, dropped 3 (2 empty, 1 over-long)"
    assert Report().describe() == "read 0 rows, kept 0, dropped 0"


def test_one_reason_for_each_row(tmp_path):
    (tmp_path / "a").write_bytes(b"\xff\n" + b"\xff\n" + b"\n" + b"long\n" + b"\n\xc3\n")
    (tmp_path / "b").write_bytes(b"\n" + b"long\n" + b"long\n" + b"\n" + b"\xff\nok\n")
    rows, report = read(LineFiles({"a": tmp_path / "a", "b": tmp_path / "b"}, max_characters=3))
    assert rows == []
    assert report.dropped == {"undecodable": 4, "empty": 2}


def test_length_counts_characters_after_normalisation(tmp_path):
    text = LineFiles(
        {"a": write(tmp_path / "a", "  é  é  ", "e\u0301 e\u0301", "\U0001f600" * 3, "abcd")}, max_characters=3
    )
    rows, report = read(text)
    assert rows == [(0, "é é"), (1, "é é"), (2, "\U0001f600" * 3)]
    assert report.dropped == {"over-long": 1}


def test_three_files_in_the_given_order(tmp_path):
    files = {name: write(tmp_path / name, *(f"{name}{n}" for n in range(3))) for name in ("z", "a", "m")}
    assert LineFiles(files).columns == ("z", "a", "m")
    assert read(LineFiles(files), rows=2)[0] == [(n, f"z{n}", f"a{n}", f"m{n}") for n in range(3)]


def test_sides_of_very_different_size(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK_BYTES", 64)
    left, right = [f"{n} " + "long " * 30 for n in range(200)], [str(n) for n in range(200)]
    rows, _ = read(pair(tmp_path, left, right), rows=7)
    assert rows == [(n, text.strip(), str(n)) for n, text in enumerate(left)]


@pytest.mark.parametrize("rows", [1, 3, 10, 11])
def test_batches_have_the_asked_number_of_rows(tmp_path, rows):
    text = pair(tmp_path, ["a", "", "b", "c", "", "d", "e", "f", "g", "h", "i", "j"], ["x"] * 12)
    sizes = [batch.num_rows for batch in text.batches(Report(), rows=rows)]
    assert sizes == [rows] * (10 // rows) + ([10 % rows] if 10 % rows else [])


def test_text_can_be_read_twice(tmp_path):
    text, report = pair(tmp_path, ["a", ""], ["b", "c"]), Report()
    assert list(text.batches(report)) == list(text.batches(report))
    assert report.as_dict() == {"read": 4, "kept": 2, "dropped": {"empty": 2}}


def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK_BYTES", 1 << 14)
    count = 100_000
    text = pair(tmp_path, [f"Věta číslo {n}  ." for n in range(count)], [f"Sentence {n}." for n in range(count)])
    size, before, peak, read = text.files["source"].stat().st_size, pa.total_allocated_bytes(), 0, 0
    for batch in text.batches(Report(), rows=100):
        read += batch.num_rows
        peak = max(peak, pa.total_allocated_bytes() - before)
    assert read == count
    assert size > 2_000_000
    assert 0 < peak < 300_000


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_compressed_in_several_members(tmp_path, suffix):
    path = tmp_path / f"text{suffix}"
    path.write_bytes(COMPRESS[suffix](b"one\ntw") + COMPRESS[suffix](b"o\nthree"))
    assert read(LineFiles({"a": path}))[0] == [(0, "one"), (1, "two"), (2, "three")]


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_file_that_was_cut_off(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(lines, "BLOCK_BYTES", 1000)
    content = "".join(f"{n:03}\n" for n in np.random.default_rng(0).integers(0, 999, 100_000)).encode()
    packed = COMPRESS[suffix](content)
    path = tmp_path / f"text{suffix}"
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(
        InputError, match=rf"text\{suffix}: cannot read on after line ([\d,]+) \(.*get it again"
    ) as caught:
        read(LineFiles({"a": path}))
    reached = int(str(caught.value).split("after line ")[1].split()[0].replace(",", ""))
    assert reached % 250 == 0
    assert 25_000 < reached < 75_000


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_file_that_is_not_what_its_suffix_says(tmp_path, suffix):
    path = write(tmp_path / f"text{suffix}", "plain text", "and more")
    with pytest.raises(InputError, match=rf"text\{suffix}: cannot read on after line 0 \(.*not what its suffix says"):
        read(TabFile([path], {"a": 1}))


@pytest.mark.parametrize("content", [b"", BOM])
@pytest.mark.parametrize("suffix", sorted(COMPRESS))
def test_an_empty_file(tmp_path, suffix, content):
    path = tmp_path / f"text{suffix}"
    path.write_bytes(COMPRESS[suffix](content))
    with pytest.raises(InputError, match=rf"text{suffix}: expected lines of text, but the file is empty"):
        read(LineFiles({"a": path}))


def test_a_file_without_a_byte(tmp_path):
    (tmp_path / "text.gz").touch()
    with pytest.raises(InputError, match=r"text\.gz: expected lines of text, but the file is empty"):
        read(TabFile([tmp_path / "text.gz"], {"a": 1}))


def test_missing_files_and_folders(tmp_path):
    here = write(tmp_path / "here", "a")
    with pytest.raises(InputError, match=r"absent: there is no such file"):
        LineFiles({"source": here, "reference": tmp_path / "absent"})
    with pytest.raises(InputError, match=r"this is a folder; name the files in it"):
        TabFile([tmp_path], {"a": 1})
    with pytest.raises(InputError, match=r"absent: there is no such file"):
        ParquetFiles([tmp_path / "absent"], {"a": "a"})
    with pytest.raises(InputError, match="at least one file"):
        TabFile([], {"a": 1})


def test_a_file_that_vanishes(tmp_path):
    text = LineFiles({"a": write(tmp_path / "a", "a")})
    (tmp_path / "a").unlink()
    with pytest.raises(InputError, match="a: cannot read on after line 0"):
        read(text)


@pytest.mark.parametrize("block", [1, 5, 1 << 20])
@pytest.mark.parametrize(("left", "right"), [(3, 5), (5, 3), (1, 400), (400, 399)])
def test_files_of_different_length(tmp_path, monkeypatch, left, right, block):
    monkeypatch.setattr(lines, "BLOCK_BYTES", block)
    text = pair(tmp_path, map(str, range(left)), map(str, range(right)))
    with pytest.raises(InputError, match=rf"equally many lines, but .*/a has {left}, .*/b has {right}: "):
        read(text)


def test_a_line_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK_BYTES", 10)
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 50)
    path = write(tmp_path / "a", "fine", "fine", "x" * 70)
    with pytest.raises(InputError, match=r"a:3: this line has more than 50 bytes; .* lines that end with \\n"):
        read(LineFiles({"a": path}))
    assert read(LineFiles({"a": write(tmp_path / "b", "x" * 45, "y")}))[1].kept == 2


def test_tab_file_keeps_quotes_and_carriage_returns(tmp_path):
    path = tmp_path / "text.tsv"
    path.write_bytes(
        b'"He said\tit\'s "ok""\r\nopen "quote\tinner\rreturn\x85\xe2\x80\xa8end\n\\t\\n\t\\N\r\n'.replace(
            b"\x85", b""
        )
    )
    rows, report = read(TabFile([path], {"a": 1, "b": 2}))
    assert rows == [(0, '"He said', 'it\'s "ok""'), (1, 'open "quote', "inner return end"), (2, "\\t\\n", "\\N")]
    assert report.dropped == {}


def test_czeng_columns(tmp_path):
    row = "filter\tnews-1\t0.75\t{}\tČeská věta {}.\tEnglish sentence {}.".format
    first = write(tmp_path / "czeng-1", row("train", 0, 0), row("train", 1, 1))
    second = write(tmp_path / "czeng-2", row("", 2, 2))
    columns = {"source": 5, "reference": 6, "score": 3, "origin": 4}
    text = TabFile([first, second], columns, numbers=["score"], optional=["origin"])
    rows, _ = read(text)
    assert rows == [
        (0, "Česká věta 0.", "English sentence 0.", 0.75, "train"),
        (1, "Česká věta 1.", "English sentence 1.", 0.75, "train"),
        (2, "Česká věta 2.", "English sentence 2.", 0.75, None),
    ]
    types = next(text.batches(Report())).schema.types
    assert types == [pa.int64(), pa.string(), pa.string(), pa.float32(), pa.string()]
    assert tab_fields(first) == 6


@pytest.mark.parametrize("block", [1, 8, 1 << 20])
def test_a_line_with_other_fields_than_the_first(tmp_path, monkeypatch, block):
    monkeypatch.setattr(lines, "BLOCK_BYTES", block)
    good = write(tmp_path / "good", *["a\tb\tc"] * 5)
    for bad, count in {"a\tb": 2, "": 1, "a\tb\tc\td": 4}.items():
        path = write(tmp_path / "bad", "a\tb\tc", "a\tb\tc", bad, "a\tb\tc", "a")
        with pytest.raises(
            InputError, match=rf"bad:3: expected 3 fields like the first line of the file, got {count}; "
        ):
            read(TabFile([good, path], {"a": 1, "b": 2}))
    # Lines that lack and have too many fields make up for each other in the sum only.
    path = write(tmp_path / "bad", "a\tb", "a\tb\tc", "a")
    with pytest.raises(InputError, match=r"bad:2: expected 2 fields .* got 3"):
        read(TabFile([path], {"a": 1, "b": 2}))


def test_too_few_fields(tmp_path):
    with pytest.raises(InputError, match=r"text:1: expected at least 6 fields with a tab between them, got 2: "):
        read(TabFile([write(tmp_path / "text", "a\tb", "a\tb")], {"source": 5, "reference": 6}))


def test_a_bad_number_in_a_later_block_of_a_later_file(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK_BYTES", 16)
    good = write(tmp_path / "good", *["a\t1"] * 9)
    bad = write(tmp_path / "bad", *["a\t0.5"] * 20, "a\tNaN", "a\t1")
    with pytest.raises(InputError, match=r"bad:21: expected a finite number in column 'score', got 'NaN'; mend"):
        read(TabFile([good, bad], {"text": 1, "score": 2}, numbers=["score"]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": {}}, "expected names of columns"),
        ({"columns": {"id": 1}}, "none of them 'id'"),
        ({"columns": {"a": 0}}, "numbered from 1"),
        ({"numbers": ["b"]}, r"must be among the columns, \['b'\] are not"),
        ({"optional": ["c"]}, r"must be among the columns, \['c'\] are not"),
        ({"numbers": ["a"], "optional": ["a"]}, r"cannot be optional: \['a'\]"),
        ({"max_characters": 0}, "at least 1, got 0"),
    ],
)
def test_arguments_out_of_range(tmp_path, arguments, message):
    with pytest.raises(InputError, match=message):
        TabFile([write(tmp_path / "t", "a")], **{"columns": {"a": 1}, **arguments})


def test_rows_out_of_range(tmp_path):
    with pytest.raises(InputError, match="rows must be at least 1, got 0"):
        LineFiles({"a": write(tmp_path / "t", "a")}).batches(Report(), rows=0)


def test_fingerprint_of_files(tmp_path):
    text = pair(tmp_path, ["a"], ["b"])
    sha = "87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7"  # of "a\n"
    assert text.fingerprint()["files"]["source"] == {"name": "a", "bytes": 2, "sha256": sha}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert pair(elsewhere, ["a"], ["b"]).fingerprint() == text.fingerprint()
    assert str(tmp_path) not in json.dumps(text.fingerprint())
    tab = write(tmp_path / "t", "a\tb")
    different = [
        text,
        pair(elsewhere, ["a"], ["B"]),
        LineFiles(text.files, max_characters=999),
        LineFiles({"reference": tmp_path / "a", "source": tmp_path / "b"}),
        TabFile([tab], {"a": 1}),
        TabFile([tab], {"a": 2}),
        TabFile([tab, tab], {"a": 1}),
        TabFile([tab], {"a": 1}, optional=["a"]),
        TabFile([tab], {"a": 1}, numbers=["a"]),
        ParquetFiles([tab], {"a": "x"}),
        ParquetFiles([tab], {"a": "y"}),
    ]
    assert len({json.dumps(one.fingerprint()) for one in different}) == len(different)


def translations(count, kind="string"):
    sides = [pa.array([f"{side} {n}" for n in range(count)], kind) for side in ("cs", "en")]
    return pa.table({"translation": pa.StructArray.from_arrays(sides, ["cs", "en"])})


OPUS = {"source": "translation.cs", "reference": "translation.en"}


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_parquet_types_of_text(tmp_path, kind):
    column = pa.array(["a", None, "é ", "a"], pa.string())
    pq.write_table(pa.table({"text": column.cast(kind), "n": [1.5, 2, 3, 4]}), tmp_path / "t.parquet")
    text = ParquetFiles([tmp_path / "t.parquet"], {"score": "n", "t": "text"}, numbers=["score"])
    rows, report = read(text)
    assert rows == [(0, 1.5, "a"), (2, 3, "é"), (3, 4, "a")]
    assert report.dropped == {"empty": 1}


def test_parquet_reaches_into_structs_and_counts_over_files(tmp_path):
    for name in ("1", "2"):
        pq.write_table(translations(3), tmp_path / name)
    rows, _ = read(ParquetFiles([tmp_path / "1", tmp_path / "2"], OPUS), rows=4)
    assert rows == [(n, f"cs {n % 3}", f"en {n % 3}") for n in range(6)]


def test_parquet_name_with_a_dot_and_deeper_structs(tmp_path):
    table = pa.table({"a.b": ["x"], "a": [{"b": "no", "c": {"d.e": "y", "f": "z"}}]})
    pq.write_table(table, tmp_path / "t")
    assert read(ParquetFiles([tmp_path / "t"], {"1": "a.b", "2": "a.c.d.e", "3": "a.c.f"}))[0] == [(0, "x", "y", "z")]


def test_parquet_null_struct_is_empty(tmp_path):
    pq.write_table(pa.table({"translation": [{"cs": "a", "en": "b"}, None, {"cs": None, "en": "b"}]}), tmp_path / "t")
    rows, report = read(ParquetFiles([tmp_path / "t"], OPUS))
    assert (rows, report.dropped) == ([(0, "a", "b")], {"empty": 2})


def test_parquet_text_that_is_not_utf8(tmp_path):
    raw = pa.array([b"fine", b"\xff"], pa.binary())
    column = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    pq.write_table(pa.table({"t": column}), tmp_path / "t")
    rows, report = read(ParquetFiles([tmp_path / "t"], {"t": "t"}))
    assert (rows, report.dropped) == ([(0, "fine")], {"undecodable": 1})


def test_parquet_column_of_nothing_but_null(tmp_path):
    pq.write_table(pa.table({"t": ["a"], "origin": pa.nulls(1)}), tmp_path / "t")
    text = ParquetFiles([tmp_path / "t"], {"t": "t", "origin": "origin"}, optional=["origin"])
    assert read(text)[0] == [(0, "a", None)]


@pytest.mark.parametrize("name", ["english", "translation.de", "translation.en.x", "transl", ""])
def test_parquet_column_that_is_missing(tmp_path, name):
    pq.write_table(translations(1).append_column("n", [[1]]), tmp_path / "t")
    message = rf"t: there is no column '{name}'; the columns are translation\.cs, translation\.en, n$"
    with pytest.raises(InputError, match=message):
        read(ParquetFiles([tmp_path / "t"], {"a": name}))


def test_parquet_columns_of_other_types(tmp_path):
    pq.write_table(pa.table({"n": [1], "flag": [True], "list": [["a"]], "s": [{"x": "a"}]}), tmp_path / "t")
    for name, kind in {"n": "int64", "list": "list<.*>", "s": "struct<.*>"}.items():
        with pytest.raises(InputError, match=rf"t: expected text in column '{name}', got values of type {kind}"):
            read(ParquetFiles([tmp_path / "t"], {"a": name}))
    with pytest.raises(InputError, match=r"t: expected numbers in column 'flag', got values of type bool"):
        read(ParquetFiles([tmp_path / "t"], {"a": "flag"}, numbers=["a"]))


def test_parquet_bad_number_names_file_and_row(tmp_path, monkeypatch):
    monkeypatch.setattr(bitext, "BLOCK_ROWS", 2)
    pq.write_table(pa.table({"n": [1.0, 2.0, None]}), tmp_path / "t")
    with pytest.raises(InputError, match=r"t, row \(from 0\) 2: expected a finite number in column 'score', got None"):
        read(ParquetFiles([tmp_path / "t"], {"score": "n"}, numbers=["score"]))


def test_parquet_that_is_none_or_damaged_or_empty(tmp_path):
    with pytest.raises(InputError, match=r"a: expected a Parquet file, but cannot read on after 0 rows \("):
        read(ParquetFiles([write(tmp_path / "a", "text")], {"a": "a"}))
    pq.write_table(pa.table({"t": ["some text " * 20] * 50}), tmp_path / "t", compression="zstd", use_dictionary=False)
    content = bytearray((tmp_path / "t").read_bytes())
    content[4:24] = b"\xff" * 20
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(InputError, match=r"t: expected a Parquet file, but cannot read on after 0 rows \("):
        read(ParquetFiles([tmp_path / "t"], {"t": "t"}))
    pq.write_table(pa.table({"t": pa.array([], pa.string())}), tmp_path / "empty")
    with pytest.raises(InputError, match=r"expected rows, but there are none in .*empty"):
        read(ParquetFiles([tmp_path / "empty"], {"t": "t"}))


@pytest.fixture
def folder(tmp_path):
    """A dataset folder in the layout of OPUS, with a config."""
    (tmp_path / "opus").mkdir()
    pq.write_table(translations(5), tmp_path / "opus" / "train-0.parquet")
    pq.write_table(translations(4, "large_string"), tmp_path / "opus" / "train-1.parquet")
    pq.write_table(translations(2), tmp_path / "opus" / "test-0.parquet")
    return tmp_path / "opus"


def test_dataset_folder(folder, monkeypatch):
    monkeypatch.setattr(bitext, "BLOCK_ROWS", 3)
    rows, _ = read(HubDataset(str(folder), OPUS), rows=4)
    assert rows == [(n, f"cs {n % 5}", f"en {n % 5}") for n in range(9)]
    assert len(read(HubDataset(str(folder), OPUS, split="test"))[0]) == 2


def test_dataset_folder_equals_its_parquet_files(folder):
    files = [folder / "train-0.parquet", folder / "train-1.parquet"]
    assert read(HubDataset(str(folder), OPUS)) == read(ParquetFiles(files, OPUS))


def test_dataset_of_json_lines_with_numbers_and_optional(tmp_path):
    rows = [{"s": " a ", "n": 1, "o": "x"}, {"s": "b", "n": 0.5, "o": None}, {"s": None, "n": 2, "o": "y"}]
    (tmp_path / "j").mkdir()
    (tmp_path / "j" / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = HubDataset(str(tmp_path / "j"), {"t": "s", "score": "n", "o": "o"}, numbers=["score"], optional=["o"])
    found, report = read(text)
    assert found == [(0, "a", 1, "x"), (1, "b", 0.5, None)]
    assert report.dropped == {"empty": 1}


def test_dataset_errors(folder):
    with pytest.raises(
        InputError, match=r"opus', split 'train': there is no column 'translation\.de'; the columns are tr"
    ):
        read(HubDataset(str(folder), {"a": "translation.de"}))
    with pytest.raises(InputError, match=r"split 'dev': cannot be read: .*dev"):
        read(HubDataset(str(folder), OPUS, split="dev"))
    with pytest.raises(InputError, match=r"cannot be read: .*cs-en"):
        read(HubDataset(str(folder), OPUS, config="cs-en"))
    (folder.parent / "nothing").mkdir()
    with pytest.raises(InputError, match=r"nothing', split 'train': cannot be read"):
        read(HubDataset(str(folder.parent / "nothing"), OPUS))


def test_fingerprint_of_a_folder(folder, tmp_path):
    before = HubDataset(str(folder), OPUS).fingerprint()
    assert [file["name"] for file in before["files"]] == ["train-0.parquet", "train-1.parquet"]
    assert str(tmp_path) not in json.dumps(before)
    assert HubDataset(str(folder), OPUS, split="test").fingerprint() != before
    pq.write_table(translations(6), folder / "train-0.parquet")
    assert HubDataset(str(folder), OPUS).fingerprint() != before


@pytest.fixture
def hub(monkeypatch):
    """A stand-in for the Hub: one dataset, whose main branch moves on after each look-up."""
    calls = SimpleNamespace(lookups=0, loads=[])

    def dataset_info(self, id, revision=None):
        if id != "org/opus":
            raise huggingface_hub.errors.HFValidationError(f"no {id}")
        calls.lookups += 1
        return SimpleNamespace(sha=f"commit-{revision or 'main'}-{calls.lookups}")

    def load_dataset(id, config, **options):
        calls.loads.append((id, config, options))
        return datasets.Dataset(translations(3)).to_iterable_dataset()

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", dataset_info)
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return calls


def test_hub_dataset_is_pinned_to_one_commit(hub):
    text = HubDataset("org/opus", OPUS, config="cs-en", split="test", revision="refs/convert/parquet")
    assert text.fingerprint() == {
        "kind": "hub", "dataset": "org/opus", "revision": "commit-refs/convert/parquet-1", "config": "cs-en",
        "split": "test", "columns": OPUS, "numbers": [], "optional": [], "max_characters": 1000,
    }  # fmt: skip
    assert read(text)[0] == [(n, f"cs {n}", f"en {n}") for n in range(3)]
    options = {"split": "test", "revision": "commit-refs/convert/parquet-1", "streaming": True}
    assert hub.loads == [("org/opus", "cs-en", options)]
    assert hub.lookups == 1


def test_hub_dataset_that_is_not_there(hub):
    with pytest.raises(InputError, match="no folder 'org/none', and dataset 'org/none' on the Hub: no org/none"):
        read(HubDataset("org/none", OPUS))


@pytest.mark.parametrize(("name", "count"), [("multi30k/train", 29_000), ("news/news", 30_225)])
def test_real_bitext_equals_plain_python(shared_data, name, count):
    files = {"source": shared_data / "bitext" / f"{name}.cs", "reference": shared_data / "bitext" / f"{name}.en"}
    rows, report = read(LineFiles(files, max_characters=300))
    sides = [lines_of(path.read_bytes()) for path in files.values()]
    expected, dropped = oracle(zip(*sides, strict=True), 300)
    assert report.read == count == len(sides[0])
    assert rows == expected
    assert report.dropped == dropped
