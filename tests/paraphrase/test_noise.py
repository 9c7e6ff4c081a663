"""Noise: the same for a seed, of every kind, and never in names or numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf.paraphrase.figures import edit_distance
from paranmt_hf.paraphrase.noise import ARTICLES, KINDS, add_noise

SENTENCE = "You said it is not clear that the people in Prague don't want to go because of 1,500 crowns."


def test_a_seed_decides_and_another_one_differs():
    assert add_noise(SENTENCE, 0.3, 1) == add_noise(SENTENCE, 0.3, 1)
    assert len({add_noise(SENTENCE, 0.3, seed)[0] for seed in range(20)}) > 15
    # Written down once: the result of a seed is the same on every machine and in every version.
    assert add_noise("It is not what the people want to hear.", 0.3, 1) == EXPECTED


EXPECTED = (
    "it is not not whta the the people want to hear",
    ["repetition", "misspelling", "repetition", "lower case", "end"],
)


def test_nothing_changes_without_noise():
    assert add_noise(SENTENCE, 0, 1) == (SENTENCE, [])
    assert add_noise("", 1.0, 1) == ("", [])


def test_every_kind_comes_and_names_and_numbers_keep_their_letters():
    kinds = set()
    for seed in range(200):
        text, own = add_noise(SENTENCE, 0.3, seed)
        kinds |= set(own)
        assert "1,500" in text and "prague" in text.lower()
    assert kinds == set(KINDS)


@pytest.mark.parametrize(
    ("sentence", "results"),
    [
        ("the", {"the", "the the"}),
        ("the Man", {"man"}),
        ("going to", {"gonna", "going going to", "to going", "oging to", "goign to", "goin to", "goiing to"}),
        ("Bob", {"bob", "Bob"}),
        ("cannot", {"cant"}),
    ],
)
def test_changes_by_hand(sentence, results):
    found = {add_noise(sentence, 1.0, seed)[0] for seed in range(60)}
    assert found & results, found
    if len(sentence) < 4:
        assert found <= results


@given(st.lists(st.text("abcdefgh'A7", min_size=1, max_size=8), min_size=1, max_size=12), st.integers(0, 5))
def test_few_words_change(words, seed):
    sentence = " ".join(words)
    text, kinds = add_noise(sentence, 0.2, seed)
    local = [kind for kind in kinds if kind not in ("lower case", "end")]
    assert edit_distance(sentence.lower().split(), text.lower().split()) <= 2 * len(local) + 1
    assert (text == sentence) == (not kinds)
    assert "the" in ARTICLES
