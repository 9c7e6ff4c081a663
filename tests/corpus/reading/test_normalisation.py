"""Every kind of bitext against plain Python, on generated files and on real ones."""

import sys
import unicodedata
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from paranmt_hf.corpus.reading.normalisation import decode, normalise, read_numbers
from paranmt_hf.corpus.reading.readers import LineFiles, TableFiles
from tests.corpus.reading.bitexts import BOM, COMPRESS, in_blocks, lines_of, oracle, plain, read
from tests.refused import refused

# Arrow may know characters that the Unicode version of this Python does not.
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cn"]))
# Characters that compose, reorder or are white space are rare among all characters.
TRICKY = st.text(
    st.sampled_from(
        "aeouAE \t\r\n\x00\x1f\x7f\x85\xa0\u2000\u2001\u2028\u3000\u200b\u200d\xad\u0301\u0323\u030a\u0344\u212b"
    )
    | st.characters(min_codepoint=0x1100, max_codepoint=0x11FF, exclude_categories=["Cn"])
    | st.characters(categories=["Mn", "Lo", "Zs", "Cc"])
)


def normalised(*texts):
    return normalise(pa.array(texts, pa.string())).to_pylist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A b.", "A b."),
        ("  two   blanks\t", "two blanks"),
        ("carriage\rreturn\r", "carriage return"),
        ("no\xa0break\u2009thin\u3000wide", "no break thin wide"),
        ("nul\x00 \x00nul", "nul nul"),
        ("next\x85line\u2028line\u2029paragraph", "next line line paragraph"),
        ("Prˇílis\u030c e\u0301te\u0301", "Prˇíliš été"),
        ("\u212bngstro\u0308m", "Ångström"),
        ("\u1112\u1161\u11ab", "한"),
        ("a\u0301\u0323", "ạ\u0301"),
        ('"Quotes" ‘stay’', '"Quotes" ‘stay’'),
        ("soft\xadhyphen zero\u200bwidth\u200djoiner\ufeff", "soft\xadhyphen zero\u200bwidth\u200djoiner\ufeff"),
        ("ﬁ ½ Ⅷ", "ﬁ ½ Ⅷ"),
        ("\u2000\x00 ", ""),
        ("", ""),
    ],
)
def test_normalise_by_hand(text, expected):
    assert normalised(text) == [expected]


@pytest.mark.slow
def test_every_character_in_front_and_between_letter_and_accent():
    characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    known = [character for character in characters if unicodedata.category(character) != "Cn"]
    assert len(known) > 280_000
    texts = [f"{character}e{character}\u0301" for character in known]
    assert [(t, r) for t, r in zip(texts, normalised(*texts), strict=True) if r != plain(t)] == []


@given(st.lists(st.none() | TEXT | TRICKY))
def test_normalise_equals_plain_python(texts):
    expected = [None if text is None else plain(text) for text in texts]
    assert normalised(*texts) == expected
    assert normalised(*expected) == expected


@given(st.lists(st.none() | TRICKY, min_size=1), st.data())
def test_normalise_takes_slices(texts, data):
    start = data.draw(st.integers(0, len(texts)))
    assert normalise(pa.array(texts, pa.string())[start:]).to_pylist() == normalised(*texts)[start:]


@given(st.lists(st.none() | st.binary() | TEXT.map(str.encode)))
def test_decode_equals_plain_python(values):
    def read(value):
        try:
            return None if value is None else value.decode()
        except UnicodeDecodeError:
            return None

    column = decode(pa.array(values, pa.binary()))
    assert column.type == pa.string()
    assert column.to_pylist() == [read(value) for value in values]


@pytest.mark.parametrize("bad", [b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xc3", b"\xff"])
def test_decode_refuses_what_is_not_utf8(bad):
    assert decode(pa.array([b"a", bad, "é".encode(), None])).to_pylist() == ["a", None, "é", None]


def test_numbers_from_text_and_of_other_types():
    texts = pa.array([b"0.1", b" -2.5e-1\r", b"7"], pa.binary())
    assert read_numbers(texts, "score", "f:", 1).equals(pa.array([0.1, -0.25, 7], pa.float32()))
    for column in (pa.array([2.0, 3.0]), pa.array([2, 3], pa.int8()), pa.array([Decimal("2.00"), Decimal("3.00")])):
        assert read_numbers(column, "score", "f:", 1).equals(pa.array([2, 3], pa.float32()))


@pytest.mark.parametrize(
    "value", [b"", b"x", b"1_0", b"nan", b"-Infinity", b"1e39", b"\xff", None, float("nan"), float("inf"), 1e300]
)
def test_a_bad_number_names_its_place(value):
    kind = pa.float64() if isinstance(value, float) else pa.binary()
    column = pa.array([0.5 if isinstance(value, float) else b"0.5", value], kind)
    with refused():
        read_numbers(column, "score", "f.tsv:", 10)


def column_values(without):
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


@pytest.mark.slow
@given(st.lists(st.tuples(column_values("\n\t\0"), column_values("\n\t\0")), min_size=1, max_size=12), settings())
def test_line_files_equal_plain_python(tmp_path_factory, pairs, chosen):
    folder = tmp_path_factory.mktemp("lines")
    # Line 1 is plain text, not the signature of a format.
    contents = [content_of([b"7", *side], chosen) for side in zip(*pairs, strict=True)]
    sides = [lines_of(content) for content in contents]
    assume(len(sides[0]) == len(sides[1]) > 0)
    files = {name: folder / f"{name}{chosen['suffix']}" for name in ("left", "right")}
    for path, content in zip(files.values(), contents, strict=True):
        path.write_bytes(COMPRESS[chosen["suffix"]](content))
    with in_blocks(chosen["block"]):
        rows, report = read(LineFiles(files, max_characters=8), chosen["rows"])
    expected, dropped = oracle(zip(*sides, strict=True), 8)
    assert (rows, report.dropped, report.read) == (expected, dropped, len(sides[0]))


@pytest.mark.slow
@given(
    st.lists(st.tuples(*[column_values('\n\t\0"')] * 3), min_size=1, max_size=12),
    st.permutations([1, 2, 3]),
    settings(),
)
def test_tab_files_equal_plain_python(tmp_path_factory, fields, order, chosen):
    path = tmp_path_factory.mktemp("tabs") / f"text.tsv{chosen['suffix']}"
    # Line 1 is a row, whatever follows.
    content = content_of([b"\t".join(row) for row in [(b"7", b"7", b"7"), *fields]], chosen)
    path.write_bytes(COMPRESS[chosen["suffix"]](content))
    columns = dict(zip(["a", "b", "c"], map(str, order), strict=True))
    with in_blocks(chosen["block"]):
        rows, report = read(TableFiles([path], columns, optional=["b"], max_characters=8), chosen["rows"])
    parsed = [line.split(b"\t") for line in lines_of(content)]
    expected, dropped = oracle(([row[n - 1] for n in order] for row in parsed), 8, optional=[1])
    assert (rows, report.dropped) == (expected, dropped)


@pytest.mark.slow
@given(st.lists(st.tuples(*[st.none() | column_values("")] * 2), max_size=12), st.integers(1, 5), st.integers(1, 4))
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
    with in_blocks(1 << 20, rows=block):
        found, report = read(TableFiles([path], {"b": "b", "a": "a"}, optional=["a"], max_characters=8), rows)
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
