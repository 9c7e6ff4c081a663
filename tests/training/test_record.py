"""What a training.json must hold."""

import copy
import json

import pytest

from paranmt_hf.errors import InputError
from paranmt_hf.training.history import History
from paranmt_hf.training.record import AveragedModel, TrainingRecord, read_training

VALUES = {
    "settings": {
        "encoder": {"model": "word", "dimension": 4},
        "training": {
            "margin": 0.4,
            "batch_size": 100,
            "mega_batch": 40,
            "learning_rate": 0.001,
            "teacher": None,
            "teacher_weight": 1.0,
            "seed": 1,
            "anything": [1, {"else": None}],
        },
        "data": {
            "sources": [
                ["a.parquet 1 bytes"],
                {"release": "corpus"},
                {"dataset": "org/a", "revision": "1"},
                {"kind": "phrases", "files": [{"name": "ppdb", "bytes": 1}], "score": None},
            ],
            "ranges": {"para_score": [0.4, None]},
            "unwanted_sentences": 0,
        },
        "development": None,
    },
    "inputs": {"vectors": "glove.txt"},
    "pairs": 60,
    "history": {
        "losses": [[1, 0.5], [2, 0.25]],
        "scores": [[2, 0.75]],
        "best_score": 0.75,
        "best_step": 2,
        "stale": 0,
        "pairs": 120,
        "seconds": 0.5,
    },
    "development": 0.75,
    "dimension": 4,
    "parameters": 52,
    "versions": {"torch": "2"},
    "machine": "x86_64",
    "paranmt_hf": "0.1.0",
}


def changed(path, value):
    """The record with another value at a place such as `settings.data`; none where the value is `...`."""
    values = copy.deepcopy(VALUES)
    *parents, last = path.split(".")
    inner = values
    for name in parents:
        inner = inner[name]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return values


def test_the_file_comes_back_byte_for_byte(tmp_path):
    text = json.dumps(VALUES, indent=1)
    (tmp_path / "training.json").write_text(text)
    record = read_training(tmp_path)
    assert json.dumps(record.to_json(), indent=1) == text
    assert record.history == History([(1, 0.5), (2, 0.25)], [(2, 0.75)], 0.75, 2, 0, 120, 0.5)
    mean = TrainingRecord.from_json({**VALUES, "mean_of": [{"name": "a", "revision": "sha256:1"}]}, "f")
    assert mean.mean_of == [AveragedModel("a", "sha256:1")]
    assert list(mean.to_json()) == [*VALUES, "mean_of"]


def test_a_card_gets_no_course_of_the_loss():
    shown = TrainingRecord.from_json(VALUES, "f").for_card()
    assert shown == {**VALUES, "history": {"pairs": 120, "seconds": 0.5, "best_step": 2}}
    assert list(shown) == list(VALUES)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("settings", ..., "it has no 'settings'"),
        ("settings", 3, "expected an object under 'settings', found 3"),
        ("settings.encoder", ..., "it has no 'settings.encoder'"),
        ("settings.encoder.model", None, "expected text under 'settings.encoder.model', found None"),
        ("settings.encoder.unknown", "x", "one of drop, train, share under 'settings.encoder.unknown', found 'x'"),
        ("settings.training.seed", "x", "expected a whole number under 'settings.training.seed', found 'x'"),
        ("settings.training.batch_size", ..., "it has no 'settings.training.batch_size'"),
        ("settings.training.learning_rate", True, "a number under 'settings.training.learning_rate', found True"),
        ("settings.data.sources", {}, "expected a list under 'settings.data.sources', found {}"),
        ("settings.data.sources", [3], r"under 'settings.data.sources\[0\]', found 3"),
        ("settings.data.sources", [{"kind": "phrases", "files": [{}]}], r"under 'settings.data.sources\[0\]', found"),
        ("settings.data.ranges", {"a": [1]}, "expected a list of 2 under 'settings.data.ranges.a', found"),
        ("settings.data.unwanted_sentences", "1", "a whole number under 'settings.data.unwanted_sentences'"),
        ("history.seconds", ..., "it has no 'history.seconds'"),
        ("history.losses", [[1, "x"]], r"expected a number under 'history.losses\[0\]\[1\]', found 'x'"),
        ("pairs", 1.5, "expected a whole number under 'pairs', found 1.5"),
        ("development", ..., "it has no 'development'"),
        ("versions", {"torch": 2}, "expected text under 'versions.torch', found 2"),
    ],
)
def test_what_is_wrong_is_said(path, value, message):
    with pytest.raises(InputError, match=f"^f is damaged: .*{message}"):
        TrainingRecord.from_json(changed(path, value), "f")


@pytest.mark.parametrize(
    ("path", "value", "name"),
    [("settings.encoder.minimum", 2, "minimum"), ("inputs.start", "model", "start")],
)
def test_settings_of_another_version_are_not_left_out_of_a_card(path, value, name):
    with pytest.raises(InputError, match=f"^f names '{name}', which no encoder of this version has; use the version"):
        TrainingRecord.from_json(changed(path, value), "f")


def test_no_file(tmp_path):
    with pytest.raises(InputError, match="training.json: No such file or directory; expected the folder of an enc"):
        read_training(tmp_path)
