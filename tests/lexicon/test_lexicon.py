"""A lexicon that was written: its rows, the paraphrases of a word, the scores of pairs."""

import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import InputError, Lexicon
from paranmt_hf.lexicon import pmi
from paranmt_hf.lexicon.lexicon import LexiconConfig
from paranmt_hf.lexicon.word_similarity import evaluate_lexicon
from tests.lexicon.toys import Oracle, random_pairs, write_corpus
from tests.refused import refused

ANIMALS = [("big dog", "large dog"), ("big cat", "large cat"), ("a dog", "the dog"), ("a cat", "the cat")]


def make(folder, pairs, **settings):
    folder.mkdir()
    return Lexicon.build(write_corpus(folder / "c.parquet", pairs), folder / "out", config=LexiconConfig(**settings))


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
    assert (found.word, found.count, found.pmi) == ("kong", 2, pytest.approx(math.log(4)))
    assert found.adjusted_pmi == pytest.approx(0, abs=1e-6)


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
    found = animals.lookup(pairs)
    assert {pair: (row.word, row.count) for pair, row in found.items()} == {
        ("big", "large"): ("large", 2),
        ("large", "big"): ("big", 2),
        ("dog", "big"): ("big", 1),
    }
    for pair, row in found.items():
        expected = 0 if pair == ("dog", "big") else math.log(4)
        assert (row.pmi, row.adjusted_pmi) == pytest.approx((expected, expected), abs=1e-7)
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
    assert Lexicon.build(tmp_path / "x" / "c.parquet", tmp_path / "x" / "out").record.word_pairs


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


JUDGED = "word1\tword2\tPOS\tSimLex999\tSD\r\nBig\tlarge\tA\t9\t0.4\r\na\tthe\tA\t8.5\t0.1\r\ndog\tcat\tN\t1.5\t0\r\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("SimLex-999.txt", JUDGED),
        ("plain.txt", "big\tlarge\t9\nA\tthe\t8.5\ndog\tcat\t1.5\n"),
        # The names of WordSim-353's combined.csv.
        ("combined.csv", "Word 1,Word 2,Human (mean)\nbig,Large,9\na,the,8.5\ndog,cat,1.5\n"),
    ],
)
def test_layouts_of_judgements(tmp_path, animals, name, text):
    (tmp_path / name).write_text(text)
    for found in evaluate_lexicon(animals, simlex=tmp_path / name).results:
        # Two pairs of equal scores, and one that is in no pair of sentences: ranks 2.5, 2.5, 1 against 3, 2, 1.
        assert (found.pairs, found.seen, found.spearman) == (3, 2, pytest.approx(0.75**0.5))


@pytest.mark.parametrize(
    "text", ["a\tb\t1\nc\td\n", "a\tb\n", "a\t\t1\n", "a\tb\thigh\n", "word1\tword2\tSimLex999\n", "word\n", ""]
)
def test_malformed_judgements(tmp_path, animals, text):
    (tmp_path / "pairs.txt").write_text(text)
    with pytest.raises(InputError) as caught:
        evaluate_lexicon(animals, simlex=tmp_path / "pairs.txt")
    assert "pairs.txt" in str(caught.value)


@pytest.mark.parametrize(
    ("scores", "seen", "spearman"),
    [
        # The mean of 3 and 1, 1.5, and 0.
        ({"big ||| large": 3, "large ||| big": 1, "the ||| a": 1.5}, 2, 1),
        # Below 0 is below an unseen pair.
        ({"big ||| large": 1, "a ||| the": -1}, 2, 0.5),
        ({"one ||| two": 1}, 0, None),
    ],
)
def test_scores_of_ppdb(tmp_path, animals, scores, seen, spearman):
    """An unseen pair is 0, and both orders are averaged."""
    (tmp_path / "simlex.txt").write_text(JUDGED)
    lines = [f"[JJ] ||| {pair} ||| PPDB2.0Score={score} ||| 0-0 ||| Equivalence\n" for pair, score in scores.items()]
    (tmp_path / "ppdb").write_text("".join(lines))
    if not seen:
        with refused():
            evaluate_lexicon(animals, simlex=tmp_path / "simlex.txt", ppdb=tmp_path / "ppdb")
        return
    found = evaluate_lexicon(animals, simlex=tmp_path / "simlex.txt", ppdb=tmp_path / "ppdb").results[0]
    assert (found.name, found.seen, found.spearman) == ("PPDB (ppdb)", seen, pytest.approx(spearman))


@pytest.mark.slow
def test_real_files(shared_data, tmp_path):
    lexical = shared_data / "lexical"
    lexicon = make(tmp_path / "x", [("old dog", "new cat")] * 2)
    found = evaluate_lexicon(lexicon, simlex=lexical / "EN-SIMLEX-999.txt", ppdb=lexical / "ppdb-xl-lexical.txt")
    assert (found.results[0].pairs, found.results[0].seen, round(found.results[0].spearman, 3)) == (999, 196, 0.523)
