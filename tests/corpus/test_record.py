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


SELECTION = {"release": "other", "files": {}, "rows": 3, "scorer": {}, "filters": []}


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda record: record.pop("statistics"), "'statistics'"),
        (lambda record: record.pop("schema_version"), "'schema_version'"),
        (lambda record: record["statistics"].update(rows="3"), "'statistics.rows'"),
        (
            lambda record: record["statistics"]["ranges"][0]["examples"][0].pop("reference"),
            r"'statistics.ranges\[0\].examples\[0\].reference'",
        ),
        (lambda record: record["configs"]["default"].update(files=[]), "'configs.default.files'"),
        (lambda record: record["statistics"].update(histogram=[]), "histogram has 0 bins"),
        (lambda record: record["statistics"].update(histogram=[1]), "histogram has 1 bins"),
        (lambda record: record["configs"].update(sample=record["configs"]["default"]), "'sample' names no seed"),
        (lambda record: record["configs"]["filtered"]["selection"].update(para_score=[0.5]), "'para_score'"),
        (lambda record: record["configs"].pop("default"), "'configs.default'"),
        (lambda record: record["settings"].pop("scorer"), "'settings.scorer.name'"),
        (lambda record: record["settings"].update(selection=SELECTION), "'scorer.name'"),
        (lambda record: record["settings"].update(translator={}), "'settings.translator.model'"),
        (lambda record: record["settings"].update(release=3), "'settings.release'"),
        (lambda record: record.update(license=None), "'license'"),
        (lambda record: record.update(schema_version="2.1.0"), "schema version 2.1.0"),
    ],
)
def test_damage_is_named(record, tmp_path, change, place):
    values = record.to_json()
    change(values)
    (tmp_path / RELEASE_RECORD).write_text(json.dumps(values))
    with pytest.raises(InputError, match=place):
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
