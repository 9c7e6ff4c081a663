"""The record of a release: read back as it was written, and what is wrong with a damaged one."""

import json
import shutil
from dataclasses import replace

import pytest

from paranmt_hf import InputError, publish
from paranmt_hf.corpus.release.record import RELEASE_RECORD, ReleaseRecord
from tests.refused import refused


def test_what_is_written_is_read(release):
    """A bound of tokens stays whole, so that a card says 30 and not 30.0."""
    record = ReleaseRecord.read(release, "corpus")
    assert record.to_bytes() == (release / RELEASE_RECORD).read_bytes()
    low, high = record.configs["filtered"].selection["reference_length"]
    assert (low, high) == (None, 30) and isinstance(high, int)
    text = (release / RELEASE_RECORD).read_text(encoding="utf8")
    assert list(json.loads(text)) == [
        "settings", "versions", "machine", "paranmt_hf", "options", "name", "schema_version", "license", "dropped",
        "capitals", "columns", "configs", "statistics", "warnings",
    ]  # fmt: skip
    assert text.endswith("}\n")
    (release / RELEASE_RECORD).write_bytes(replace(record, title="É").to_bytes())
    assert '"title": "É"' in (release / RELEASE_RECORD).read_text(encoding="utf8")
    assert ReleaseRecord.read(release) == replace(record, title="É")


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
def test_damage_is_named(release, change):
    values = json.loads((release / RELEASE_RECORD).read_text())
    change(values)
    (release / RELEASE_RECORD).write_text(json.dumps(values))
    with refused():
        ReleaseRecord.read(release, "it")


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
