"""`describe_corpora`: corpora of all kinds side by side, and figures that fit together."""

import gzip
import json
import math
import shutil
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf import StatsConfig, describe_corpora
from paranmt_hf.corpus.parsing.trees import Tree
from paranmt_hf.corpus.release.release import read_tables, release_files
from paranmt_hf.corpus.statistics.describe import CorpusStatistics, ParsingConfig
from paranmt_hf.corpus.statistics.diversity import BINS, entropy
from paranmt_hf.text.definitions import words
from paranmt_hf.util.records import from_json
from tests.refused import refused


class Words:
    name, at_once = "words 1", 10

    def __init__(self):
        self.count = 0

    def trees(self, sentences):
        self.count += len(sentences)
        return [None if "?" in each else Tree("S", (Tree(f"N{len(each) % 3}", ("x",)),)) for each in sentences]


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("A dog barks.\nA cat sleeps.\n\nWho is it?\n")
    return path


def test_a_release_is_measured_whole(release):
    (found,) = describe_corpora(release).corpora
    table = pa.concat_tables(read_tables(release_files(release)))
    assert (found.name, found.size, found.measured) == ("corpus", table.num_rows, table.num_rows)
    lengths = table["reference_length"].to_numpy()
    assert (found.length.mean, found.length.deviation) == pytest.approx((lengths.mean(), lengths.std()))
    scores = table["para_score"].to_numpy().astype(float)
    assert (found.para_score.mean, found.para_score.deviation) == pytest.approx((scores.mean(), scores.std()))
    assert found.distinct == len(set(table["reference"].to_pylist()))
    (other,) = describe_corpora(release, config=StatsConfig(side="translation")).corpora
    assert other.length.mean == pytest.approx(table["translation_length"].to_numpy().mean())
    assert found.parses is None


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


@pytest.mark.parametrize("background", [False, True])
def test_beside_plain_loops_on_real_sentences(real_sentences, tmp_path, background):
    scores = np.linspace(-0.5, 1, len(real_sentences[1::2]))
    table = {"reference": real_sentences[1::2], "para_score": pa.array(scores)}
    pq.write_table(pa.table(table), tmp_path / "pairs.parquet")
    (tmp_path / "other.txt").write_text("\n".join(real_sentences[::2]), encoding="utf8")
    text = tmp_path / "other.txt" if background else None
    (found,) = describe_corpora(tmp_path / "pairs.parquet", idf_text=text).corpora

    sentences = real_sentences[1::2]
    counted = real_sentences[::2] if background else sentences
    seen = Counter(token for sentence in counted for token in set(words(sentence)))
    counts = Counter(token for sentence in sentences for token in words(sentence))
    lengths = [len(words(sentence)) for sentence in sentences]
    rarity = [
        np.mean([math.log(len(counted) / max(1, seen[token])) for token in words(sentence)]) for sentence in sentences
    ]
    total = sum(counts.values())
    assert (found.tokens, found.types, found.measured, found.size) == (total, len(counts), *[len(sentences)] * 2)
    assert found.distinct == len(set(sentences))
    for spread, values in ((found.length, lengths), (found.idf, rarity), (found.para_score, scores)):
        assert (spread.mean, spread.deviation) == pytest.approx((np.mean(values), np.std(values)))
        assert sum(spread.histogram) == spread.sentences == len(sentences)
    low, high, bins = BINS["length"]
    assert found.length.histogram == np.histogram(np.clip(lengths, low, high), bins, (low, high))[0].tolist()
    shares = [count / total for count in counts.values()]
    assert found.vocabulary_entropy == pytest.approx(-sum(share * math.log(share) for share in shares))


def test_figures_of_a_text_by_hand(text):
    (found,) = describe_corpora(text).corpora
    assert (found.name, found.size, found.measured, found.dropped) == ("text.txt", 3, 3, {"empty": 1})
    assert (found.tokens, found.types) == (12, 10)
    # "a" and "." stand in two of three sentences, all others in one.
    low, high = math.log(3 / 2), math.log(3)
    assert found.idf.mean == pytest.approx(((2 * low + 2 * high) / 4 * 2 + high) / 3)
    assert found.vocabulary_entropy == pytest.approx(2 * (2 / 12) * math.log(6) + 8 / 12 * math.log(12))
    assert found.para_score is None


