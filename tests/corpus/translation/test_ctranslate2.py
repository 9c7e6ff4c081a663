"""Translating with CTranslate2: the same hypotheses and scores as with transformers, and the converted models."""

import logging
import os
import threading
import time

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSeq2SeqLM, BartConfig, BartForConditionalGeneration

from paranmt_hf.corpus.translation import ctranslate2 as engine
from paranmt_hf.corpus.translation.checkpoint import Checkpoint
from paranmt_hf.corpus.translation.ctranslate2 import CTranslate2Translator
from paranmt_hf.corpus.translation.engines import load_translator, translator_identity
from paranmt_hf.corpus.translation.transformers import TransformersTranslator
from tests.corpus.translation.tiny_models import (
    FAMILIES,
    SENTENCES,
    change_configuration,
    check_scores,
    config,
    make_marian,
)
from tests.corpus.translation.tiny_models import load as load_any
from tests.refused import refused

pytest.importorskip("ctranslate2")


def load(folder, family="marian", **settings):
    return load_any(folder, family, **{"backend": "auto", **settings})


pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")


@pytest.fixture(scope="session")
def common_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def cache(common_cache, monkeypatch):
    """Keep converted models out of the user's cache."""
    monkeypatch.setenv("PARANMT_CACHE", str(common_cache))
    return common_cache / "ctranslate2"


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """An empty cache."""
    monkeypatch.setenv("PARANMT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ctranslate2"


def comparable(model, source, start, end, beam) -> bool:
    """Tell whether both engines must find the same.

    After a language token CTranslate2 takes an immediate end only as first choice; transformers also as a later one.
    No trained model has it among its first choices.
    """
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([start])).logits[0, -1]
    rank = int((logits > logits[end]).sum())
    return len(start) == 1 or rank == 0 or rank >= beam


@pytest.mark.parametrize("family", FAMILIES)
class TestAgreement:
    @pytest.mark.slow
    @pytest.mark.parametrize("beam", [1, 12])
    def test_both_engines_find_the_same(self, folders, family, beam):
        """Also where a hypothesis runs into the limit, and with a language token before it."""
        first, second = (
            load(folders / family, family, beam=beam, backend=backend) for backend in ("transformers", "ctranslate2")
        )
        start, end = first._checkpoint.start, first._checkpoint.end
        pieces = [
            source
            for source in first._checkpoint.encode(SENTENCES)
            if comparable(first._model, source, start, end, beam)
        ]
        assert len(pieces) > len(SENTENCES) / 3
        expected, scores = first.search(pieces)
        hypotheses, values = second.search(pieces)
        assert hypotheses == expected
        assert values == pytest.approx(scores, abs=1e-5)
        assert len({tuple(ids) for ids in hypotheses}) > 5
        assert {ids[-1] == end for ids in hypotheses} == {True, False}

    @pytest.mark.slow
    def test_scores_are_those_of_a_forward_pass(self, folders, family):
        check_scores(load(folders / family, family, backend="ctranslate2"), folders / family)

    @pytest.mark.slow
    def test_company_in_the_batch_and_workers_change_nothing(self, folders, family):
        together = load(folders / family, family, backend="ctranslate2").translate(SENTENCES)
        for settings in ({"batch_tokens": 1}, {"batch_tokens": 30, "threads": 3}):
            other = load(folders / family, family, backend="ctranslate2", **settings).translate(SENTENCES)
            assert other.texts == together.texts
            assert np.allclose(other.scores, together.scores, atol=1e-4)


def test_texts_and_gaps_agree(folders):
    sentences = [*SENTENCES, "", "strom " * 40, SENTENCES[0], "</s> 漢字 <unk>"]
    first, second = (
        load(folders / "marian", backend=backend, max_source_tokens=20).translate(sentences)
        for backend in ("transformers", "ctranslate2")
    )
    assert first.texts == second.texts
    assert None in first.texts
    assert np.allclose(first.scores, second.scores, atol=1e-5, equal_nan=True)


class TestChoice:
    def test_auto_takes_ctranslate2_on_a_cpu(self, folders):
        settings = config(folders / "marian")
        translator = load_translator(settings, 1)
        assert isinstance(translator, CTranslate2Translator)
        assert translator_identity(settings) == translator.identity
        assert translator.identity["backend"] == "ctranslate2"
        assert translator.identity["dtype"] == "float32"

    def test_auto_without_the_package(self, folders, without):
        without("ctranslate2")
        settings = config(folders / "marian")
        assert isinstance(load_translator(settings, 1), TransformersTranslator)
        assert translator_identity(settings)["backend"] == "transformers"

    def test_the_missing_package_is_named(self, folders, without):
        without("ctranslate2")
        with refused():
            load(folders / "marian", backend="ctranslate2")

    def test_auto_goes_round_what_ctranslate2_cannot(self, folders, caplog):
        caplog.set_level(logging.INFO)
        settings = config(folders / "marian", dtype="bfloat16")
        assert isinstance(load_translator(settings, 1), TransformersTranslator)
        assert "dtype 'bfloat16'" in caplog.text
        with refused():
            load(folders / "marian", dtype="bfloat16", backend="ctranslate2")

    def test_int8_means_ctranslate2(self, folders):
        settings = config(folders / "marian", dtype="int8")
        translator = load_translator(settings, 1)
        assert isinstance(translator, CTranslate2Translator)
        assert translator_identity(settings) == translator.identity
        assert translator.identity["dtype"] == "int8"
        assert np.isfinite(translator.translate(SENTENCES[:3]).scores).all()


