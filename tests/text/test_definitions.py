"""The definition of a token, and the fast path against it."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paranmt_hf.corpus.scoring.scores import score_pairs
from paranmt_hf.text.definitions import character_ngrams, words
from paranmt_hf.text.languages import LANGUAGES, check_language
from paranmt_hf.text.tokens import Bags, WordTokenizer, cut_chunk, ngram_starts
from paranmt_hf.text.word_rules import cutter, word_tokenizer_for
from tests.refused import refused


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It's fine.", ["it", "'s", "fine", "."]),
        ("don't can’t I'd've", ["do", "n't", "ca", "n't", "i", "'d", "'ve"]),
        ("We'll, they're; I'm", ["we", "'ll", ",", "they", "'re", ";", "i", "'m"]),
        ("do n't 's", ["do", "n't", "'s"]),
        ("costs 3.5, not 1,000.", ["costs", "3.5", ",", "not", "1,000", "."]),
        ("well-known (U.S.) a_b", ["well", "-", "known", "(", "u", ".", "s", ".", ")", "a", "_", "b"]),
        ("'tis n'tx", ["'", "tis", "n", "'", "tx"]),
        ("Příliš ŽLUŤOUČKÝ", ["příliš", "žluťoučký"]),
        # Accents that are characters of their own; the soft hyphen is left out first.
        ("ZOE\u0308's cafe\u00ad\u0301, c\u0327a", ["zo\u00eb", "'s", "caf\u00e9", ",", "\u00e7a"]),
        ("", []),
        ("   ", []),
    ],
)
def test_words_by_hand(text: str, expected: list[str]) -> None:
    assert words(text) == expected
    assert cut_by_bytes([text]) == [expected]


def sentences_of(tokenizer: WordTokenizer, column: list[str]) -> list[list[str]]:
    table = tokenizer.tables(column)[0]
    return [
        [table.vocabulary[token] for token in table.ids[start:stop]]
        for start, stop in zip(table.offsets[:-1], table.offsets[1:], strict=True)
    ]


def cut_by_bytes(column: list[str]) -> list[list[str]]:
    return sentences_of(WordTokenizer(few=0), column)


@given(st.lists(st.text(), max_size=8))
def test_fast_path_equals_definition_on_any_text(column: list[str]) -> None:
    column = [text.encode("utf8", "replace").decode("utf8") for text in column]
    assert sentences_of(WordTokenizer(), column) == [words(text) for text in column]
    assert cut_by_bytes(column) == [words(text) for text in column]


def test_forgetting_changes_nothing() -> None:
    column = [f"word{number % 7} can't {number}" for number in range(50)]
    tokenizer = WordTokenizer(capacity=3)
    for start in range(0, 50, 10):
        assert sentences_of(tokenizer, column[start : start + 10]) == [
            words(text) for text in column[start : start + 10]
        ]
    assert len(tokenizer._token_ids) <= 3 + 30


def test_after_an_error_all_is_split_again() -> None:
    def cut(chunk: str) -> list[str]:
        if chunk == "bad" and errors:
            raise errors.pop()
        return list(chunk)

    errors: list[BaseException] = [KeyboardInterrupt(), ValueError("bad")]
    tokenizer = WordTokenizer(cut=cut)
    assert sentences_of(tokenizer, ["ab c"]) == [["a", "b", "c"]]
    with pytest.raises(ValueError, match="bad"):
        tokenizer.tables(["ab bad d"])
    with pytest.raises(KeyboardInterrupt):
        tokenizer.tables(["ab bad d"])
    for _ in range(2):
        assert sentences_of(tokenizer, ["ab bad d", "d"]) == [["a", "b", "b", "a", "d", "d"], ["d"]]


def test_nulls_are_texts_without_tokens() -> None:
    column = pa.array(["a b", None, "c", None])
    for size in (2**22, 3):
        table = WordTokenizer(part_bytes=size).tables(column)[0]
        assert [table.vocabulary[token] for token in table.ids] == ["a", "b", "c"]
        assert table.offsets.tolist() == [0, 2, 2, 3, 3]


def test_many_distinct_chunks_are_remembered() -> None:
    """So many that tables grow; there are equal chunks in one call, and chunks of equal lengths."""
    chunks = [f"{number:x}" for number in range(20_000)]
    column = [" ".join(chunks[start : start + 100]) for start in range(0, len(chunks), 50)]
    tokenizer = WordTokenizer()
    for _ in range(2):
        table = tokenizer.tables(column)[0]
        assert [table.vocabulary[token] for token in table.ids] == " ".join(column).split()
    assert len(table.vocabulary) == len(chunks)
    long = "x" * 100_000
    assert sentences_of(tokenizer, [long, f"{long}y {long}"]) == [[long], [f"{long}y", long]]


def test_tables_share_one_vocabulary() -> None:
    left, right = WordTokenizer().tables(["a b"], pa.chunked_array([["b"], ["a c"]]))
    assert left.vocabulary is right.vocabulary
    assert left.ids.tolist() == [0, 1]
    assert right.ids.tolist() == [1, 0, 2]
    assert right.offsets.tolist() == [0, 1, 3]
    assert right.lengths.tolist() == [1, 2]


def test_sliced_column() -> None:
    column = pa.array(["x y", "a b c", "d"]).slice(1)
    table = WordTokenizer().tables(column)[0]
    assert table.lengths.tolist() == [3, 1]
    assert [table.vocabulary[token] for token in table.ids] == ["a", "b", "c", "d"]


def test_ngrams_stay_inside_sentences() -> None:
    table = WordTokenizer().tables(["a b c d", "e f", "g h i", ""])[0]
    starts, rows = ngram_starts(table, 3)
    assert starts.tolist() == [0, 1, 6]
    assert rows.tolist() == [0, 0, 2]
    assert ngram_starts(WordTokenizer().tables([])[0], 3)[0].dtype == np.int64


def test_fast_path_equals_definition_on_real_text(shared_data) -> None:
    for name in ("news/news.en", "multi30k/val.cs"):
        column = (shared_data / "bitext" / name).read_text(encoding="utf8").split("\n")[:3000]
        assert sentences_of(WordTokenizer(), column) == [words(text) for text in column]


# What the rules look at.
PARTS = "n't ' s ll re . , 1 23 _ - A be N'T $".split(" ") + [" ", "\t", "\x1c", "\x7f", "\x00"]
# Characters of every class: letters with and without capitals of as many bytes, a letter that becomes two, marks,
# digits of other scripts, white space, and what four bytes hold.
PARTS += list("\u2019\u00e9\u00c9\u0161\u0416\u03a3\u00df\u0301\u4e2d\u0130\u1e9e\u212a\u201c\u2014")
PARTS += list("\u0663\u00b2\u00a0\u0085\u2028\u203f\u200b\U0001f600\U00010400")


@pytest.mark.slow
@settings(max_examples=150)
@given(st.lists(st.lists(st.sampled_from(PARTS), max_size=8).map("".join), max_size=6))
def test_cuts_of_a_column_equal_the_definition(column: list[str]) -> None:
    assert cut_by_bytes(column) == [words(text) for text in column]


@pytest.mark.slow
@settings(max_examples=150)
@given(st.lists(st.text(st.characters(max_codepoint=0x17F), max_size=12), max_size=6))
def test_cuts_of_european_text_equal_the_definition(column: list[str]) -> None:
    assert cut_by_bytes(column) == [words(text) for text in column]


# Letters, vowel signs, viramas and tone marks of Devanagari, Bengali, Tamil and Thai, jamo with syllables of Hangul,
# points of Hebrew, accents of Latin letters: what NFC joins, what it moves, and what it leaves.
MARKS = "\u0915\u0928\u093e\u094d\u093c\u0958\u0995\u09c7\u09be\u09d7\u0b95\u0bc6\u0bbe\u0e01\u0e38\u0e48\u0e31"
MARKS += "\u1100\u1161\u11a8\uac00\uac01\u05d0\u05bc\u05b7ae\u0301\u0323\u0308\u3042\u304b\u3099\u0041"


@pytest.mark.slow
@settings(max_examples=400)
@given(st.lists(st.text(st.sampled_from(MARKS), max_size=6), max_size=6))
def test_cuts_of_marks_equal_the_definition(column: list[str]) -> None:
    assert cut_by_bytes(column) == [words(text) for text in column]


@pytest.mark.slow
def test_every_character_equals_the_definition() -> None:
    """In the middle of a word, at a comma between digits, and at a clitic."""
    characters = [chr(code) for code in range(0x3000) if not 0xD800 <= code < 0xE000]
    for make in ("Aa{}b", "1,{}", "it's{}", "{}'ll{}"):
        column = [make.format(character, character) for character in characters]
        assert sentences_of(WordTokenizer(), column) == [words(text) for text in column]


def test_every_plain_pair_of_characters_equals_the_definition() -> None:
    characters = [chr(code) for code in range(128)]
    pairs = [first + second for first in characters for second in characters]
    assert sentences_of(WordTokenizer(), pairs) == [words(pair) for pair in pairs]
    assert [pair for pair in pairs if " " not in pair and cut_chunk(pair) != words(pair)] == []


def test_plain_chunks_of_the_rules_equal_the_definition() -> None:
    """Every sequence of up to five of what the rules know, between two sentences that would change it."""
    parts = ["n", "'", "t", "s", "e", "r", "l", ".", ",", "1", "_", "-"]
    chunks = ["".join(chosen) for size in range(1, 5) for chosen in product(parts, repeat=size)]
    assert len(chunks) == 12 + 12**2 + 12**3 + 12**4
    assert sentences_of(WordTokenizer(), chunks) == [words(chunk) for chunk in chunks]


@given(st.lists(st.text(alphabet="a \u00a0", max_size=6), max_size=6))
def test_a_cut_of_the_callers_sees_chunks_between_blanks(column: list[str]) -> None:
    def letters(chunk: str) -> list[str]:
        return list(chunk)

    expected = [[letter for chunk in text.split(" ") for letter in chunk] for text in column]
    tokenizer = WordTokenizer(cut=letters)
    assert sentences_of(tokenizer, column) == expected
    # A second time from what is remembered.
    assert sentences_of(tokenizer, column[::-1]) == expected[::-1]


@pytest.mark.parametrize("size", [1, 3, 10, 1000])
def test_parts_of_a_column_change_nothing(size: int) -> None:
    column = ["a b.", "", "1,", "5 \u00bd\u00a0x", " ", "don't", "t"]
    assert sentences_of(WordTokenizer(part_bytes=size, few=0), column) == [words(text) for text in column]
    chunked = pa.chunked_array([column[:3], [], column[3:]], pa.large_string())
    table = WordTokenizer(part_bytes=size, few=0).tables(chunked)[0]
    assert table.offsets.tolist() == np.cumsum([0, *(len(words(text)) for text in column)]).tolist()
    assert [table.vocabulary[token] for token in table.ids] == [token for text in column for token in words(text)]


@pytest.mark.parametrize(
    ("text", "size", "expected"),
    [
        ("I'm in", 3, [" i ", "i '", " 'm", "'m ", "m i", " in", "in "]),
        ("I'm in", 4, [" i '", "i 'm", " 'm ", "'m i", "m in", " in "]),
        ("A", 3, [" a "]),
        ("A", 4, []),
        ("a\u00a0 b", 3, [" a ", "a b", " b "]),
        ("A.", 3, [" a ", "a .", " . "]),
        ("ÉTÉ", 3, [" ét", "été", "té "]),
        ("", 3, []),
        (" \u00a0 ", 3, []),
    ],
)
def test_character_ngrams_by_hand(text: str, size: int, expected: list[str]) -> None:
    assert character_ngrams(text, size) == expected


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=6), st.data())
def test_bags_are_taken_by_position(sentences: list[list[int]], data: st.DataObject) -> None:
    offsets = np.cumsum([0, *map(len, sentences)])
    bags = Bags(np.array([row for sentence in sentences for row in sentence], np.int32), offsets)
    chosen = data.draw(st.lists(st.integers(0, len(sentences) - 1), max_size=8))
    taken = bags.take(np.array(chosen, np.int64))
    assert len(bags) == len(sentences)
    assert len(taken) == len(chosen)
    found = [taken.rows[start:stop].tolist() for start, stop in zip(taken.offsets, taken.offsets[1:], strict=False)]
    assert found == [sentences[number] for number in chosen]


BY_HAND = {
    ("de", "Geht’s dir gut? Ja, 3,5 km (GRÖẞER!)"): "geht's dir gut ? ja , 3,5 km ( größer ! )",
    ("de", "'Hallo' rock'n'roll s'"): "' hallo ' rock'n'roll s '",
    ("cs", "Muž s kytarou, č. 5."): "muž s kytarou , č . 5 .",
    ("fr", "L'homme qu'il a vu aujourd'hui, c'est"): "l' homme qu' il a vu aujourd'hui , c' est",
    ("it", "Dell'acqua e un po' d'aria"): "dell' acqua e un po' d' aria",
    ("uk", "м'ята"): "м'ята",
    ("hi", "वह हिन्दी बोलता है।"): "वह हिन्दी बोलता है ।",
    ("fa", "می‌روم."): "می‌روم .",
    ("zh", "我有3只猫。"): "我 有 3 只 猫 。",
    ("th", "น้ำ ดี"): "น้ ำ ดี",
    ("en", "It's"): "it 's",
    (
        "de",
        "Die 3,5-Zimmer-Wohnung kostet 1.250,50 €, geht's?",
    ): "die 3,5 - zimmer - wohnung kostet 1.250,50 € , geht's ?",
    ("fr", "L'homme n'a pas vu qu'il pleut : « Est-ce que c'est 12,5 % ? »"): (
        "l' homme n' a pas vu qu' il pleut : « est - ce que c' est 12,5 % ? »"
    ),
    ("es", "¿Cómo estás? ¡Hola! El señor dijo «no»."): "¿ cómo estás ? ¡ hola ! el señor dijo « no » .",
    ("it", "Dell'acqua nell'armadio, un'amica c'è: un po' di tutto."): (
        "dell' acqua nell' armadio , un' amica c' è : un po' di tutto ."
    ),
    ("nl", "'s Morgens foto's en auto's, zo'n 3,5 uur."): "'s morgens foto's en auto's , zo'n 3,5 uur .",
    ("pl", "Zażółć gęślą jaźń, 3,5 zł."): "zażółć gęślą jaźń , 3,5 zł .",
    ("pt", "Disse-me: «amanhã», por 1.000,00 reais."): "disse - me : « amanhã » , por 1.000,00 reais .",
    ("cs", "Žlutý kůň stojí 3,5 km, že?"): "žlutý kůň stojí 3,5 km , že ?",
}


@pytest.mark.parametrize(("language", "text"), BY_HAND)
def test_by_hand(language, text):
    tokens = [token for chunk in text.split() for token in cutter(language)(chunk)]
    assert " ".join(tokens) == BY_HAND[language, text]


@pytest.mark.parametrize("language", ["de", "fr", "cs"])
def test_a_column_is_cut_like_its_sentences(language):
    texts = [text for _, text in BY_HAND] * 5 + ["", "  a\tb\u00a0c "]
    found = sentences_of(word_tokenizer_for(language), pa.array(texts))
    assert found == [cutter(language)(text) for text in texts]


def test_english_stays():
    text = "It's 3.5 miles, isn't it?"
    (table,) = word_tokenizer_for("en").tables([text])
    assert [table.vocabulary[token] for token in table.ids] == words(text)


def test_scores_count_the_words_of_the_language():
    sides = pa.array(["Wie geht's dir heute"]), pa.array(["Na, wie geht's dir"])
    german = score_pairs(*sides, None, word_tokenizer_for("de"))
    assert (german["reference_length"][0].as_py(), german["translation_length"][0].as_py()) == (4, 5)
    assert german["trigram_overlap"][0].as_py() == 0.5
    english = score_pairs(*sides, None, word_tokenizer_for("en"))
    assert english["reference_length"][0].as_py() == 5


class TestCodes:
    def test_known(self):
        assert (LANGUAGES["de"], LANGUAGES["cs"], LANGUAGES["nb"], len(LANGUAGES)) == (
            "German", "Czech", "Norwegian Bokmål", 183,
        )  # fmt: skip
        assert all(len(code) == 2 and name[0].isupper() for code, name in LANGUAGES.items())
        check_language("de")

    @pytest.mark.parametrize("code", ["xx", "German", "DE", "ces", "Czehc", "de_DE", ""])
    def test_unknown(self, code):
        with refused():
            check_language(code)
