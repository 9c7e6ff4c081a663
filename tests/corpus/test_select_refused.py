"""What `select` refuses, and that nothing is lost."""

import json
import math
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paranmt_hf.corpus import release_run
from paranmt_hf.corpus.record import RELEASE_RECORD
from paranmt_hf.corpus.release import release_files
from paranmt_hf.corpus.selection.release_filter import ReleaseFilter
from paranmt_hf.corpus.selection.select import select
from paranmt_hf.errors import InputError

ROWS = 400


@pytest.fixture(autouse=True)
def no_picture(monkeypatch):
    """Drawing takes longer than all else."""
    monkeypatch.setattr(release_run, "plot_histograms", lambda statistics, path: False)


def test_what_is_refused_leaves_nothing(whole, tmp_path):
    out = tmp_path / "some"
    for config, message in [
        (ReleaseFilter(), "nothing says which rows are kept: give at least one filter, such as --tenths or --sample"),
        (ReleaseFilter(tenths="1", by="reference"), "the column reference of whole holds no numbers"),
        (
            ReleaseFilter(tenths="1", by="beauty"),
            "whole has no column beauty, which decides what is dropped; it has id",
        ),
        (
            ReleaseFilter(min={"translation_score": -1}),
            "whole has no column translation_score, which decides what is dropped; `paranmt build` makes it",
        ),
        (
            ReleaseFilter(max={"number_mismatch": 0}),
            "column number_mismatch, which decides .*; `paranmt score whole --add number_mismatch` makes it",
        ),
        (ReleaseFilter(origin=("sea",)), "no row of whole is left of 400: 400 not from sea; drop fewer"),
        (
            ReleaseFilter(min_score=3.0),
            "no row of whole is left of 400: 400 with para_score below 3",
        ),
        (
            ReleaseFilter(max_length=9, sample=1000),
            r"a sample of 1,000 rows was asked for and the other filters leave \d+",
        ),
    ]:
        with pytest.raises(InputError, match=message):
            select(whole, out, config)
        assert not list(tmp_path.iterdir())


def test_a_release_without_origins(release, tmp_path):
    with pytest.raises(InputError, match="corpus has no column origin, .* `paranmt import --columns` makes it"):
        select(release, tmp_path / "some", ReleaseFilter(origin=("web",)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tenths": "0-3"}, "tenths must be from 1, the lowest, to 10"),
        (
            {"min_score": 0.5, "max_score": 0.25},
            "no para_score is at least 0.5 and at most 0.25; the range is empty",
        ),
        ({"min": {"id": math.inf}}, "`min` of id must be a finite number"),
        ({"min": {"id": "few"}}, "`min` takes COLUMN=NUMBER"),
        ({"max": {"para_score": 1}}, "give `max_score`"),
        ({"min_length": 9, "max_length": 3}, "min_length 9 is above max_length 3"),
        (
            {"drop_copies": ("pair", "origin")},
            "drop_copies must be values that are each one of pair",
        ),
        ({"sample": 0}, "sample must be at least 1, was 0"),
    ],
)
def test_settings_that_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        ReleaseFilter(**settings)


def test_all_scores_null(whole, tmp_path):
    folder = shutil.copytree(whole, tmp_path / "null")
    path = release_files(folder)[0]
    table = pq.read_table(path)
    nulls = pa.nulls(ROWS, pa.float32())
    pq.write_table(table.set_column(table.column_names.index("trigram_overlap"), "trigram_overlap", nulls), path)
    with pytest.raises(InputError, match="is missing or not the file that was written"):
        select(folder, tmp_path / "some", ReleaseFilter(tenths="1"))
    mended(folder)
    with pytest.raises(InputError, match="no row of null is left of 400: 400 without trigram_overlap; drop fewer"):
        select(folder, tmp_path / "some", ReleaseFilter(tenths="1", by="trigram_overlap"))


def mended(folder):
    """Bring the checksums of a record up to date."""
    from paranmt_hf.util.files import checksum

    record = json.loads((folder / RELEASE_RECORD).read_text())
    record["configs"]["default"]["files"] = {
        path.relative_to(folder).as_posix(): checksum(path) for path in release_files(folder)
    }
    (folder / RELEASE_RECORD).write_text(json.dumps(record))


def test_ids_out_of_order(whole, tmp_path):
    folder = shutil.copytree(whole, tmp_path / "mixed")
    path = release_files(folder)[0]
    table = pq.read_table(path)
    pq.write_table(pa.concat_tables([table.slice(200), table.slice(0, 200)]), path)
    mended(folder)
    with pytest.raises(InputError, match="the ids of .* do not ascend from row to row"):
        select(folder, tmp_path / "some", ReleaseFilter(tenths="1"))


def test_files_for_dropped_rows_that_are_refused(whole, tmp_path):
    config = ReleaseFilter(tenths="1")
    (tmp_path / "mine.parquet").write_bytes(b"mine")
    for path, message in [
        (tmp_path / "mine.parquet", "mine.parquet exists and holds no dropped rows"),
        (tmp_path / "some" / "x.parquet", "is inside the release"),
        (tmp_path / "nowhere" / "x.parquet", "there is no folder .*nowhere; make it first"),
        (tmp_path, "is a folder"),
        (tmp_path / "x.csv", "x.csv .*expected a name that ends in .parquet"),
    ]:
        with pytest.raises(InputError, match=message):
            select(whole, tmp_path / "some", config, keep_dropped=path)
    assert (tmp_path / "mine.parquet").read_bytes() == b"mine" and not (tmp_path / "some").exists()


def test_a_damaged_recipe(whole, tmp_path):
    select(whole, tmp_path / "some", ReleaseFilter(tenths="1"))
    record = json.loads((tmp_path / "some" / RELEASE_RECORD).read_text())
    del record["settings"]["selection"]["filters"][0]["dropped"]
    (tmp_path / "some" / RELEASE_RECORD).write_text(json.dumps(record))
    with pytest.raises(InputError, match=r"build.json is damaged: it has no 'filters\[0\].dropped'"):
        select(whole, tmp_path / "some", ReleaseFilter(tenths="1"))