def test_document_frequencies_of_another_text(text, tmp_path):
    other = tmp_path / "wiki.gz"
    other.write_bytes(gzip.compress(b"a dog .\na a\nb\nc\n"))
    record = describe_corpora(text, idf_text=other)
    idf = {"a": math.log(2), "dog": math.log(4), ".": math.log(4)}
    sentences = [words(line) for line in ("A dog barks.", "A cat sleeps.", "Who is it?")]
    means = [sum(idf.get(token, math.log(4)) for token in tokens) / len(tokens) for tokens in sentences]
    assert record.corpora[0].idf.mean == pytest.approx(sum(means) / 3)
    assert (record.idf_text, record.idf_sentences) == ("wiki.gz", 4)
    assert "Sentences: the 4 of wiki.gz." in record.summary()


def test_side_by_side(release, text, tmp_path):
    (tmp_path / "again").mkdir()
    again = shutil.copy(text, tmp_path / "again")
    config = StatsConfig(sample=20, seed=3)
    parser = Words()
    options = {"config": config, "parser": parser, "parsing": ParsingConfig(max_parsed=2)}
    record = describe_corpora([release, release / "filtered", text, again], **options)
    names = [each.name for each in record.corpora]
    assert names == ["corpus", "corpus/filtered", str(text), str(again)]
    assert [each.measured for each in record.corpora[2:]] == [3, 3]
    assert record.corpora[0].measured == 20 < record.corpora[0].size
    # A corpus's figures do not depend on what stands beside it.
    assert record.corpora[0] == describe_corpora(release, **options).corpora[0]
    assert record.corpora[0] != describe_corpora(release, config=StatsConfig(sample=20, seed=4)).corpora[0]
    assert all(each.parses.sentences == 2 for each in record.corpora if each.measured > 1)
    table = record.summary().split("\n\n")[0].split("\n")
    assert len(table) == 5 and table[2].startswith("corpus/filtered")
    assert "seed 3; entropies in nats" in record.summary() and "no parser" not in record.summary()
    assert record.markdown().startswith("| Corpus ")
    assert from_json(CorpusStatistics, json.loads(json.dumps(record.to_json())), "x") == record


def test_by_origin(tmp_path, text):
    path = tmp_path / "pairs.parquet"
    columns = {"reference": ["a b", "c", "d e f", "g"], "origin": ["news", "web", None, "web"]}
    pq.write_table(pa.table({**columns, "score": [0.5, None, 0.25, 1.0]}), path)
    config = StatsConfig(by_origin=True)
    record = describe_corpora([path, text], config=config, columns={"para_score": "score"})
    # A corpus without origins has one row.
    assert record.corpora[-1] == describe_corpora(text).corpora[0]
    rows = {each.name.partition(": ")[2]: each for each in record.corpora[:-1]}
    assert list(rows) == ["", "no origin", "news", "web"]
    assert [each.size for each in rows.values()] == [4, 1, 1, 2]
    assert rows["web"].para_score.mean == 1.0 and rows["web"].para_score.sentences == 1
    assert rows["no origin"].length.mean == 3
    assert "1 of 2 have a paraphrase score" in record.summary()


def test_columns_of_a_file(tmp_path):
    table = {
        "english": ["a  b", None, "c", " ", "d", "e" * 1001],
        "reference": ["r0", "r1", "r2", "r3", "r4", "r5 x"],
        "score": pa.array([0.5, 0.1, None, 0.2, 0.25, 0.9], pa.float64()),
    }
    pq.write_table(pa.table(table), tmp_path / "pairs.parquet")
    columns = {"reference": "english", "para_score": "score"}
    (found,) = describe_corpora(tmp_path / "pairs.parquet", columns=columns).corpora
    assert (found.size, found.tokens, found.dropped) == (3, 4, {"empty": 2, "over-long": 1})
    assert (found.para_score.sentences, found.para_score.mean) == (2, 0.375)
    (found,) = describe_corpora(tmp_path).corpora
    assert (found.size, found.tokens, found.para_score) == (6, 7, None)


def test_too_many_origins(tmp_path):
    path, config = tmp_path / "many.parquet", StatsConfig(by_origin=True)
    origins = [f"o{index}" for index in range(101)]
    pq.write_table(pa.table({"reference": origins, "origin": origins}), path)
    with refused():
        describe_corpora(path, config=config)


