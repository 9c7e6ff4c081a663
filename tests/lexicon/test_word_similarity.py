"""Word similarity: files of judgements, and the correlation, by hand."""

import pytest

from paranmt_hf.corpus.bitext.phrases import read_word_scores
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.correlation import spearman
from paranmt_hf.lexicon.word_similarity import (
    WordPair,
    WordSimilarity,
    evaluate_word_scores,
    in_both_orders,
    read_word_pairs,
)

PAIRS = [WordPair("old", "new", 1.5), WordPair("smart", "clever", 9.0), WordPair("hard", "difficult", 8.5)]


def test_both_layouts_of_simlex(tmp_path):
    plain, published = tmp_path / "plain.txt", tmp_path / "SimLex-999.txt"
    plain.write_text("old\tnew\t1.5\nSmart\tclever\t9\nhard\tdifficult\t8.5\n")
    published.write_text(
        "word1\tword2\tPOS\tSimLex999\tSD(SimLex)\r\n"
        "old\tnew\tA\t1.5\t0.4\r\nsmart\tclever\tA\t9\t0.1\r\nhard\tdifficult\tA\t8.5\t0.1\r\n"
    )
    assert read_word_pairs(plain) == read_word_pairs(published) == PAIRS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\t1\nc\td\n", r"line 2: expected word, word and similarity, separated by tabs, found 2 columns"),
        ("a\t\t1\n", r"line 1: expected word, word and similarity"),
        ("a\tb\thigh\n", r"line 1: expected a similarity, which is a number, found 'high'"),
        ("word1\tword2\tscore\n", r"line 1: the header names no column SimLex999"),
        ("", "is empty"),
    ],
)
def test_malformed_judgements(tmp_path, text, message):
    (tmp_path / "pairs.txt").write_text(text)
    with pytest.raises(InputError, match=message):
        read_word_pairs(tmp_path / "pairs.txt")


def test_an_unseen_pair_is_0_and_both_orders_are_averaged():
    scores = {("smart", "clever"): 3.0, ("clever", "smart"): 1.0, ("difficult", "hard"): 1.5}
    found = evaluate_word_scores(PAIRS, scores, "mine")
    assert found == WordSimilarity("mine", 3, 2, pytest.approx(spearman([0, 2, 1.5], [1.5, 9, 8.5])))
    assert found.spearman == pytest.approx(1)
    # Below 0 is below an unseen pair.
    low = evaluate_word_scores(PAIRS, {("smart", "clever"): 1.0, ("hard", "difficult"): -1.0}, "low")
    assert low.spearman == pytest.approx(0.5)
    with pytest.raises(InputError, match="mine has none of the 3 word pairs"):
        evaluate_word_scores(PAIRS, {("a", "b"): 1.0}, "mine")


def test_real_files(shared_data):
    pairs = read_word_pairs(shared_data / "lexical" / "EN-SIMLEX-999.txt")
    assert len(pairs) == 999 and pairs[0] == WordPair("old", "new", 1.58)
    scores, name = read_word_scores(shared_data / "lexical" / "ppdb-xl-lexical.txt", in_both_orders(pairs))
    found = evaluate_word_scores(pairs, scores, name)
    assert (found.seen, round(found.spearman, 3)) == (196, 0.523)
