"""Translating with transformers: scores, search, limits, languages, and folders that are refused."""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, BertConfig, BertModel, GenerationConfig

from paranmt_hf import InputError, TranslatorConfig
from paranmt_hf.corpus.translation.checkpoint import Checkpoint
from paranmt_hf.corpus.translation.engines import translator_identity
from paranmt_hf.corpus.translation.transformers import TransformersTranslator
from tests.corpus.translation.tiny_models import (
    FAMILIES,
    LIMIT,
    SENTENCES,
    change_configuration,
    check_scores,
    config,
    load,
    make_marian,
    search,
)
from tests.refused import refused

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")


def generated(model, pieces, *, start, end, pad, beam, longest) -> list[list[int]]:
    """What the `generate` of transformers finds, one sentence at a time, without start and filling."""
    settings = GenerationConfig(
        num_beams=beam,
        early_stopping=True,
        length_penalty=1.0,
        max_new_tokens=longest + len(start) - 1,
        decoder_start_token_id=start[0],
        forced_bos_token_id=start[1] if len(start) > 1 else None,
        eos_token_id=end,
        pad_token_id=pad,
    )
    model.generation_config = settings
    found = []
    for source in pieces:
        ids = model.generate(input_ids=torch.tensor([source]))[0].tolist()[len(start) :]
        found.append(ids[: ids.index(end) + 1] if end in ids else ids)
    return found


@pytest.mark.parametrize("family", FAMILIES)
class TestSearch:
    @pytest.mark.slow
    def test_scores_are_those_of_a_forward_pass(self, folders, family):
        """Sum over the target's tokens, end token included, by their number; the language token in neither."""
        translator = load(folders / family, family)
        assert len(translator._checkpoint.start) == (1 if family == "marian" else 2)
        hypotheses, _ = check_scores(translator, folders / family)
        end = translator._checkpoint.end
        assert len({tuple(ids) for ids in hypotheses}) > 5
        ended = [ids[-1] == end for ids in hypotheses]
        assert any(ended)
        assert not all(ended)
        assert all(len(ids) == LIMIT for ids, done in zip(hypotheses, ended, strict=True) if not done)
        found = translator_identity(config(folders / family, family, backend="transformers"))
        assert found == translator.identity == json.loads(json.dumps(found))
        assert found["target_language"] == FAMILIES[family][1].get("target_language")

    @pytest.mark.slow
    @pytest.mark.parametrize("beam", [1, 12])
    def test_the_hypotheses_are_those_of_generate(self, folders, family, beam):
        translator = load(folders / family, family, beam=beam)
        pieces, hypotheses, _ = search(translator, SENTENCES[::4])
        point = translator._checkpoint
        model = AutoModelForSeq2SeqLM.from_pretrained(folders / family, dtype=torch.float32)
        expected = generated(model, pieces, start=point.start, end=point.end, pad=point.pad, beam=beam, longest=LIMIT)
        assert hypotheses == expected

    @pytest.mark.slow
    def test_company_in_the_batch_changes_nothing(self, folders, family):
        one = load(folders / family, family)
        together = one.translate(SENTENCES)
        small = load(folders / family, family, batch_tokens=20).translate(SENTENCES)
        alone = [one.translate([text]) for text in SENTENCES[:3]]
        assert small.texts == together.texts
        assert np.allclose(small.scores, together.scores, atol=1e-4)
        assert [result.texts[0] for result in alone] == together.texts[:3]
        assert np.allclose([result.scores[0] for result in alone], together.scores[:3], atol=1e-4)


class TestLimits:
    def test_too_long_a_source_has_no_translation(self, folders):
        translator = load(folders / "marian", max_source_tokens=6)
        lengths = [len(ids) for ids in translator._checkpoint.encode(SENTENCES)]
        assert min(lengths) <= 6 < max(lengths)
        result = translator.translate(SENTENCES)
        assert [text is None for text in result.texts] == [length > 6 for length in lengths]
        assert np.isnan(result.scores).tolist() == [length > 6 for length in lengths]

    def test_the_models_positions_are_the_most(self, folders):
        identity = load(folders / "marian", max_target_tokens=9999).identity
        assert (identity["max_source_tokens"], identity["max_target_tokens"]) == (64, 64)
        # The language token takes one position.
        assert load(folders / "nllb", "nllb", max_target_tokens=9999).identity["max_target_tokens"] == 63

    @pytest.mark.slow
    def test_targets_up_to_the_last_position(self, marian):
        weights = load_file(marian / "model.safetensors")
        weights["final_logits_bias"][0, 0] = -1e4  # never ends
        save_file(weights, marian / "model.safetensors", {"format": "pt"})
        _, hypotheses, scores = search(load(marian, max_target_tokens=9999), SENTENCES[:4])
        assert set(map(len, hypotheses)) == {64}
        assert np.isfinite(scores).all()


