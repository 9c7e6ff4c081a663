"""An index of a corpus, and queries to it."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf import SentenceIndex
from paranmt_hf.cli import main
from paranmt_hf.corpus.reading.readers import Report
from paranmt_hf.corpus.reading.sentences import open_sentences
from paranmt_hf.search.indexed_vectors import IndexConfig
from paranmt_hf.search.storage import (
    StoredSentences,
    Vectors,
    normalised,
    write_encoded,
    write_in_order,
    write_sentences,
)
from tests.cli.commands import fails
from tests.refused import refused
from tests.search.toys import clustered, scorer, sentences


def build(folder, out="index", config=None):
    return SentenceIndex.build(folder / "text.txt", folder / out, encoder=folder / "vectors.txt", config=config)


opened = SentenceIndex.from_pretrained


def wanted(folder, query, top):
    """What a look at every distinct sentence finds: cosines, and sentences."""
    texts = list(dict.fromkeys(line for line in (folder / "text.txt").read_text().split("\n") if line))
    vectors = scorer(folder).load().encode([query, *texts])
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors[1:] @ vectors[0]
    order = np.argsort(-cosines, kind="stable")[:top]
    return cosines[order], {round(float(cosines[index]), 4): texts[index] for index in order}


@pytest.mark.parametrize("config", [IndexConfig(), IndexConfig(lists=5), IndexConfig(precision="float16")])
def test_queries_find_what_a_look_at_all_finds(corpus, config):
    made = build(corpus, config=config)
    texts = sentences(200)
    assert made.fresh and (made.record.lines, made.record.sentences) == (200, len(set(texts)))
    assert made.record.dropped == {"empty": 1}
    index = opened(corpus / "index")
    for query, hits in zip(["red sun", "two cat dog"], index.search(["red sun", "two cat dog"], top=6), strict=True):
        cosines, _ = wanted(corpus, query, 6)
        gap = 2e-3 if config.precision == "float16" else 1e-6
        np.testing.assert_allclose([hit.cosine for hit in hits], cosines, atol=gap)
        assert [texts.index(hit.sentence) + 1 for hit in hits] == [hit.line for hit in hits]
    # A second call finds it there, and leaves nothing next to it.
    assert not build(corpus, config=config).fresh and made.search(["red sun"]) == index.search(["red sun"])
    assert not list(corpus.glob("*.work"))


def test_other_settings_do_not_continue(corpus, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("paranmt_hf.util.run.put_in_place", interrupted)
        with pytest.raises(KeyboardInterrupt):
            build(corpus)
    half = IndexConfig(precision="float16")
    with refused(path=corpus / "index.work"):
        build(corpus, config=half)
    build(corpus)
    (corpus / "mine").mkdir()
    (corpus / "mine" / "notes").touch()
    with refused("out", path=corpus / "mine"):
        build(corpus, "mine")
    with refused("out", path=corpus / "index"):
        build(corpus, config=half)


def test_an_index_of_another_encoder_is_refused(corpus):
    build(corpus)
    (corpus / "other.txt").write_text((corpus / "vectors.txt").read_text().replace("red ", "rot "))
    with refused():
        opened(corpus / "index", encoder=corpus / "other.txt")
    # The same bytes elsewhere are the same encoder.
    (corpus / "copy.txt").write_bytes((corpus / "vectors.txt").read_bytes())
    assert opened(corpus / "index", encoder=corpus / "copy.txt").search(["red"])
    # The encoder that made it has changed since.
    (corpus / "vectors.txt").write_bytes((corpus / "other.txt").read_bytes())
    with refused():
        opened(corpus / "index")


def test_damage_is_named(corpus):
    build(corpus)
    text = corpus / "index" / "text.bin"
    whole = text.read_bytes()
    text.write_bytes(whole + b"more")
    with refused(path=text):
        opened(corpus / "index")
    with refused("out", path=corpus / "index"):
        build(corpus)
    text.write_bytes(whole)
    assert opened(corpus / "index").search(["red"])
    with refused(path=corpus):
        opened(corpus)


def test_sentences_of_parquet(tmp_path):
    def read(source):
        return [text for batch in source.batches(Report()) for text in batch["sentence"].to_pylist()]

    pq.write_table(pa.table({"number": [1, 2], "text": ["a", "b  c"]}), tmp_path / "one.parquet")
    assert read(open_sentences(tmp_path / "one.parquet")) == ["a", "b c"]
    pq.write_table(pa.table({"left": ["a"], "right": ["b"]}), tmp_path / "two.parquet")
    assert read(open_sentences(tmp_path / "two.parquet", "right")) == ["b"]
    pq.write_table(pa.table({"number": [1]}), tmp_path / "none.parquet")
    for name in ("two.parquet", "none.parquet"):
        with refused("column", path=tmp_path / name):
            open_sentences(tmp_path / name)


def test_bad_inputs(corpus, monkeypatch, capsys):
    monkeypatch.chdir(corpus)
    index = ["search", "index", "text.txt", "--out", "index", "--encoder", "vectors.txt"]
    fails(capsys, ["search", "index", "absent.txt", "--out", "index"], "absent.txt: there is no such file")
    fails(capsys, [*index, "--column", "x"], "text.txt is a text file, which has no columns; leave --column out")
    (corpus / "pairs.tsv").write_text("a\tb\n")
    fails(capsys, ["search", "index", "pairs.tsv", "--out", "index"], "several columns of text, 1, 2")
    (corpus / "empty.txt").write_text("\n \n")
    fails(capsys, ["search", "index", "empty.txt", *index[3:]], "there is no sentence to search in")
    assert not list(corpus.glob("index*"))
    assert main(index) == 0
    assert "was indexed already" not in capsys.readouterr().out
    assert main(index) == 0
    assert "was indexed already" in capsys.readouterr().out
    for words, part in (
        (["index", " "], "there is no query"),
        (["index", "a", "--top", "0"], "top must be at least 1, was 0"),
        (["text.txt", "a"], "text.txt is a file; expected an index"),
        (["index", "\udc80"], "a query is not UTF-8; give text in UTF-8"),
        (["index", "a", "--json", "no/x"], "no/x"),
        (["index", "a", "--encoder", "text.txt"], "text.txt"),
    ):
        fails(capsys, ["search", "query", *words], part)


def test_queries_from_everywhere(corpus, monkeypatch, capsys):
    import io

    monkeypatch.chdir(corpus)
    assert main(["search", "index", "text.txt", "--out", "index", "--encoder", "vectors.txt"]) == 0
    monkeypatch.setattr("sys.stdin", io.StringIO("one two\n\nblue bird\n"))
    capsys.readouterr()
    words = ["search", "query", "index", "red sun", "-", "--top", "2", "--json", "hits.json"]
    assert main(words) == 0
    lines = capsys.readouterr().out.rstrip().split("\n")
    asked = ["red sun", "one two", "blue bird"]
    assert [line for line in lines if not line.startswith(" ")] == [*asked, "results: hits.json"]
    rows = json.loads((corpus / "hits.json").read_text())
    assert [row["query"] for row in rows] == asked
    assert all(len(row["hits"]) == 2 and row["hits"][0]["cosine"] >= row["hits"][1]["cosine"] for row in rows)
    assert f"{rows[0]['hits'][0]['line']}  {rows[0]['hits'][0]['sentence']}" in lines[1]


def batches(texts, size=3):
    for start in range(0, len(texts), size):
        lines = pa.array(np.arange(start, min(start + size, len(texts))) * 2)
        yield pa.record_batch({"id": lines, "sentence": pa.array(texts[start : start + size], pa.string())})


@given(st.lists(st.text(alphabet="aé\x00 z", max_size=4), max_size=30))
def test_each_distinct_sentence_once_where_it_first_occurs(tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("sentences")
    counted = write_sentences(batches(texts), folder, copies=False)
    distinct = list(dict.fromkeys(texts))
    assert (counted.lines, counted.items) == (len(texts), len(distinct))
    found, every = StoredSentences(folder), np.arange(len(distinct))
    assert len(found) == len(distinct)
    assert found.take(every).to_pylist() == distinct
    assert found.lines(every).tolist() == [2 * texts.index(text) for text in distinct]


def test_copies_stay_if_wanted(tmp_path):
    assert write_sentences(batches(["b", "a", "b", "b"]), tmp_path, copies=True).items == 4
    assert StoredSentences(tmp_path).take(np.array([3, 1, 0])).to_pylist() == ["b", "a", "b"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["items.bin", "lines.bin", "offsets.bin", "text.bin"]


@pytest.mark.parametrize(("precision", "gap"), [("float32", 0), ("float16", 1e-3)])
def test_round_trip(tmp_path, precision, gap):
    wanted = clustered(30)
    found = write_encoded(tmp_path, 30, lambda start, stop: wanted[start:stop], precision, block_rows=7)
    assert (len(found), found.dimension) == (30, 16)
    assert np.abs(found.read(3, 25) - wanted[3:25]).max() <= gap
    assert np.abs(found.take(np.array([29, 0])) - wanted[[29, 0]]).max() <= gap
    # Anybody's numpy reads the file.
    assert np.load(tmp_path / "vectors.npy").dtype == precision


def test_continues_where_it_stopped(tmp_path):
    wanted, asked = clustered(30), []

    def encode(start, stop):
        asked.append((start, stop))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return wanted[start:stop]

    with pytest.raises(KeyboardInterrupt):
        write_encoded(tmp_path, 30, encode, "float32", block_rows=7)
    # Half of a block, such as a kill leaves it.
    with (tmp_path / "vectors.npy").open("ab") as file:
        file.write(b"half")
    found = write_encoded(tmp_path, 30, encode, "float32", block_rows=7)
    assert asked == [(0, 7), (7, 14), (14, 21), (14, 21), (21, 28), (28, 30)]
    assert (found.read(0, 30) == wanted).all()
    assert (tmp_path / "vectors.npy").stat().st_size == 128 + wanted.nbytes


def test_another_order(tmp_path):
    wanted = clustered(20)
    vectors = write_encoded(tmp_path, 20, lambda start, stop: wanted[start:stop], "float32")
    order = np.random.default_rng(0).permutation(20)
    write_in_order(vectors, order, tmp_path / "sorted.npy", "float32")
    assert (Vectors(tmp_path / "sorted.npy").read(0, 20) == wanted[order]).all()


def test_lengths():
    found = normalised(np.array([[3, 4], [0, 0], [1e-30, 0], [3e30, 4e30]], np.float32))
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, 0], [1, 0], [0.6, 0.8]], rtol=1e-6)
    assert found.dtype == np.float32


def test_a_folder_that_is_no_release(tmp_path):
    (tmp_path / "a.txt").write_text("a dog\n")
    for column in (None, "x", "reference"):
        with refused(path=tmp_path) as caught:
            open_sentences(tmp_path, column)
        assert "data holds no train-*.parquet" in str(caught.value)


def test_documents(corpus):
    pytest.importorskip("sentencex")
    texts = [text.capitalize() for text in sentences(200)]
    documents = [". ".join(texts[start : start + 5]) + ".\n" for start in range(0, 200, 5)]
    (corpus / "documents.txt").write_text("".join(documents))
    options = {"encoder": corpus / "vectors.txt", "split": True}
    made = SentenceIndex.build(corpus / "documents.txt", corpus / "split", **options, language="de")
    assert (made.record.lines, made.record.sentences) == (200, len(set(texts)))
    assert made.record.settings.corpus["split"]["sentence"]["language"] == "de"
    for hit in made.search(["red sun"], top=6)[0]:
        # The line of the first document with the sentence.
        assert hit.line == texts.index(hit.sentence.removesuffix(".")) // 5 + 1
    with refused("split"):
        SentenceIndex.build(corpus / "documents.txt", corpus / "thai", **options, language="th")