class TestRefusals:
    def test_another_architecture(self, marian):
        sizes = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 80}
        BartForConditionalGeneration(
            BartConfig(**sizes, encoder_attention_heads=1, decoder_attention_heads=1)
        ).save_pretrained(marian)
        with refused():
            load(marian, backend="ctranslate2")
        assert translator_identity(config(marian))["backend"] == "transformers"

    def test_padding_that_is_not_last(self, tmp_path):
        """The converter would cut off another symbol."""
        make_marian(tmp_path, pad_last=False)
        with refused():
            load(tmp_path, backend="ctranslate2")
        assert isinstance(load(tmp_path), TransformersTranslator)

    def test_two_vocabularies(self, marian):
        change_configuration(marian, share_encoder_decoder_embeddings=False)
        with refused():
            load(marian, backend="ctranslate2")

    def test_a_trained_start_symbol(self, marian):
        """The converter would start from zeros."""
        weights = load_file(marian / "model.safetensors")
        weights["model.shared.weight"][-1] = 0.5
        save_file(weights, marian / "model.safetensors", {"format": "pt"})
        with refused():
            load(marian, backend="ctranslate2")

    def test_a_damaged_converted_model(self, folders, own_cache):
        load(folders / "marian")
        (made,) = own_cache.iterdir()
        (made / "model.bin").write_bytes(b"")
        with refused():
            load(folders / "marian")


class TestConversion:
    def test_once(self, folders, own_cache):
        before = load(folders / "marian").translate(SENTENCES[:3])
        (made,) = own_cache.iterdir()
        made_at = (made / "model.bin").stat().st_mtime_ns
        assert load(folders / "marian", beam=12, threads=2).translate(SENTENCES[:3]).texts == before.texts
        assert list(own_cache.iterdir()) == [made] and (made / "model.bin").stat().st_mtime_ns == made_at

    def test_a_changed_model_is_converted_anew(self, marian, own_cache):
        load(marian)
        make_marian(marian, seed=8)
        load(marian)
        assert len(list(own_cache.iterdir())) == 2

    @pytest.mark.slow
    def test_a_float16_folder_is_stored_in_float32(self, marian, own_cache):
        AutoModelForSeq2SeqLM.from_pretrained(marian).half().save_pretrained(marian)
        first, second = (
            load(marian, backend=backend).translate(SENTENCES) for backend in ("transformers", "ctranslate2")
        )
        assert first.texts == second.texts
        assert np.allclose(first.scores, second.scores, atol=1e-5)

    def test_two_at_once(self, folders, own_cache, monkeypatch):
        """The second one waits, and takes what the first one made."""
        original, conversions = engine._convert, []

        def convert(checkpoint, target):
            conversions.append(target)
            time.sleep(0.1)
            original(checkpoint, target)

        monkeypatch.setattr(engine, "_convert", convert)
        checkpoints = [Checkpoint(config(folders / "marian")) for _ in range(2)]
        made = []
        threads = [
            threading.Thread(target=lambda point=point: made.append(engine.converted(point))) for point in checkpoints
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 2
        assert made[0] == made[1]
        assert len(conversions) == 1
        assert list(own_cache.iterdir()) == [made[0]]
        assert (made[0] / "model.bin").is_file()

    def test_what_a_kill_left_goes_with_the_next_conversion(self, folders, own_cache):
        load(folders / "marian")
        (made,) = own_cache.iterdir()
        left = made.rename(own_cache / f".{made.name}.{os.getpid()}-0.tmp")
        (left / "stale").touch()
        load(folders / "marian")
        assert list(own_cache.iterdir()) == [made]
        assert not (made / "stale").exists()

    def test_an_interrupted_conversion_leaves_nothing(self, folders, own_cache, monkeypatch):
        def fail(checkpoint, target):
            (target / "model.bin").write_bytes(b"half")
            raise KeyboardInterrupt

        monkeypatch.setattr(engine, "_convert", fail)
        with pytest.raises(KeyboardInterrupt):
            load(folders / "marian")
        assert list(own_cache.iterdir()) == []

    def test_a_cache_that_cannot_be_made(self, folders, tmp_path, monkeypatch):
        (tmp_path / "file").touch()
        monkeypatch.setenv("PARANMT_CACHE", str(tmp_path / "file"))
        with refused():
            load(folders / "marian")


@pytest.mark.slow
def test_the_engines_agree_on_real_captions(captions):
    folder, lines = captions
    first, second = (
        load(folder, backend=backend, max_target_tokens=256).translate(lines)
        for backend in ("transformers", "ctranslate2")
    )
    assert len(first.texts) == 1000
    equal = np.array([one == other for one, other in zip(first.texts, second.texts, strict=True)])
    assert equal.mean() >= 0.98
    assert np.abs(first.scores - second.scores)[equal].max() < 1e-3
