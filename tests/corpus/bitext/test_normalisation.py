import sys
import unicodedata
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf.corpus.bitext.columns import decode, normalise, read_numbers
from paranmt_hf.errors import InputError

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


def is_space(character):
    category = unicodedata.category(character)
    return category[0] == "Z" or category == "Cc"


def plain(text):
    """What `normalise` does, one string at a time in plain Python."""
    text = "".join(" " if is_space(character) else character for character in unicodedata.normalize("NFC", text))
    return " ".join(word for word in text.split(" ") if word)


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


@pytest.mark.parametrize("value", [b"", b"x", b"1,5", b"1_0", b"nan", b"inf", b"-Infinity", b"1e39", b"\xff", None])
def test_a_bad_number_names_its_place(value):
    column = pa.array([b"0.5", b"0.6", value, b"also bad"], pa.binary())
    with pytest.raises(InputError, match=r"^f\.tsv:12: expected a finite number in column 'score', got .*; correct"):
        read_numbers(column, "score", "f.tsv:", 10)


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), 1e300])
def test_a_number_that_is_none(value):
    column = pa.array([0.5, value], pa.float64())
    with pytest.raises(
        InputError, match=rf"^row 1: expected a finite number in column 'score', got {value}".replace("+", r"\+")
    ):
        read_numbers(column, "score", "row ", 0)