def test_each_sample_has_a_file_of_its_own(tmp_path):
    origins = ["a/b", "a b", "x" * 300, "a/b"]
    pq.write_table(pa.table({"reference": list("pqrs"), "origin": origins}), tmp_path / "c.parquet")
    describe_corpora(tmp_path / "c.parquet", config=StatsConfig(by_origin=True), write_samples=tmp_path / "samples")
    found = [set(path.read_text().split()) for path in (tmp_path / "samples").iterdir()]
    assert sorted(map(sorted, found)) == [["p", "q", "r", "s"], ["p", "s"], ["q"], ["r"]]


def test_a_sample_does_not_replace_another_file(text, tmp_path):
    """Such as the corpus itself, whose name the sample may have."""
    corpus, config = tmp_path / "own" / f"{text.name}.txt", StatsConfig(sample=2)
    corpus.parent.mkdir()
    corpus.write_bytes(text.read_bytes())
    for _ in range(2):
        describe_corpora(text, config=config, write_samples=tmp_path / "new")
    with refused("write_samples", path=corpus):
        describe_corpora(text, config=config, write_samples=corpus.parent)
    assert corpus.read_bytes() == text.read_bytes()


def test_trees_of_a_file_and_samples_to_parse(text, release, tmp_path):
    describe_corpora([release, text], config=StatsConfig(sample=5), write_samples=tmp_path / "samples")
    sentences = (tmp_path / "samples" / "corpus.txt").read_text().split("\n")[:-1]
    assert len(sentences) == 5
    assert sorted((tmp_path / "samples" / "text.txt.txt").read_text().split("\n")[:-1])[0] == "A cat sleeps."
    (tmp_path / "trees.tsv").write_text("".join(f"{sentence}\t(ROOT (S (NP x)))\n" for sentence in sentences))
    (tmp_path / "trees").write_text("(S (NP a))\n(S (NP a) (VP b))\n\n\n")
    record = describe_corpora(
        [release, text], config=StatsConfig(sample=5), parser=[tmp_path / "trees.tsv", tmp_path / "trees"]
    )
    first, second = (each.parses for each in record.corpora)
    assert (first.entropy, first.frequent) == (0.0, {"(S (NP))": 5})
    assert (second.parsed, second.sentences, second.entropy) == (2, 3, pytest.approx(math.log(2)))
    assert "2 of 3 sentences have a tree, by the file trees." in record.summary()


def test_kept_trees_of_an_interrupted_run(text, tmp_path):
    keep, first = tmp_path / "kept.tsv", Words()
    record = describe_corpora(text, parser=first, parsing=ParsingConfig(keep=keep))
    again = Words()
    assert describe_corpora(text, parser=again, parsing=ParsingConfig(keep=keep)) == record
    assert (first.count, again.count) == (3, 0)


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"data": []}, None),
        ({"data": "none"}, None),
        ({"data": "folder"}, None),
        ({"data": "blank"}, None),
        ({"data": "broken.parquet"}, None),
        ({"data": "twice.parquet", "columns": {"reference": "text"}}, "columns"),
        ({"data": "twice.parquet"}, None),
        ({"columns": {"reference": "x"}}, "columns"),
        ({"columns": {"source": "x"}}, "columns"),
        ({"parser": ["link-grammar", "stanza"]}, "parser"),
        ({"parser": ["none"]}, "parser"),
        ({"config": StatsConfig(by_origin=True)}, "by_origin"),
        ({"idf_text": "none"}, None),
    ],
)
def test_what_cannot_be_done(text, options, option, monkeypatch):
    monkeypatch.chdir(text.parent)
    (text.parent / "folder").mkdir()
    (text.parent / "blank").write_text("\n\n")
    (text.parent / "broken.parquet").write_text("text")
    twice = pa.Table.from_arrays([pa.array(["a"])] * 3, names=["other", "text", "text"])
    pq.write_table(twice, "twice.parquet")
    with refused(option):
        describe_corpora(**{"data": "text.txt", **options})


@pytest.mark.slow
def test_a_picture_of_everything_and_of_almost_nothing(release, text, tmp_path, drawing):
    blank = tmp_path / "blank"
    blank.write_text("\u200b\n")
    for corpora, parses in (([release, text], [Words()]), ([blank], [])):
        record = describe_corpora(corpora, parser=parses)
        record.plot(tmp_path / "figure.png")
        first = (tmp_path / "figure.png").read_bytes()
        assert first.startswith(b"\x89PNG")
        record.plot(tmp_path / "figure.png")
        assert (tmp_path / "figure.png").read_bytes() == first
