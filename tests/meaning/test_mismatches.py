"""Mismatches of numbers, negations and names: worked by hand, and the fast columns against the slow definition."""

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paranmt_hf.meaning.mismatch_columns import MISMATCHES, MismatchReader
from paranmt_hf.meaning.numbers import numbers_in, spelt
from tests.meaning.oracle import SLOW, unconfirmed


def mismatch(column: str, reference: str, translation: str) -> int:
    found = MismatchReader([column]).columns(pa.array([reference]), pa.array([translation]))[column].to_pylist()
    assert found == [SLOW[column](reference, translation)]
    # It is the same both ways.
    assert (
        MismatchReader([column]).columns(pa.array([translation]), pa.array([reference]))[column].to_pylist() == found
    )
    return found[0]


# Pairs of our own: kind of the difference, whether a person takes the two for different, and the two sentences.
with (Path(__file__).parent / "labelled_pairs.tsv").open(encoding="utf8", newline="") as file:
    LABELLED = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_labelled_pairs_are_judged_like_people_do():
    sides = (pa.array([pair[side] for pair in LABELLED]) for side in ("first", "second"))
    counts = MismatchReader().columns(*sides)
    found = [
        "differ" if any(counts[name][row].as_py() for name in MISMATCHES) else "same" for row in range(len(LABELLED))
    ]
    wrong = [tuple(pair.values()) for pair, label in zip(LABELLED, found, strict=True) if pair["label"] != label]
    assert wrong == []
    kinds = Counter((pair["kind"], pair["label"]) for pair in LABELLED)
    assert len(kinds) == 22
    assert min(kinds.values()) >= 12


def test_an_address_is_one_claim_and_no_number():
    first, second = "Mail a@example.com, see http://example.com/2024/05.", "Mail b@example.com in 2024."
    counts = MismatchReader().columns(pa.array([first]), pa.array([second]))
    assert {name: count.to_pylist() for name, count in counts.items()} == {
        "number_mismatch": [1],
        "negation_mismatch": [0],
        "name_mismatch": [0],
        "address_mismatch": [3],
    }


def test_pairs_of_sentences_are_chosen_by_their_places():
    sentences = pa.array(["He has 3 cats.", "He has 4 cats.", "He has three cats."])
    counts = MismatchReader(["number_mismatch"]).counts(sentences, np.array([0, 0, 1, 2]), np.array([1, 2, 2, 2]))
    assert counts["number_mismatch"].tolist() == [2, 0, 2, 0]


def test_claims_by_hand():
    assert unconfirmed([("2", "t2:00"), ("7",), ("7",)], ["t2:00", "5"]) == 1
    assert unconfirmed([], ["5"]) == 0
    assert unconfirmed([("a",), ("b",)], []) == 2
    assert unconfirmed([("kg", "if mass"), ("km", "if length", "if area")], ["lb", "mass"]) == 1


