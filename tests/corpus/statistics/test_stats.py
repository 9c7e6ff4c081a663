"""`describe_corpora`: corpora of all kinds side by side, and figures that fit together."""

import json
import math
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf.corpus.parsing.trees import Tree
from paranmt_hf.corpus.release.release import read_tables, release_files
from paranmt_hf.corpus.statistics.describe import CorpusStatistics, ParsingConfig, StatsConfig, describe_corpora
from paranmt_hf.errors import InputError
from paranmt_hf.text.definitions import words
from paranmt_hf.util.records import from_json


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
    import gzip

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
    with pytest.raises(InputError) as refused:
        describe_corpora(text, config=config, write_samples=corpus.parent)
    assert (refused.value.option, refused.value.path) == ("write_samples", corpus)
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
    ("options", "message"),
    [
        ({"data": []}, "name what to measure"),
        ({"columns": {"reference": "x"}}, "`columns` is for files with columns"),
        ({"columns": {"source": "x"}}, "`columns` can name reference, translation, para_score, origin, not source"),
        ({"parser": ["link-grammar", "stanza"]}, "for all corpora, or one name or file .* expected 1, got 2"),
        ({"parser": ["none"]}, "parser none: there is no such file; expected link-grammar, stanza"),
        ({"config": StatsConfig(by_origin=True)}, "`by_origin`: text.txt has no column origin"),
        ({"idf_text": "none"}, "none: there is no such file"),
    ],
)
def test_what_cannot_be_done(text, options, message, monkeypatch):
    monkeypatch.chdir(text.parent)
    with pytest.raises(InputError, match=message):
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
