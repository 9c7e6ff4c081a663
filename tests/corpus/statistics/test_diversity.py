"""The figures of table 1, by hand and beside plain loops over every sentence."""

import gzip
import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf.corpus.parsing.trees import read_tree, top_levels
from paranmt_hf.corpus.reading import sentences as module
from paranmt_hf.corpus.reading.readers import Report
from paranmt_hf.corpus.reading.sentences import SentenceSources, open_sentences
from paranmt_hf.corpus.release.record import RELEASE_RECORD
from paranmt_hf.corpus.release.release import release_files
from paranmt_hf.corpus.statistics import sampling
from paranmt_hf.corpus.statistics.diversity import (
    BINS,
    Cutter,
    DocumentFrequencies,
    corpus_figures,
    entropy,
    mean_idf,
    parse_figures,
    spread,
)
from paranmt_hf.corpus.statistics.draws import lottery, sample_ids
from paranmt_hf.corpus.statistics.sampling import Sample, draw, open_corpus
from paranmt_hf.errors import InputError
from paranmt_hf.text.definitions import words
from paranmt_hf.text.tokens import Bags, CorpusIds, PerToken
from tests.refused import refused

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
    monkeypatch.setattr("paranmt_hf.corpus.statistics.diversity.SLICE", 37)
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


def rows(ids):
    return pa.table({"id": pa.array(ids, pa.int64()), "sentence": [f"s{index}" for index in ids]})


@pytest.mark.parametrize("batch", [1, 7, 250])
@pytest.mark.parametrize("count", [1, 20, 249, 250, 300])
def test_a_sample_is_that_of_the_lottery(batch, count, monkeypatch):
    monkeypatch.setattr(sampling, "SLACK", 3)
    ids = np.random.default_rng(0).permutation(1000)[:250]
    sample = Sample(count, seed=5)
    for start in range(0, 250, batch):
        sample.add(rows(ids[start : start + batch]))
        assert sample.held <= count + 3 + batch
    table = sample.table()
    assert sample.seen == 250
    assert sorted(table["id"].to_pylist()) == sample_ids(ids, count, 5).tolist()
    assert np.all(np.diff(lottery(table["id"].to_numpy(), 5).astype(float)) >= 0)
    assert table["sentence"].to_pylist() == [f"s{index}" for index in table["id"].to_pylist()]


def test_a_smaller_sample_begins_a_larger_one_and_seeds_differ():
    def sampled(count, seed):
        sample = Sample(count, seed)
        sample.add(rows(range(100)))
        return sample.table()["id"].to_pylist()

    assert sampled(30, 1)[:10] == sampled(10, 1) != sampled(10, 2)


@pytest.fixture
def parquet(tmp_path):
    path = tmp_path / "pairs.parquet"
    table = {
        "english": ["a  b", None, "c", " ", "d", "e" * 1001],
        "reference": ["r0", "r1", "r2", "r3", "r4", "r5"],
        "score": pa.array([0.5, 0.1, None, 0.2, 0.25, 0.9], pa.float64()),
        "origin": ["x", "x", "", None, "y", "y"],
    }
    pq.write_table(pa.table(table), path)
    return path


def read(corpus):
    return pa.concat_tables(pa.table(batch) for batch in corpus.batches()).to_pydict()


def test_parquet_files(parquet):
    columns = {"reference": "english", "para_score": "score"}
    corpus = open_corpus(parquet, columns=columns, by_origin=True)
    assert corpus.columns == ("para_score", "origin") and corpus.text is None
    assert read(corpus) == {
        "id": [0, 2, 4],
        "sentence": ["a b", "c", "d"],
        "para_score": [0.5, None, 0.25],
        "origin": ["x", None, "y"],
    }
    assert corpus.report.dropped == {"empty": 2, "over-long": 1}
    samples = draw(corpus, 2, 0)
    assert {name: sample.seen for name, sample in samples.items()} == {None: 3, "": 1, "x": 1, "y": 1}
    assert open_corpus(parquet).columns == ()
    assert read(open_corpus(parquet.parent))["sentence"] == ["r0", "r1", "r2", "r3", "r4", "r5"]


def test_text_files(tmp_path):
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"one\n\n two \nthree"))
    corpus = open_corpus(path)
    assert corpus.text == path and read(corpus) == {"id": [0, 2, 3], "sentence": ["one", "two", "three"]}
    assert corpus.report.dropped == {"empty": 1}
    # The other side of a pair is nothing that a text has.
    assert read(open_corpus(path, side="translation"))["sentence"] == ["one", "two", "three"]


