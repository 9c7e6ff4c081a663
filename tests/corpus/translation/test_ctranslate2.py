"""Translating with CTranslate2: the same hypotheses and scores as with transformers, and the converted models."""

import json
import logging
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSeq2SeqLM, BartConfig, BartForConditionalGeneration

from paranmt_hf.corpus.translation import ctranslate2 as ctranslate
from paranmt_hf.corpus.translation.ctranslate2 import CTranslate2Translator, UnsupportedError
from paranmt_hf.corpus.translation.transformers import Checkpoint, MarianTranslator
from paranmt_hf.corpus.translation.translator import TranslatorConfig
from paranmt_hf.errors import InputError
from paranmt_hf.util import optional
from tests.corpus.translation.tiny_models import FAMILIES, SENTENCES, forward_score, make_marian

pytest.importorskip("ctranslate2")

LIMIT = 12
pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """One folder of each family."""
    root = tmp_path_factory.mktemp("models")
    for name, (make, _) in FAMILIES.items():
        make(root / name)
    return root


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


@pytest.fixture
def marian(folders, tmp_path):
    """A copy of the Marian folder that a test may spoil."""
    return Path(shutil.copytree(folders / "marian", tmp_path / "marian"))


@pytest.fixture
def captions(shared_data):
    """A trained captions model and 1,000 Czech captions."""
    folder, text = shared_data.parent / "models" / "tiny-cs-en", shared_data / "bitext/multi30k/test_2016_flickr.cs"
    if not folder.is_dir() or not text.is_file():
        pytest.skip("needs the captions model and Multi30k, which are not in the repository")
    return str(folder), text.read_text(encoding="utf8").splitlines()


def config(folder, family="marian", **settings) -> TranslatorConfig:
    settings = {"max_target_tokens": LIMIT, "device": "cpu", "threads": 1, **FAMILIES[family][1], **settings}
    return TranslatorConfig(str(folder), **settings)


def change(folder, **values):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


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
    @pytest.mark.parametrize("beam", [1, 4, 12])
    def test_both_engines_find_the_same(self, folders, family, beam):
        """Also where a hypothesis runs into the limit, and with a language token before it."""
        first, second = (
            config(folders / family, family, beam=beam, backend=backend).load()
            for backend in ("transformers", "ctranslate2")
        )
        start, end = first._checkpoint.start, first._checkpoint.end
        pieces = [
            source for source in first._codec.encode(SENTENCES) if comparable(first._model, source, start, end, beam)
        ]
        assert len(pieces) > len(SENTENCES) / 3
        expected, scores = first.search(pieces)
        hypotheses, values = second.search(pieces)
        assert hypotheses == expected
        assert values == pytest.approx(scores, abs=1e-5)
        assert len({tuple(ids) for ids in hypotheses}) > 5
        assert {ids[-1] == end for ids in hypotheses} == {True, False}

    def test_scores_are_those_of_a_forward_pass(self, folders, family):
        translator = config(folders / family, family, backend="ctranslate2").load()
        pieces = translator._codec.encode(SENTENCES)
        hypotheses, scores = translator.search(pieces)
        start = translator._checkpoint.start
        model = AutoModelForSeq2SeqLM.from_pretrained(folders / family, dtype=torch.float32)
        expected = [forward_score(model, *row) for row in zip(pieces, [start] * 99, hypotheses, strict=False)]
        assert scores == pytest.approx(expected, abs=1e-5)

    def test_company_in_the_batch_and_workers_change_nothing(self, folders, family):
        together = config(folders / family, family, backend="ctranslate2").load().translate(SENTENCES)
        for settings in ({"batch_tokens": 1}, {"batch_tokens": 30, "threads": 3}):
            other = config(folders / family, family, backend="ctranslate2", **settings).load().translate(SENTENCES)
            assert other.texts == together.texts
            assert np.allclose(other.scores, together.scores, atol=1e-4)


