"""Samples: the same whatever way the rows come in, of all rows with equal chance, in bounded memory."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf.corpus import sampling
from paranmt_hf.corpus import sentences as module
from paranmt_hf.corpus.bitext.readers import Report
from paranmt_hf.corpus.draws import lottery, sample_ids
from paranmt_hf.corpus.record import RELEASE_RECORD
from paranmt_hf.corpus.release import release_files
from paranmt_hf.corpus.sampling import Sample, draw, open_corpus
from paranmt_hf.corpus.sentences import SentenceFile, SentenceSources
from paranmt_hf.errors import InputError


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
    with pytest.raises(InputError, match="there is no such file"):
        open_corpus(tmp_path / "none")
    with pytest.raises(InputError, match=r"has no column translation; it has english, .* `columns` translation=NAME"):
        open_corpus(parquet, side="translation")
    with pytest.raises(InputError, match="there is no column 'none'"):
        list(open_corpus(parquet, columns={"reference": "none"}).batches())
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="neither a release nor a folder of Parquet files"):
        open_corpus(tmp_path / "folder")
    (tmp_path / "bad.parquet").write_text("text")
    with pytest.raises(InputError, match="cannot read .*bad.parquet"):
        open_corpus(tmp_path / "bad.parquet")
    (tmp_path / "blank").write_text("\n\n")
    with pytest.raises(InputError, match=r"blank has no rows .*: read 2 rows, kept 0, dropped 2 \(2 empty\)"):
        draw(open_corpus(tmp_path / "blank"), 5, 0)


def test_too_many_origins(tmp_path):
    path = tmp_path / "many.parquet"
    origins = [f"o{index}" for index in range(sampling.MAX_ORIGINS + 1)]
    pq.write_table(pa.table({"reference": origins, "origin": origins}), path)
    with pytest.raises(InputError, match=r"more than 100 origins, such as 'o0'; a table by origin is for a few"):
        draw(open_corpus(path, by_origin=True), 1, 0)
    pq.write_table(pa.table({"reference": origins, "origin": ["a", "b", "c"] * 33 + ["a", "b"]}), path)
    with pytest.raises(InputError, match=r"at least 3 origins, whose samples hold more than 20 rows together"):
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


@pytest.mark.parametrize("read", [SentenceFile, lambda path: SentenceSources([path]), open_corpus])
def test_a_release_that_was_edited_is_refused(release, read):
    """As what reads pairs refuses it; without a record nobody knows how it was."""
    read(release)
    path = release_files(release)[0]
    pq.write_table(pq.read_table(path).slice(1), path)
    with pytest.raises(InputError, match="is missing or not the file that was written"):
        read(release)
    (release / RELEASE_RECORD).unlink()
    read(release)


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
    with pytest.raises(InputError, match=r"you/text is not a release: say which of its columns .* `columns` NAME"):
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
        (["table.tsv"], None, "expected one sentence on a line"),
    ],
)
def test_sources_that_are_none(tmp_path, monkeypatch, sources, columns, message):
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"number": [1], "line": ["e"]}), "table.parquet")
    (tmp_path / "table.tsv").write_text("a\tb\n")
    with pytest.raises(InputError, match=message):
        sentences(SentenceSources(sources, columns))
