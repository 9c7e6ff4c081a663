"""Records of supervised runs: what a table cannot be made of is damaged."""

import json

import pytest

from paranmt_hf.errors import InputError
from paranmt_hf.training.supervised.config import SuperviseConfig
from paranmt_hf.training.supervised.record import (
    Epoch,
    SupervisedRecord,
    SupervisedSettings,
)
from paranmt_hf.util.run import made_with


@pytest.fixture
def values():
    figures = {"dev": {"accuracy": 0.5}, "test": {"accuracy": 0.25}}
    record = SupervisedRecord(
        settings=SupervisedSettings(SuperviseConfig("SST2"), {}, ""),
        inputs={},
        items={"train": 1200, "dev": 9, "test": 8},
        figures=figures,
        epochs=[Epoch(1.0, 0.5)],
        best_epoch=1,
        dimension=4,
        parameters=9,
        unknown=0.0,
        notes=[],
        **made_with(),
    )
    return record.to_json()


def test_what_is_written_is_read(values, tmp_path):
    (tmp_path / SupervisedRecord.FILE).write_text(json.dumps(values))
    assert SupervisedRecord.read(tmp_path).text().splitlines()[-1].split() == ["test", "8", "25.0"]


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values.update(items={}),
        lambda values: values["items"].pop("dev"),
        lambda values: values.update(figures={}),
        lambda values: values["figures"].update(test={}),
        lambda values: values["figures"].update(dev={}),
        lambda values: values["figures"].update(test={"pearson": 0.5}),
    ],
)
def test_what_a_table_needs(values, tmp_path, change):
    change(values)
    (tmp_path / SupervisedRecord.FILE).write_text(json.dumps(values))
    with pytest.raises(
        InputError, match=r"supervised.json is damaged: it has no 'figures.test', or a part lacks its n"
    ):
        SupervisedRecord.read(tmp_path)
