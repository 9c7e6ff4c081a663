"""What a file of results must hold."""

import json

import numpy as np
import pytest

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.record import read_results
from paranmt_hf.evaluation.speed import Speed
from paranmt_hf.evaluation.sts import evaluate_sts
from paranmt_hf.evaluation.sts_data import StsSet
from tests.evaluation.toys import Plane

VALUES = {
    "model": "m",
    "mean": 0.5,
    "development": None,
    "years": [
        {
            "name": "STS12",
            "sets": 1,
            "pairs": 3,
            "mean": 0.5,
            "weighted_mean": 0.5,
            "all_pearson": 0.5,
            "all_spearman": 0.25,
        }
    ],
    "sets": [
        {
            "name": "a",
            "year": "STS12",
            "part_of": None,
            "pairs": 3,
            "skipped": 1,
            "pearson": 0.5,
            "spearman": 0.25,
            "zero_vectors": 0,
            "unknown_sentences": None,
            "interval": [-0.5, 1.0],
        }
    ],
    "notes": ["one"],
}
MEASURED = {
    "weights": "sha256:1",
    "speed": {"sentences_per_second": 10, "passes": 5, "sentences": 2, "words": 9.5, "processor": "p"},
}


def write(path, entries):
    path.write_text(json.dumps(entries))
    return path


def test_entries_come_back_byte_for_byte(tmp_path):
    entries = [{**VALUES, **MEASURED}, VALUES]
    measured, plain = read_results(write(tmp_path / "r.json", entries))
    assert json.dumps([measured.to_json(), plain.to_json()]) == json.dumps(entries)
    assert measured.speed == Speed(10, 5, 2, 9.5, "p") and plain.weights is None
    assert json.dumps(measured.figures()) == json.dumps(VALUES)
    assert measured.sets[0].title == "STS12 a" and measured.sets[0].interval == (-0.5, 1.0)


def test_a_result_is_its_record(tmp_path):
    sets = [StsSet("a", ["x", "x", "x"], ["x", "d", "y"], np.array([5.0, 3.0, 0.0]), "STS12")]
    result = evaluate_sts(Plane(), sets, name="toy", bootstrap=20)
    (record,) = read_results(write(tmp_path / "r.json", [result.record("sha256:2").to_json()]))
    assert record == result.record("sha256:2")
    assert result.to_json() == result.record().to_json() == record.figures()
    assert (record.model, record.sets[0].title, record.sets[0].pairs) == ("toy", "STS12 a", 3)
    assert "weights" not in result.to_json() and record.to_json()["weights"] == "sha256:2"


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({}, "expected a list, found {}"),
        ([VALUES, 1], r"expected an object under '\[1\]', found 1"),
        ([{**VALUES, "mean": "x"}], r"expected a number under '\[0\].mean', found 'x'"),
        ([{**VALUES, "mean": float("inf")}], r"expected a number under '\[0\].mean', found inf"),
        ([{**VALUES, "years": [{}]}], r"it has no '\[0\].years\[0\].name'"),
        ([{**VALUES, **MEASURED, "speed": {}}], r"it has no '\[0\].speed.sentences_per_second'"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, entries, message):
    with pytest.raises(InputError, match=f"r.json is damaged: {message}"):
        read_results(write(tmp_path / "r.json", entries))


def test_no_json(tmp_path):
    (tmp_path / "r.json").write_text("")
    with pytest.raises(
        InputError, match="r.json is damaged: it is not JSON .*expected what `paranmt evaluate sts --j"
    ):
        read_results(tmp_path / "r.json")
