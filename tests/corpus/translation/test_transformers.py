"""Translating with transformers: scores, search, limits, languages, and folders that must be refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, BertConfig, BertModel, GenerationConfig

from paranmt_hf.corpus.translation.transformers import Checkpoint, MarianTranslator
from paranmt_hf.corpus.translation.translator import TranslatorConfig
from paranmt_hf.errors import InputError
from tests.corpus.translation.tiny_models import FAMILIES, SENTENCES, forward_score, make_marian

LIMIT = 12
pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """One folder of each family."""
    root = tmp_path_factory.mktemp("models")
    for name, (make, _) in FAMILIES.items():
        make(root / name)
    return root


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


def load(folder, family="marian", **settings) -> MarianTranslator:
    settings = {"max_target_tokens": LIMIT, **FAMILIES[family][1], **settings}
    translator = TranslatorConfig(str(folder), backend="transformers", device="cpu", **settings).load()
    assert isinstance(translator, MarianTranslator)
    return translator


def search(translator, sentences=SENTENCES):
    """Pieces, hypotheses and scores of sentences, translated as one batch."""
    pieces = translator._codec.encode(sentences)
    return pieces, *translator.search(pieces)


def generated(model, pieces, *, start, end, pad, beam, longest) -> list[list[int]]:
    """What the `generate` of transformers finds, one sentence at a time, without start and filling."""
    config = GenerationConfig(
        num_beams=beam,
        early_stopping=True,
        length_penalty=1.0,
        max_new_tokens=longest + len(start) - 1,
        decoder_start_token_id=start[0],
        forced_bos_token_id=start[1] if len(start) > 1 else None,
        eos_token_id=end,
        pad_token_id=pad,
    )
    model.generation_config = config
    found = []
    for source in pieces:
        ids = model.generate(input_ids=torch.tensor([source]))[0].tolist()[len(start) :]
        found.append(ids[: ids.index(end) + 1] if end in ids else ids)
    return found


@pytest.mark.parametrize("family", FAMILIES)
class TestSearch:
    def test_scores_are_those_of_a_forward_pass(self, folders, family):
        """Sum over the target's tokens, end token included, by their number; the language token in neither."""
        translator = load(folders / family, family)
        pieces, hypotheses, scores = search(translator)
        start, end = translator._checkpoint.start, translator._checkpoint.end
        assert len(start) == (1 if family == "marian" else 2)
        model = AutoModelForSeq2SeqLM.from_pretrained(folders / family, dtype=torch.float32)
        expected = [forward_score(model, *row) for row in zip(pieces, [start] * 99, hypotheses, strict=False)]
        assert scores == pytest.approx(expected, abs=1e-5)
        assert len({tuple(ids) for ids in hypotheses}) > 5
        ended = [ids[-1] == end for ids in hypotheses]
        assert any(ended)
        assert not all(ended)
        assert all(len(ids) == LIMIT for ids, done in zip(hypotheses, ended, strict=True) if not done)

    @pytest.mark.parametrize("beam", [1, 3, 12])
    def test_the_hypotheses_are_those_of_generate(self, folders, family, beam):
        translator = load(folders / family, family, beam=beam)
        pieces, hypotheses, _ = search(translator, SENTENCES[::3])
        point = translator._checkpoint
        model = AutoModelForSeq2SeqLM.from_pretrained(folders / family, dtype=torch.float32)
        expected = generated(model, pieces, start=point.start, end=point.end, pad=point.pad, beam=beam, longest=LIMIT)
        assert hypotheses == expected

    def test_company_in_the_batch_changes_nothing(self, folders, family):
        together = load(folders / family, family).translate(SENTENCES)
        small = load(folders / family, family, batch_tokens=20).translate(SENTENCES)
        alone = [load(folders / family, family).translate([text]) for text in SENTENCES[:8]]
        assert small.texts == together.texts
        assert np.allclose(small.scores, together.scores, atol=1e-4)
        assert [result.texts[0] for result in alone] == together.texts[:8]
        assert np.allclose([result.scores[0] for result in alone], together.scores[:8], atol=1e-4)

    def test_identity_survives_json_and_comes_without_loading(self, folders, family):
        translator = load(folders / family, family)
        config = TranslatorConfig(
            str(folders / family), backend="transformers", device="cpu", max_target_tokens=LIMIT, **FAMILIES[family][1]
        )
        assert config.identity == translator.identity
        assert json.loads(json.dumps(config.identity)) == config.identity
        assert config.identity["target_language"] == FAMILIES[family][1].get("target_language")