@pytest.mark.parametrize(
    ("reference", "translation", "expected"),
    [
        ("He paid 1,000 crowns.", "He paid 1000 crowns.", 0),
        ("He paid 1 000 crowns.", "He paid a thousand crowns.", 0),
        ("It has 2.5 million rows.", "It has 2,500,000 rows.", 0),
        ("It has 2.5 million rows.", "It has 2.5 billion rows.", 2),
        ("to 10 405.83 points", "to 10,405.83 points", 0),
        ("to 16.599,85 points", "to 16,599.85 points", 0),
        ("twenty-five people", "25 people", 0),
        ("two hundred and five men", "205 men", 0),
        ("two hundred and five men", "200 men and 5 women", 3),
        ("the 19th century", "the nineteenth century", 0),
        ("5 % of them", "five per cent of them", 0),
        ("5% of them", "five of them", 1),
        ("3 cats", "4 cats", 2),
        ("3 cats and 3 dogs", "3 cats", 0),
        ("May 5, 2008", "5/5/2008", 0),
        ("12 May 2008", "12.05.2008", 0),
        ("5 June", "5 July", 2),
        ("He may march on.", "He will go on.", 0),
        ("on Monday", "on Tuesday", 2),
        ("in Jan. 2008", "in January 2008", 0),
        ("at 10:30 pm", "at 22:30", 0),
        ("at 10.30", "at 10:30", 0),
        ("at 10 a.m.", "at 10:00", 0),
        ("at ten o'clock", "at 10 am", 0),
        ("at 10:30", "at 10:45", 2),
        ("in the 1990s", "in the nineties", 0),
        ("in the '90s", "in the 1980s", 2),
        ("two dogs", "both dogs", 0),
        ("one of the dogs", "a dog", 0),
        ("the first dog", "a dog", 0),
        ("the third dog", "a dog", 1),
        ("half of the dogs", "50 percent of the dogs", 0),
        ("three dozen eggs", "36 eggs", 0),
        ("World War II ended", "World War 2 ended", 0),
        ("half a million people", "500,000 people", 0),
        ("Half a billion, half thousand", "500000000 and 500", 0),
        ("half a million people", "a million people", 2),
        ("half a day, million of them", "a million of them", 0),
        ("Chapter IV of it", "chapter 4 of it", 0),
        ("Henry VIII left", "Henry VII left", 2),
        ("Henry VIII left", "Henry left", 0),
        ("19 km²", "19 km2", 0),
        ("flight KL123", "flight KL124", 2),
        ("flight KL123", "flight KL 123", 0),
        ("H1N1 of A2.5", "h1n1 of a2,5", 0),
        ("I'm 5, at 8 p.m.", "I am 5, at 8 pm", 0),
        ("a mast of 10 m", "a mast of 10 cm", 2),
        ("a mast of 10m", "a mast of 10 metres", 0),
        ("a run of 1 km", "a run of 1000 m", 0),
        ("winds of 40 mph", "winds of 40 m.p.h.", 0),
        ("winds of 40 mph", "winds of 40 m/h", 0),
        ("2 tablespoons", "2 tsp", 2),
        ("2 tablespoons", "6 teaspoons", 0),
        ("CO2 falls", "carbon dioxide falls", 0),
        ("about €5m", "about 5 million euros", 0),
        ("scored 2-1", "scored 2:1", 0),
        ("24.2% in France", "24,2 % in France", 0),
        ("no number", "none at all", 0),
        ("x " + "9" * 5000, "x", 1),
    ],
)
def test_numbers_by_hand(reference, translation, expected):
    assert mismatch("number_mismatch", reference, translation) == expected


@pytest.mark.parametrize(
    ("reference", "translation", "expected"),
    [
        ("He did not come.", "He came.", 1),
        ("He didn\u2019t come.", "He came.", 1),
        ("He cannot come and never will.", "He comes and will.", 2),
        ("He cannot come.", "He is unable to come.", 0),
        ("He did not come.", "He never came.", 0),
        ("nobody, nothing", "all", 2),
        ("without sugar", "sugar-free", 0),
        ("without sugar", "with sugar", 1),
        ("not only he but she", "he and she", 0),
        ("not long ago", "recently", 0),
        ("whether or not", "whether", 0),
        ("in room no. 5", "in room 5", 0),
        ("there is no doubt that he came", "he surely came", 0),
        ("Doctors Without Borders came", "The doctors came", 0),
        ("I know the notes", "I know them", 0),
        ("Can't he?", "He can.", 1),
    ],
)
def test_negations_by_hand(reference, translation, expected):
    assert mismatch("negation_mismatch", reference, translation) == expected