class TestCheckpoint:
    @pytest.mark.slow
    def test_generation_settings_of_the_checkpoint_have_no_say(self, marian):
        before = load(marian).translate(SENTENCES)
        extras = {"num_beams": 1, "max_length": 3, "no_repeat_ngram_size": 1, "repetition_penalty": 9.0}
        for name in ("config.json", "generation_config.json"):
            change_configuration(marian, name, **extras)
        after = load(marian).translate(SENTENCES)
        assert after.texts == before.texts
        assert np.array_equal(after.scores, before.scores)

    @pytest.mark.slow
    def test_the_bias_of_the_padding_symbol_does_not_matter(self, marian):
        before = load(marian).translate(SENTENCES)
        weights = load_file(marian / "model.safetensors")
        weights["final_logits_bias"][0, -1] = 5.0
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

    @pytest.mark.slow
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
        codec = load(folders / "marian")._checkpoint
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
        with refused():
            Checkpoint(TranslatorConfig(str(tmp_path), target_language="deu"))
        with refused():
            Checkpoint(TranslatorConfig(str(tmp_path), source_language="ces"))

    @pytest.mark.parametrize(
        "settings", [{}, {"source_language": "ces_Latn"}, {"source_language": "cs", "target_language": "eng_Latn"}]
    )
    def test_nllb_wants_both(self, folders, settings):
        with refused():
            Checkpoint(TranslatorConfig(str(folders / "nllb"), **settings))

    @pytest.mark.parametrize(("family", "code"), [("m2m100", "__cs__"), ("nllb", "ces_Latn")])
    def test_the_source_begins_with_its_language(self, folders, family, code):
        codec = load(folders / family, family)._checkpoint
        ids = codec.encode(["Muž vidí dům."])[0]
        assert codec.tokenizer.convert_ids_to_tokens(ids)[0] == code
        assert ids[-1] == codec.end

    @pytest.mark.slow
    def test_the_target_language_steers_the_search(self, folders):
        english = search(load(folders / "nllb", "nllb"))[1]
        german = search(load(folders / "nllb", "nllb", target_language="deu_Latn"))[1]
        assert english != german


class TestRefusals:
    def spoil_weights(self, folder):
        (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:1000])

    def pickle_weights(self, folder):
        torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()

    def drop_weights(self, folder):
        """Transformers would initialise them at random."""
        weights = load_file(folder / "model.safetensors")
        del weights["model.decoder.layers.1.fc1.weight"]
        save_file(weights, folder / "model.safetensors", {"format": "pt"})

    def change_shape(self, folder):
        change_configuration(folder, encoder_ffn_dim=96)

    def break_weights(self, folder):
        weights = load_file(folder / "model.safetensors")
        weights["model.decoder.layers.1.fc1.weight"][0, 0] = torch.nan
        save_file(weights, folder / "model.safetensors", {"format": "pt"})

    def break_buffer(self, folder):
        weights = load_file(folder / "model.safetensors")
        weights["final_logits_bias"] = torch.full_like(load(folder)._model.final_logits_bias, torch.nan)
        save_file(weights, folder / "model.safetensors", {"format": "pt"})

    def name_no_token(self, folder):
        change_configuration(folder, decoder_start_token_id=-1)

    def break_configuration(self, folder):
        (folder / "config.json").write_text("{")

    def remove_everything(self, folder):
        shutil.rmtree(folder)

    def save_encoder(self, folder):
        sizes = BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
        BertModel(sizes).save_pretrained(folder)

    @pytest.mark.parametrize(
        "spoil",
        [
            "spoil_weights",
            "pickle_weights",
            "drop_weights",
            "break_weights",
            "break_buffer",
            "name_no_token",
            "change_shape",
            "break_configuration",
            "remove_everything",
            "save_encoder",
        ],
    )
    def test_folders_that_are_no_translation_model(self, marian, spoil):
        getattr(self, spoil)(marian)
        with refused() as caught:
            load(marian)
        assert "\n" not in str(caught.value)

    def test_a_gpu_that_is_not_there(self, folders):
        with pytest.raises(InputError) as caught:
            TransformersTranslator(TranslatorConfig(str(folders / "marian"), device="cuda:99"))
        assert caught.value.option == "device"


@pytest.mark.slow
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
