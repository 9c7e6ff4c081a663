"""Sentences of evaluation sets are found, whole or by a run of words, as by brute force."""

import numpy as np
import pyarrow as pa
import pytest

from paranmt_hf.corpus.selection.decontamination import EvaluationText
from paranmt_hf.text.definitions import words
from tests.corpus.selection.toys import chosen
from tests.refused import refused


def plain(sentence: str) -> tuple[str, ...]:
    return tuple(token for token in words(sentence) if any(map(str.isalnum, token)))


def brute_force(sentences: list[str], evaluation: list[str], ngram: int, min_words: int) -> list[bool]:
    whole = {plain(sentence) for sentence in evaluation if len(plain(sentence)) >= min_words}
    runs = {plain(text)[at : at + ngram] for text in evaluation for at in range(len(plain(text)) - ngram + 1)}
    found = []
    for sentence in sentences:
        tokens = plain(sentence)
        shared = any(tokens[at : at + ngram] in runs for at in range(len(tokens) - ngram + 1))
        found.append(tokens in whole or shared)
    return found


def random_sentences(count: int, seed: int, vocabulary: str) -> list[str]:
    generator = np.random.default_rng(seed)
    parts = vocabulary.split()
    return [" ".join(generator.choice(parts, generator.integers(0, 18))) for _ in range(count)]


VOCABULARY = "the The cat dog , . - naïve"


@pytest.mark.slow
@pytest.mark.parametrize(("ngram", "min_words"), [(2, 1), (4, 3), (8, 4), (30, 1)])
def test_copies_of_evaluation_text_equal_brute_force(ngram, min_words):
    evaluation = random_sentences(60, 1, VOCABULARY)
    sentences = random_sentences(2_000, 2, f"{VOCABULARY} it's")
    text = EvaluationText(evaluation, ngram=ngram, min_words=min_words)
    expected = brute_force(sentences, evaluation, ngram, min_words)
    assert 0 < sum(expected) < len(sentences)
    assert text.found_in(pa.array(sentences)).tolist() == expected
    # Batches make no difference.
    parts = [text.found_in(pa.array(sentences[at : at + 7])) for at in range(0, len(sentences), 7)]
    assert np.concatenate(parts).tolist() == expected


def test_order_counts():
    text = EvaluationText(["k l m n", "five six seven eight"])
    sentences = ["n m l k", "K, L m n!", "k l m n k", "Five six, seven eight.", "five six seven n"]
    assert text.found_in(pa.array(sentences)).tolist() == [False, True, False, True, False]


def test_what_does_not_count():
    """Case, punctuation, white space and the kind of apostrophe do not."""
    text = EvaluationText(["It's a dog - isn't it?"])
    assert text.found_in(pa.array(["it\u2019s  A DOG, ISN'T IT", "it is a dog isn't it"])).tolist() == [True, False]


def test_filter(tmp_path):
    table = pa.table({"reference": ["The cat sat down.", "x"], "translation": ["A cat sat.", "the cat sat down"]})
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "cats.txt").write_text("the cat sat down\n")
    one = chosen(decontaminate=(str(tmp_path / "sets"),))
    assert one.judge(table).kept.tolist() == [False, False]
    assert one.judge(table.slice(0, 0)).kept.tolist() == []
    assert one.explain(table) == [("the cat sat down", "sets/cats.txt")] * 2


def test_each_dropped_row_names_the_sentence_that_it_shares():
    """A whole sentence before one that shares eight words; the reference's before the translation's."""
    run = "one two three four five six seven eight"
    evaluation = ["nobody saw the dog", f"zero {run} nine", f"before {run}", run]
    text = EvaluationText(evaluation)
    sides = pa.array([f"so {run} ten", f"{run}!", f"it was zero {run}", "the dog saw nobody", "Nobody saw the dog"])
    named = [text.sentences[item] if item >= 0 else None for item in text.items_of(sides).tolist()]
    assert named[1:] == [run, named[2], None, "nobody saw the dog"] and run in named[0] and run in named[2]


def test_nothing_to_find():
    with refused():
        EvaluationText(["one two three", "..."])
    text = EvaluationText(["one two three four"])
    assert text.found_in(pa.array([], pa.string())).tolist() == []
    assert text.found_in(pa.array(["", "?!"])).tolist() == [False, False]
