"""A lexicon that was written: its rows, the paraphrases of a word, the scores of pairs."""

import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import InputError, Lexicon
from paranmt_hf.corpus.reading.phrases import read_word_scores
from paranmt_hf.evaluation.correlation import spearman
from paranmt_hf.lexicon import pmi
from paranmt_hf.lexicon.lexicon import LexiconConfig, LexiconSettings, WordParaphrase, write_lexicon
from paranmt_hf.lexicon.word_similarity import (
    WordPair,
    WordSimilarity,
    evaluate_word_scores,
    in_both_orders,
    read_word_pairs,
)
from tests.lexicon.toys import Oracle, random_pairs, table
from tests.refused import refused

ANIMALS = [("big dog", "large dog"), ("big cat", "large cat"), ("a dog", "the dog"), ("a cat", "the cat")]


def make(folder, pairs, **settings):
    folder.mkdir()
    out = folder / "out"
    out.mkdir()
    config = LexiconConfig(**settings)
    settings = LexiconSettings({}, config.words, config.min_count)
    write_lexicon(iter([table(pairs)]), folder, out, config, settings).write(out)
    return Lexicon.from_pretrained(out)


def rows_of(lexicon):
    return pq.read_table(lexicon.folder / "lexicon.parquet").to_pylist()


@pytest.fixture(scope="module")
def animals(tmp_path_factory):
    return make(tmp_path_factory.mktemp("lexicon") / "animals", ANIMALS)


def test_pmi_by_hand(animals):
    rows = {(row["word"], row["paraphrase"]): row for row in rows_of(animals)}
    # `big` and `large`: across in 2 of the 8 events, 2 sentences each, never in one sentence.
    row = rows["big", "large"]
    assert (row["count"], row["count_in_references"], row["count_in_translations"]) == (2, 0, 0)
    assert row["pmi"] == row["adjusted_pmi"] == pytest.approx(math.log(2 * 8 / (2 * 2)))
    # `big` and `dog`: once across, 2 and 4 sentences; in one reference of 4, of which each has 2; in no translation.
    row = rows["dog", "big"]
    assert (row["count"], row["count_in_references"], row["count_in_translations"]) == (1, 1, 0)
    assert row["pmi"] == pytest.approx(math.log(1 * 8 / (4 * 2)), abs=1e-7)
    assert row["adjusted_pmi"] == pytest.approx(0 - (math.log(1 * 4 / (2 * 2)) + 0) / 2, abs=1e-7)


def test_words_next_to_each_other_are_no_paraphrases(tmp_path):
    lexicon = make(tmp_path / "x", [("hong kong", "hong kong"), ("a", "b"), ("c", "d"), ("e", "f")])
    (found,) = lexicon.nearest("hong", min_count=1)
    assert found == WordParaphrase("kong", 2, pytest.approx(math.log(4)), pytest.approx(0, abs=1e-6))


def test_rows_equal_brute_force(tmp_path):
    pairs = random_pairs(120, seed=6)
    oracle, rows = Oracle(pairs), rows_of(make(tmp_path / "x", pairs))
    assert {(row["word"], row["paraphrase"]): row["count"] for row in rows} == dict(oracle.across)
    for row in rows:
        across, adjusted = oracle.scores(row["word"], row["paraphrase"])
        assert row["pmi"] == pytest.approx(across, abs=1e-5)
        assert row["adjusted_pmi"] == pytest.approx(adjusted, abs=1e-5)
        assert row["count_in_references"] == oracle.within[0][row["word"], row["paraphrase"]]
        assert row["count_in_translations"] == oracle.within[1][row["word"], row["paraphrase"]]


@pytest.mark.parametrize("size", [7, 20, 1000])
def test_row_groups_are_of_one_size(size):
    rows = pmi.SCHEMA.empty_table().to_pylist() + [
        {"word": str(number), "paraphrase": "x", "pmi": 0.5, "adjusted_pmi": 0.5}
        | dict.fromkeys(("count", "count_in_references", "count_in_translations"), number)
        for number in range(50)
    ]
    whole = pa.Table.from_pylist(rows, schema=pmi.SCHEMA)
    groups = list(pmi.row_groups((whole.slice(start, 6) for start in range(0, 50, 6)), size))
    assert [group.num_rows for group in groups[:-1]] == [size] * (len(groups) - 1)
    assert pa.concat_tables(groups).to_pylist() == rows


