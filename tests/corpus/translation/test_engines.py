"""Which engine is chosen, and what it says of itself."""

import logging

import numpy as np
import pytest

from paranmt_hf.corpus.translation import device
from paranmt_hf.corpus.translation.ctranslate2 import CTranslate2Translator, UnsupportedError
from paranmt_hf.corpus.translation.engines import load_translator, translator_identity
from paranmt_hf.corpus.translation.transformers import TransformersTranslator
from paranmt_hf.corpus.translation.translator import TranslatorConfig
from paranmt_hf.errors import InputError
from paranmt_hf.util import optional
from tests.corpus.translation.tiny_models import SENTENCES

pytest.importorskip("ctranslate2")

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")


@pytest.fixture(scope="session")
def common_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def cache(common_cache, monkeypatch):
    """Keep converted models out of the user's cache."""
    monkeypatch.setenv("PARANMT_CACHE", str(common_cache))


def config(folder, **settings) -> TranslatorConfig:
    return TranslatorConfig(str(folder), max_target_tokens=12, device="cpu", **settings)


def load(folder, **settings):
    return load_translator(config(folder, **settings), threads=1)


class TestChoice:
    def test_auto_takes_ctranslate2_on_a_cpu(self, folders):
        settings = config(folders / "marian")
        translator = load_translator(settings)
        assert isinstance(translator, CTranslate2Translator)
        assert translator_identity(settings) == translator.identity
        assert translator.identity["backend"] == "ctranslate2"
        assert translator.identity["dtype"] == "float32"

    def test_auto_without_the_package(self, folders, monkeypatch):
        monkeypatch.setattr(device, "available", lambda package: False)
        settings = config(folders / "marian")
        assert isinstance(load_translator(settings), TransformersTranslator)
        assert translator_identity(settings)["backend"] == "transformers"

    def test_the_missing_package_is_named(self, folders, monkeypatch):
        monkeypatch.setattr(optional, "available", lambda package: False)
        with pytest.raises(InputError, match=r"pip install 'paranmt-hf\[ctranslate2\]'"):
            load(folders / "marian", backend="ctranslate2")

    def test_auto_goes_round_what_ctranslate2_cannot(self, folders, caplog):
        caplog.set_level(logging.INFO)
        settings = config(folders / "marian", dtype="bfloat16")
        assert isinstance(load_translator(settings), TransformersTranslator)
        assert "dtype 'bfloat16'" in caplog.text
        with pytest.raises(UnsupportedError, match="dtype 'bfloat16' is not one that CTranslate2 can use on this cpu"):
            load(folders / "marian", dtype="bfloat16", backend="ctranslate2")

    def test_int8_means_ctranslate2(self, folders):
        settings = config(folders / "marian", dtype="int8")
        translator = load_translator(settings)
        assert isinstance(translator, CTranslate2Translator)
        assert translator_identity(settings) == translator.identity
        assert translator.identity["dtype"] == "int8"
        assert np.isfinite(translator.translate(SENTENCES[:3]).scores).all()

    def test_the_engines_have_different_identities(self, folders):
        first, second = (
            translator_identity(config(folders / "marian", backend=backend))
            for backend in ("transformers", "ctranslate2")
        )
        assert {key for key in first if first[key] != second[key]} == {"backend"}
