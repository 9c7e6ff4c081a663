"""Records of supervised runs: what a table cannot be made of is damaged."""

import json

import pytest

from paranmt_hf.errors import InputError
from paranmt_hf.training.supervised.record import RECORD_FILE, Epoch, SupervisedRecord, read_supervised


@pytest.fixture
def values():
    figures = {"dev": {"accuracy": 0.5}, "test": {"accuracy": 0.25}}
    record = SupervisedRecord(
        {}, {}, {"train": 1200, "dev": 9, "test": 8}, figures, [Epoch(1.0, 0.5)], 1, 4, 9, 0.0, [], {}, "x86_64"
    )
    return record.to_json()


def test_what_is_written_is_read(values, tmp_path):
    (tmp_path / RECORD_FILE).write_text(json.dumps(values))
    assert read_supervised(tmp_path).text().splitlines()[-1].split() == ["test", "8", "25.0"]


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
    (tmp_path / RECORD_FILE).write_text(json.dumps(values))
    with pytest.raises(
        InputError, match=r"supervised.json is damaged: it has no 'figures.test', or a part lacks its n"
    ):
        read_supervised(tmp_path)