@pytest.mark.slow
def test_nearest_equals_a_sort_of_all_rows(tmp_path):
    lexicon = make(tmp_path / "x", random_pairs(120, seed=7))
    rows = rows_of(lexicon)
    for word in {row["word"] for row in rows}:
        for by, least in (("pmi", 1), ("adjusted_pmi", 4)):
            own = [row for row in rows if row["word"] == word and row["count"] >= least]
            own.sort(key=lambda row: (-row[by], -row["count"], row["paraphrase"]))
            found = lexicon.nearest(word, top=5, by=by, min_count=least)
            assert [(each.word, each.count, each.pmi, each.adjusted_pmi) for each in found] == [
                (row["paraphrase"], row["count"], row["pmi"], row["adjusted_pmi"]) for row in own[:5]
            ]


def test_pairs_are_looked_up(animals):
    pairs = [("big", "large"), ("large", "big"), ("big", "the"), ("big", "nowhere"), ("dog", "big")]
    four = pytest.approx(math.log(4))
    assert animals.lookup(pairs) == {
        ("big", "large"): WordParaphrase("large", 2, four, four),
        ("large", "big"): WordParaphrase("big", 2, four, four),
        ("dog", "big"): WordParaphrase("big", 1, pytest.approx(0, abs=1e-7), pytest.approx(0, abs=1e-7)),
    }
    assert animals.lookup([]) == {}


def test_the_minimum_count_leaves_rows_out(tmp_path):
    pairs = random_pairs(120, seed=8)
    oracle = Oracle(pairs)
    found = {(row["word"], row["paraphrase"]) for row in rows_of(make(tmp_path / "x", pairs, min_count=5))}
    assert found == {key for key, count in oracle.across.items() if count >= 5}
    assert 0 < len(found) < len(oracle.across)


def test_nothing_is_left(tmp_path):
    with refused():
        make(tmp_path / "x", ANIMALS, min_count=3)
    # A command with another option starts again.
    assert not list((tmp_path / "x").iterdir())


def test_words_that_cannot_be_looked_up(animals):
    for word in ("bird", "Big dog", " "):
        with refused():
            animals.nearest(word)
    assert animals.nearest("BIG") == []
    assert animals.nearest("BIG", min_count=2)[0].word == "large"


def test_damaged(tmp_path, animals):
    with refused(path=tmp_path / "nowhere"):
        Lexicon.from_pretrained(tmp_path / "nowhere")
    with refused(path=tmp_path):
        Lexicon.from_pretrained(tmp_path)
    record = (animals.folder / "lexicon.json").read_text()
    (tmp_path / "lexicon.json").write_text(record)
    with refused():
        Lexicon.from_pretrained(tmp_path)
    whole = (animals.folder / "lexicon.parquet").read_bytes()
    (tmp_path / "lexicon.parquet").write_bytes(whole[: len(whole) // 2])
    with refused():
        Lexicon.from_pretrained(tmp_path)


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
    "text", ["a\tb\t1\nc\td\n", "a\tb\n", "a\t\t1\n", "a\tb\thigh\n", "word1\tword2\tSimLex999\n", "word\n", ""]
)
def test_malformed_judgements(tmp_path, text):
    (tmp_path / "pairs.txt").write_text(text)
    with pytest.raises(InputError) as caught:
        read_word_pairs(tmp_path / "pairs.txt")
    assert "pairs.txt" in str(caught.value)


def test_judgements_in_a_table_of_another_format(tmp_path):
    """The names of WordSim-353's combined.csv."""
    (tmp_path / "combined.csv").write_text("Word 1,Word 2,Human (mean)\nlove,sex,6.77\nTiger,cat,7.35\n")
    assert read_word_pairs(tmp_path / "combined.csv") == [
        WordPair("love", "sex", 6.77),
        WordPair("tiger", "cat", 7.35),
    ]


def test_an_unseen_pair_is_0_and_both_orders_are_averaged():
    scores = {("smart", "clever"): 3.0, ("clever", "smart"): 1.0, ("difficult", "hard"): 1.5}
    found = evaluate_word_scores(PAIRS, scores, "mine")
    assert found == WordSimilarity("mine", 3, 2, pytest.approx(spearman([0, 2, 1.5], [1.5, 9, 8.5])))
    assert found.spearman == pytest.approx(1)
    # Below 0 is below an unseen pair.
    low = evaluate_word_scores(PAIRS, {("smart", "clever"): 1.0, ("hard", "difficult"): -1.0}, "low")
    assert low.spearman == pytest.approx(0.5)
    with refused():
        evaluate_word_scores(PAIRS, {("a", "b"): 1.0}, "mine")


@pytest.mark.slow
def test_real_files(shared_data):
    pairs = read_word_pairs(shared_data / "lexical" / "EN-SIMLEX-999.txt")
    assert len(pairs) == 999 and pairs[0] == WordPair("old", "new", 1.58)
    scores, name = read_word_scores(shared_data / "lexical" / "ppdb-xl-lexical.txt", in_both_orders(pairs))
    found = evaluate_word_scores(pairs, scores, name)
    assert (found.seen, round(found.spearman, 3)) == (196, 0.523)
