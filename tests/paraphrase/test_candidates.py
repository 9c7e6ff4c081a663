"""Which candidates of paraphrases are kept: copies, overlap, score."""

import numpy as np
import pytest

from paranmt_hf import ParaphraseConfig, Paraphraser
from paranmt_hf.paraphrase.candidates import Candidates, Request, overlaps, select_candidates
from tests.refused import refused


class _Lengths:
    """Vectors whose cosines fall with the difference in length."""

    def encode(self, sentences):
        angles = np.array([len(sentence) for sentence in sentences]) / 100
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def selected(sentence, beams, scorer=None, **settings):
    """What is selected among texts, the most probable first."""
    candidates = Candidates([Request(sentence)], beams, [len(beams)])
    (found,) = select_candidates(candidates, ParaphraseConfig(**settings), scorer=scorer)
    return [each.text for each in found.paraphrases], found.note


def test_copies_are_left_out_and_the_best_score_can_come_first(model):
    sentence = "the man sees a dog ."
    # From the most probable: a copy but for case and mark, a long one, a short one, one of equal length.
    beams = ["The man sees a dog", "the man sees a dog and a dog and a dog .", "the man .", "the dog sees a man ."]
    assert selected(sentence, beams, n=2) == (beams[1:3], None)
    assert selected(sentence, beams, n=2, keep_copies=True) == (beams[:2], None)
    assert selected(sentence, beams, _Lengths(), n=2, order="score") == ([beams[3], beams[2]], None)
    assert selected(sentence, beams[:1]) == ([], "nothing but the sentence itself")
    with refused("scorer"):
        Paraphraser(model, scorer=None)([sentence], order="score")


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
def test_overlap_of_pairs(first, second, expected):
    assert overlaps([first, B], [second, B]).tolist() == [expected, 1.0]
    assert overlaps([], []).tolist() == []


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        # The second repeats half of the first, the third nothing of the first, the fourth all of the third.
        ({"max_mutual_overlap": 0.4}, [0, 2]),
        ({"max_mutual_overlap": 0.5}, [0, 1, 2]),
        ({"max_mutual_overlap": 1.0}, [0, 1, 2, 3]),
        ({"max_overlap": 0.5}, [1, 2, 3]),
        ({"max_overlap": 0.4}, [2, 3]),
        ({"max_overlap": 0.5, "max_mutual_overlap": 0.5}, [1, 2]),
    ],
)
def test_limits_of_overlap(limits, kept):
    beams = [A, B, "someone is playing music", "someone is playing music now"]
    assert selected(A, beams, n=4, keep_copies=True, **limits)[0] == [beams[place] for place in kept]


def test_paraphrases_of_another_meaning():
    sentence = "Turn the lights in the hall on."
    beams = ["Turn the lights in the hall off.", "Turn on the lights in the hall.", "Put the hall lights on."]
    assert selected(sentence, beams, n=3)[0] == beams
    assert selected(sentence, beams, n=3, same_meaning=True) == (beams[1:], None)
    assert selected(sentence, beams[:1], n=3, same_meaning=True) == ([], "no paraphrase of the same meaning")
