"""report_to: every trainer reports the losses and scores that its record has."""

import pytest
from transformers import TrainerCallback

from paranmt_hf import ParaphraserConfig, train, train_paraphraser
from paranmt_hf.training import reporting
from tests.paraphrase.paraphraser_toys import training
from tests.refused import refused
from tests.training.toys import small, synonyms, write_data

CALLS = []


class Service(TrainerCallback):
    """A reporting service that keeps what it gets."""

    def on_train_begin(self, args, state, control, model=None, **kwargs):
        CALLS.append(("begin", (args.num_train_epochs, args.learning_rate)))

    def on_log(self, args, state, control, logs=None, **kwargs):
        CALLS.append((state.global_step, dict(logs)))

    def on_train_end(self, args, state, control, **kwargs):
        CALLS.append(("end", None))


@pytest.fixture
def reported(monkeypatch):
    """Begin, the values by step, end."""
    CALLS.clear()
    monkeypatch.setattr(reporting, "get_reporting_integration_callbacks", lambda names: [Service for _ in names])
    return CALLS


@pytest.fixture
def data(tmp_path):
    return write_data(tmp_path / "pairs.parquet", synonyms(60))


@pytest.mark.parametrize("model", ["word", "lstm"])
def test_an_encoder_reports_what_its_record_has(tmp_path, data, reported, model):
    lines = [f"{n % 2}\t{a}\t{b}" for n, (a, b) in enumerate(zip(*synonyms(20, seed=3), strict=True))]
    (tmp_path / "dev.tsv").write_text("\n".join(lines) + "\n")
    settings = small(model, epochs=2, report_to="service")
    history = train(data, tmp_path / "out", development=tmp_path / "dev.tsv", **settings).record.history
    assert reported[0] == ("begin", (2, settings["config"].learning_rate)) and reported[-1] == ("end", None)
    values = reported[1:-1]
    assert [(step, found["loss"]) for step, found in values] == history.losses
    # Each score is reported once.
    assert [(step, found["development"]) for step, found in values if "development" in found] == history.scores
    assert values[-1][1] == {"loss": history.losses[-1][1], "development": history.scores[-1][1], "pairs": 120}


@pytest.mark.slow
def test_a_service_that_fails_later_does_not_end_the_training(tmp_path, data, reported, monkeypatch, caplog):
    def fail(self, *arguments, **options):
        raise OSError(28, "no space left")

    monkeypatch.setattr(Service, "on_log", fail)
    caplog.set_level("WARNING")
    assert train(data, tmp_path / "out", **small(report_to="service")).record.history.losses
    assert len([each for each in caplog.records if "no space left" in each.message]) == 1
    monkeypatch.setattr(Service, "on_train_begin", fail)
    with refused("report_to"):
        train(data, tmp_path / "other", **small(report_to="service"))


def test_a_paraphraser_reports_what_its_record_has(tmp_path, data, reported):
    config = ParaphraserConfig(pieces=330, embedding=8, hidden=8)
    options = training(report_to="service")
    course = train_paraphraser(data, tmp_path / "out", config=config, training=options).record.course
    values = reported[1:-1]
    assert [(step, found["loss"]) for step, found in values] == course.losses
    assert values[-1][1]["held-out perplexity"] == course.measured[-1].perplexity


def test_files_of_tensorboard_outlive_the_work_folder(tmp_path, monkeypatch):
    class Board(TrainerCallback):
        def __init__(self):
            self.logging_dir = None

    monkeypatch.setattr(reporting, "get_reporting_integration_callbacks", lambda names: [Board])
    (found,) = reporting.reporting_callbacks("tensorboard", tmp_path / "out.runs")
    assert found.logging_dir == str(tmp_path / "out.runs")


def test_an_unknown_service_is_refused_before_the_data_are_read(tmp_path):
    with refused("report_to"):
        train(tmp_path / "none.parquet", tmp_path / "out", **small(report_to="nowhere"))
