"""The tokenizer of stock components against the definition of a character trigram, on any text."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from paranmt_hf.encoders.export.tokenizers import PLACES, SYMBOLS, alphabet_of, trigram_tokenizer
from paranmt_hf.text.definitions import character_ngrams
from tests.encoders.toys import real_trigrams

# Pieces that clitics, numbers, blanks and the symbols of the tokenizer itself are made of.
PIECES = [
    "n't",
    "'s",
    "'ll",
    "'",
    "\u2019",
    "n",
    "t",
    "s",
    "N'T",
    "_",
    ".",
    ",",
    "5",
    " ",
    "\n",
    "\x85",
    "\u00a0",
    "é",
]
PIECES += ["\u0130", "\u0301", "\u4e2d", "-", "[UNK]", *map(chr, SYMBOLS[:6]), chr(0xE000)]


@pytest.fixture(scope="module")
def tokenizer():
    """As it is read from a file."""
    return Tokenizer.from_str(trigram_tokenizer(real_trigrams()).to_str())


def rows(units, text):
    row_of = {unit: row for row, unit in enumerate(units)}
    return [row_of.get(unit, 0) for unit in character_ngrams(text)]


def ids(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize(
    "text", ["", " ", "a", "I'm in", "Isn't it 3.5, or 3.?", "'s_n't can't'd", "..,,5.,5", "x\r\n y"]
)
def test_equals_definition(tokenizer, text):
    assert ids(tokenizer, text) == rows(real_trigrams(), text)


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_equals_definition_around_clitics_and_punctuation(tokenizer, text):
    assert ids(tokenizer, text) == rows(real_trigrams(), text)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_equals_definition_on_any_text(tokenizer, text):
    assert ids(tokenizer, text) == rows(real_trigrams(), text)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=4), st.data())
def test_equals_definition_for_any_vocabulary(texts, data):
    """Also where the vocabulary holds control characters, which the tokenizer otherwise takes for itself."""
    units = ["[UNK]", *dict.fromkeys(unit for text in ["\x01 x\x02", *texts] for unit in character_ngrams(text))]
    made = trigram_tokenizer(units)
    for text in [*texts, "\x01\x03 x\x02n't", data.draw(st.text(alphabet_of(units)))]:
        assert ids(made, text) == rows(units, text)


@pytest.mark.slow
def test_equals_definition_on_real_sentences(tokenizer, real_sentences):
    units, sentences = real_trigrams(), real_sentences[:300]
    found = [ids(tokenizer, sentence) for sentence in sentences]
    assert found == [rows(units, sentence) for sentence in sentences]
    assert sum(map(len, found)) > 5_000
    assert {row for row in found[0]} != {0}


@pytest.mark.slow
def test_equals_definition_on_every_character(tokenizer):
    """Beside letters, digits, clitics and at the edges, where it matters which class a character is of."""
    row_of = {unit: row for row, unit in enumerate(real_trigrams())}
    for number in range(0x110000):
        one = chr(number)
        if unicodedata.category(one) not in ("Cs", "Co", "Cn"):
            text = f"a{one}b 3{one}5 n't{one} '{one}s {one}"
            expected = [row_of.get(unit, 0) for unit in character_ngrams(text)]
            assert ids(tokenizer, text) == expected, hex(number)


def test_every_unit_has_its_id():
    units = real_trigrams()
    made = trigram_tokenizer(units)
    assert made.get_vocab_size() == len(units)
    assert made.token_to_id("[UNK]") == 0
    assert {len(token) for token, row in made.get_vocab().items() if row} == {3 * PLACES}
