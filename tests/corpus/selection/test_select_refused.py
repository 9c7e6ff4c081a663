"""Selections that are refused, and leave nothing."""

import json
import logging
import math
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf import InputError, ReleaseConfig, ReleaseFilter, select
from paranmt_hf.corpus.release.record import RELEASE_RECORD
from paranmt_hf.corpus.release.release import release_files
from paranmt_hf.util.files import checksum
from tests.refused import refused
from tests.toys import scored_release


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"tenths": "1", "by": "reference"},
        {"tenths": "1", "by": "beauty"},
        {"min": {"translation_score": -1}},
        {"max": {"number_mismatch": 0}},
        {"origin": ("sea",)},
        {"min": {"para_score": 1.0}},
        {"language": "xx"},
        {"decontaminate": ("nowhere",)},
    ],
)
def test_what_is_refused_leaves_nothing(whole, tmp_path, settings):
    with refused():
        select(whole, tmp_path / "some", ReleaseFilter(**settings))
    assert not list(tmp_path.iterdir())


def test_a_release_without_origins(release, tmp_path):
    with refused():
        select(release, tmp_path / "some", ReleaseFilter(origin=("web",)))


@pytest.mark.parametrize(
    ("settings", "option"),
    [
        ({"tenths": "0-3"}, "tenths"),
        ({"min": {"id": math.inf}}, "min"),
        ({"min": {"id": "few"}}, "min"),
    ],
)
def test_settings_that_are_refused(settings, option):
    with refused(option):
        ReleaseFilter(**settings)


def update_checksums(folder):
    """Bring the checksums of a record up to date."""
    record = json.loads((folder / RELEASE_RECORD).read_text())
    record["configs"]["default"]["files"] = {
        path.relative_to(folder).as_posix(): checksum(path) for path in release_files(folder)
    }
    (folder / RELEASE_RECORD).write_text(json.dumps(record))


def test_changed_rows(whole, tmp_path):
    folder = shutil.copytree(whole, tmp_path / "changed")
    path = release_files(folder)[0]
    table = pq.read_table(path)
    nulls = pa.nulls(table.num_rows, pa.float32())
    pq.write_table(table.set_column(table.column_names.index("trigram_overlap"), "trigram_overlap", nulls), path)
    with refused():
        select(folder, tmp_path / "some", ReleaseFilter(tenths="1"))
    update_checksums(folder)
    with refused():
        select(folder, tmp_path / "some", ReleaseFilter(tenths="1", by="trigram_overlap"))
    pq.write_table(pa.concat_tables([table.slice(200), table.slice(0, 200)]), path)
    update_checksums(folder)
    with refused():
        select(folder, tmp_path / "some", ReleaseFilter(tenths="1"))


def test_files_for_dropped_rows_that_are_refused(whole, tmp_path):
    (tmp_path / "mine.parquet").write_bytes(b"mine")
    for name in ("mine.parquet", "some/x.parquet", "nowhere/x.parquet", "", "x.csv"):
        with pytest.raises(InputError):
            select(whole, tmp_path / "some", ReleaseFilter(tenths="1"), keep_dropped=tmp_path / name)
    assert (tmp_path / "mine.parquet").read_bytes() == b"mine" and not (tmp_path / "some").exists()
    for inside in (whole / "dropped.parquet", whole / "data" / "train-00001-of-00002.parquet"):
        with refused("keep_dropped", path=inside):
            select(whole, tmp_path / "some", ReleaseFilter(tenths="1"), keep_dropped=inside)
        assert not inside.exists()


PAIRS = [
    ("The old man walks slowly down the long road to the sea.", "An old man goes down a road that leads to the sea."),
    ("Two dogs play in the deep snow near the house.", "Dva psi si hrají v hlubokém sněhu u domu."),
    ("The old man walks slowly down the long road to the lake.", "An old man goes down a road that leads to the sea."),
    ("A woman reads the newspaper in the garden every day.", "A woman is reading a newspaper."),
    ("Yes.", "Ja."),
    ("the old man walks slowly down the long road to the sea", "An old man went down the road towards the sea."),
    ("Nothing of this is like the others at all.", "None of these things is like any of the others."),
]


@pytest.fixture(scope="module")
def sentences(tmp_path_factory):
    columns = {"reference": [first for first, _ in PAIRS], "translation": [second for _, second in PAIRS]}
    columns["para_score"] = pa.array([0.5] * len(PAIRS), pa.float32())
    release = ReleaseConfig(license="cc-by-4.0", title="All", description="Sentences.")
    return scored_release(tmp_path_factory.mktemp("whole") / "whole", columns, release)


def ids(folder) -> list[int]:
    return [number for file in release_files(folder) for number in pq.read_table(file)["id"].to_pylist()]


@pytest.mark.slow
def test_each_row_has_one_reason(sentences, tmp_path, caplog):
    evaluation = tmp_path / "evaluation"
    evaluation.mkdir()
    (evaluation / "test.tsv").write_text("5.0\tA WOMAN is reading a newspaper\tsomething\n", encoding="utf8")
    (evaluation / "model.bin").write_bytes(b"\0")
    config = ReleaseFilter(language="en", decontaminate=(str(evaluation),), drop_near_duplicates="reference")
    with caplog.at_level(logging.WARNING):
        selected = select(sentences, tmp_path / "out", config, keep_dropped=tmp_path / "dropped.parquet")
    assert "model.bin" in caplog.text
    assert ids(tmp_path / "out") == [0, 4, 6]
    dropped = pq.read_table(tmp_path / "dropped.parquet")
    assert dropped["id"].to_pylist() == [1, 2, 3, 5]
    assert dropped["reason"].to_pylist() == [
        "with a side in another language than en",
        "with the reference nearly that of an earlier row",
        "that share a sentence or 8 words in a row with an evaluation set",
        "with the reference nearly that of an earlier row",
    ]
    numbers = dropped["number"].to_pylist()
    assert numbers[0] < 0.02 and numbers[1] == numbers[3] == 0
    assert [one.dropped for one in selected.selection.filters] == [1, 1, 2]
    again = select(sentences, tmp_path / "out", config, keep_dropped=tmp_path / "dropped.parquet")
    assert not again.fresh
    (evaluation / "test.tsv").write_text("5.0\tanother sentence of an evaluation set\tx\n", encoding="utf8")
    with pytest.raises(InputError):
        select(sentences, tmp_path / "out", config)
