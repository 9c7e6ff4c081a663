"""Backend and number format that nobody chose follow earlier work of the same model."""

import sys
from dataclasses import replace

import pytest

from paranmt_hf import TranslatorConfig
from paranmt_hf.corpus.translation.engines import follow_record, translator_identity

CARRIED = TranslatorConfig("captions-cs-en", beam=2, device="cpu")


def test_an_engine_that_was_installed_since_changes_nothing(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "ctranslate2", None)
        before = translator_identity(CARRIED)
    assert before["backend"] == "transformers"
    followed = follow_record(CARRIED, before)
    assert translator_identity(followed) == before
    # As made on a GPU.
    on_gpu = {**before, "dtype": "float16"}
    assert translator_identity(follow_record(CARRIED, on_gpu)) == on_gpu


@pytest.mark.parametrize("change", [{"beam": 3}, {"backend": "transformers", "dtype": "float32"}])
def test_what_somebody_chose_stays(change):
    recorded = {**translator_identity(CARRIED), "backend": "ctranslate2", "dtype": "float16"}
    config = replace(CARRIED, **change)
    assert follow_record(config, recorded) == config
    assert follow_record(CARRIED, None) == CARRIED
