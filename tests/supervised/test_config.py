"""Settings and records of supervised runs."""

import json

import pytest

from paranmt_hf import SuperviseConfig
from paranmt_hf.supervised.config import Epoch, SupervisedRecord, SupervisedSettings
from paranmt_hf.util.records import made_with
from tests.refused import refused


def test_defaults_are_those_of_the_authors_program():
    similarity = SuperviseConfig("SICK-R").resolved(start=False)
    assert (similarity.way, similarity.hidden, similarity.epochs, similarity.batch_size) == ("scratch", 50, 10, 25)
    assert (similarity.optimizer, similarity.learning_rate) == ("adam", 0.001)
    assert (similarity.lambda_s, similarity.lambda_c, similarity.lambda_w) == (1e-6, 1e-6, 1e-5)
    entailment = SuperviseConfig("SICK-E").resolved(start=True)
    assert (entailment.way, entailment.hidden) == ("regularised", 150)
    assert (entailment.optimizer, entailment.learning_rate, entailment.lambda_w) == ("adagrad", 0.05, 1e-5)
    sentiment = SuperviseConfig("SST2", way="initialised").resolved(start=True)
    assert (sentiment.hidden, sentiment.optimizer, sentiment.lambda_w) == (300, "adam", 0.0)
    benchmark = SuperviseConfig("STSB-captions").resolved(start=False)
    assert (benchmark.hidden, benchmark.optimizer, benchmark.lambda_w) == (50, "adam", 1e-5)
    fixed = SuperviseConfig("SST5", way="fixed", projection=1200).resolved(start=True)
    assert (fixed.epochs, fixed.projection, fixed.lambda_w) == (20, 1200, 0.0)


@pytest.mark.parametrize(
    ("start", "settings", "option"),
    [
        (True, {"way": "scratch"}, "way"),
        (False, {"way": "fixed"}, "way"),
        (False, {"way": "regularised"}, "way"),
        (True, {"projection": 1200}, "projection"),
        (True, {"way": "fixed", "freeze_words": True}, "freeze_words"),
    ],
)
def test_what_does_not_go_together(start, settings, option):
    with refused(option):
        SuperviseConfig("SICK-R", **settings).resolved(start=start)


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
    assert SupervisedRecord.read(tmp_path).table().splitlines()[-1].split() == ["test", "8", "25.0"]
