"""The record of a release: read back as it was written, and what is wrong with a damaged one."""

import json
import shutil

import pytest

from paranmt_hf import InputError, publish
from paranmt_hf.corpus.release.record import (
    RELEASE_RECORD,
    ConfigFiles,
    Example,
    RangeRecord,
    ReleaseRecord,
    StatisticsRecord,
)
from paranmt_hf.corpus.release.schema import SCHEMA_VERSION
from tests.refused import refused


@pytest.fixture
def record():
    statistics = StatisticsRecord(
        rows=3,
        mean_reference_length=10.0,
        mean_translation_length=9.67,
        mean_translation_score=None,
        ranges=[RangeRecord("(0.8, 1.0]", 3, None, 9.8, [Example("É", "e", 0.8999999761581421)])],
        histogram=[0, 3],
        histograms={"length": [3, 3]},
    )
    files = ConfigFiles({"data/train-00000-of-00001.parquet": "ab"}, 3, 100, 200)
    filtered = ConfigFiles(
        {"filtered/train-00000-of-00001.parquet": "cd"},
        1,
        50,
        90,
        {"para_score": [0.25, None], "reference_length": [None, 30]},
    )
    return ReleaseRecord(
        name="corpus",
        schema_version=SCHEMA_VERSION,
        license="mit",
        settings={"pairs": {"kind": "lines"}, "scorer": {"name": "s"}, "release": {"license": "mit", "seed": 0}},
        dropped={"empty": 1},
        columns=["id", "reference"],
        versions={"numpy": "2"},
        machine="x86_64",
        paranmt_hf="0.1.0",
        configs={"default": files, "filtered": filtered},
        statistics=statistics,
    )


def test_what_is_written_is_read(record, tmp_path):
    (tmp_path / RELEASE_RECORD).write_bytes(record.to_bytes())
    again = ReleaseRecord.read(tmp_path, "corpus")
    assert again == record
    assert again.to_bytes() == record.to_bytes()
    # A bound of tokens stays whole, so that a card says 30 and not 30.0.
    assert again.configs["filtered"].selection == {"para_score": [0.25, None], "reference_length": [None, 30]}
    assert isinstance(again.configs["filtered"].selection["reference_length"][1], int)
    text = (tmp_path / RELEASE_RECORD).read_text(encoding="utf8")
    assert list(json.loads(text)) == [
        "settings", "versions", "machine", "paranmt_hf", "options", "name", "schema_version", "license", "dropped",
        "capitals", "columns", "configs", "statistics", "warnings",
    ]  # fmt: skip
    assert '"reference": "É"' in text
    assert text.endswith("}\n")


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.pop("statistics"),
        lambda record: record["statistics"].update(rows="3"),
        lambda record: record["statistics"]["ranges"][0]["examples"][0].pop("reference"),
        lambda record: record["configs"]["default"].update(files=[]),
        lambda record: record.update(schema_version="2.1.0"),
    ],
)
def test_damage_is_named(record, tmp_path, change):
    values = record.to_json()
    change(values)
    (tmp_path / RELEASE_RECORD).write_text(json.dumps(values))
    with refused():
        ReleaseRecord.read(tmp_path, "it")


def test_what_is_no_record(tmp_path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / RELEASE_RECORD).write_text("{")
    for name in (".", "nothing", "broken"):
        with refused():
            ReleaseRecord.read(tmp_path / name, "it")


DATASET = "org/corpus"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: (folder / "build.json").unlink(),
        lambda folder: (folder / "build.json").write_text("[]"),
        lambda folder: (folder / "corpus.py").write_text("x = 1"),
        lambda folder: (folder / "a.pkl").write_bytes(b"x"),
        lambda folder: (folder / "passwd").symlink_to("/etc/passwd"),
        lambda folder: next((folder / "data").iterdir()).write_bytes(b"PAR1"),
        lambda folder: shutil.copy(
            next((folder / "data").iterdir()), folder / "data" / "train-00001-of-00001.parquet"
        ),
        lambda folder: edit(folder, lambda files: files.clear()),
        lambda folder: edit(folder, lambda files: files.update({"data/train-x/../../../etc/hostname": "0"})),
    ],
)
def test_release_that_is_refused(release, spoil):
    spoil(release)
    with pytest.raises(InputError):
        publish(release, DATASET, dry_run=True)


def edit(folder, change):
    """Change the files of a config in the record."""
    record = json.loads((folder / "build.json").read_text())
    change(record["configs"]["default"]["files"])
    (folder / "build.json").write_text(json.dumps(record))


def test_linked_folder_is_refused(release, tmp_path):
    shutil.move(release / "data", tmp_path / "elsewhere")
    (release / "data").symlink_to(tmp_path / "elsewhere")
    with refused(path=release / "data"):
        publish(release, DATASET, dry_run=True)
