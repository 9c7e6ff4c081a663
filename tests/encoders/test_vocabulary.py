"""Counts, choice and lookup of words and character trigrams against the definition."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paranmt_hf.encoders.units import UnitCounter, count_units, lookup
from paranmt_hf.encoders.vocabulary import Vocabulary, most_frequent, pieces_of
from paranmt_hf.text.definitions import character_ngrams, is_piece, rows_of_word, vocabulary_of, word_tokenizer, words
from paranmt_hf.text.tokens import WordTokenizer
from tests.refused import refused

DEFINITIONS = {"word": words, "trigram": character_ngrams}
KINDS = ["word", "trigram"]

tricky = st.lists(
    st.sampled_from(
        ["a", "ab", "'s", "n't", "’", ".", "3.5", ",", "\u00a0", "\t", " ", "İ", "ß", "日本", "👍🏽", "_", "é", "X"]
    )
).map("".join)
text = st.one_of(tricky, st.text().map(lambda found: found.encode("utf8", "replace").decode("utf8")))
column = st.lists(text, max_size=6)


@given(st.lists(column, max_size=3))
@example([["", "a", "   "], []])
@example([["a b", "can’t I'd've"], ["x\u00a0y z", "a b"]])
def test_counts_equal_brute_force(columns):
    found = count_units([pa.array(texts, pa.string()) for texts in columns], ["word", "trigram"])
    for kind, definition in DEFINITIONS.items():
        assert +found[kind] == Counter(unit for texts in columns for line in texts for unit in definition(line))


def test_counts_by_hand():
    found = count_units([pa.array(["A cat's cat", "", "cat"])], ["word", "trigram"])
    assert found["word"] == {"a": 1, "cat": 3, "'s": 1}
    assert found["trigram"][" ca"] == 3
    assert found["trigram"]["t '"] == 1
    assert found["trigram"]["s c"] == 1
    assert found["trigram"][" a "] == 1
    assert list(count_units([pa.array(["a"])], ["word"])) == ["word"]


def test_counting_goes_on_after_the_tokenizer_has_forgotten():
    counter, tokenizer = UnitCounter(["word", "trigram"]), WordTokenizer(capacity=2)
    columns = [[f"w{number} can't {number % 3}" for number in range(start, start + 9)] for start in range(0, 45, 9)]
    for texts in columns:
        counter.add(tokenizer.tables(texts)[0])
    for kind, definition in DEFINITIONS.items():
        expected = Counter(unit for texts in columns for line in texts for unit in definition(line))
        assert counter.result()[kind] == expected


def test_most_frequent_breaks_ties_by_characters():
    counts = Counter({"b": 2, "a": 2, "é": 2, "c": 5, "d": 1, "[UNK]": 9})
    assert most_frequent("word", counts, 10).units == ["[UNK]", "c", "a", "b", "é", "d"]
    assert most_frequent("word", counts, 2).units == ["[UNK]", "c", "a"]
    assert most_frequent("word", counts, 9, min_count=2).units == ["[UNK]", "c", "a", "b", "é"]


@given(st.permutations(["a", "b", "c", "d", "e"]))
def test_ids_do_not_depend_on_the_order_of_the_text(order):
    counts = count_units([pa.array([*order, "a", "e"])], ["word"])["word"]
    assert most_frequent("word", counts, 4).units == ["[UNK]", "a", "e", "b", "c"]


@pytest.mark.parametrize("kind", KINDS)
def test_empty_vocabulary_is_named(kind):
    with refused():
        most_frequent(kind, Counter(), 10)
    with refused():
        most_frequent(kind, Counter({"abc": 1}), 10, min_count=2)


def rows_by_definition(vocabulary, texts):
    row_of = {unit: row for row, unit in enumerate(vocabulary.units)}
    return [[row_of.get(unit, 0) for unit in DEFINITIONS[vocabulary.kind](line)] for line in texts]


def rows_of(bags):
    return [bags.rows[start:stop].tolist() for start, stop in zip(bags.offsets, bags.offsets[1:], strict=False)]


@pytest.mark.parametrize("kind", KINDS)
@given(columns=st.lists(column, min_size=1, max_size=4), capacity=st.sampled_from([0, 2, 1000]), data=st.data())
@example(columns=[["a b", ""], ["", ""], ["ab  a\u00a0b"]], capacity=0, data=None)
def test_lookup_equals_definition(kind, columns, capacity, data):
    """Also where the tokenizer forgets between two tables, so that token ids begin anew."""
    units = sorted({unit for texts in columns for line in texts for unit in DEFINITIONS[kind](line)})
    if data is not None and units:
        units = data.draw(st.lists(st.sampled_from(units), unique=True))
    vocabulary = Vocabulary(kind, ["[UNK]", *units, "never seen"])
    tokenizer, found = WordTokenizer(capacity=capacity), lookup(vocabulary)
    for texts in columns:
        bags = found.bags(tokenizer.tables(pa.array(texts, pa.string()))[0])
        assert rows_of(bags) == rows_by_definition(vocabulary, texts)
        assert len(bags) == len(texts)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_lookup_equals_definition_on_real_text(shared_data, kind):
    seen = 0
    for name in ("news/news.en", "multi30k/val.cs"):
        texts = (shared_data / "bitext" / name).read_text(encoding="utf8").split("\n")[:2000]
        vocabulary = most_frequent(kind, count_units([pa.array(texts)], [kind])[kind], 3000)
        tokenizer, found = WordTokenizer(capacity=500), lookup(vocabulary)
        for start in range(0, len(texts), 300):
            part = texts[start : start + 300]
            bags = found.bags(tokenizer.tables(part)[0])
            assert rows_of(bags) == rows_by_definition(vocabulary, part)
            seen += np.count_nonzero(bags.rows)
    assert seen > 10_000


def test_lookups_of_one_vocabulary_do_not_share_what_they_remember():
    vocabulary = Vocabulary("trigram", ["[UNK]", "a b", " a ", " b "])
    first, second = lookup(vocabulary), lookup(vocabulary)
    assert rows_of(first.bags(WordTokenizer().tables(["a b"])[0])) == [[2, 1, 3]]
    assert rows_of(second.bags(WordTokenizer().tables(["b a"])[0])) == [[3, 0, 2]]
    assert rows_of(first.bags(WordTokenizer().tables(["b", "a"])[0])) == [[3], [2]]


CUT = ["[UNK]", "read", "re", "r", "##er", "##ers", "##ad", "##s", "##d", "new", "##"]


@pytest.mark.parametrize(
    ("word", "pieces"),
    [
        ("read", ["read"]),
        ("readers", ["read", "##ers"]),
        ("reads", ["read", "##s"]),
        ("red", ["re", "##d"]),
        ("rers", ["re", "[UNK]"]),
        ("rads", ["r", "##ad", "##s"]),
        ("##", ["##"]),
        ("x", ["[UNK]"]),
        ("r" + "s" * 99, ["r", *["##s"] * 99]),
        ("r" + "s" * 100, ["[UNK]"]),
    ],
)
def test_pieces_by_hand(word, pieces):
    # A word whose rest is no piece is unknown as a whole: from the left the longest piece is taken, not the best.
    expected = ["[UNK]"] if "[UNK]" in pieces else pieces
    assert rows_of_word(word, {unit: row for row, unit in enumerate(CUT)}.get) == [
        CUT.index(piece) for piece in expected
    ]


@given(column, st.sets(st.sampled_from(["a", "b", "ab", "##b", "##a", "##ab", "3", "##.5", "##x", "日", "##本", "ß"])))
@example(["ab abab 日本 ß"], {"a", "##b", "日", "##本"})
def test_pieces_are_those_of_the_tokenizers_library(texts, units):
    found = ["[UNK]", *sorted({*units, "##q"})]
    vocabulary, tokenizer = Vocabulary("word", found), word_tokenizer(found)
    assert vocabulary.has_pieces and vocabulary_of(tokenizer) == found
    (table,) = WordTokenizer().tables(texts)
    bags = lookup(vocabulary).bags(table)
    for index, line in enumerate(texts):
        rows = bags.rows[bags.offsets[index] : bags.offsets[index + 1]].tolist()
        assert rows == tokenizer.encode(line, add_special_tokens=False).ids
        assert rows == [row for word in words(line) for row in rows_of_word(word, vocabulary.find)]


def test_pieces_are_characters_and_frequent_endings():
    counts = Counter({"running": 1, "eating": 1, "ring": 1, "e": 90})
    # Of 32 rows two are room for a character, as a beginning and as an ending; endings of three words come first.
    chosen = pieces_of(counts, 32)
    assert chosen[:7] == ["e", "n", "##e", "##n", "##g", "##ing", "##ng"]
    assert len(chosen) == len(set(chosen)) <= 32
    assert all(is_piece(piece) for piece in chosen[4:])
    assert "##ing" in chosen and "##ring" not in chosen, "a piece goes on with a word"
    assert pieces_of(Counter(), 10) == []
