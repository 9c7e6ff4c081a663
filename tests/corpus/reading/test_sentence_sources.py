"""Sentences of files, corpora and datasets on the Hub, one source after the other."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import InputError, describe_corpora
from paranmt_hf.corpus.reading.readers import Report
from paranmt_hf.corpus.reading.sentences import SentenceSources, open_sentences
from paranmt_hf.corpus.release.record import RELEASE_RECORD
from paranmt_hf.corpus.release.release import release_files
from tests.refused import refused


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


@pytest.mark.parametrize("read", [open_sentences, lambda path: SentenceSources([path]), describe_corpora])
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


def test_release_on_the_hub(release, releases_on_hub):
    releases_on_hub.folders["you/corpus"] = release
    found, _ = sentences(sources := SentenceSources(["you/corpus@v2"]))
    assert releases_on_hub.asked == [("you/corpus", "v2")]
    assert found == sentences(SentenceSources([release]))[0]
    assert (sources.names, sources.datasets) == (["you/corpus@v2"], ["you/corpus"])


def test_other_data_on_the_hub_needs_columns(releases_on_hub):
    with refused("columns"):
        SentenceSources(["you/text"])
    (reader,) = SentenceSources(["you/text"], ["body"])._readers
    assert (reader.id, reader.paths) == ("you/text", {"sentence": "body"})


@pytest.mark.parametrize(
    ("sources", "columns", "option"),
    [
        ([], None, None),
        (["nothing.txt"], None, None),
        (["nothing.parquet"], None, None),
        (["table.parquet"], ["other"], "columns"),
        (["table.tsv"], None, "columns"),
    ],
)
def test_sources_that_are_none(tmp_path, monkeypatch, sources, columns, option):
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"number": [1], "line": ["e"]}), "table.parquet")
    (tmp_path / "table.tsv").write_text("a\tb\n")
    with refused(option):
        sentences(SentenceSources(sources, columns))
