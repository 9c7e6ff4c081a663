"""The columns `sentence_mismatch` and `repeated_words`, by hand."""

import numpy as np
import pyarrow as pa
import pytest

from paranmt_hf.corpus.scoring.repetitions import count_repeated, repeated_words
from paranmt_hf.corpus.scoring.sentence_ends import count_sentences, sentence_mismatch
from paranmt_hf.text.word_rules import word_tokenizer_for


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 1),
        ("One sentence", 1),
        ("One sentence.", 1),
        ("One. Two.", 2),
        ("One! Two? Three", 3),
        ("He said: “Yes.” “No,” she said.", 2),
        ("Wait... What?!  Really (yes).", 3),
        ("Dr. Smith met J. R. Miller at St. Paul, Mr. No. 5.", 1),
        ("It costs 3.5 million, e.g. in the U.S. and so on etc. here.", 1),
        ("It ended. then went on", 1),
        ("It was in 1990. 20 people came.", 2),
        ("一。二！三", 3),
        ("他说：“好。”我走了。", 2),
        ("ما هذا؟ لا أعرف.", 2),
    ],
)
def test_sentences_are_counted_by_their_ends(text, count):
    assert count_sentences(pa.array([text])).tolist() == [count]


def mismatch(reference, translation):
    lengths = [np.array([len(side.split())]) for side in (reference, translation)]
    return sentence_mismatch(pa.array([reference]), pa.array([translation]), *lengths).to_pylist()


def test_a_missing_sentence():
    two = "The dog runs over the field. The cat sleeps on a chair."
    assert mismatch(two, "The dog runs over the field.") == [1]
    assert mismatch("The dog runs over the field.", two) == [1]
    assert mismatch(two, two) == [0]
    # The translator joined them.
    assert mismatch(two, "The dog runs over the field, and the cat sleeps on a chair.") == [0]
    # Shorter, but as many sentences.
    assert mismatch(two, "A dog runs. A cat sleeps.") == [0]
    assert mismatch(f"{two} A bird sings. It is day.", "The dog runs.") == [3]


def test_the_length_that_decides():
    ten = "One two three four five. Six seven eight nine ten."
    assert mismatch(ten + " a b c", "one two three four five six seven eight nine ten") == [1]
    assert mismatch(ten + " a b", "one two three four five six seven eight nine ten") == [0]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("a camp", 0),
        ("a camp camp camp", 2),
        ("a man , a man , a man .", 4),
        ("No, no, no!", 2),
        ("the dog and the cat and the dog", 0),
        ("the price of the price of the price of it", 6),
        ("one two three four five six seven eight one two three four five six seven eight", 8),
        ("1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9", 0),
        ("... ... ...", 0),
        ("a b a b a", 3),
    ],
)
def test_repetitions_are_counted(text, count):
    # Next to other sentences, whose words do not count.
    (table,) = word_tokenizer_for("en").tables(pa.array(["camp", text, "a camp"]))
    assert count_repeated(table).tolist() == [0, count, 0]


def test_repetitions_against_plain_python():
    draw = np.random.default_rng(3)
    texts = [" ".join(draw.choice(list("abc"), draw.integers(0, 12))) for _ in range(200)]

    def expected(words):
        found = set()
        for size in range(1, 9):
            for start in range(size, len(words) - size + 1):
                if words[start : start + size] == words[start - size : start]:
                    found.update(range(start, start + size))
        return len(found)

    (table,) = word_tokenizer_for("en").tables(pa.array(texts))
    counts = [expected(text.split()) for text in texts]
    assert count_repeated(table).tolist() == counts
    assert max(counts) > 5


def test_repetitions_of_the_reference_are_left_out():
    sides = [["very very good", "very good", "a a b b"], ["very very nice", "very very very good", "a b"]]
    references, translations = word_tokenizer_for("en").tables(*map(pa.array, sides))
    assert repeated_words(references, translations).to_pylist() == [0, 2, 0]