@pytest.mark.parametrize(
    ("reference", "translation", "expected"),
    [
        ("He lives in London now.", "He lives in Paris now.", 2),
        ("He lives in London now.", "London is where he lives.", 0),
        ("London is his home now.", "His home is there now.", 0),
        ("It was Russia's fault, he said.", "It was the fault of the Russians, he said.", 0),
        ("He sees M\u00fcnchen from there today.", "He sees Munchen from there today.", 0),
        ("he met Smith-Jones in the bar", "he met Smith in the bar", 1),
        ("the leaders of the European Union met there", "the leaders of the EU met there", 0),
        ("a member of NATO and the U.S. army", "a member of NATO and the US army", 0),
        ("soldiers of the United States came here", "American soldiers came here", 0),
        ("the French people came", "the people of France came", 0),
        ("Obama Visits London And Paris", "he goes there and there", 0),
        ("Obama Visits Farms of Palermo", "he goes there", 0),
        ("John loves Mary.", "John loves Susan.", 2),
        ("Anna met Peter in Paris", "Anna met Peter in London", 2),
        ("it was in World War Two", "it was in world war II", 0),
        ("we read Chapter IV today", "we read chapter 4 today", 0),
        ("they said Mr Smith was here today", "they said Smith was here today", 0),
        ("it was on Monday in May, he says", "it was then, he says", 0),
        ("it ended. Peter went home again", "it ended and he went home", 0),
        ('he said: "Peter is here now"', "he said that someone is here", 0),
        ("I think I'm late", "someone is late", 0),
    ],
)
def test_names_by_hand(reference, translation, expected):
    assert mismatch("name_mismatch", reference, translation) == expected


@pytest.mark.parametrize("word", ["million", "hundred", "dozen"])
@pytest.mark.parametrize("first", ["5", "five"])
def test_endless_numbers_are_read(first, word):
    reading = numbers_in(f"{first} {' '.join([word] * 5000)}")
    assert max(len(key) for claim in reading.claims for key in claim) < 50


def test_reading_of_a_run():
    assert numbers_in("two hundred and five per cent").claims == (("205",), ("%",))
    assert numbers_in("1.5 million").claims == (("1500000",),)
    assert numbers_in("twelve thousand three hundred").claims == (("12300",),)
    assert numbers_in("one two three").claims == (("2",), ("3",))
    assert spelt(2500, 2) == "25"
    assert spelt(205, 2) == "2.05"
    assert spelt(5, 3) == "0.005"


CHUNKS = [
    *"the he not no only or n't never cannot unable without doubt 5 5. five twenty hundred and thousand".split(),
    *"per cent % 2.5 May 5, 2008 12.05.2008 10:30 a.m. o'clock '90s 1,000 000 million, II both London".split(),
    *'London\'s (London) EU U.S. European Union "Peter Peter." said: Mr. Mr I USA United States x A B. C'.split(),
    *"Fran\u00e7ais \u2019s \u2026 - \u0660\u0661 5\u00be".split(),
    "", "''", "\u2019", "n\u2019t", "can\u2019t", "a", "half", "third", "kg", "miles", "$5", "am", "bad", "so",
    "unusual", "a@example.com", "(www.example.com/5)", "Google", "&amp;", "it&#39;s", "years", "twice", "\u00bd",
    "20\u00b0C",
]  # fmt: skip
sentence = st.lists(st.sampled_from(CHUNKS) | st.text(max_size=5), max_size=9).map(" ".join)


@pytest.mark.slow
@given(st.lists(st.tuples(sentence, sentence), max_size=6))
@example([("", ""), ("he not", "he")])
def test_columns_equal_the_slow_definition(pairs):
    # A memory of a single text forgets all the time; the result is the same.
    for reader in (READER, MismatchReader(capacity=1)):
        for part in (pairs[:2], pairs[2:]):
            columns = reader.columns(*(pa.array([pair[side] for pair in part], pa.string()) for side in (0, 1)))
            for name in MISMATCHES:
                assert columns[name].to_pylist() == [SLOW[name](*pair) for pair in part], name


READER = MismatchReader()


@pytest.mark.slow
def test_columns_equal_the_slow_definition_on_real_text(real_sentences):
    pairs = list(zip(real_sentences, real_sentences[1:], strict=False))
    columns = MismatchReader().columns(*(pa.array([pair[side] for pair in pairs]) for side in (0, 1)))
    for name in MISMATCHES:
        assert columns[name].to_pylist() == [SLOW[name](*pair) for pair in pairs]
    assert sum(columns["number_mismatch"].to_pylist()) > 0
    assert all(value == 0 for name in MISMATCHES for value in same(real_sentences)[name].to_pylist())


def same(sentences):
    return MismatchReader().columns(pa.array(sentences), pa.array(sentences))
