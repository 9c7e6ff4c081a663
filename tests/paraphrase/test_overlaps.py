"""Overlap of paraphrases with the sentence, and with each other."""

import pytest

from paranmt_hf.paraphrase.paraphraser import Paraphrase, _apart, overlaps, unlike

A, B = "the man plays the guitar .", "the man plays the old guitar ."


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # the-man-plays and man-plays-the are shared; the shorter side has four trigrams.
        (A, B, 0.5),
        (A, A.upper(), 1.0),
        (A, "a guitar is played .", 0.0),
        # Too short for trigrams: the same words, or others.
        ("Hello !", "hello!", 1.0),
        ("hello", "hello !", 0.0),
        ("", "", 1.0),
    ],
)
def test_of_pairs(first, second, expected):
    assert overlaps([first, B], [second, B]).tolist() == [expected, 1.0]


def test_no_pairs():
    assert overlaps([], []).tolist() == [] and unlike([], [], 0.5) == []


def test_choices_unlike_their_sentence():
    choices = [[A, B, "someone plays ."], ["hello", "hi"], []]
    assert unlike([A, "hello", A], choices, 0.5) == [[B, "someone plays ."], ["hi"], []]


def test_the_more_probable_stays():
    # The second repeats half of the first, the third nothing of the first, the fourth all of the third.
    texts = [A, B, "someone is playing music", "someone is playing music now"]
    rows = [[Paraphrase(text, None) for text in own] for own in (texts, [], ["hello", "hello"])]
    for limit, kept in ((0.4, [[0, 2], [], [0]]), (0.5, [[0, 1, 2], [], [0]]), (1.0, [[0, 1, 2, 3], [], [0, 1]])):
        wanted = [[own[position] for position in positions] for own, positions in zip(rows, kept, strict=True)]
        assert _apart(rows, limit) == wanted
