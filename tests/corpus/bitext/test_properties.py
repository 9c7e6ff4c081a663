"""Every kind of bitext against plain Python, on generated files and on real ones."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from paranmt_hf.corpus.bitext import lines
from paranmt_hf.corpus.bitext import readers as bitext
from paranmt_hf.corpus.bitext.readers import LineFiles, ParquetFiles, TabFile
from tests.corpus.bitext.bitexts import BOM, COMPRESS, lines_of, oracle, read


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


@hypothesis_settings(max_examples=40)
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


@hypothesis_settings(max_examples=40)
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


@hypothesis_settings(max_examples=40)
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


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), [("multi30k/train", 29_000), ("news/news", 30_225)])
def test_real_bitext_equals_plain_python(shared_data, name, count):
    files = {"source": shared_data / "bitext" / f"{name}.cs", "reference": shared_data / "bitext" / f"{name}.en"}
    rows, report = read(LineFiles(files, max_characters=300))
    sides = [lines_of(path.read_bytes()) for path in files.values()]
    expected, dropped = oracle(zip(*sides, strict=True), 300)
    assert report.read == count == len(sides[0])
    assert rows == expected
    assert report.dropped == dropped