class TestLimits:
    def test_too_long_a_source_has_no_translation(self, folders):
        translator = load(folders / "marian", max_source_tokens=6)
        lengths = [len(ids) for ids in translator._codec.encode(SENTENCES)]
        assert min(lengths) <= 6 < max(lengths)
        result = translator.translate(SENTENCES)
        assert [text is None for text in result.texts] == [length > 6 for length in lengths]
        assert np.isnan(result.scores).tolist() == [length > 6 for length in lengths]

    def test_the_models_positions_are_the_most(self, folders):
        identity = load(folders / "marian", max_target_tokens=9999).identity
        assert (identity["max_source_tokens"], identity["max_target_tokens"]) == (64, 64)
        # The language token takes one position.
        assert load(folders / "nllb", "nllb", max_target_tokens=9999).identity["max_target_tokens"] == 63

    def test_targets_up_to_the_last_position(self, marian):
        weights = load_file(marian / "model.safetensors")
        weights["final_logits_bias"][0, 0] = -1e4  # never ends
        save_file(weights, marian / "model.safetensors", {"format": "pt"})
        _, hypotheses, scores = search(load(marian, max_target_tokens=9999), SENTENCES[:4])
        assert set(map(len, hypotheses)) == {64}
        assert np.isfinite(scores).all()


class TestCheckpoint:
    def test_generation_settings_of_the_checkpoint_have_no_say(self, marian):
        before = load(marian).translate(SENTENCES)
        extras = {"num_beams": 1, "max_length": 3, "no_repeat_ngram_size": 1, "repetition_penalty": 9.0}
        for name in ("config.json", "generation_config.json"):
            values = json.loads((marian / name).read_text()) | extras
            (marian / name).write_text(json.dumps(values))
        after = load(marian).translate(SENTENCES)
        assert after.texts == before.texts
        assert np.array_equal(after.scores, before.scores)

    @pytest.mark.parametrize("bias", [0.0, 5.0])
    def test_the_bias_of_the_padding_symbol_does_not_matter(self, marian, bias):
        before = load(marian).translate(SENTENCES)
        weights = load_file(marian / "model.safetensors")
        weights["final_logits_bias"][0, -1] = bias
        save_file(weights, marian / "model.safetensors", {"format": "pt"})
        after = load(marian).translate(SENTENCES)
        assert after.texts == before.texts
        assert np.allclose(after.scores, before.scores, atol=1e-6)

    def test_a_float16_folder_runs_in_float32(self, marian):
        AutoModelForSeq2SeqLM.from_pretrained(marian).half().save_pretrained(marian)
        assert json.loads((marian / "config.json").read_text())["dtype"] == "float16"
        translator = load(marian)
        assert {weight.dtype for weight in translator._model.parameters()} == {torch.float32}
        assert translator.identity["dtype"] == "float32"
        pieces, hypotheses, scores = search(translator)
        start = translator._checkpoint.start
        model = AutoModelForSeq2SeqLM.from_pretrained(marian, dtype=torch.float32)
        expected = [forward_score(model, *row) for row in zip(pieces, [start] * 99, hypotheses, strict=False)]
        assert scores == pytest.approx(expected, abs=1e-5)

    def test_bfloat16_on_request(self, folders):
        translator = load(folders / "marian", dtype="bfloat16")
        assert {weight.dtype for weight in translator._model.parameters()} == {torch.bfloat16}
        assert np.isfinite(translator.translate(SENTENCES[:3]).scores).all()

    def test_the_revision_is_the_content(self, folders, marian):
        first, second = load(folders / "marian").identity, load(marian).identity
        assert first == second
        make_marian(marian, seed=9)
        assert load(marian).identity["revision"] != first["revision"]

    def test_silence(self, folders, capfd, recwarn):
        load(folders / "marian").translate([*SENTENCES[:2], "strom " * 700])
        assert capfd.readouterr() == ("", "")
        assert not [str(item.message) for item in recwarn if "sacremoses" in str(item.message)]


class TestText:
    def test_symbols_in_the_text_are_text(self, folders):
        codec = load(folders / "marian")._codec
        for text in ("Muž </s> vidí", "<pad> dům", ">>Ne!<< strom"):
            inner = codec.encode([text])[0][:-1]
            assert 0 not in inner
            assert codec.pad not in inner
            assert len(inner) > 3

    def test_a_quotation_at_the_start_is_no_language_code(self, tmp_path):
        make_marian(tmp_path, codes=("fra",))
        codec = Checkpoint(TranslatorConfig(str(tmp_path)))
        code = codec.tokenizer.get_vocab()[">>fra<<"]
        assert code not in codec.encode([">>fra<< strom"])[0]