def test_what_cannot_be_measured(tmp_path, parquet):
    with refused(path=tmp_path / "none"):
        open_corpus(tmp_path / "none")
    with refused():
        open_corpus(parquet, side="translation")
    twice = pa.Table.from_arrays([pa.array(["a"])] * 3, names=["reference", "text", "text"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    with refused("columns", path=tmp_path / "twice.parquet"):
        list(open_corpus(tmp_path / "twice.parquet", columns={"reference": "text"}).batches())
    with refused("columns", path=parquet):
        list(open_corpus(parquet, columns={"reference": "none"}).batches())
    (tmp_path / "folder").mkdir()
    with refused():
        open_corpus(tmp_path / "folder")
    (tmp_path / "bad.parquet").write_text("text")
    with refused(path=tmp_path / "bad.parquet"):
        open_corpus(tmp_path / "bad.parquet")
    (tmp_path / "blank").write_text("\n\n")
    with refused():
        draw(open_corpus(tmp_path / "blank"), 5, 0)


def test_too_many_origins(tmp_path):
    path = tmp_path / "many.parquet"
    origins = [f"o{index}" for index in range(sampling.MAX_ORIGINS + 1)]
    pq.write_table(pa.table({"reference": origins, "origin": origins}), path)
    with refused():
        draw(open_corpus(path, by_origin=True), 1, 0)
    pq.write_table(pa.table({"reference": origins, "origin": ["a", "b", "c"] * 33 + ["a", "b"]}), path)
    with refused():
        draw(open_corpus(path, by_origin=True), 10, 0, limit=20)


def sentences(sources):
    report = Report()
    return [line for column in sources.batches(report) for line in column.to_pylist()], report


def test_source_after_source_and_side_after_side(tmp_path):
    (tmp_path / "text.txt").write_text("one\n\ntwo\n")
    pq.write_table(pa.table({"reference": ["a", "b"], "translation": ["c", "d"]}), tmp_path / "pairs.parquet")
    pq.write_table(pa.table({"number": [1], "line": ["e"]}), tmp_path / "lines.parquet")
    sources = SentenceSources([tmp_path / name for name in ("text.txt", "pairs.parquet", "lines.parquet")])
    found, report = sentences(sources)
    assert found == ["one", "two", "a", "b", "c", "d", "e"]
    assert (report.read, report.dropped) == (8, {"empty": 1})
    assert sources.names == ["text.txt", "pairs.parquet", "lines.parquet"]
    assert len(sources.identity) == 4
    assert sentences(SentenceSources([tmp_path / "pairs.parquet"], ["translation"]))[0] == ["c", "d"]


@pytest.mark.parametrize("read", [open_sentences, lambda path: SentenceSources([path]), open_corpus])
def test_a_release_that_was_edited_is_refused(release, read):
    """As what reads pairs refuses it; without a record nobody knows how it was."""
    read(release)
    path = release_files(release)[0]
    pq.write_table(pq.read_table(path).slice(1), path)
    with refused():
        read(release)
    (release / RELEASE_RECORD).unlink()
    read(release)


def test_links_without_an_end_are_not_taken_for_names_on_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "one").symlink_to("two")
    (folder / "two").symlink_to("one")
    with pytest.raises(InputError) as caught:
        SentenceSources(["folder/one"])
    assert caught.value.path is not None and caught.value.path.name == "one"


def test_release_on_the_hub(release, monkeypatch):
    asked = []

    def fetch(name, revision, config):
        asked.append((name, revision, config))
        return release_files(release), "0" * 40

    monkeypatch.setattr(module, "fetch_release", fetch)
    found, _ = sentences(sources := SentenceSources(["you/corpus@v2"]))
    assert asked == [("you/corpus", "v2", "default")]
    assert found == sentences(SentenceSources([release]))[0]
    assert (sources.names, sources.datasets) == (["you/corpus@v2"], ["you/corpus"])


def test_other_data_on_the_hub_needs_columns(monkeypatch):
    monkeypatch.setattr(module, "fetch_release", lambda *arguments: None)
    with refused():
        SentenceSources(["you/text"])
    (reader,) = SentenceSources(["you/text"], ["body"])._readers
    assert (reader.id, reader.paths) == ("you/text", {"sentence": "body"})


@pytest.mark.parametrize(
    ("sources", "columns", "message"),
    [
        ([], None, "nothing to train on"),
        (["nothing.txt"], None, "no such file"),
        (["nothing.parquet"], None, "no such file"),
        (["table.parquet"], ["other"], "other"),
        (["table.tsv"], None, "has several columns of text"),
    ],
)
def test_sources_that_are_none(tmp_path, monkeypatch, sources, columns, message):
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"number": [1], "line": ["e"]}), "table.parquet")
    (tmp_path / "table.tsv").write_text("a\tb\n")
    with pytest.raises(InputError, match=message):
        sentences(SentenceSources(sources, columns))
