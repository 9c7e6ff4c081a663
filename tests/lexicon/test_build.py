"""A lexicon from a corpus: which pairs count, continuing after an interruption, and what is refused."""

import json

import pyarrow.parquet as pq
import pytest

from paranmt_hf import Lexicon
from paranmt_hf.cli import main
from paranmt_hf.lexicon import lexicon as lexicon_module
from paranmt_hf.lexicon.lexicon import LexiconConfig
from paranmt_hf.lexicon.word_similarity import evaluate_lexicon
from tests.cli.commands import fails
from tests.lexicon.toys import Oracle, random_pairs, table, write_corpus
from tests.refused import refused


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def counts_of(lexicon):
    rows = pq.read_table(lexicon.folder / "lexicon.parquet").to_pylist()
    return {(row["word"], row["paraphrase"]): row["count"] for row in rows}


def test_which_pairs_count(tmp_path):
    pairs = random_pairs(8, seed=2)
    scores = [0.349, 0.35, 0.9, None, float("nan"), 0.9, 0.9, -1.0]
    lengths = [(5, 5)] * 5 + [(30, 30), (31, 5), (5, 5)]
    write_corpus(tmp_path / "c.parquet", pairs, scores, lengths)
    lexicon = Lexicon.build(tmp_path / "c.parquet", tmp_path / "lexicon")
    assert lexicon.record.pairs == 3
    assert counts_of(lexicon) == dict(Oracle([pairs[index] for index in (1, 2, 5)]).across)
    looser = LexiconConfig(min_score=-1.0, max_length=31)
    assert Lexicon.build(tmp_path / "c.parquet", tmp_path / "all", config=looser).record.pairs == 6


def test_several_sources_and_a_release(tmp_path, made):
    one, two = random_pairs(20, seed=3), random_pairs(30, seed=4)
    files = [write_corpus(tmp_path / f"{index}.parquet", pairs) for index, pairs in enumerate((one, two))]
    lexicon = Lexicon.build(files, tmp_path / "lexicon")
    assert counts_of(lexicon) == dict(Oracle(one + two).across)
    found = Lexicon.build(made, tmp_path / "of a release", config=LexiconConfig(min_score=-1.0))
    assert 0 < found.record.pairs <= 60


def test_continues_where_it_stopped_with_the_same_bytes(tmp_path, monkeypatch):
    corpus = write_corpus(tmp_path / "c.parquet", random_pairs(95, seed=5))
    whole = Lexicon.build(corpus, tmp_path / "whole")
    assert not (tmp_path / "whole.work").exists()
    out = tmp_path / "out"

    def stopped(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(lexicon_module, "write_word_pairs", stopped)
        with pytest.raises(KeyboardInterrupt):
            Lexicon.build(corpus, out)
    assert not out.exists() and len(list((tmp_path / "out.work" / "runs").iterdir())) == 1
    with refused(path=tmp_path / "out.work"):
        Lexicon.build(corpus, out, config=LexiconConfig(words=7))
    # Another amount of memory is no other lexicon.
    Lexicon.build(corpus, out, config=LexiconConfig(memory=1.0))
    assert files_of(out) == files_of(whole.folder)
    assert not (tmp_path / "out.work").exists()
    with refused("out", path=out):
        Lexicon.build(corpus, out, config=LexiconConfig(words=7))


def test_a_corpus_without_pairs_that_count(tmp_path, capsys):
    corpus = write_corpus(tmp_path / "c.parquet", random_pairs(4), [None] * 4)
    message = "none of 4 pairs of sentences counts: expected a paraphrase score of at least 0.35 and at most 30 word"
    fails(capsys, ["lexicon", "build", corpus, "--out", tmp_path / "out"], message, "(`paranmt score`)")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.parquet"]
    pq.write_table(table(random_pairs(4)), corpus)
    fails(capsys, ["lexicon", "build", corpus, "--out", tmp_path / "out"], "c.parquet lacks the column", "para_score")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.parquet"]


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lexicon")
    pairs = [("the dog laughed", "a dog giggled"), ("he laughed", "he giggled"), ("the cat ran", "a cat sprinted")]
    return Lexicon.build(write_corpus(folder / "c.parquet", pairs * 10), folder / "lexicon")


def test_similarity(lexicon, tmp_path):
    (tmp_path / "simlex").write_text("laughed\tgiggled\t9\nran\tsprinted\t8\ncat\tdog\t3\nold\tnew\t1\n")
    (tmp_path / "ppdb").write_text("giggled laughed\n")
    found = evaluate_lexicon(lexicon, simlex=tmp_path / "simlex", ppdb=tmp_path / "ppdb")
    ppdb, plain, adjusted = found.results
    assert (ppdb.name, ppdb.seen, plain.name, plain.seen) == ("PPDB, listed or not (ppdb)", 1, "PMI", 2)
    # laughed and giggled: 20 in 60 events, 20 sentences each: log 3; ran and sprinted: log 6; the others 0.
    assert plain.spearman == adjusted.spearman == pytest.approx(0.7378647873726218)


def test_commands(lexicon, tmp_path, capsys):
    found = tmp_path / "found.json"
    assert main(["lexicon", "nearest", str(lexicon.folder), "Laughed", "--top", "2", "--json", str(found)]) == 0
    shown = capsys.readouterr().out.split("\n")
    assert shown[0].split("  ")[0] == "Laughed, by adjusted PMI"
    assert shown[1].split()[:3] == ["giggled", "1.10", "20"]
    assert [row["word"] for row in json.loads(found.read_text())["Laughed"]["adjusted_pmi"]][0] == "giggled"
    (tmp_path / "simlex").write_text("laughed\tgiggled\t9\ncat\tsprinted\t8\ncat\tdog\t3\n")
    assert main(["lexicon", "evaluate", str(lexicon.folder), "--simlex", str(tmp_path / "simlex")]) == 0
    assert capsys.readouterr().out.split("\n")[1].split() == ["PMI", "3", "2", "86.6"]
    assert main(["lexicon", "nearest", str(lexicon.folder), "he", "--min-count", "11"]) == 0
    assert "he: no paraphrase was counted at least 11 times (--min-count)" in capsys.readouterr().out


def test_refused(lexicon, tmp_path, capsys):
    fails(capsys, ["lexicon", "nearest", lexicon.folder, "xyz"], "'xyz' is not among the 9 words")
    fails(capsys, ["lexicon", "evaluate", lexicon.folder, "--simlex", tmp_path / "none"], "none")
    (tmp_path / "simlex").write_text("old\tnew\t1\nhot\tcold\t2\n")
    fails(capsys, ["lexicon", "evaluate", lexicon.folder, "--simlex", tmp_path / "simlex"], "has none of the 2 word")
