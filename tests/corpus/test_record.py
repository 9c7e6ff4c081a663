"""The record of a release: read back as it was written, and what is wrong with a damaged one."""

import json

import pytest

from paranmt_hf.corpus.record import (
    RELEASE_RECORD,
    ConfigFiles,
    Example,
    RangeRecord,
    ReleaseRecord,
    StatisticsRecord,
)
from paranmt_hf.corpus.schema import SCHEMA_VERSION
from paranmt_hf.errors import InputError


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
    again = ReleaseRecord.parse(tmp_path, "corpus")
    assert again == record
    assert again.to_bytes() == record.to_bytes()
    # A bound of tokens stays whole, so that a card says 30 and not 30.0.
    assert again.configs["filtered"].selection == {"para_score": [0.25, None], "reference_length": [None, 30]}
    assert isinstance(again.configs["filtered"].selection["reference_length"][1], int)
    text = (tmp_path / RELEASE_RECORD).read_text(encoding="utf8")
    assert list(json.loads(text)) == [
        "settings", "versions", "machine", "paranmt_hf", "name", "schema_version", "license", "dropped", "columns",
        "configs", "statistics", "warnings",
    ]  # fmt: skip
    assert '"reference": "É"' in text
    assert text.endswith("}\n")


def test_record_of_an_earlier_version(record):
    values = record.to_json()
    del values["warnings"], values["statistics"]["histograms"]
    older = ReleaseRecord.from_json(values)
    assert (older.warnings, older.statistics.histograms) == ([], {})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda values: values.pop("statistics"), "build.json is damaged: it has no 'statistics'; copy or build it"),
        (lambda values: values.pop("schema_version"), "it has no 'schema_version'"),
        (lambda values: values["statistics"].update(rows="3"), "a whole number under 'statistics.rows', found '3'"),
        (
            lambda values: values["statistics"]["ranges"][0]["examples"][0].pop("reference"),
            r"it has no 'statistics.ranges\[0\].examples\[0\].reference'",
        ),
        (
            lambda values: values["configs"]["default"].update(files=[]),
            r"an object under 'configs.default.files', found \[\]",
        ),
        (
            lambda values: values["statistics"].update(histogram=[]),
            "its histogram has 0 bins, expected an even number",
        ),
        (lambda values: values["statistics"].update(histogram=[1]), "its histogram has 1 bins"),
        (
            lambda values: values["configs"].update(sample=values["configs"]["default"]),
            "build.json is damaged: its config 'sample' names no seed; copy or build it",
        ),
        (
            lambda values: values["configs"]["filtered"]["selection"].update(para_score=[0.5]),
            r"its config 'filtered' has no range for 'para_score', but \[0.5\]",
        ),
        (lambda values: values["configs"].pop("default"), "it has no 'configs.default'"),
        (lambda values: values["settings"].pop("scorer"), "expected text under 'settings.scorer.name'"),
        (
            lambda values: values["settings"].update(
                selection={"release": "other", "files": {}, "rows": 3, "scorer": {}, "filters": []}
            ),
            "build.json is damaged: its selection names no scorer, expected text under 'scorer.name'; copy or",
        ),
        (lambda values: values["settings"].update(translator={}), "expected text under 'settings.translator.model'"),
        (lambda values: values["settings"].update(release=3), "expected an object under 'settings.release', found 3"),
        (
            lambda values: values.update(license="CC BY"),
            "is damaged: 'CC BY' is not a licence id.*; copy or build it again",
        ),
        (
            lambda values: values.update(schema_version="2.1.0"),
            "it has schema version 2.1.0, this program knows 1.0.0",
        ),
    ],
)
def test_damage_is_named(record, tmp_path, change, message):
    values = record.to_json()
    change(values)
    (tmp_path / RELEASE_RECORD).write_text(json.dumps(values))
    with pytest.raises(InputError, match=message):
        ReleaseRecord.parse(tmp_path, "it")


def test_what_is_no_record(tmp_path):
    with pytest.raises(InputError, match="it is not a finished release: it holds no build.json"):
        ReleaseRecord.parse(tmp_path, "it")
    with pytest.raises(InputError, match="is not a finished release: it is not a folder"):
        ReleaseRecord.parse(tmp_path / "nothing", "it")
    (tmp_path / RELEASE_RECORD).write_text("{")
    with pytest.raises(
        InputError, match="is damaged: it is not JSON .*; expected the record of a release; copy or build"
    ):
        ReleaseRecord.parse(tmp_path, "it")
