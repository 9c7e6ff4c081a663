"""Figures of paraphrases: by hand, and against the libraries they come from."""

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf.corpus.pairs import PairSelection
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.baselines import Meteor
from paranmt_hf.paraphrase.config import ParaphraseEvaluationData
from paranmt_hf.paraphrase.figures import ParaphraseMeasures, canonical_figures, closeness, corpus_bleu, edit_distance
from paranmt_hf.paraphrase.items import Output, ParaphraseItems, group, sampled_rows
from paranmt_hf.text.definitions import words


class FirstLetters:
    """Sentences are alike by whether they begin alike."""

    def similarities(self, left, right):
        return np.array([float(one[0] == other[0]) for one, other in zip(left, right, strict=True)])


def count_errors(sources, texts):
    pairs = zip(sources, texts, strict=True)
    return {"number_mismatch": np.array([2 * (("7" in one) != ("7" in other)) for one, other in pairs])}


ITEMS = ParaphraseItems(
    "toy",
    ["the 7 dogs bark at night", "a cat sleeps here", "birds sing in the morning"],
    [["7 dogs bark at night", "the seven dogs bark"], ["the cat sleeps"], ["in the morning birds sing"]],
)


def measure(outputs, **options):
    return ParaphraseMeasures(FirstLetters(), count_errors, **options)(ITEMS, [Output(texts, []) for texts in outputs])


def naive_distance(first, second):
    row = list(range(len(second) + 1))
    for place, item in enumerate(first, 1):
        above, row[0] = row[0], place
        for column, other in enumerate(second, 1):
            above, row[column] = row[column], min(above + (item != other), row[column] + 1, row[column - 1] + 1)
    return row[-1]


@given(st.text("abc", max_size=12), st.text("abcd", max_size=12))
def test_edit_distance_is_that_of_the_table(first, second):
    assert edit_distance(first, second) == naive_distance(first, second)


def test_edit_distance_of_words_and_of_long_sequences():
    assert edit_distance("the cat sat".split(), "the black cat sat down".split()) == 2
    assert edit_distance("", "abc") == edit_distance("abc", "") == 3
    draw = np.random.default_rng(1)
    first, second = (draw.integers(0, 5, 200).tolist() for _ in range(2))
    assert edit_distance(first, second) == naive_distance(first, second)


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
    with pytest.raises(InputError, match="none of 3 sentences has a paraphrase"):
        measure([[], [], []])


def test_bleu_among_outputs():
    same = measure([["a b c d e", "a b c d e"], ["a cat"], ["x"]])
    assert same["among_bleu"] == pytest.approx(100)
    other = measure([["a b c d e", "f g h i j"], ["a cat"], ["x"]])
    assert other["among_bleu"] < 5
    assert other["outputs"] == pytest.approx(4 / 3)


def test_templates_are_counted_where_they_were_asked_for():
    measures = ParaphraseMeasures(
        FirstLetters(), count_errors, lambda texts, templates: [each == "(S)" for each in templates]
    )
    outputs = [Output(["a b"], ["(S)"]), Output(["a cat"], ["(NP)"]), Output(["x"], [""])]
    assert measures(ITEMS, outputs)["template_match"] == 0.5


def test_several_references_of_a_source_are_one_item():
    found = group("x", [("a  b", "c"), ("d", "e"), ("a b", "f "), ("a b", "c")])
    assert (found.sources, found.references) == (["a b", "d"], [["c", "f"], ["e"]])
    assert found.has_references and not ParaphraseItems("x", ["a"], [[]]).has_references
    assert found.checksum != group("x", [("a b", "c")]).checksum


def test_two_columns(tmp_path):
    path, config = tmp_path / "pairs.tsv", ParaphraseEvaluationData()
    path.write_text("a b\tc d\ne\tf\n")
    assert sampled_rows([path], config, PairSelection(), 1) == [("a b", "c d"), ("e", "f")]
    for text, message in (
        ("a b\tc d\ne\n", r"pairs.tsv, line 2: expected two sentences with a tab between, found 1"),
        ("a\t \n", "line 1: expected a sentence in column 2"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            sampled_rows([path], config, PairSelection(), 1)


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
    with pytest.raises(InputError, match="there are no noisy sentences"):
        canonical_figures([], [], [], [])