def test_texts_and_gaps_agree(folders):
    sentences = [*SENTENCES, "", "strom " * 40, SENTENCES[0], "</s> 漢字 <unk>"]
    first, second = (
        config(folders / "marian", backend=backend, max_source_tokens=20).load().translate(sentences)
        for backend in ("transformers", "ctranslate2")
    )
    assert first.texts == second.texts
    assert None in first.texts
    assert np.allclose(first.scores, second.scores, atol=1e-5, equal_nan=True)


class TestChoice:
    def test_auto_takes_ctranslate2_on_a_cpu(self, folders):
        settings = config(folders / "marian")
        translator = settings.load()
        assert isinstance(translator, CTranslate2Translator)
        assert settings.identity == translator.identity
        assert translator.identity["backend"] == "ctranslate2"
        assert translator.identity["dtype"] == "float32"

    def test_auto_without_the_package(self, folders, monkeypatch):
        monkeypatch.setattr(ctranslate, "available", lambda package: False)
        settings = config(folders / "marian")
        assert isinstance(settings.load(), MarianTranslator)
        assert settings.identity["backend"] == "transformers"

    def test_the_missing_package_is_named(self, folders, monkeypatch):
        monkeypatch.setattr(optional, "available", lambda package: False)
        with pytest.raises(InputError, match=r"pip install 'paranmt-hf\[ctranslate2\]'"):
            config(folders / "marian", backend="ctranslate2").load()

    def test_auto_goes_round_what_ctranslate2_cannot(self, folders, caplog):
        caplog.set_level(logging.INFO)
        settings = config(folders / "marian", dtype="bfloat16")
        assert isinstance(settings.load(), MarianTranslator)
        assert "dtype 'bfloat16'" in caplog.text
        with pytest.raises(UnsupportedError, match="dtype 'bfloat16' is not one that CTranslate2 can use on this cpu"):
            config(folders / "marian", dtype="bfloat16", backend="ctranslate2").load()

    def test_int8_means_ctranslate2(self, folders):
        settings = config(folders / "marian", dtype="int8")
        translator = settings.load()
        assert isinstance(translator, CTranslate2Translator)
        assert settings.identity == translator.identity
        assert translator.identity["dtype"] == "int8"
        assert np.isfinite(translator.translate(SENTENCES[:3]).scores).all()

    def test_the_engines_have_different_identities(self, folders):
        first, second = (
            config(folders / "marian", backend=backend).identity for backend in ("transformers", "ctranslate2")
        )
        assert {key for key in first if first[key] != second[key]} == {"backend"}


class TestRefusals:
    def test_another_architecture(self, marian):
        sizes = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 80}
        BartForConditionalGeneration(
            BartConfig(**sizes, encoder_attention_heads=1, decoder_attention_heads=1)
        ).save_pretrained(marian)
        with pytest.raises(UnsupportedError, match="takes marian and m2m_100 models, and 'marian' is a bart model"):
            config(marian, backend="ctranslate2").load()
        assert config(marian).identity["backend"] == "transformers"

    def test_padding_that_is_not_last(self, tmp_path):
        """The converter would cut off another symbol."""
        make_marian(tmp_path, pad_last=False)
        with pytest.raises(UnsupportedError, match="padding symbol last"):
            config(tmp_path, backend="ctranslate2").load()
        assert isinstance(config(tmp_path).load(), MarianTranslator)

    def test_two_vocabularies(self, marian):
        change(marian, share_encoder_decoder_embeddings=False)
        with pytest.raises(UnsupportedError, match="one vocabulary for both sides"):
            config(marian, backend="ctranslate2").load()

    def test_a_trained_start_symbol(self, marian):
        """The converter would start from zeros."""
        weights = load_file(marian / "model.safetensors")
        weights["model.shared.weight"][-1] = 0.5
        save_file(weights, marian / "model.safetensors", {"format": "pt"})
        with pytest.raises(InputError, match="from a trained start symbol; use backend transformers"):
            config(marian, backend="ctranslate2").load()

    def test_pickled_weights(self, marian):
        torch.save(load_file(marian / "model.safetensors"), marian / "pytorch_model.bin")
        (marian / "model.safetensors").unlink()
        with pytest.raises(InputError, match="pytorch_model.bin"):
            config(marian, backend="ctranslate2").load()

    def test_a_damaged_converted_model(self, folders, own_cache):
        config(folders / "marian").load()
        (made,) = own_cache.iterdir()
        (made / "model.bin").write_bytes(b"")
        with pytest.raises(InputError, match=f"cannot open the converted model '{made}'"):
            config(folders / "marian").load()


