"""The stages: what determines their output, and what does not."""

import pickle

import pyarrow as pa
import pytest

from paranmt_hf.corpus.jobs.stages import TranslateStage
from paranmt_hf.corpus.translation import engines, transformers
from paranmt_hf.corpus.translation.translator import TranslatorConfig
from paranmt_hf.errors import InputError


@pytest.fixture
def read(monkeypatch):
    """Counts how often the model is read and hashed."""
    count = []
    real = transformers.locate

    def locate(*arguments, **options):
        count.append(1)
        return real(*arguments, **options)

    monkeypatch.setattr(transformers, "locate", locate)
    return count


def test_the_model_is_hashed_once_for_the_identity_and_once_to_load(read):
    stage = TranslateStage(TranslatorConfig("embedded", backend="transformers"), threads=1)
    for _ in range(3):
        assert stage.identity["translator"]["model"] == "captions-cs-en"
    assert len(read) == 1
    # A worker gets the identity with the stage.
    sent = pickle.loads(pickle.dumps(stage))
    work = sent.load()
    assert len(read) == 2
    table = pa.table({"id": [0], "source": ["Muž hraje na kytaru."], "reference": ["A man plays the guitar."]})
    translated, dropped = work(table, lambda rows: None)
    assert translated["translation"].to_pylist() == ["A man is playing a guitar."]
    assert dropped == {}


def test_threads_reach_the_engine(monkeypatch):
    given = []

    def load(config, threads):
        given.append(threads)
        raise InputError("enough")

    monkeypatch.setattr(engines, "load_translator", load)
    with pytest.raises(InputError, match="enough"):
        TranslateStage(TranslatorConfig("embedded"), threads=5).load()
    assert given == [5]


def test_a_worker_that_would_translate_otherwise_is_refused(monkeypatch):
    stage = TranslateStage(TranslatorConfig("embedded", backend="transformers"))
    monkeypatch.setattr(engines, "translator_identity", lambda config: {"model": "captions-cs-en", "dtype": "float16"})
    with pytest.raises(
        InputError, match="this worker would not translate like the manifest says .*dtype: was 'float16'"
    ):
        stage.load()
