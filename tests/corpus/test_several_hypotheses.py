"""Several hypotheses of a sentence, from the build to everything that reads a release."""

import json
import shutil
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from paranmt_hf import ReleaseFilter, build, select
from paranmt_hf.apps.annotate.sample import AnnotationConfig, draw_sample
from paranmt_hf.corpus.reading.readers import LineFiles
from paranmt_hf.corpus.release.publish import check_release
from paranmt_hf.corpus.release.release import read_tables, release_files
from paranmt_hf.corpus.release.schema import row_numbers
from paranmt_hf.corpus.score import rescore
from paranmt_hf.corpus.statistics.sampling import draw, open_corpus
from paranmt_hf.corpus.translation import engines
from paranmt_hf.corpus.translation.translator import Translations
from paranmt_hf.training.mega_batch import excluded
from tests.refused import refused
from tests.toys import LOCAL, RELEASE, FakeTranslatorConfig, rows_of, write_vectors

LINES = 600


def identity_of(config):
    return {"model": "fake", "revision": "1", "beam": config.beam, "hypotheses": 3, "max_source_tokens": 9}


class ThreeHypotheses:
    """Gives a sentence, itself backwards and its last word; one word has but one hypothesis."""

    def __init__(self, config):
        self.identity = identity_of(config)

    def translate(self, sentences):
        texts, owners = [], []
        for index, sentence in enumerate(sentences):
            words = sentence.split()
            own = list(dict.fromkeys([sentence, " ".join(words[::-1]), words[-1]]))
            texts += own
            owners += [index] * len(own)
        return Translations(texts, np.linspace(-1, -2, len(texts), dtype=np.float32), np.array(owners))


@contextmanager
def three_hypotheses():
    with mock.patch.multiple(
        engines, load_translator=lambda config, threads: ThreeHypotheses(config), translator_identity=identity_of
    ):
        yield


def make(folder: Path, name: str = "corpus"):
    words = [f"w{number}" for number in range(40)]
    if not (folder / "text.de").exists():
        random = np.random.default_rng(0)
        lines = [" ".join(words[n] for n in random.integers(0, 40, 1 + line % 8)) for line in range(LINES)]
        (folder / "text.de").write_text("".join(f"{line}\n" for line in lines))
        (folder / "text.en").write_text("".join(f"{line} w{number % 40}\n" for number, line in enumerate(lines)))
        write_vectors(folder / "vectors.txt", words)
    bitext = LineFiles({"source": folder / "text.de", "reference": folder / "text.en"})
    with three_hypotheses():
        return build(
            bitext,
            folder / name,
            translator=FakeTranslatorConfig(),
            scorer=folder / "vectors.txt",
            release=RELEASE,
            engine=replace(LOCAL, shard_rows=50),
        )


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return make(tmp_path_factory.mktemp("several"))


def table_of(folder, config="default") -> pa.Table:
    return pa.concat_tables(read_tables(release_files(folder, config)))


def test_rows_by_hand(corpus):
    rows = rows_of(corpus.folder)
    assert [(row["id"], row["rank"]) for row in rows[:5]] == [(0, 1), (1, 1), (1, 2), (1, 3), (2, 1)]
    first, second, third = rows[1:4]
    words = first["source"].split()
    assert [row["translation"] for row in (first, second, third)] == [
        " ".join(words), f"{words[1]} {words[0]}", words[1],
    ]  # fmt: skip
    assert first["reference"] == second["reference"] == third["reference"]
    assert (np.diff(row_numbers(table_of(corpus.folder))) > 0).all()
    assert corpus.record.statistics.sentences == len({row["id"] for row in rows}) == LINES


def test_card_and_record(corpus):
    card = (corpus.folder / "README.md").read_text()
    assert f"A sentence has up to 3 translations, each in a row of its own: these are pairs of {LINES}." in card
    assert "| `rank` | int32 | number of the hypothesis" in card
    assert "| hypothesis of the translation model for the foreign side, that of this rank |" in card
    assert "Keep them together where data are split" in card
    names = [column["name"] for column in yaml.safe_load(card.split("---\n")[1])["dataset_info"][0]["features"]]
    assert names[:3] == ["id", "rank", "reference"]
    assert json.loads((corpus.folder / "build.json").read_text())["statistics"]["sentences"] == LINES
    assert check_release(corpus.folder).statistics == corpus.record.statistics
    for part in corpus.record.statistics.ranges:
        shown = [(example.reference, example.translation) for example in part.examples]
        assert len(set(shown)) == len(shown)


def test_the_sample_draws_rows_and_not_sentences(corpus):
    every, drawn = table_of(corpus.folder), table_of(corpus.folder, "sample")
    assert every.num_rows > 1000
    assert drawn.num_rows == 1000
    assert np.isin(row_numbers(drawn), row_numbers(every)).all()
    assert len(np.unique(row_numbers(drawn))) == 1000


