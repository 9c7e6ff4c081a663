"""What a word is in languages other than English."""

import pyarrow as pa
import pytest

from paranmt_hf.corpus.scores import score_pairs
from paranmt_hf.errors import InputError
from paranmt_hf.hub.languages import LANGUAGES, check_language
from paranmt_hf.text.definitions import words
from paranmt_hf.text.word_rules import cutter, word_tokenizer_for

BY_HAND = {
    ("de", "Geht’s dir gut? Ja, 3,5 km (GRÖẞER!)"): "geht's dir gut ? ja , 3,5 km ( größer ! )",
    ("de", "'Hallo' rock'n'roll s'"): "' hallo ' rock'n'roll s '",
    ("cs", "Muž s kytarou, č. 5."): "muž s kytarou , č . 5 .",
    ("fr", "L'homme qu'il a vu aujourd'hui, c'est"): "l' homme qu' il a vu aujourd'hui , c' est",
    ("it", "Dell'acqua e un po' d'aria"): "dell' acqua e un po ' d' aria",
    ("uk", "м'ята"): "м'ята",
    ("hi", "वह हिन्दी बोलता है।"): "वह हिन्दी बोलता है ।",
    ("fa", "می‌روم."): "می‌روم .",
    ("zh", "我有3只猫。"): "我 有 3 只 猫 。",
    ("th", "น้ำ ดี"): "น้ ำ ดี",
    ("en", "It's"): "it 's",
}


@pytest.mark.parametrize(("language", "text"), BY_HAND)
def test_by_hand(language, text):
    tokens = [token for chunk in text.split() for token in cutter(language)(chunk)]
    assert " ".join(tokens) == BY_HAND[language, text]


@pytest.mark.parametrize("language", ["de", "fr", "cs"])
def test_a_column_is_cut_like_its_sentences(language):
    texts = [text for _, text in BY_HAND] * 5 + ["", "  a\tb\u00a0c "]
    (table,) = word_tokenizer_for(language).tables(pa.array(texts))
    found = [
        [table.vocabulary[token] for token in table.ids[start:stop]]
        for start, stop in zip(table.offsets[:-1], table.offsets[1:], strict=True)
    ]
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

    @pytest.mark.parametrize(
        ("code", "hint"),
        [("xx", "was 'xx'$"), ("German", "; de is German"), ("DE", "; de is German"), ("ces", "; ce is Chechen"),
         ("Czehc", "; cs is Czech"), ("de_DE", "; de is German"), ("", "was ''$")],
    )  # fmt: skip
    def test_unknown(self, code, hint):
        with pytest.raises(InputError, match=f"language must be an ISO 639-1 code such as en, de or cs, .*{hint}"):
            check_language(code)
