"""Word similarity: files of judgements and of PPDB, and the correlation, by hand."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.correlation import spearman
from paranmt_hf.evaluation.word_similarity import (
    WordPair,
    WordSimilarity,
    evaluate_word_scores,
    in_both_orders,
    read_ppdb,
    read_word_pairs,
)

PAIRS = [WordPair("old", "new", 1.5), WordPair("smart", "clever", 9.0), WordPair("hard", "difficult", 8.5)]
TWO = "[JJ] ||| smart ||| clever ||| PPDB2.0Score={} PPDB1.0Score=9.5 -logp(LHS|e1)=0.1 ||| 0-0 ||| Equivalence\n"
ONE = "[JJ] ||| smart ||| clever ||| Abstract=0 p(e|f)=2.5 ||| 0-0\n"


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


def test_forms_of_ppdb(tmp_path):
    wanted, path = in_both_orders(PAIRS), tmp_path / "ppdb"
    path.write_text(TWO.format("3.25") + TWO.format("1.0").replace("JJ", "NN") + TWO.format("7").replace("smart", "x"))
    # The first line of a pair counts.
    assert read_ppdb(path, wanted) == ({("smart", "clever"): 3.25}, "PPDB (ppdb)")
    path.write_text(TWO.replace("PPDB2.0Score={} ", ""))
    assert read_ppdb(path, wanted) == ({("smart", "clever"): 9.5}, "PPDB (ppdb)")
    path.write_text(ONE)
    assert read_ppdb(path, wanted) == ({("smart", "clever"): 1.0}, "PPDB, listed or not (ppdb)")
    path = tmp_path / "list.gz"
    path.write_bytes(gzip.compress(b"smart bright Clever\nhard tough\nold new\n\x1d \x16\n"))
    found = {("smart", "clever"): 1.0, ("old", "new"): 1.0}
    assert read_ppdb(path, wanted) == (found, "PPDB, listed or not (list.gz)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b\nc\n", "line 2: expected a word and its paraphrases, found 'c'"),
        ("a b\n\n", "line 2: expected a word and its paraphrases, found ''"),
        (
            TWO.format(1) + "a b\n",
            "line 2: expected PPDB2.0Score among .* on the first line, found a word and",
        ),
        (TWO.format(1) + ONE, "line 2: expected PPDB2.0Score among features .* found features without a PPDB score"),
        ("[JJ] ||| a ||| b\n", "line 1: expected at least 4 fields between `|||`, found 3"),
        (TWO.format("much"), "line 1: expected a PPDB2.0Score, which is a number, found 'much'"),
        ("", "is empty; expected paraphrases of PPDB"),
    ],
)
def test_malformed_ppdb(tmp_path, text, message):
    (tmp_path / "ppdb").write_text(text)
    with pytest.raises(InputError, match=message.replace("|", r"\|")):
        read_ppdb(tmp_path / "ppdb", set())


def test_ppdb_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_ppdb(tmp_path / "none", set())
    (tmp_path / "x").write_bytes(b"a b\nc \xff\n")
    with pytest.raises(InputError, match="line 2: expected UTF-8"):
        read_ppdb(tmp_path / "x", set())
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"a b\n" * 1000)[:-20])
    with pytest.raises(InputError, match="cannot read"):
        read_ppdb(tmp_path / "x.gz", set())


@given(st.text(alphabet=st.characters(exclude_characters="\n", exclude_categories=("Cs",)), max_size=60))
def test_any_line_of_ppdb_is_read_or_refused(tmp_path_factory, line):
    path = tmp_path_factory.getbasetemp() / "line"
    path.write_text(line + "\n", encoding="utf8", newline="")
    try:
        scores, _ = read_ppdb(path, {("a", "b")})
    except InputError as error:
        assert "line 1" in str(error)
    else:
        assert set(scores) <= {("a", "b")}


def test_real_files(shared_data):
    pairs = read_word_pairs(shared_data / "lexical" / "EN-SIMLEX-999.txt")
    assert len(pairs) == 999 and pairs[0] == WordPair("old", "new", 1.58)
    scores, name = read_ppdb(shared_data / "lexical" / "ppdb-xl-lexical.txt", in_both_orders(pairs))
    found = evaluate_word_scores(pairs, scores, name)
    assert (found.seen, round(found.spearman, 3)) == (196, 0.523)
