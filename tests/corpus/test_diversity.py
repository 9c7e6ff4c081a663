"""The figures of table 1, by hand and beside plain loops over every sentence."""

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf.corpus.diversity import (
    BINS,
    Cutter,
    DocumentFrequencies,
    corpus_figures,
    entropy,
    mean_idf,
    parse_figures,
    spread,
)
from paranmt_hf.corpus.parsing.trees import read_tree, top_levels
from paranmt_hf.text.definitions import words
from paranmt_hf.text.tokens import Bags, CorpusIds, PerToken

SENTENCES = ["The dog barks.", "The dog, the dog!", "A cat", "   ", "It's 3.5 miles"]


def known(index_of):
    return PerToken(lambda tokens: [index_of.get(token, -1) for token in tokens], np.int32)


def cut(sentences, index_of=None):
    ids = CorpusIds() if index_of is None else known(index_of)
    return Cutter(ids).cut(pa.array(sentences, pa.string())), ids.id_of if index_of is None else index_of


def test_entropy_by_hand():
    assert entropy([1, 1, 1, 1]) == pytest.approx(math.log(4))
    assert entropy([3, 1, 0]) == pytest.approx(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25)))
    assert entropy([7]) == 0.0
    assert entropy([]) is None and entropy([0, 0]) is None


@given(st.lists(st.integers(0, 50), min_size=1, max_size=20).filter(any))
def test_entropy_is_between_none_and_equal_shares(counts):
    value, seen = entropy(counts), sum(count > 0 for count in counts)
    assert -1e-12 <= value <= math.log(seen) + 1e-12
    assert entropy([3 * count for count in counts]) == pytest.approx(value, abs=1e-12)


def test_spread_by_hand():
    found = spread(np.array([2.0, 4.0, np.nan, 200.0]), "length")
    assert found.mean == pytest.approx(206 / 3) and found.sentences == 3
    assert found.deviation == pytest.approx(np.sqrt(((np.array([2, 4, 200]) - 206 / 3) ** 2).mean()))
    low, high, bins = BINS["length"]
    assert len(found.histogram) == bins and sum(found.histogram) == 3
    assert found.histogram[1] == found.histogram[2] == found.histogram[-1] == 1
    assert spread(np.array([np.nan]), "idf") is None


def test_bags_hold_the_words():
    bags, index_of = cut(SENTENCES)
    tokens = {index: token for token, index in index_of.items()}
    found = [[tokens[row] for row in bags.rows[a:b]] for a, b in zip(bags.offsets, bags.offsets[1:], strict=False)]
    assert found == [words(sentence) for sentence in SENTENCES]
    others, same = cut(["the bird barks"], index_of)
    assert others.rows.tolist() == [index_of["the"], -1, index_of["barks"]] and same is index_of


def test_inverse_document_frequencies_by_hand():
    bags, index_of = cut(["a b", "b b b", "c"])
    frequencies = DocumentFrequencies(len(index_of))
    for sentences in (["a", "a a x"], ["b a", "", "y"]):
        frequencies.add(cut(sentences, index_of)[0])
    assert frequencies.sentences == 5
    assert frequencies.counts[[index_of[token] for token in "abc"]].tolist() == [3, 1, 0]
    expected = {"a": math.log(5 / 3), "b": math.log(5), "c": math.log(5)}
    assert {token: frequencies.idf[index] for token, index in index_of.items()} == pytest.approx(expected)
    assert mean_idf(bags, frequencies.idf) == pytest.approx(
        [(expected["a"] + expected["b"]) / 2, math.log(5), math.log(5)]
    )


def test_nothing_to_count():
    frequencies = DocumentFrequencies(0)
    frequencies.add(Bags(np.array([-1], np.int32), np.array([0, 1])))
    assert frequencies.sentences == 1 and len(frequencies.idf) == 0
    assert np.isnan(mean_idf(Bags(np.empty(0, np.int32), np.array([0, 0])), np.empty(0))).all()


def test_beside_plain_loops_on_real_sentences(real_sentences, monkeypatch):
    monkeypatch.setattr("paranmt_hf.corpus.diversity.SLICE", 37)
    background, sentences = real_sentences[::2], real_sentences[1::2]
    bags, index_of = cut(sentences)
    frequencies = DocumentFrequencies(len(index_of))
    cutter = Cutter(known(index_of))
    for start in range(0, len(background), 50):
        frequencies.add(cutter.cut(pa.array(background[start : start + 50])))
    scores = np.linspace(-0.5, 1, len(sentences))
    found = corpus_figures("x", bags, frequencies.idf, size=9, distinct=len(set(sentences)), scores=scores)

    seen = Counter(token for sentence in background for token in set(words(sentence)))
    counts = Counter(token for sentence in sentences for token in words(sentence))
    lengths = [len(words(sentence)) for sentence in sentences]
    rarity = [
        np.mean([math.log(len(background) / max(1, seen[token])) for token in words(sentence)])
        for sentence in sentences
    ]
    total = sum(counts.values())
    assert (found.tokens, found.types, found.measured, found.size) == (total, len(counts), len(sentences), 9)
    assert (found.length.mean, found.length.deviation) == pytest.approx((np.mean(lengths), np.std(lengths)))
    assert (found.idf.mean, found.idf.deviation) == pytest.approx((np.mean(rarity), np.std(rarity)))
    assert (found.para_score.mean, found.para_score.deviation) == pytest.approx((scores.mean(), scores.std()))
    shares = [count / total for count in counts.values()]
    assert found.vocabulary_entropy == pytest.approx(-sum(share * math.log(share) for share in shares))


def test_sentences_without_tokens():
    bags, _ = cut(["", "  "])
    found = corpus_figures("x", bags, np.empty(0), size=2, distinct=2)
    assert (found.length.mean, found.idf, found.vocabulary_entropy, found.para_score) == (0.0, None, None, None)


def test_parse_figures_by_hand():
    trees = [read_tree(text) for text in ("(S (NP a) (VP b))", "(S (NP c) (VP (V d)))", "(NP (N e))")]
    found = parse_figures([*map(top_levels, trees), None], "mine", "two-levels")
    assert (found.sentences, found.parsed, found.distinct) == (4, 3, 2)
    assert found.entropy == pytest.approx(entropy([2, 1]))
    assert found.frequent == {"(S (NP) (VP))": 2, "(NP (N))": 1}
    assert parse_figures(
        [top_levels(tree, "two-below") for tree in trees], "mine", "two-below"
    ).entropy == pytest.approx(math.log(3))
    assert parse_figures([None], "mine", "two-levels").entropy is None