class TestLanguages:
    def test_marian_takes_a_code_before_the_text(self, tmp_path):
        make_marian(tmp_path, codes=("fra", "ita"))
        codec = Checkpoint(TranslatorConfig(str(tmp_path), target_language="ita"))
        assert codec.tokenizer.convert_ids_to_tokens(codec.encode(["dům", ">>fra<<"])[0][:2]) == [">>ita<<", "▁dům"]
        assert codec.start == [codec.pad]

    def test_a_code_that_marian_lacks(self, tmp_path):
        make_marian(tmp_path, codes=("fra", "ita"))
        with pytest.raises(InputError, match=r"\(fra, ita\); got 'deu'"):
            Checkpoint(TranslatorConfig(str(tmp_path), target_language="deu"))
        with pytest.raises(InputError, match="source_language has no use with a Marian model; got 'ces'"):
            Checkpoint(TranslatorConfig(str(tmp_path), source_language="ces"))

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({}, "needs source_language to be one of its 202 codes, such as ace_Arab.*got None"),
            ({"source_language": "ces_Latn"}, "needs target_language .*got None"),
            ({"source_language": "cs", "target_language": "eng_Latn"}, "source_language .*got 'cs'"),
        ],
    )
    def test_nllb_wants_both(self, folders, settings, message):
        with pytest.raises(InputError, match=message):
            Checkpoint(TranslatorConfig(str(folders / "nllb"), **settings))

    @pytest.mark.parametrize(("family", "code"), [("m2m100", "__cs__"), ("nllb", "ces_Latn")])
    def test_the_source_begins_with_its_language(self, folders, family, code):
        codec = load(folders / family, family)._codec
        ids = codec.encode(["Muž vidí dům."])[0]
        assert codec.tokenizer.convert_ids_to_tokens(ids)[0] == code
        assert ids[-1] == codec.end

    def test_the_target_language_steers_the_search(self, folders):
        english = search(load(folders / "nllb", "nllb"))[1]
        german = search(load(folders / "nllb", "nllb", target_language="deu_Latn"))[1]
        assert english != german


class TestRefusals:
    def refused(self, folder, message):
        with pytest.raises(InputError, match=message) as caught:
            load(folder)
        assert "\n" not in str(caught.value)

    def test_pickled_weights(self, marian):
        weights = load_file(marian / "model.safetensors")
        torch.save(weights, marian / "pytorch_model.bin")
        (marian / "model.safetensors").unlink()
        self.refused(marian, "pytorch_model.bin.*save_pretrained")

    def test_a_truncated_file(self, marian):
        whole = (marian / "model.safetensors").read_bytes()
        (marian / "model.safetensors").write_bytes(whole[: len(whole) // 2])
        self.refused(marian, "cannot be read as a translation model")

    def test_weights_that_are_missing(self, marian):
        """transformers would fill them in at random."""
        weights = load_file(marian / "model.safetensors")
        del weights["model.decoder.layers.1.fc1.weight"]
        save_file(weights, marian / "model.safetensors", {"format": "pt"})
        self.refused(marian, r"lacks 1 weights of the model, such as 'model.decoder.layers.1.fc1.weight'")

    def test_weights_of_another_shape(self, marian):
        values = json.loads((marian / "config.json").read_text()) | {"encoder_ffn_dim": 96}
        (marian / "config.json").write_text(json.dumps(values))
        self.refused(marian, "cannot be read as a translation model")

    def test_a_broken_configuration(self, marian):
        (marian / "config.json").write_text("{")
        self.refused(marian, "no readable configuration and tokenizer")

    @pytest.mark.parametrize("name", ["config.json", "source.spm", "vocab.json"])
    def test_a_missing_file(self, marian, name):
        (marian / name).unlink()
        self.refused(marian, "no readable configuration and tokenizer")

    def test_a_folder_that_is_not_there(self, tmp_path):
        self.refused(tmp_path / "nothing", "no model .*expected a folder that exists")

    def test_a_model_that_only_encodes(self, marian):
        config = BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
        BertModel(config).save_pretrained(marian)
        self.refused(marian, "is a bert model, not an encoder-decoder")

    def test_a_gpu_that_is_not_there(self, folders):
        with pytest.raises(InputError, match="device 'cuda:99' is not there"):
            MarianTranslator(TranslatorConfig(str(folders / "marian"), device="cuda:99"))

    def test_int8(self, folders):
        with pytest.raises(InputError, match="int8"):
            MarianTranslator(TranslatorConfig(str(folders / "marian"), dtype="int8"))


def test_real_captions_are_translated_as_generate_does(captions):
    folder, lines = captions
    translator = load(folder, max_target_tokens=256)
    pieces, hypotheses, scores = search(translator, lines[:20])
    point = translator._checkpoint
    expected = generated(
        translator._model, pieces, start=point.start, end=point.end, pad=point.pad, beam=12, longest=255
    )
    assert hypotheses == expected
    assert all(-2 < score < 0 for score in scores)
    text = translator.translate([lines[0]]).texts[0]
    assert text == AutoTokenizer.from_pretrained(folder).decode(hypotheses[0], skip_special_tokens=True)
