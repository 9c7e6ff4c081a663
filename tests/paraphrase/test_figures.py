"""Figures of paraphrases, their overlaps, and noise: by hand, and against the libraries they come from."""

import nltk
import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf.corpus.reading.pairs import PairSelection
from paranmt_hf.evaluation.baselines import Meteor
from paranmt_hf.paraphrase.config import ParaphraseEvaluationData
from paranmt_hf.paraphrase.figures import (
    Output,
    ParaphraseData,
    ParaphraseItems,
    ParaphraseMeasures,
    canonical_figures,
    closeness,
    corpus_bleu,
    edit_distance,
    group,
)
from paranmt_hf.paraphrase.noise import ARTICLES, KINDS, add_noise
from paranmt_hf.paraphrase.paraphraser import Paraphrase, _apart, overlaps, unlike
from paranmt_hf.text.definitions import words
from tests.refused import refused


class FirstLetters:
    """Sentences are alike by whether they begin alike."""

    def similarities(self, left, right):
        return np.array([float(one[0] == other[0]) for one, other in zip(left, right, strict=True)])


ITEMS = ParaphraseItems(
    "toy",
    ["the 7 dogs bark at night", "a cat sleeps here", "birds sing in the morning"],
    [["7 dogs bark at night", "the seven dogs bark"], ["the cat sleeps"], ["in the morning birds sing"]],
)


def measure(outputs, **options):
    return ParaphraseMeasures(FirstLetters(), **options)(ITEMS, [Output(texts, []) for texts in outputs])


@given(st.text("abc", max_size=12), st.text("abcd", max_size=12))
def test_edit_distance_is_that_of_nltk(first, second):
    assert edit_distance(first, second) == nltk.edit_distance(first, second)


def test_edit_distance_of_words_and_of_long_sequences():
    assert edit_distance("the cat sat".split(), "the black cat sat down".split()) == 2
    assert edit_distance("", "abc") == edit_distance("abc", "") == 3
    draw = np.random.default_rng(1)
    first, second = (draw.integers(0, 5, 200).tolist() for _ in range(2))
    assert edit_distance(first, second) == nltk.edit_distance(first, second)


@pytest.mark.slow
def test_a_copy_is_all_input_and_no_diversity():
    own = measure([[source] for source in ITEMS.sources])
    assert own["self_bleu"] == pytest.approx(100)
    assert (own["copies"], own["length_ratio"], own["score"], own["number"]) == (1, 1, 1, 0)
    assert not {"among_bleu", "template_match"} & own.keys()
    assert own["without"] == 0 and own["outputs"] == 1


def test_figures_by_hand():
    outputs = [["The dogs bark at night"], ["A  cat sleeps here".replace("  ", " ")], ["sing birds in the morning"]]
    own = measure(outputs)
    assert own["copies"] == pytest.approx(1 / 3), "case does not count"
    assert own["length_ratio"] == pytest.approx(14 / 15)
    assert own["number"] == pytest.approx(1 / 3)
    assert own["score"] == pytest.approx(0), "no output begins as its input: their case differs"
    best = [texts[0] for texts in outputs]
    references = [["7 dogs bark at night", "the cat sleeps", "in the morning birds sing"]]
    references += [["the seven dogs bark", None, None]]
    assert own["bleu"] == pytest.approx(sacrebleu.BLEU().corpus_score(best, references).score)
    assert own["self_bleu"] == pytest.approx(sacrebleu.corpus_bleu(best, [ITEMS.sources]).score)
    meteor = Meteor()
    expected = [
        max(meteor.one_direction(words(text), words(each)) for each in own)
        for text, own in zip(best, ITEMS.references, strict=True)
    ]
    assert own["meteor"] == pytest.approx(np.mean(expected))


def test_a_sentence_without_output_lowers_only_what_compares_with_references():
    whole = measure([[texts[0]] for texts in ITEMS.references])
    less = measure([[ITEMS.references[0][0]], [], [ITEMS.references[2][0]]])
    assert whole["bleu"] == pytest.approx(100) and less["bleu"] < 100
    assert less["meteor"] == pytest.approx(whole["meteor"] * 2 / 3, rel=0.05)
    assert less["without"] == 1 and less["outputs"] == pytest.approx(2 / 3)
    assert less["copies"] == 0 and less["number"] == 0
    with refused():
        measure([[], [], []])


def test_bleu_among_outputs():
    same = measure([["a b c d e", "a b c d e"], ["a cat"], ["x"]])
    assert same["among_bleu"] == pytest.approx(100)
    other = measure([["a b c d e", "f g h i j"], ["a cat"], ["x"]])
    assert other["among_bleu"] < 5
    assert other["outputs"] == pytest.approx(4 / 3)


def test_templates_are_counted_where_they_were_asked_for():
    measures = ParaphraseMeasures(FirstLetters(), lambda texts, templates: [each == "(S)" for each in templates])
    outputs = [Output(["a b"], ["(S)"]), Output(["a cat"], ["(NP)"]), Output(["x"], [""])]
    assert measures(ITEMS, outputs)["template_match"] == 0.5


def test_several_references_of_a_source_are_one_item():
    found = group("x", [("a  b", "c"), ("d", "e"), ("a b", "f "), ("a b", "c")])
    assert (found.sources, found.references) == (["a b", "d"], [["c", "f"], ["e"]])
    assert found.has_references and not ParaphraseItems("x", ["a"], [[]]).has_references
    assert found.checksum != group("x", [("a b", "c")]).checksum


def test_two_columns(tmp_path):
    path = tmp_path / "pairs.tsv"
    given = ParaphraseData([path], ParaphraseEvaluationData(), PairSelection())
    path.write_text("a b\tc d\ne\tf\n")
    assert given.rows() == [("a b", "c d"), ("e", "f")]
    for text in (
        "a b\tc d\ne\n",
        "a\t \n",
    ):
        path.write_text(text)
        with refused():
            given.rows()


def test_closeness_by_hand():
    own = closeness(["abc d", "x y"], ["abcd", "x y"])
    assert own["character_edits"] == pytest.approx(100 * 1 / 7)
    assert own["word_edits"] == pytest.approx(100 * 2 / 3)
    assert own["equal"] == 0.5
    assert own["bleu"] == pytest.approx(corpus_bleu()(["abc d", "x y"], [["abcd"], ["x y"]]))


def test_canonical_by_hand():
    rows, examples = canonical_figures(
        ["teh cat", "a dog dog", "same"],
        ["the cat", "a dog", "same"],
        ["the cat", "the big dogs", None],
        ["the cat", None, "other"],
    )
    output, of_clean, noisy = rows
    assert (output["improved"], output["worse"]) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert [(each["before"], each["after"]) for each in examples] == [(2, 0), (4, 8), (0, 0)]
    assert examples[2] == {"noisy": "same", "output": "same", "clean": "same", "before": 0, "after": 0}
    assert noisy["equal"] == pytest.approx(1 / 3) and output["equal"] == pytest.approx(2 / 3)
    assert of_clean["equal"] == pytest.approx(2 / 3)
    with refused():
        canonical_figures([], [], [], [])


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
