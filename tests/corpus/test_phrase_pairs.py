"""Phrase pairs as training data: chosen by a feature, by count in order or at random; and what is refused."""

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import PairSelection
from paranmt_hf.corpus.reading.pairs import Pairs
from paranmt_hf.corpus.reading.phrases import holds_sentences, looks_like_sentences
from tests.refused import refused

LINE = "[JJ] ||| a{0} ||| b{0} ||| PPDB2.0Score={1} AGigaSim=NA ||| 0-0 ||| Equivalence\n"


@pytest.fixture
def ppdb(tmp_path):
    lines = [LINE.format(index, index / 10) for index in range(20)]
    (tmp_path / "ppdb.txt").write_text(
        "".join(lines) + "[X] ||| [NN,1] x ||| x [NN,1] ||| PPDB2.0Score=9 AGigaSim=1 ||| \n"
    )
    return tmp_path / "ppdb.txt"


def phrases(*sources, seed=1, **settings):
    pairs = Pairs(sources, PairSelection(**settings), seed=seed)
    return [phrase for table in pairs.batches() for phrase in table["reference"].to_pylist()], pairs


def test_all_the_first_and_a_draw(ppdb):
    everything, pairs = phrases(ppdb)
    assert everything == [f"a{index}" for index in range(20)]
    assert (pairs.read, pairs.left_out_by) == (21, {"pairs dropped as syntactic rules": 1})
    assert "syntactic rules" in pairs.left_out
    assert phrases(ppdb, first_pairs=7)[0] == everything[:7]
    drawn = {seed: phrases(ppdb, max_pairs=7, seed=seed)[0] for seed in (1, 2)}
    assert all(len(found) == 7 and set(found) < set(everything) for found in drawn.values())
    assert drawn[1] != drawn[2] and drawn[1] == phrases(ppdb, max_pairs=7)[0]


def test_a_feature_chooses(ppdb):
    chosen = {"ppdb_score": "PPDB2.0Score", "min_score": 0.5, "max_score": 0.7}
    found, pairs = phrases(ppdb, **chosen)
    assert found == ["a5", "a6", "a7"] and pairs.left_out_by["pairs outside the chosen ranges"] == 17
    # What is not known is outside.
    assert phrases(ppdb, ppdb_score="AGigaSim", min_score=0.0)[0] == []


def test_phrases_beside_other_pairs(ppdb, tmp_path):
    pq.write_table(pa.table({"reference": ["r"], "translation": ["t"]}), tmp_path / "p.parquet")
    (tmp_path / "list").write_text("smart bright clever\n")
    assert phrases(tmp_path / "p.parquet", ppdb, tmp_path / "list")[0][-3:] == ["a19", "smart", "smart"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pairs.csv", "the cat sat,a cat was sitting\n"),
        ("pairs.jsonl.txt", '{"reference": "the cat sat", "translation": "a cat"}\n'),
        ("pairs", '[{"reference": "the cat sat", "translation": "a cat"}]\n'),
    ],
)
def test_pairs_of_sentences_are_no_list_of_words(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert phrases(tmp_path / name)[0] == ["the cat sat"]


@pytest.mark.parametrize(
    "text",
    [
        "The cat sat on the mat.\n",
        "A man rides\nTwo dogs play here\nA dog sleeps\nTwo men talk\n",
        'he said " no "\n\nwhat is it ?\n',
        "a man in a hat\nchildren play\nthe dog and the cat\n",
    ],
)
def test_single_sentences_are_no_list_of_words(tmp_path, text):
    (tmp_path / "s.txt").write_text(text)
    with refused(path=tmp_path / "s.txt"):
        phrases(tmp_path / "s.txt", ppdb_score="X", min_score=0.1)


@pytest.mark.parametrize(
    "text",
    [
        "bank shore\nriver stream\nbank lender\nbank institute\n",
        "bank shore edge\nbank lender house\n",
        "U.S. USA\nHund K\u00f6ter Tier\nkg. kilogram\n! ?\n",
    ],
)
def test_lists_of_words_are_no_sentences(tmp_path, text):
    (tmp_path / "list").write_text(text, encoding="utf8")
    assert phrases(tmp_path / "list")[0][0] == text.split()[0]


@pytest.mark.slow
def test_sentences_beside_the_paraphrases_of_ppdb(shared_data):
    """Every stretch of the list is one, and every stretch of captions and of news is none."""

    def stretches(lines):
        return [lines[start : start + 1000] for start in range(0, len(lines), 1000)]

    listed = shared_data / "lexical" / "ppdb-xl-lexical.txt"
    assert not holds_sentences(listed)
    assert not any(map(looks_like_sentences, stretches(listed.read_text(encoding="utf8").split("\n"))))
    captions = pq.read_table(shared_data / "pairs" / "captions.parquet")["caption_1"].slice(0, 5000).to_pylist()
    news = (shared_data / "bitext" / "news" / "news.en").read_text(encoding="utf8").split("\n")[:5000]
    for sentences in (captions, news):
        assert all(map(looks_like_sentences, stretches(sentences)))
        bare = [re.sub(r"[^\w ]", "", sentence).lower() for sentence in sentences]
        assert all(map(looks_like_sentences, stretches(bare)))


def test_a_list_is_named(tmp_path, caplog):
    (tmp_path / "list").write_text("smart bright clever\n")
    with caplog.at_level("INFO"):
        # More than there are, and more than 64 bits hold.
        assert phrases(tmp_path / "list", first_pairs=10**30)[0] == ["smart", "smart"]
    assert "list is read as a list: on each line a word" in caplog.text


def test_what_tells_runs_apart(ppdb, tmp_path):
    def identity(path, **settings):
        return Pairs([path], PairSelection(**settings)).identity

    before = identity(ppdb)
    (tmp_path / "elsewhere").mkdir()
    moved = tmp_path / "elsewhere" / ppdb.name
    moved.write_bytes(ppdb.read_bytes())
    assert identity(moved) == before
    moved.write_bytes(ppdb.read_bytes().replace(b"a7", b"a8"))
    assert identity(moved) != before
    assert identity(ppdb, ppdb_score="PPDB2.0Score", min_score=-99) != identity(ppdb)


@pytest.mark.parametrize(
    ("settings", "option"),
    [
        ({"min_score": 1}, "ppdb_score"),
        ({"ppdb_score": "PPDB1.0Score", "min_score": 1}, None),
        ({"max_length": 3}, None),
        ({"subset": "filtered"}, "subset"),
    ],
)
def test_refused(ppdb, settings, option):
    with refused(option):
        phrases(ppdb, **settings)


def test_a_score_without_use(tmp_path):
    pq.write_table(pa.table({"reference": ["r"], "translation": ["t"], "para_score": [0.5]}), tmp_path / "p.parquet")
    with refused("ppdb_score"):
        phrases(tmp_path / "p.parquet", ppdb_score="X", min_score=0.1)
