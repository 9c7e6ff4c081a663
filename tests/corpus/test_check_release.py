"""Releases and records that are refused before anything is sent."""

import json
import shutil

import pytest

from paranmt_hf.errors import InputError
from paranmt_hf.hub.publish import publish

DATASET = "org/corpus"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "build.json").unlink(), "holds no record of this package"),
        (lambda folder: (folder / "build.json").write_text("[]"), "build.json is damaged: expected an object, found"),
        (lambda folder: (folder / "corpus.py").write_text("x = 1"), "corpus.py is code that is not this package's"),
        (lambda folder: (folder / "a.pkl").write_bytes(b"x"), "a.pkl can hold a pickle"),
        (lambda folder: (folder / "passwd").symlink_to("/etc/passwd"), "passwd is a link that leads out of"),
        (
            lambda folder: next((folder / "data").iterdir()).write_bytes(b"PAR1"),
            "is missing or not the file that was written",
        ),
    ],
)
def test_release_that_is_refused(release, spoil, message):
    spoil(release)
    with pytest.raises(InputError, match=message):
        publish(release, DATASET, dry_run=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: record["configs"]["default"].update(rows=59), "'default' has 60 rows, its record says 59"),
        (lambda record: record["columns"].append("origin"), "has other columns"),
        (lambda record: record["statistics"].update(rows=59), "statistics are of another number of rows"),
        (lambda record: record["configs"]["default"].update(file_bytes=7), "another size for config 'default'"),
        (lambda record: record["configs"]["default"].update(files={}), "is not in the release's record"),
        (
            lambda record: record["configs"]["default"]["files"].update({"data/train-x/../../../etc/hostname": "0"}),
            "names the file 'data/train-x/../../../etc/hostname'",
        ),
    ],
)
def test_record_that_is_refused(release, change, message):
    record = json.loads((release / "build.json").read_text())
    change(record)
    (release / "build.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match=message):
        publish(release, DATASET, dry_run=True)


def test_linked_folder_is_refused(release, tmp_path):
    shutil.move(release / "data", tmp_path / "elsewhere")
    (release / "data").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="data is a link that leads out of"):
        publish(release, DATASET, dry_run=True)