def test_the_builder_of_datasets_draws_the_same_rows(corpus, tmp_path):
    from paranmt_hf.corpus.release.builder import ParaNMTBuilder

    builder = ParaNMTBuilder(config_name="sample", data_dir=str(corpus.folder), cache_dir=str(tmp_path))
    tables = [table for _, table in builder._generate_tables(**builder._split_generators(None)[0].gen_kwargs)]
    assert pa.concat_tables(tables).equals(table_of(corpus.folder, "sample"))


@pytest.mark.parametrize("keep", ["best", "most-different"])
def test_select_keeps_one_above_a_score(corpus, tmp_path, keep):
    dropped = tmp_path / "dropped.parquet"
    config = ReleaseFilter(min={"para_score": 0.3}, keep=keep)
    made = select(corpus.folder, tmp_path / "one", config, keep_dropped=dropped)
    left = [row for row in rows_of(corpus.folder) if row["para_score"] >= np.float32(0.3)]
    by_id: dict[int, list] = {}
    for row in left:
        by_id.setdefault(row["id"], []).append(row)

    def order(row):
        overlap = 1 if row["trigram_overlap"] is None else row["trigram_overlap"]
        return (row["rank"],) if keep == "best" else (overlap, -row["para_score"], row["rank"])

    expected = [min(rows, key=order) for rows in by_id.values()]
    assert rows_of(tmp_path / "one") == expected
    card = (tmp_path / "one" / "README.md").read_text()
    assert "One of up to 3 translations of each sentence is left." in card
    gone = pq.read_table(dropped)
    assert gone.column_names[:2] == ["id", "rank"]
    assert gone.num_rows + made.rows == corpus.record.statistics.rows
    assert made.selection.filters[-1].dropped == len(left) - len(expected)


def test_other_filters_tell_the_rows_apart(corpus, tmp_path):
    drawn = select(corpus.folder, tmp_path / "drawn", ReleaseFilter(sample=700))
    assert drawn.rows == 700
    tenths = [select(corpus.folder, tmp_path / str(part), ReleaseFilter(tenths=str(part))) for part in (1, 10)]
    assert abs(tenths[0].rows - tenths[1].rows) <= 1
    pytest.importorskip("duckdb")
    copies = select(corpus.folder, tmp_path / "copies", ReleaseFilter(drop_copies=("reference",)))
    assert copies.rows == len({row["reference"] for row in rows_of(corpus.folder)})


def test_keep_needs_ranks(release, tmp_path):
    with refused():
        select(release, tmp_path / "out", ReleaseFilter(keep="best"))


def test_another_score_keeps_the_ranks(corpus, tmp_path):
    make_folder = tmp_path / "corpus"
    shutil.copytree(corpus.folder, make_folder)
    before = table_of(make_folder)
    rescore(make_folder, add=["number_mismatch"], engine=replace(LOCAL, shard_rows=1000))
    after = table_of(make_folder)
    assert after.drop(["para_score", "number_mismatch"]).equals(before.drop("para_score"))
    assert check_release(make_folder).statistics.sentences == LINES


def test_samples_of_sentences_and_of_pairs(corpus):
    sample = draw(open_corpus(corpus.folder, side="translation"), 900, seed=1)[None].table()
    every = table_of(corpus.folder)
    of = dict(zip(row_numbers(every).tolist(), every["translation"].to_pylist(), strict=True))
    assert [of[number] for number in sample["id"].to_pylist()] == sample["sentence"].to_pylist()
    assert sample.num_rows == 900
    files = release_files(corpus.folder)
    drawn = draw_sample(files, AnnotationConfig(per_range=9), corpus="corpus", settings={})
    shown = [(item.reference, item.translation) for item in drawn.items]
    assert len(set(shown)) == len(shown)


def test_the_explorer_tells_them_apart(corpus):
    pytest.importorskip("duckdb")
    from paranmt_hf.apps.explore.explorer import Explorer, View

    every = rows_of(corpus.folder)
    for text_bytes in (2**30, 0):
        with Explorer(corpus.folder, text_bytes=text_bytes) as explorer:
            found = explorer.rows(View(), rows=30)
            assert [(row["id"], row["rank"]) for row in found] == [(row["id"], row["rank"]) for row in every[:30]]
            text = every[3]["translation"]
            expected = sum(text in row["translation"] for row in every)
            assert explorer.count(View(text=text, side="translation")) == expected
            assert all(len(part["examples"]) <= 5 for part in explorer.examples(View()))


def test_hypotheses_of_one_reference_are_no_negatives(corpus):
    """Training knows sentences by their text: what one reference was paired with means the same."""
    rows = rows_of(corpus.folder)[1:4]
    texts = [row["reference"] for row in rows] + [row["translation"] for row in rows]
    keys = np.unique(texts, return_inverse=True)[1]
    first, second = excluded(keys)
    assert set(zip(first.tolist(), second.tolist(), strict=True)) == {(a, b) for a in range(6) for b in range(6)}