class TestConversion:
    def test_once(self, folders, own_cache, monkeypatch):
        before = config(folders / "marian").load().translate(SENTENCES[:3])
        monkeypatch.setattr(ctranslate, "_convert", lambda *_: pytest.fail("converted again"))
        assert config(folders / "marian", beam=12, threads=2).load().translate(SENTENCES[:3]).texts == before.texts
        assert len(list(own_cache.iterdir())) == 1

    def test_a_changed_model_is_converted_anew(self, marian, own_cache):
        config(marian).load()
        make_marian(marian, seed=8)
        config(marian).load()
        assert len(list(own_cache.iterdir())) == 2

    def test_a_float16_folder_is_stored_in_float32(self, marian, own_cache):
        AutoModelForSeq2SeqLM.from_pretrained(marian).half().save_pretrained(marian)
        first, second = (
            config(marian, backend=backend).load().translate(SENTENCES) for backend in ("transformers", "ctranslate2")
        )
        assert first.texts == second.texts
        assert np.allclose(first.scores, second.scores, atol=1e-5)

    def test_two_at_once(self, folders, own_cache, monkeypatch):
        """Both convert, one copy stays, nothing is left over."""
        both, convert, one = threading.Barrier(2, timeout=30), ctranslate._convert, threading.Lock()

        def convert_together(*arguments):
            with one:  # transformers cannot load two models in two threads
                convert(*arguments)
            both.wait()

        monkeypatch.setattr(ctranslate, "_convert", convert_together)
        checkpoints = [Checkpoint(config(folders / "marian")) for _ in range(2)]
        made = []
        threads = [
            threading.Thread(target=lambda point=point: made.append(ctranslate.converted(point)))
            for point in checkpoints
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 2
        assert made[0] == made[1]
        assert list(own_cache.iterdir()) == [made[0]]
        assert (made[0] / "model.bin").is_file()

    def test_an_interrupted_conversion_leaves_nothing(self, folders, own_cache, monkeypatch):
        def fail(checkpoint, target):
            target.mkdir()
            (target / "model.bin").write_bytes(b"half")
            raise KeyboardInterrupt

        monkeypatch.setattr(ctranslate, "_convert", fail)
        with pytest.raises(KeyboardInterrupt):
            config(folders / "marian").load()
        assert list(own_cache.iterdir()) == []

    def test_a_cache_that_cannot_be_made(self, folders, tmp_path, monkeypatch):
        (tmp_path / "file").touch()
        monkeypatch.setenv("PARANMT_CACHE", str(tmp_path / "file"))
        with pytest.raises(InputError, match="name one in PARANMT_CACHE"):
            config(folders / "marian").load()


def agreement(captions, count) -> tuple[float, float]:
    """Share of equal hypotheses of the two engines, and the largest difference of their scores."""
    folder, lines = captions
    first, second = (
        config(folder, backend=backend, max_target_tokens=256).load().translate(lines[:count])
        for backend in ("transformers", "ctranslate2")
    )
    assert len(first.texts) == count
    equal = np.array([one == other for one, other in zip(first.texts, second.texts, strict=True)])
    return equal.mean(), np.abs(first.scores - second.scores)[equal].max()


def test_the_engines_agree_on_real_captions(captions):
    equal, difference = agreement(captions, 100)
    assert equal >= 0.98
    assert difference < 1e-3


@pytest.mark.slow
def test_the_engines_agree_on_a_thousand_real_captions(captions):
    equal, difference = agreement(captions, 1000)
    assert equal >= 0.98
    assert difference < 1e-3
