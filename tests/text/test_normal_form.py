"""The form in which texts are compared."""

import unicodedata

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf import normal_form
from paranmt_hf.text.definitions import words
from paranmt_hf.text.word_rules import letters


def of(text):
    return normal_form(pa.array([text], pa.string()))[0].as_py()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It&#39;s &quot;so&quot; &lt;b&gt; &#x2019;&apos;", "It's \"so\" <b> ''"),
        ("Tom &amp; Jerry, Tom &amp;amp; Jerry, Tom &#38;amp; Jerry", "Tom & Jerry, Tom & Jerry, Tom & Jerry"),
        ("a&nbsp;b &hellip; &#55357; &#0;", "a b \u2026 \ufffd \ufffd"),
        # Neither is an entity, nor is one without its semicolon.
        ("R&D; &nosuch; AT&T &amp &notin", "R&D; &nosuch; AT&T &amp &notin"),
        ("don\u2019t don\u00b4t don\u02bct don`t \u2018so\u2019", "don't don't don't don't 'so'"),
        (
            "co\u00adoperate zero\u200bwidth \ufeffmark \u200eleft\u200f joi\u2060ner",
            "cooperate zerowidth mark left joiner",
        ),
        ("\u0645\u06cc\u200c\u0631\u0648\u0645", "\u0645\u06cc\u0631\u0648\u0645"),
        ("\uff28\uff45\u3000\uff15\uff05\uff0c \uff76\uff9e", "He 5%, \u30ac"),
        ("\ufb01sh \ufedf\ufee0 \U0001d400\U0001d7d9", "fish \u0644\u0644 A1"),
        ("\u0663\u066b\u0665\u066a \u06f4 \u0967\u0968 \u0e53", "3.5% 4 12 3"),
        ("cafe\u0301 \u1112\u1161\u11ab", "caf\xe9 \ud55c"),
        ("5 \u212b \u2126 \u1f71 \u0374 \uf900", "5 \u00c5 \u03a9 \u03ac ' \u8c48"),
        ("\u22125 non\u2011stop", "-5 non-stop"),
        # As they are: superscripts, fractions, dashes, quotation marks, case, blanks of rows that need nothing.
        ("km\u00b2 5\u00bd \u2013 \u201cA\u201d", "km\u00b2 5\u00bd \u2013 \u201cA\u201d"),
        ("two  blanks", "two  blanks"),
        ("", ""),
        (None, None),
    ],
)
def test_by_hand(text, expected):
    assert of(text) == expected


def test_columns_of_every_kind():
    texts = ["a", None, "b&amp;c", "\u0663", ""]
    expected = ["a", None, "b&c", "3", ""]
    for kind in (pa.string(), pa.large_string()):
        column = pa.array(texts, kind)
        assert normal_form(column).to_pylist() == expected
        assert normal_form(column).type == kind
        assert normal_form(column.slice(2, 2)).to_pylist() == expected[2:4]
        chunked = normal_form(pa.chunked_array([texts[:2], texts[2:], []], kind))
        assert chunked.to_pylist() == expected
        assert chunked.type == kind


@given(st.lists(st.text() | st.none(), max_size=6))
def test_texts_do_not_depend_on_their_neighbours(texts):
    texts = [text and text.encode("utf8", "replace").decode() for text in texts]
    assert normal_form(pa.array(texts, pa.string())).to_pylist() == [
        None if text is None else of(text) for text in texts
    ]


@given(st.text(st.characters(exclude_characters="&", exclude_categories=["Cs"])))
def test_a_normal_form_is_its_own(text):
    assert of(of(text)) == of(text)


def test_long_runs_of_entities_are_read_in_one_pass():
    assert of("&" + "amp;" * 200_000) == "&"


@pytest.mark.slow
def test_digits_of_every_script_are_numbers():
    characters = [chr(code) for code in range(0x80, 0x20000) if unicodedata.category(chr(code)) == "Nd"]
    assert len(characters) > 500
    assert [of(character) for character in characters] == [str(unicodedata.decimal(one)) for one in characters]


def test_letters_are_those_of_the_normal_form():
    texts = ["It&#39;s 3 o\u00b4clock &amp; co\u00adol", "IT'S \u0663 o'clock, cool"]
    assert letters(pa.array(texts)).to_pylist() == ["its3oclockcool"] * 2


def test_an_encoder_reads_apostrophes_and_no_invisible_characters():
    assert words("don\u00b4t co\u00adoperate\u200b \ufeffHe m\u02bcy") == [
        "do",
        "n't",
        "cooperate",
        "he",
        "m",
        "'",
        "y",
    ]
